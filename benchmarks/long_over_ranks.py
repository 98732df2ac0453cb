"""`auto` on one rank and on two whose rows stay where they are, on generated problems that take it seconds alone.

Each rank makes its own rows. `measure` starts mpirun, which runs `main` here on every rank; the figures are kept beside
the page as JSON. Rules of `auto` may be looked at on the tuning half only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import Table, on_ranks
from bmrm.data.dataset import Dataset

KEPT = Path(__file__).with_name("results") / "long-over-ranks.json"
RANKS = (1, 2)
TOLERANCE, LIMIT, REPETITIONS, ENOUGH, LONG = 1e-6, 60.0, 3, 6.0, 3.0
"""`LIMIT` in seconds; no run begins after `ENOUGH` seconds of a problem; the targets are for those that take `LONG`."""
BLOCKS = 8
"""Pieces in which rows are made, each from a seed of its own: so that they are the same on 1, 2, 4 and 8 ranks."""


@dataclass(frozen=True)
class Rows:
    """How rows are generated.

    Attributes
    ----------
    rows, features, words : rows of so many words (unit length, a few words are frequent), or dense ones for words = 0.
    targets : numbers, or labels of so many classes.
    noise : standard deviations of the scores that are added to them.
    seed : of everything.
    """

    rows: int
    features: int
    words: int
    targets: int = 2
    noise: float = 1.0
    seed: int = 0

    def block(self, number: int) -> Dataset:
        """A piece of the rows."""
        rng = np.random.default_rng([self.seed, number])
        rows = self.rows // BLOCKS
        X = self._sparse(rng, rows) if self.words else self._dense(rng, rows)
        truth = np.random.default_rng(self.seed).standard_normal((self.features, max(1, self.targets - 1)))
        scores = np.asarray(X @ truth)
        scores = scores + self.noise * scores.std() * rng.standard_normal(scores.shape)
        if self.targets > 2:
            return Dataset.from_arrays(X, np.argmax(np.column_stack((scores, np.zeros(rows))), axis=1))
        return Dataset.from_arrays(X, np.where(scores[:, 0] > 0.0, 1, -1) if self.targets else scores[:, 0])

    def _sparse(self, rng: np.random.Generator, rows: int) -> Any:
        columns = (self.features * rng.random((rows, self.words)) ** 3).astype(np.int32).ravel()
        starts = np.arange(rows + 1, dtype=np.int64) * self.words
        X = sp.csr_matrix((rng.random(columns.size) + 0.1, columns, starts), shape=(rows, self.features))
        X.sum_duplicates()
        return sp.csr_matrix(sp.diags(1.0 / sp.linalg.norm(X, axis=1)) @ X)

    def _dense(self, rng: np.random.Generator, rows: int) -> Any:
        d = self.features
        mixed = np.eye(d) + 0.1 * np.random.default_rng([self.seed, d]).standard_normal((d, d))
        return rng.standard_normal((rows, d)) @ mixed / np.sqrt(d)

    def part(self, rank: int, ranks: int) -> Dataset:
        """The rows of one of some ranks."""
        from bmrm.data.joining import join_rows

        return join_rows([self.block(k) for k in range(BLOCKS * rank // ranks, BLOCKS * (rank + 1) // ranks)], "rows")


@dataclass(frozen=True)
class Problem:
    """A loss with l2 on generated rows."""

    half: str
    loss: str
    lam: float
    of: Rows
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For tables."""
        words = f"{self.of.words} words of {self.of.features}" if self.of.words else f"{self.of.features} dense columns"
        return f"{self.loss}, {self.of.rows} rows, {words}, lambda {self.lam:g}"


TEXTS, LONGER = Rows(400_000, 50_000, 60, seed=1), Rows(1_000_000, 100_000, 50, seed=2)
NARROW, DENSE = Rows(2_000_000, 2_000, 20, seed=3), Rows(160_000, 300, 0, seed=4)
PROBLEMS = (
    Problem("tuning", "hinge", 1e-6, TEXTS),
    Problem("judging", "hinge", 3e-7, LONGER),
    Problem("tuning", "logistic", 1e-7, TEXTS),
    Problem("judging", "logistic", 1e-7, LONGER),
    Problem("judging", "squared_hinge", 1e-7, LONGER),
    Problem("tuning", "hinge", 1e-5, NARROW),
    Problem("judging", "quantile", 1e-5, Rows(1_600_000, 3_000, 20, targets=0, seed=5)),
    Problem("tuning", "hinge", 1e-5, DENSE),
    Problem("judging", "logistic", 1e-7, Rows(400_000, 200, 0, seed=6)),
    Problem("tuning", "multiclass_hinge", 1e-5, Rows(200_000, 20_000, 40, targets=8, seed=7)),
    Problem("judging", "multiclass_hinge", 1e-5, Rows(320_000, 10_000, 30, targets=5, seed=8)),
    Problem("tuning", "softmax", 1e-6, Rows(200_000, 20_000, 40, targets=8, seed=7)),
    Problem("judging", "softmax", 1e-6, Rows(320_000, 10_000, 30, targets=5, seed=8)),
    Problem("judging", "quantile", 1e-6, Rows(400_000, 50_000, 60, targets=0, seed=9), {"tau": 0.9}),
)


def measure() -> Table | None:
    """A line for each problem."""
    from bmrm.kernels.workers import usable_cores

    if usable_cores() < max(RANKS):
        return None
    found: dict[str, Any] = {}
    for number, problem in enumerate(PROBLEMS):
        found[problem.name] = {
            str(ranks): on_ranks(ranks, "benchmarks.long_over_ranks", str(number)) for ranks in RANKS
        }
        print(problem.name, json.dumps(found[problem.name]), file=sys.stderr, flush=True)
        KEPT.write_text(json.dumps(found, indent=1) + "\n")
    return table(found)


def table(found: Mapping[str, Any]) -> Table:
    """Of the figures by problem and number of ranks."""
    rows, ratios = [], {"tuning": [], "judging": []}  # type: ignore[var-annotated]
    for problem in PROBLEMS:
        one, two = (found[problem.name][str(ranks)] for ranks in RANKS)
        times = median(two["seconds"]) / median(one["seconds"])
        if median(one["seconds"]) > LONG:
            ratios[problem.half].append(times)
        passes = f"{one['passes']:.0f} -> {two['passes']:.0f}"
        cells = (_cell(one), _cell(two), f"{times:.2f}", passes, two["messages"])
        rows.append((problem.name, problem.half, *cells, one["solver"], two["solver"]))
    means = ", ".join(
        f"{half} {geometric_mean(part):.2f}, at most {max(part):.2f}" for half, part in ratios.items() if part
    )
    return Table(
        "Long problems on one rank and on two",
        "Generated rows of 8 to 80 million entries that stay where they are, l2, no intercept, one thread a rank;"
        f" `auto` to a gap of {TOLERANCE:g}: seconds in the solver, median of up to {REPETITIONS} runs; the gap where"
        f" {LIMIT:g} s do not suffice. Where one rank takes over {LONG:g} s, two take of its time (geometric mean):"
        f" {means}.",
        ("problem", "half", "one rank", "two ranks", "ratio", "passes", "messages", "solver", "solver on two ranks"),
        tuple(rows),
    )


def _cell(run: dict[str, Any]) -> str:
    missed = "" if run["gap"] <= TOLERANCE else f" (gap {run['gap']:.0e})"
    return f"{median(run['seconds']):.2f}{missed}"


def main() -> None:
    """On every rank: the problem of that number; rank 0 prints the figures as JSON."""
    from bmrm.losses import LOSSES
    from bmrm.mpi.launch import open_group
    from bmrm.mpi.leading import lead
    from bmrm.mpi.shared import shared_risk

    group, problem = open_group(), PROBLEMS[int(sys.argv[1])]
    mine = problem.of.part(group.rank, group.size)
    loss = LOSSES.make(problem.loss, dict(problem.options))
    risk = shared_risk(mine, loss, group, threads=1, share_rows=False)
    solve: Callable[[Any], dict[str, Any]] = lambda risk: _runs(risk, problem.lam)  # noqa: E731
    found = lead(risk, group, solve)
    if group.rank == 0:
        print(json.dumps(found))


def _runs(risk: Any, lam: float) -> dict[str, Any]:
    """The last of some runs, with the seconds of all."""
    from bmrm.problem import ability
    from bmrm.problem.abilities import Traffic
    from bmrm.regularizers.l2 import L2
    from bmrm.solvers import SOLVERS

    traffic, seconds, messages = ability(risk, Traffic), [], 0
    SOLVERS.make("auto", {"tolerance": 0.1}).minimize(risk, L2(lam))  # loads kernels
    while len(seconds) < REPETITIONS and sum(seconds) < ENOUGH:
        before = 0 if traffic is None else traffic.so_far().messages
        solution = SOLVERS.make("auto", {"tolerance": TOLERANCE, "time_limit": LIMIT}).minimize(risk, L2(lam))
        messages = 0 if traffic is None else traffic.so_far().messages - before
        seconds.append(solution.seconds)
    gap = float(np.nan_to_num(solution.relative_gap, posinf=1e9))
    return {
        "seconds": seconds,
        "gap": gap,
        "passes": solution.passes,
        "messages": messages,
        "solver": solution.solver,
    }


if __name__ == "__main__":
    main()
