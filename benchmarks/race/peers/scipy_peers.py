"""SciPy: what a user writes himself: L-BFGS-B on NumPy formulas, and HiGHS on the linear program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.race.competitor import Prepared, Rung, Trial, rungs
from benchmarks.race.peers import enter
from benchmarks.race.problem import Task

Array = NDArray[np.float64]
MOST_CONSTRAINTS = 60_000
"""Rows of the linear programs that are tried."""


def _huber(f: Array, y: Array, o: dict[str, Any]) -> tuple[float, Array]:
    r, delta = f - y, o.get("delta", 1.0)
    slope = np.clip(r, -delta, delta)
    return float(np.sum(slope * (r - 0.5 * slope))), slope


def _poisson(f: Array, y: Array, o: dict[str, Any]) -> tuple[float, Array]:
    e = np.exp(np.minimum(f, 700.0))
    return float(np.sum(e - y * f)), e - y


def _logistic(f: Array, y: Array, o: dict[str, Any]) -> tuple[float, Array]:
    return float(np.sum(np.logaddexp(0.0, -y * f))), -y * expit(-y * f)


def _squared_hinge(f: Array, y: Array, o: dict[str, Any]) -> tuple[float, Array]:
    short = np.maximum(0.0, 1.0 - y * f)
    return 0.5 * float(short @ short), -y * short


def _tube(f: Array, y: Array, o: dict[str, Any]) -> tuple[float, Array]:
    slope = np.sign(f - y) * np.maximum(0.0, np.abs(f - y) - o.get("epsilon", 0.0))
    return 0.5 * float(slope @ slope), slope


SMOOTH: dict[str, Callable[[Array, Array, dict[str, Any]], tuple[float, Array]]] = {
    "huber": _huber,
    "poisson": _poisson,
    "logistic": _logistic,
    "squared_hinge": _squared_hinge,
    "least_squares": _tube,
    "squared_epsilon_insensitive": _tube,
}
"""Sum over rows and slope."""


@dataclass(frozen=True)
class Lbfgs:
    """`scipy.optimize.minimize(method="L-BFGS-B")`."""

    name: str = "scipy L-BFGS-B"
    family: str = "scipy"

    def missing(self) -> str:
        return ""

    def serves(self, task: Task) -> bool:
        return task.loss in SMOOTH and task.problem.penalty == "l2"

    def ladder(self, task: Task) -> Sequence[Rung]:
        return rungs("ftol", (1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-13))

    def prepare(self, task: Task) -> Prepared:
        from scipy.optimize import minimize

        X, y = task.copied()
        loss, options, l2 = SMOOTH[task.loss], dict(task.problem.options), task.problem.l2

        def value_and_gradient(w: Array) -> tuple[float, Array]:
            value, slope = loss(X @ w, y, options)
            return value / task.rows + 0.5 * l2 * float(w @ w), X.T @ slope / task.rows + l2 * w

        def trial(rung: Rung) -> Trial:
            limits = {"ftol": rung.options["ftol"], "gtol": 1e-14, "maxiter": 10**6, "maxfun": 10**6}
            found: list[Any] = []

            def train() -> None:
                start = np.zeros(task.features)
                found.append(minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=limits))

            return Trial(train, lambda: found[0].x)

        return trial


@dataclass(frozen=True)
class LinearProgram:
    """`scipy.optimize.linprog` (HiGHS) on L1 with hinge, or with absolute deviations and quantiles."""

    method: str
    family: str = "scipy"

    @property
    def name(self) -> str:
        return f"scipy {self.method}"

    def missing(self) -> str:
        return ""

    def serves(self, task: Task) -> bool:
        fits = task.loss in ("hinge", "quantile", "least_absolute_deviation") and task.problem.penalty == "l1"
        return fits and task.rows <= MOST_CONSTRAINTS

    def ladder(self, task: Task) -> Sequence[Rung]:
        return rungs("tolerance", (1e-3, 1e-7))

    def prepare(self, task: Task) -> Prepared:
        from scipy.optimize import linprog

        given, d = self._program(task), task.features

        def trial(rung: Rung) -> Trial:
            tolerance = rung.options["tolerance"]
            limits = {"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance}
            found: list[Any] = []
            return Trial(
                lambda: found.append(linprog(**given, method=self.method, options=limits)),
                lambda: found[0].x[:d] - found[0].x[d : 2 * d],
            )

        return trial

    def _program(self, task: Task) -> dict[str, Any]:
        """Variables: positive and negative parts of w, then of the rows' misses."""
        from scipy.sparse import csr_matrix, diags, eye, hstack

        X, y = task.copied()
        X, m = csr_matrix(X), task.rows
        penalty = np.full(2 * task.features, task.problem.l1)
        if task.loss == "hinge":
            signed = diags(y) @ X
            rows = hstack([-signed, signed, -eye(m)], format="csr")
            return {"c": np.append(penalty, np.full(m, 1.0 / m)), "A_ub": rows, "b_ub": np.full(m, -1.0)}
        tau = task.problem.options.get("tau", 0.5)
        above, below = (tau, 1.0 - tau) if task.loss == "quantile" else (1.0, 1.0)
        rows = hstack([X, -X, eye(m), -eye(m)], format="csr")
        costs = np.concatenate([penalty, np.full(m, above / m), np.full(m, below / m)])
        return {"c": costs, "A_eq": rows, "b_eq": y}


enter(Lbfgs())
enter(LinearProgram("highs-ds"))
enter(LinearProgram("highs-ipm"))
