"""Limited-memory BFGS (Nocedal 1980; Liu & Nocedal 1989), certified by eq. 15 of the KDD 2007 paper."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bmrm.kernels.vectors import dot
from bmrm.problem import Callback, Extent, Regularizer, Risk, Scored, Solution, Vector
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.certificate import Certificate, SinglePlane
from bmrm.solvers._core.line_search import Trial, total
from bmrm.solvers._core.monitor import IterativeSolver, Monitor
from bmrm.solvers._core.points import FusedPoint, Place, Point, ScoredPoint
from bmrm.solvers._core.quasi_newton import InverseHessian
from bmrm.solvers._core.wolfe import enough, wolfe_search

LEFT, LESS = 0.9, 0.5
"""Share of the slope that a step may leave: in general, and where further trials cost no pass."""
MANY = 16.0
"""Entries for each weight from which mixed bounds cost little beside a pass."""
DENSE = 0.5
"""Share of entries from which scores are not kept: a pass that gives value and gradient reads the data once only. Nor
are they where they are more than the features: such a pass has them in the cache."""


@register(
    "lbfgs",
    problem="smooth risks and regularizers",
    needs="value and subgradient; Scored makes further trial steps free of passes",
    certificate="the conjugate of the regularizer (eq. 15), as a rule of mixed planes",
    cost="1 pass an iteration, as a rule",
    source="Nocedal 1980; Liu & Nocedal 1989",
    stalls=("kinked loss", "kinked regularizer"),
)
@dataclass(frozen=True)
class LBFGS(IterativeSolver):
    """Quasi-Newton on J with a short memory; for smooth risks and regularizers.

    `d = -H J'(w)`, H from the last steps and what they changed in the gradient; w moves by d where J falls enough
    and little of its slope is left (the strong Wolfe conditions), else to where that is so, along scores if there are
    any.

    Every iterate gives a plane `(a, b)` of the risk and with it the bound `b - Omega*(-a)`, which for
    `L2(lam)` is `J(w) - ||a + lam w||^2 / (2 lam)` (eq. 15). Where Omega* is infinite at `-a` (`L1`) the plane is
    mixed with the floor plane until it is finite. For kinked losses, and where a pass costs far more, each is mixed
    with those before it. Across a kink no such step may be left: where there is none along the negative gradient
    either, the run ends as STALLED.

    Memory: 8 (memory + 15) dim + 48 scores bytes, scores being rows times the scores of each.

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
        with self.monitor(risk, regularizer, start, callback) as run:
            with run.iterating():
                _Run(self.memory, run).go()
            return run.solution(self.name)  # type: ignore[attr-defined, no-any-return]


class _Run:
    """A point, its gradient of J, and what was learned of the Hessian."""

    def __init__(self, memory: int, run: Monitor) -> None:
        self.run, self.regularizer = run, run.regularizer
        self.point, self.left = _point(run)
        self.inverse = InverseHessian(len(run.start), memory)
        self.certificate = _certificate(run)
        self.objective, self.gradient = self._joined(self.point.place)

    def go(self) -> None:
        """Iterate until the gap or a limit is met, or no step is left."""
        while not self.run.record():
            if self.run.refreshed:
                self._renew()
            if self._search():
                continue
            self.inverse.forget()
            if not self._search():
                if self.run.stall():
                    return
                self._renew()

    def _renew(self) -> None:
        """Go on from the best point, with nothing carried along."""
        self.objective, self.gradient = self._joined(self.point.renew(self.run.w))

    def _joined(self, place: Place) -> tuple[float, Vector]:
        """J and its gradient; what they prove is kept."""
        run, (w, value, a, offset, _, fresh) = self.run, place
        objective = value + self.regularizer.value(w)
        run.improve(w, objective, fresh=fresh)
        run.take_plane(self.certificate, w, value, a, offset)
        return objective, a + self.regularizer.subgradient(w)

    def _search(self) -> bool:
        """Move to a better point; False where there is none along the direction."""
        here = self.objective
        d, slope = self.inverse.times_minus(self.gradient)
        if not (slope < 0.0 and math.isfinite(slope)):
            return False
        risk = self.point.along(d)
        t = 1.0 if len(self.inverse) else min(1.0, 1.0 / math.sqrt(-slope))
        place = self.point.look(t, d)
        objective, gradient = self._joined(place)
        trial = Trial(t, objective, dot(gradient, d))
        if not enough(trial, here, slope, self.left):
            function = total(self.regularizer.along(self.point.w, d), risk)
            found = wolfe_search(function, here, slope, trial, self.left)
            if found is None:
                return False
            t, place = found.t, self.point.look(found.t, d)
            objective, gradient = self._joined(place)
        self.inverse.learn(d, t, gradient, self.gradient)
        self.point.move_to(place)
        self.objective, self.gradient = objective, gradient
        return True


def _certificate(run: Monitor) -> Certificate:
    """What planes prove: mixed with one another at kinks, where alone they prove little, and where that is cheap."""
    regularizer, infimum = run.regularizer, run.risk.infimum
    scored, extent = run.risk.ability(Scored), run.risk.ability(Extent)
    kinked = scored is not None and not scored.phi.smooth
    if kinked or (extent is not None and extent.entries >= MANY * run.risk.dim):
        return Certificate(regularizer, infimum)
    return SinglePlane(regularizer, infimum)


def _point(run: Monitor) -> tuple[Point, float]:
    """The start, and the share of the slope that a step may leave: the less, the cheaper trials are."""
    scored, extent = run.risk.ability(Scored), run.risk.ability(Extent)
    if scored is None:
        return Point(run, run.start), LEFT
    features = run.risk.dim / scored.phi.scores_per_row
    if extent is not None and (features < extent.rows or extent.entries >= DENSE * extent.rows * features):
        return FusedPoint(run, run.start, scored), LEFT
    return ScoredPoint(run, run.start, scored), LESS
