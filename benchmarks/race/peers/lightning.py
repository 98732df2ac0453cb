"""lightning (`sklearn-contrib-lightning`): dual and primal coordinate descent; few Pythons can still build it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.race.peers import enter
from benchmarks.race.peers.estimators import L2, MANY, Estimator, Make, total
from benchmarks.race.problem import Task


def _dual(loss: str) -> Make:
    def make(task: Task, o: Mapping[str, Any]) -> Any:
        from lightning.classification import LinearSVC

        factor = 0.5 if loss == "squared_hinge" else 1.0
        return LinearSVC(C=factor * total(task), loss=loss, max_iter=MANY, random_state=0, **o)

    return make


def _primal(task: Task, o: Mapping[str, Any]) -> Any:
    from lightning.classification import CDClassifier

    loss = {"logistic": "log", "squared_hinge": "squared_hinge"}[task.loss]
    factor = 0.5 if task.loss == "squared_hinge" else 1.0
    cost = factor / task.rows
    return CDClassifier(loss=loss, penalty="l1", C=cost, alpha=task.problem.l1, max_iter=MANY, random_state=0, **o)


ABOUT: dict[str, Any] = {"family": "lightning", "module": "lightning.classification"}
enter(Estimator("lightning SVC", {"hinge": L2}, _dual("hinge"), **ABOUT))
enter(Estimator("lightning SVC squared", {"squared_hinge": L2}, _dual("squared_hinge"), **ABOUT))
enter(Estimator("lightning CD", {"logistic": ("l1",), "squared_hinge": ("l1",)}, _primal, columns=True, **ABOUT))
