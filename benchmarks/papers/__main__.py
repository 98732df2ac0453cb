"""`python -m benchmarks.papers [NAME ...]`: rerun tables and figures of the papers, and write pages from their rows.

Rows go to `runs/papers/NAME.csv`, with `--keep` to the files of the repository, from which the pages of the site are
made. A cell that is there already is not run again; to run it again, remove its rows.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from benchmarks.harness import SHARED  # noqa: E402
from benchmarks.papers import page  # noqa: E402
from benchmarks.papers.results import KEPT, Results, identity  # noqa: E402
from benchmarks.papers.study import Row, Study, studies  # noqa: E402

RUNS = Path(__file__).resolve().parents[2] / "runs" / "papers"


def main() -> None:
    """Run what is asked for and not there yet."""
    known = studies()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*known, []], help="studies; all without a name")
    parser.add_argument("--quick", action="store_true", help="some cells of each, ten minutes in all")
    parser.add_argument("--seed", type=int, default=0, help="of folds, splits and samples (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with cells of its own (default 1)")
    parser.add_argument("--keep", action="store_true", help="go on with the rows of the repository; write its pages")
    parser.add_argument("--page", action="store_true", help="write the pages of the repository, run nothing")
    given = parser.parse_args()
    folder = KEPT if given.keep else RUNS
    if not given.page and not SHARED.is_dir():
        parser.exit(2, f"the data sets of the studies are not there: {SHARED}\n")
    for name in [] if given.page else given.names or known:
        run(known[name], folder, "quick" if given.quick else "full", given.seed, given.jobs)
    if given.keep or given.page:
        print(*page.write(), sep="\n")
    else:
        print(*page.write(folder, folder / "pages"), sep="\n")


def run(study: Study, folder: Path, size: str, seed: int, jobs: int = 1) -> None:
    """The cells of a study that have no rows in the folder yet.

    Several processes share the cores: times are of the processor. A study of wall clocks is alone.
    """
    results = Results(study, folder)
    done = results.done(seed)
    todo = [cell for cell in study.cells(size) if identity(cell) not in done]
    work = [(study.name, cell, seed) for cell in todo]
    jobs = 1 if study.alone else min(jobs, len(todo))
    for number, (cell, (rows, taken)) in enumerate(zip(todo, _all_run(work, jobs)), 1):
        results.add(cell, seed, rows, taken)
        print(f"{study.name} {number}/{len(todo)} {identity(cell)} ({taken:.1f} s)", flush=True)


def _all_run(work: Sequence[tuple[str, Row, int]], jobs: int) -> Iterator[tuple[Sequence[Row], float]]:
    if jobs <= 1:
        yield from map(_run, work)
        return
    with get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(_run, work)


def _run(work: tuple[str, Row, int]) -> tuple[Sequence[Row], float]:
    """The rows of a cell, and the seconds that it took."""
    name, cell, seed = work
    begin = time.perf_counter()
    rows = studies()[name].run(cell, seed)
    return rows, time.perf_counter() - begin


if __name__ == "__main__":
    main()
