"""The race: bmrm against other programs on the same objectives; `python -m benchmarks.race --help`."""
