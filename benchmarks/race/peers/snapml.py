"""Snap ML: its `regularizer` multiplies the penalty of a sum over rows; its squared hinge lacks the factor 1/2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.race.peers import enter
from benchmarks.race.peers.estimators import L2, MANY, Estimator, Make
from benchmarks.race.problem import Task

TOLERANCES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
FIXED: dict[str, Any] = {"max_iter": MANY, "fit_intercept": False, "n_jobs": 1, "random_state": 0}


def _svm(loss: str, factor: float) -> Make:
    def make(task: Task, o: Mapping[str, Any]) -> Any:
        from snapml import SupportVectorMachine

        return SupportVectorMachine(loss=loss, regularizer=factor * task.problem.l2 * task.rows, **FIXED, **o)

    return make


def _logistic(dual: bool) -> Make:
    def make(task: Task, o: Mapping[str, Any]) -> Any:
        from snapml import LogisticRegression

        problem = task.problem
        return LogisticRegression(regularizer=problem.lam * task.rows, penalty=problem.penalty, dual=dual, **FIXED, **o)

    return make


def _linear(dual: bool) -> Make:
    def make(task: Task, o: Mapping[str, Any]) -> Any:
        from snapml import LinearRegression

        problem = task.problem
        return LinearRegression(regularizer=problem.lam * task.rows, penalty=problem.penalty, dual=dual, **FIXED, **o)

    return make


ABOUT: dict[str, Any] = {"tolerances": TOLERANCES, "family": "snapml", "module": "snapml"}
enter(Estimator("snapml SVM", {"hinge": L2}, _svm("hinge", 1.0), **ABOUT))
enter(Estimator("snapml SVM squared", {"squared_hinge": L2}, _svm("squared_hinge", 2.0), **ABOUT))
enter(Estimator("snapml LR dual", {"logistic": L2}, _logistic(True), **ABOUT))
enter(Estimator("snapml LR primal", {"logistic": ("l2", "l1")}, _logistic(False), **ABOUT))
enter(Estimator("snapml linear dual", {"least_squares": L2}, _linear(True), **ABOUT))
enter(Estimator("snapml linear primal", {"least_squares": ("l2", "l1")}, _linear(False), **ABOUT))
