"""The cells of a study, run one after another or by several processes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path

from benchmarks.papers.results import Results, identity
from benchmarks.papers.study import Row, Study, studies


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
