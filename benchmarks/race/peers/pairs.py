"""Pairwise losses as a hinge over explicit differences, given to LIBLINEAR: what a user without RankSVM does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.race.competitor import Prepared, Rung, Trial, rungs
from benchmarks.race.peers import enter, not_installed
from benchmarks.race.peers.liblinear import TOLERANCES
from benchmarks.race.problem import Task

MOST = 20_000_000
"""Entries of the differences."""
Rows = NDArray[np.int64]


def pairs_of(task: Task) -> Iterator[tuple[Rows, Rows]]:
    """Rows that are to be above, rows that are to be below: all of one with all of the other."""
    y, groups = task.y, task.dataset.targets.groups
    together = [np.arange(task.rows)] if groups is None else [np.flatnonzero(groups == g) for g in np.unique(groups)]
    for rows in together:
        for grade in np.unique(y[rows])[1:]:
            yield rows[y[rows] == grade], rows[y[rows] < grade]


@dataclass(frozen=True)
class Pairs:
    """`-s 3` on x_i - x_j; the differences are made beforehand, untimed."""

    name: str = "liblinear -s 3 on pairs"
    family: str = "liblinear"

    def missing(self) -> str:
        return not_installed("liblinear")

    def serves(self, task: Task) -> bool:
        if task.loss not in ("rank_hinge", "roc_area") or task.problem.penalty != "l2":
            return False
        pairs = sum(high.size * low.size for high, low in pairs_of(task))
        return 2 * pairs * task.dataset.nnz <= MOST * task.rows

    def ladder(self, task: Task) -> Sequence[Rung]:
        return rungs("-e", TOLERANCES)

    def prepare(self, task: Task) -> Prepared:
        from liblinear.liblinear import problem
        from liblinear.liblinearutil import train
        from scipy.sparse import csr_matrix

        every = [(np.repeat(high, low.size), np.tile(low, high.size)) for high, low in pairs_of(task)]
        first, second = (np.concatenate(side) for side in zip(*every, strict=True))
        y = np.where(np.arange(first.size) % 2 == 0, 1.0, -1.0)  # it wants two classes
        X = csr_matrix(task.X)
        differences = csr_matrix((X[first] - X[second]).multiply(y[:, None]))
        given = problem(y, differences, bias=-1)
        cost = 1.0 / (task.problem.l2 * first.size)

        def trial(rung: Rung) -> Trial:
            found: list[Any] = []
            options = f"-s 3 -c {cost!r} -e {rung.options['-e']!r} -q"

            def weights() -> Any:
                w = np.array(np.ctypeslib.as_array(found[0].w, (found[0].nr_feature,)))
                w = w if found[0].label[0] > 0 else -w
                return np.concatenate([w, np.zeros(task.features - w.size)])

            return Trial(lambda: found.append(train(given, options)), weights)

        return trial


enter(Pairs())
