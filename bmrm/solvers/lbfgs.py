"""Limited-memory BFGS over scipy's (Byrd, Lu, Nocedal & Zhu 1995), certified by eq. 15 of the KDD 2007 paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmrm.problem import Callback, Regularizer, Risk, Solution, Vector
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers.certificate import plane_bound
from bmrm.solvers.monitor import IterativeSolver, Monitor


class _Stop(Exception):  # noqa: N818
    """Leaves scipy's loop."""


@register(
    "lbfgs",
    problem="smooth risks and regularizers",
    needs="value and subgradient",
    certificate="the conjugate of the regularizer (eq. 15)",
    cost="1 pass an evaluation, mostly one",
    source="Byrd, Lu, Nocedal & Zhu 1995",
    stalls=("kinked loss", "kinked regularizer"),
)
@dataclass(frozen=True)
class LBFGS(IterativeSolver):
    """Quasi-Newton on J with a short memory; for smooth risks and regularizers.

    Every evaluation gives a plane `(a, b)` of the risk and with it the bound `b - Omega*(-a)`, which for
    `L2(lam)` is `J(w) - ||a + lam w||^2 / (2 lam)` (eq. 15). Where Omega* is infinite at `-a` (`L1`) the plane is
    mixed with the floor plane until it is finite. At kinks the line search fails: after one restart from the best
    point without progress the run ends as STALLED. One pass an evaluation.

    Memory: 8 (2 memory + 20) dim bytes.

    Parameters
    ----------
    memory : pairs of steps and gradient differences kept.
    """

    memory: int = parameter(10, least=1, doc="pairs of steps kept", example=1)

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """As of `Solver`."""
        from scipy.optimize import minimize as scipy_minimize

        with self.monitor(risk, regularizer, start, callback) as run:
            limits = {"maxcor": self.memory, "maxiter": 10**9, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0, "maxls": 40}
            try:
                evaluate = _Remembering(lambda w: self._evaluate(w, run))
                evaluate(run.start)
                self._close(run)
                while True:
                    before = run.objective
                    scipy_minimize(
                        evaluate,
                        run.w,
                        jac=True,
                        method="L-BFGS-B",
                        callback=lambda w: self._close(run),
                        options=limits,
                    )
                    if not run.objective < before:
                        run.stall()
                        break
            except _Stop:
                pass
            return run.solution(self.name)  # type: ignore[attr-defined, no-any-return]

    def _evaluate(self, w: Vector, run: Monitor) -> tuple[float, Vector]:
        value, a = run.risk.value_and_subgradient(w)
        objective = value + run.regularizer.value(w)
        run.improve(w.copy(), objective)
        if math.isfinite(value):
            run.raise_bound(plane_bound(run.regularizer, a, value - float(a @ w), run.risk.infimum))
        if run.relative_gap <= self.tolerance:
            self._close(run)
        return objective, a + run.regularizer.subgradient(w)

    def _close(self, run: Monitor) -> None:
        if run.record():
            raise _Stop


class _Remembering:
    """A function that is not called twice in a row at the same point, as scipy does at every start."""

    def __init__(self, function: Callable[[Vector], tuple[float, Vector]]) -> None:
        self._function = function
        self._point: Vector | None = None
        self._answer: tuple[float, Vector] = (math.nan, np.empty(0))

    def __call__(self, w: Vector) -> tuple[float, Vector]:
        if self._point is None or not np.array_equal(w, self._point):
            self._answer = self._function(w)
            self._point = w.copy()
        return self._answer
