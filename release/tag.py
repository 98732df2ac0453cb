"""`python -m release.tag [TAG]`: whether the tag, the version, the changelog and the citation say the same."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import yaml

from release.project import ROOT, project


def disagreements(tag: str | None = None, root: Path = ROOT) -> list[str]:
    """What is wrong, a sentence each.

    Parameters
    ----------
    tag : of the commit that is released, such as "v1.2.3"; None before there is one.
    root : the checkout.
    """
    version = project(root)["version"]
    wrong = []
    if tag is not None and tag != f"v{version}":
        wrong.append(f"the tag is {tag}, expected v{version}, the version in pyproject.toml")
    heading = re.search(
        rf"^## {re.escape(version)} - (\d{{4}}-\d{{2}}-\d{{2}})$", (root / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    if heading is None:
        wrong.append(f"CHANGELOG.md has no heading `## {version} - YYYY-MM-DD`")
    elif str(citation.get("date-released")) != heading[1]:
        wrong.append(f"CITATION.cff: date-released is {citation.get('date-released')}, in CHANGELOG.md {heading[1]}")
    if citation.get("version") != version:
        wrong.append(f"CITATION.cff: version is {citation.get('version')}, expected {version}")
    return wrong


def main(tag: str | None = None) -> int:
    """Print what is wrong; returns the exit status."""
    wrong = disagreements(tag)
    print("\n".join(wrong) or f"version {project()['version']}: all agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
