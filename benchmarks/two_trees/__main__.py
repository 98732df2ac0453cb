"""`python -m benchmarks.two_trees results|speed OLD_TREE`: this tree against another checkout of the package."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path


def main() -> int:
    """Run one comparison; the exit status is 1 where results differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.two_trees", description=__doc__)
    parser.add_argument("what", choices=["results", "speed"])
    parser.add_argument("old_tree", type=Path, help="a checkout of the package as it was before")
    parser.add_argument("--only", default="", metavar="TEXT", help="the cases with this text in their names")
    given = parser.parse_args()
    module = importlib.import_module(f"benchmarks.two_trees.{given.what}")
    return int(module.measure(given.old_tree.resolve(), given.only))


if __name__ == "__main__":
    sys.exit(main())
