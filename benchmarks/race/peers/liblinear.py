"""LIBLINEAR by its own Python package (`liblinear-official`), all solvers that fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.race.competitor import Prepared, Rung, Trial, Vector, rungs
from benchmarks.race.peers import enter, not_installed
from benchmarks.race.problem import Task

TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)


@dataclass(frozen=True)
class Liblinear:
    """One `-s`.

    `losses` gives, for each loss, the weight of a row's loss in its own terms over ours: LIBLINEAR's squared losses
    lack the factor 1/2, so that theirs is 1/2.
    """

    solver: int
    losses: Mapping[str, float]
    penalty: str = "l2"
    name: str = field(init=False)
    family: str = "liblinear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"liblinear -s {self.solver}")

    def missing(self) -> str:
        return not_installed("liblinear")

    def serves(self, task: Task) -> bool:
        median = task.problem.options.get("tau", 0.5) == 0.5
        return task.loss in self.losses and task.problem.penalty == self.penalty and median

    def ladder(self, task: Task) -> Sequence[Rung]:
        return rungs("-e", TOLERANCES)

    def prepare(self, task: Task) -> Prepared:
        from liblinear.liblinear import problem
        from liblinear.liblinearutil import train
        from scipy.sparse import csr_matrix

        X, y = task.copied()
        given = problem(task.classes.astype(float) if task.labels.size else y, csr_matrix(X), bias=-1)
        cost = self.losses[task.loss] / (task.problem.lam * task.rows)
        tube = task.problem.options.get("epsilon", 0.0)

        def trial(rung: Rung) -> Trial:
            found: list[Any] = []
            options = f"-s {self.solver} -c {cost!r} -e {rung.options['-e']!r} -q"
            if self.solver in (11, 12, 13):
                options += f" -p {tube!r}"
            return Trial(lambda: found.append(train(given, options)), lambda: _weights(found[0], task))

        return trial


def _weights(model: Any, task: Task) -> Vector:
    """w of the model; columns in the order of the labels, the first of two being the one with positive scores."""
    features, columns = model.nr_feature, model.nr_class if model.nr_class > 2 else 1
    w = np.array(np.ctypeslib.as_array(model.w, (features * columns,)))
    if not task.labels.size:
        binary = model.nr_class == 2 and bool(model.label)
        return _padded(-w if binary and model.label[0] < 0 else w, task.features)
    if columns == 1:  # two classes of several: the scores of the first, and their opposite
        pair = np.stack([w, -w], axis=1) / 2.0
        return pair[:, np.argsort(model.label[:2])].ravel()
    return w.reshape(features, columns)[:, np.argsort(model.label[:columns])].ravel()


def _padded(w: Vector, features: int) -> Vector:
    """Trailing columns without an entry are unknown to LIBLINEAR."""
    return np.concatenate([w, np.zeros(features - w.size)])


enter(Liblinear(0, {"logistic": 1.0}))
enter(Liblinear(1, {"squared_hinge": 0.5}))
enter(Liblinear(2, {"squared_hinge": 0.5}))
enter(Liblinear(3, {"hinge": 1.0}))
enter(Liblinear(4, {"multiclass_hinge": 1.0}))
enter(Liblinear(5, {"squared_hinge": 0.5}, "l1"))
enter(Liblinear(6, {"logistic": 1.0}, "l1"))
enter(Liblinear(7, {"logistic": 1.0}))
enter(Liblinear(11, {"squared_epsilon_insensitive": 0.5}))
enter(Liblinear(12, {"squared_epsilon_insensitive": 0.5}))
enter(Liblinear(13, {"epsilon_insensitive": 1.0, "least_absolute_deviation": 1.0, "quantile": 0.5}))
