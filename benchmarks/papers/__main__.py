"""`python -m benchmarks.papers [NAME ...]`: rerun tables and figures of the papers, and write pages from their rows.

Rows go to `runs/papers/NAME.csv`, with `--keep` to the files of the repository, from which the pages of the site are
made. A cell that is there already is not run again; to run it again, remove its rows.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from benchmarks.harness import SHARED  # noqa: E402
from benchmarks.papers import page  # noqa: E402
from benchmarks.papers.results import KEPT  # noqa: E402
from benchmarks.papers.runner import run  # noqa: E402
from benchmarks.papers.study import studies  # noqa: E402

RUNS = Path(__file__).resolve().parents[2] / "runs" / "papers"


def main() -> None:
    """Run what is asked for and not there yet."""
    known = studies()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*known, []], help="studies; all without a name")
    size = parser.add_mutually_exclusive_group()
    size.set_defaults(size="full")
    size.add_argument(
        "--quick", action="store_const", dest="size", const="quick", help="some cells of each, ten minutes in all"
    )
    size.add_argument("--tiny", action="store_const", dest="size", const="tiny", help="a cell or two of each")
    parser.add_argument("--seed", type=int, default=0, help="of folds, splits and samples (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with cells of its own (default 1)")
    parser.add_argument("--folder", type=Path, default=RUNS, help="of the rows and pages (default runs/papers)")
    parser.add_argument("--keep", action="store_true", help="go on with the rows of the repository; write its pages")
    parser.add_argument("--page", action="store_true", help="write the pages of the repository, run nothing")
    given = parser.parse_args()
    folder = KEPT if given.keep else given.folder
    if not given.page and not SHARED.is_dir():
        parser.exit(2, f"the data sets of the studies are not there: {SHARED}\n")
    for name in [] if given.page else given.names or known:
        run(known[name], folder, given.size, given.seed, given.jobs)
    if given.keep or given.page:
        print(*page.write(), sep="\n")
    else:
        print(*page.write(folder, folder / "pages"), sep="\n")


if __name__ == "__main__":
    main()
