"""dlib's RankSVM (cutting planes, O(n log n) a pass); it knows two grades. Built from source: needs a C++ compiler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.race.competitor import Prepared, Rung, Trial, rungs
from benchmarks.race.peers import enter, not_installed
from benchmarks.race.problem import Task

MOST_ENTRIES = 3_000_000
"""Its Python vectors are slow to fill."""


@dataclass(frozen=True)
class Rank:
    """`svm_rank_trainer`, or the one for sparse vectors; its C is 1 / lambda."""

    name: str = "dlib svm_rank"
    family: str = "dlib"

    def missing(self) -> str:
        return not_installed("dlib")

    def serves(self, task: Task) -> bool:
        fits = task.loss in ("rank_hinge", "roc_area") and task.problem.penalty == "l2"
        return fits and np.unique(task.y).size == 2 and task.dataset.nnz <= MOST_ENTRIES

    def ladder(self, task: Task) -> Sequence[Rung]:
        return rungs("epsilon", (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7))

    def prepare(self, task: Task) -> Prepared:
        import dlib

        given = _pairs(task)
        trainer = dlib.svm_rank_trainer_sparse() if task.sparse else dlib.svm_rank_trainer()
        trainer.c = 1.0 / task.problem.l2

        def trial(rung: Rung) -> Trial:
            found: list[Any] = []
            trainer.epsilon = rung.options["epsilon"]

            def weights() -> Any:
                w = np.zeros(task.features)
                for place, weight in enumerate(found[0].weights):
                    if task.sparse:
                        place, weight = weight.first, weight.second
                    if place < w.size:
                        w[place] += weight
                return w

            return Trial(lambda: found.append(trainer.train(given)), weights)

        return trial


def _pairs(task: Task) -> Any:
    """The rows of each query with the higher grade, and the others."""
    import dlib

    groups, y = task.dataset.targets.groups, task.y
    groups = np.zeros(task.rows, np.int64) if groups is None else groups
    every = dlib.sparse_ranking_pairs() if task.sparse else dlib.ranking_pairs()
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        if np.unique(y[rows]).size < 2:
            continue
        pair = dlib.sparse_ranking_pair() if task.sparse else dlib.ranking_pair()
        pair.relevant, pair.nonrelevant = (_vectors(task, rows[(y[rows] == y.max()) == high]) for high in (True, False))
        every.append(pair)
    return every


def _vectors(task: Task, rows: Any) -> Any:
    import dlib

    if not task.sparse:
        found = dlib.vectors()
        found.extend([dlib.vector(task.X[i]) for i in rows])
        return found
    found, X = dlib.sparse_vectors(), task.X
    for i in rows:
        entries = slice(X.indptr[i], X.indptr[i + 1])
        vector = dlib.sparse_vector()
        vector.extend([dlib.pair(int(j), float(v)) for j, v in zip(X.indices[entries], X.data[entries], strict=True)])
        found.append(vector)
    return found


enter(Rank())
