"""cyanure: accelerated variance-reduced methods (MISO, SVRG; Catalyst, QNing), which stop at a duality gap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.race.peers import enter
from benchmarks.race.peers.estimators import L2, Estimator, Make
from benchmarks.race.problem import Task

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
FIXED: dict[str, Any] = {"fit_intercept": False, "max_iter": 5_000, "n_threads": 1, "verbose": False}
EVERY = 2
"""Epochs between two looks at the gap, and so the least that it takes."""


def _machine(loss: str) -> Make:
    def make(task: Task, o: Mapping[str, Any]) -> Any:
        from cyanure import estimators

        l1, l2 = task.problem.l1, task.problem.l2
        penalty = {"l2": "l2", "l1": "l1", "elastic_net": "elasticnet"}[task.problem.penalty]
        lambdas = {"lambda_1": l1 or l2, "lambda_2": l2 if l1 else 0.0}
        given = {"penalty": penalty, "duality_gap_interval": EVERY, **lambdas, **FIXED, **o}
        return estimators.Regression(**given) if loss == "square" else estimators.Classifier(loss=loss, **given)

    return make


ABOUT: dict[str, Any] = {"tolerances": TOLERANCES, "family": "cyanure", "module": "cyanure"}
ALL = ("l2", "l1", "elastic_net")
enter(Estimator("cyanure logistic", {"logistic": ALL}, _machine("logistic"), **ABOUT))
enter(Estimator("cyanure squared hinge", {"squared_hinge": L2}, _machine("sqhinge"), **ABOUT))
enter(Estimator("cyanure square", {"least_squares": ALL}, _machine("square"), **ABOUT))
