"""celer: lasso, elastic net and sparse logistic regression with working sets and dual extrapolation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.race.peers import enter
from benchmarks.race.peers.estimators import Estimator, total
from benchmarks.race.problem import Task

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
MANY = 1000


def _lasso(task: Task, o: Mapping[str, Any]) -> Any:
    from celer import ElasticNet, Lasso

    problem = task.problem
    if not problem.l2:
        return Lasso(alpha=problem.l1, fit_intercept=False, max_iter=MANY, **o)
    return ElasticNet(alpha=problem.lam, l1_ratio=problem.l1 / problem.lam, fit_intercept=False, max_iter=MANY, **o)


def _logistic(task: Task, o: Mapping[str, Any]) -> Any:
    from celer import LogisticRegression

    return LogisticRegression(C=total(task), max_iter=MANY, **o)


ABOUT: dict[str, Any] = {"tolerances": TOLERANCES, "family": "celer", "module": "celer", "columns": True}
enter(Estimator("celer Lasso", {"least_squares": ("l1", "elastic_net")}, _lasso, **ABOUT))
enter(Estimator("celer logistic", {"logistic": ("l1",)}, _logistic, **ABOUT))
