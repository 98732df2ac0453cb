"""Two threads against one on large random problems: `auto`, and each solver that rules have it choose from.

    python -m benchmarks.threaded_shapes --problems 28 --seed N

On an idle machine: times are by the clock. Figures are kept for each problem as they are found, and those found are not
measured again. The rule of `auto` on threads was chosen by some fifty problems drawn by an earlier form of this.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import Table
from benchmarks.random_shapes import CLASSES, Kept, kept_table, parser, rows_of, targets_of
from bmrm.data.dataset import Dataset
from bmrm.kernels.compiling import COMPILING
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, Risk
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

KEPT = Path(__file__).with_name("results") / "threaded-shapes.json"
TOLERANCE, LIMIT, LATE, SHORTEST = 1e-6, 6.0, 3.0, 0.5
"""A solver may take LIMIT seconds at most, LATE times what another took, but SHORTEST in any case."""
LEAST, MOST = 3e6, 3e7
"""Products of a pass: entries times scores of a row."""
LONG = 0.3
"""Seconds of a fit on one thread from which on a second thread is expected to serve."""
SMOOTH = "dual_coordinate", "newton", "lbfgs"
KINKED = "dual_coordinate", "semismooth_newton", "line_search_bundle"
CANDIDATES: Mapping[str, tuple[str, ...]] = {
    "hinge": KINKED,
    "quantile": KINKED,
    "logistic": SMOOTH,
    "squared_hinge": SMOOTH,
    "huber": SMOOTH,
    "softmax": SMOOTH,
    "multiclass_hinge": KINKED,
}
"""Solvers by loss; each loss has as many problems."""


class Problem:
    """Large rows, a loss, a lambda (scaled 1e-3 to 1e3, l2) and perhaps a free intercept, drawn by seed and number."""

    def __init__(self, seed: int, number: int) -> None:
        rng = np.random.default_rng([seed, number])
        self.loss = list(CANDIDATES)[number % len(CANDIDATES)]
        task = LOSSES.make(self.loss).task
        scores = CLASSES if task == "multiclass" else 1
        X = rows_of(rng, MOST / scores)
        while _entries(X) * scores < LEAST:
            X = rows_of(rng, MOST / scores)
        self.data = Dataset.from_arrays(X, targets_of(rng, X, task, self.loss))
        self.free = bool(rng.random() < 0.3)
        squares = float(X.multiply(X).sum() if sp.issparse(X) else (X * X).sum()) / X.shape[0]
        self.scaled = 10.0 ** rng.uniform(-3.0, 3.0)
        self.omega = L2(self.scaled * squares / X.shape[0])
        full = f"{_entries(X) / X.shape[0]:.0f} entries" if sp.issparse(X) else "dense"
        self.title = f"{self.loss}, {X.shape[0]} x {X.shape[1]}, {full}, scaled lambda {self.scaled:.1e}"
        self.title += ", free intercept" if self.free else ""

    def seconds(self, solver: str, threads: int, limit: float) -> float | None:
        """By the clock, kernels being there; None where the gap is not reached in time, or the solver does not fit."""
        while True:
            compiled, begin = COMPILING.seconds, time.perf_counter()
            end = begin + limit
            late: Callable[[Any], bool] = lambda line, end=end: time.perf_counter() > end  # noqa: E731
            risk: Risk = LinearRisk(self.data, LOSSES.make(self.loss), threads=threads)
            risk = FreeIntercept(risk) if self.free else risk
            try:
                found = SOLVERS.make(solver, {"tolerance": TOLERANCE}).minimize(risk, self.omega, callback=late)
            except IncompatibleError:
                return None
            if COMPILING.seconds == compiled:
                return float(f"{time.perf_counter() - begin:.3g}") if found.converged else None


def _entries(X: Any) -> int:
    return int(X.nnz if sp.issparse(X) else X.size)


def measured(problem: Problem) -> dict[str, Any]:
    """The figures of a problem: of `auto` and each solver, on one thread and on two."""
    found: dict[str, Any] = {"problem": problem.title, "loss": problem.loss, "seconds": {}}
    best = LIMIT / LATE
    for solver in ("auto", *CANDIDATES[problem.loss]):
        limit = LIMIT if solver == "auto" else max(SHORTEST, LATE * best)
        took = [problem.seconds(solver, threads, limit) for threads in (1, 2)]
        found["seconds"][solver] = took
        best = min([best, *(one for one in took if one is not None)])
    return found


def table(found: Sequence[Mapping[str, Any]], seed: int) -> Table:
    """By loss: what a second thread gives, and `auto` on two against the best solver on two."""
    rows = [(loss, *_cells([one for one in found if one["loss"] == loss])) for loss in CANDIDATES]
    return Table(
        "Two threads against one, on random shapes",
        f"{len(found)} large random problems of seed {seed} (the rule on threads was chosen by others): {LEAST:.0e} to"
        f" {MOST:.0e} products a pass, dense or sparse, l2, scaled lambda 1e-3 to 1e3, to a gap of {TOLERANCE:g}, by"
        f" the clock. `auto` on one thread over `auto` on two, of fits that take over {LONG:g} s on one: problems,"
        " geometric mean, least and largest. Solvers alone, one thread over two: geometric means over problems that"
        " both solve. Last, `auto` on two threads over the fastest solver on two: geometric mean and largest. The"
        f" figures are those of `python -m benchmarks.threaded_shapes --problems {len(found)} --seed {seed}`.",
        ("loss", "problems", "auto", "least", "most", *_all_solvers(), "auto / best", "worst"),
        (*rows, ("all", *_cells(found))),
    )


def _all_solvers() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in CANDIDATES.values() for name in names))


def _cells(found: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    gains = [g for one in found for g in _gains(one["seconds"], "auto", LONG)]
    behind = [b for one in found for b in _behind(one["seconds"])]
    alone = [[g for one in found for g in _gains(one["seconds"], name, 0.0)] for name in _all_solvers()]
    extremes = (min, max)
    return (
        str(len(gains)),
        _mean(gains),
        *(f"{take(gains):.2f}" if gains else "-" for take in extremes),
        *map(_mean, alone),
        _mean(behind),
        f"{max(behind):.2f}" if behind else "-",
    )


def _gains(seconds: Mapping[str, Sequence[float | None]], solver: str, least: float) -> list[float]:
    """One thread over two; nothing where one of them did not get there."""
    one, two = seconds.get(solver, (None, None))
    return [one / two] if one is not None and two is not None and one >= least else []


def _behind(seconds: Mapping[str, Sequence[float | None]]) -> list[float]:
    others = [two for name, (_, two) in seconds.items() if name != "auto" and two is not None]
    auto = seconds["auto"][1]
    return [] if not others else [math.inf if auto is None else auto / min(others)]


def _mean(values: Sequence[float]) -> str:
    there = [one for one in values if one < math.inf]
    return f"{geometric_mean(there):.2f}" if there else "-"


def measure() -> Table | None:
    """Of the figures that are kept; None where there are none."""
    return kept_table(KEPT, table)


def main() -> None:
    """Measure what is not kept yet, and print the table."""
    options = parser("threaded_shapes", __doc__, KEPT, 28).parse_args()
    kept = Kept(options.kept, options.seed)
    for number in kept.missing(options.problems):
        kept.note(number, measured(Problem(options.seed, number)))
    made = kept_table(options.kept, table)
    print("" if made is None else made.markdown())


if __name__ == "__main__":
    main()
