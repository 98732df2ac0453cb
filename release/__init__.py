"""What a release is checked by: lower bounds of dependencies, the wheel, the tag.

`make test-lowest`, `make wheel-test` and `python -m release.tag v1.2.3`; see `docs/decisions/releases.md`.
"""
