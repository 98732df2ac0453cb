"""Estimators in the manner of scikit-learn, whichever package they are from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.race.competitor import Prepared, Rung, Trial, rungs
from benchmarks.race.peers import not_installed
from benchmarks.race.problem import Task

Make = Callable[[Task, Mapping[str, Any]], Any]
"""An unfitted estimator from the task and the options of a rung."""
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
MANY = 100_000
"""Iterations that no tolerance needs before the time limit."""
MOST_DENSE = 80_000_000
"""Entries of a dense copy, 640 MB."""
L2 = ("l2",)


@dataclass(frozen=True)
class Estimator:
    """One estimator class with one of its solvers.

    Attributes
    ----------
    losses : names of losses, each with the regularizers that it can have.
    dense : whether it wants a dense array, which is made where that has at most `MOST_DENSE` entries.
    columns : whether it wants its matrix by columns.
    limit : whether the task is one that it was made for, besides.
    compiles : whether its first run compiles, which is then done once, before the processes of the race are forked.
    """

    name: str
    losses: Mapping[str, tuple[str, ...]]
    make: Make
    tolerances: Sequence[float] = TOLERANCES
    dense: bool = False
    columns: bool = False
    limit: Callable[[Task], bool] = lambda task: True
    family: str = "scikit-learn"
    module: str = "sklearn"
    compiles: bool = False

    def missing(self) -> str:
        return not_installed(self.module)

    def serves(self, task: Task) -> bool:
        fits = task.problem.penalty in self.losses.get(task.loss, ())
        return fits and (not self.dense or task.rows * task.features <= MOST_DENSE) and self.limit(task)

    def ladder(self, task: Task) -> Sequence[Rung]:
        return rungs("tol", self.tolerances)

    def prepare(self, task: Task) -> Prepared:
        X, y = task.copied()
        if task.labels.size:
            y = task.classes.astype(np.float64)
        if self.dense and task.sparse:
            X = np.ascontiguousarray(X.toarray())
        if self.columns:
            X = np.asfortranarray(X) if isinstance(X, np.ndarray) else X.tocsc()

        def trial(rung: Rung) -> Trial:
            estimator = self.make(task, rung.options)
            return Trial(lambda: estimator.fit(X, y) and None, lambda: weights_of(estimator))

        return trial


def weights_of(estimator: Any) -> Any:
    """`coef_` as bmrm lays out w: (features, classes) in C order."""
    coefficients = np.asarray(estimator.coef_)
    return coefficients.ravel() if coefficients.ndim == 1 or len(coefficients) == 1 else coefficients.T.ravel()


def total(task: Task) -> float:
    """C of a sum over rows with 1/2 ||w||^2 or ||w||_1: 1 / (lambda m)."""
    return 1.0 / (task.problem.lam * task.rows)
