"""Accelerated proximal gradient (Beck & Teboulle 2009) with adaptive restart (O'Donoghue & Candes 2015)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.kernels.products.vectors import norm as norm_of
from bmrm.problem import (
    HasProx,
    IncompatibleError,
    Scored,
    Scores,
    Vector,
    ability,
    plane_at,
    provides,
)
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.best import ROUNDING
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.instead import instead, name_of
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Step, Steps

GROWTH, SHRINK = 2.0, 0.9
"""Factors of the curvature estimate after a step that was too long, and after every step."""
PATIENCE = 500
"""Iterations without progress after which a run counts as stalled: under l1 the gradient, and with it the bound,
improves long after J has reached rounding."""
LARGEST = 1e30
"""Curvature above which steps are too short to make progress."""


@register(
    "proximal_gradient",
    problem="smooth risks; regularizers with a proximal map (l1, l2, ...)",
    needs="value and gradient; a regularizer with prox; Scored saves passes",
    certificate="the conjugate of the regularizer, mixed over iterations",
    cost="1 pass with scores (0.5 more for each step that was too long), else 2",
    source="Beck & Teboulle 2009; O'Donoghue & Candes 2015",
    refuses=("kinked loss",),
    vectors=10,
)
@dataclass(frozen=True)
class ProximalGradient(IterativeSolver):
    """Gradient steps on the risk, proximal steps on the regularizer, with momentum (FISTA).

    `w+ = prox(v - R'(v) / L, 1 / L)` at the extrapolated point `v = w + (t - 1) / t+ (w - w_before)`. `L` is increased
    until `R(w+)` is below the parabola of curvature L at v, and reduced a little after every step. Momentum is
    restarted when it points uphill, `<v - w+, w+ - w> > 0`, which makes convergence linear where J is strongly convex.
    Error O(L / k^2) otherwise; zeros under l1 are exact. `details` has `restarts` and the last `curvature`.

    Memory: 80 dim + 32 scores bytes, scores being rows times the scores of each.

    Parameters
    ----------
    momentum : whether to extrapolate; without it J never rises.
    restart : whether momentum is restarted when it points uphill.
    initial_curvature : first L; null for an estimate from two gradients.

    Raises
    ------
    IncompatibleError
        A loss with kinks, or a regularizer without a proximal map.
    """

    momentum: bool = parameter(True, doc="extrapolate", example=False)
    restart: bool = parameter(True, doc="start momentum anew when it points uphill", example=False)
    initial_curvature: float | None = parameter(None, above=0.0, doc="first L; null estimates it", example=100.0)

    def steps(self, run: Monitor) -> Steps:
        """As of `IterativeSolver`."""
        regularizer = run.regularizer
        if not provides(regularizer, HasProx):
            raise IncompatibleError(
                f"proximal_gradient needs a regularizer with a proximal map, which {name_of(regularizer)} has"
                f" not; use l1 or l2, or solver {instead(run)}"
            )
        scored = ability(run.risk, Scored)
        if scored is not None and not scored.phi.facts.smooth:
            raise IncompatibleError(f"proximal_gradient needs a smooth loss; use {instead(run)}")
        oracle = _Plain(run) if scored is None else _WithScores(run, scored)
        return _Run(self, run, regularizer, oracle).go()


@dataclass(frozen=True)
class _At:
    """A point, with its scores where there are any."""

    w: Vector
    f: Scores = None


class _Plain:
    """Values and gradients of a risk without scores."""

    def __init__(self, run: Monitor) -> None:
        self.risk = run.risk

    def point(self, w: Vector) -> _At:
        """`w`."""
        return _At(w)

    def between(self, a: _At, b: _At, share: float) -> _At:
        """a + share (a - b)."""
        return _At(a.w + share * (a.w - b.w))

    def value(self, at: _At) -> float:
        """R."""
        return self.risk.value_and_subgradient(at.w)[0]

    def gradient(self, at: _At) -> tuple[float, Vector, float]:
        """R, its gradient and the offset of the plane that they make."""
        value, a = self.risk.value_and_subgradient(at.w)
        return value, a, value - float(a @ at.w)


class _WithScores(_Plain):
    """The same with scores: half a pass for a value, half for a gradient, none for a convex combination of points."""

    def __init__(self, run: Monitor, scored: Scored) -> None:
        super().__init__(run)
        self.map, self.phi = scored.map, scored.phi

    def point(self, w: Vector) -> _At:
        """`w` with its scores."""
        return _At(w, self.map.matvec(w))

    def between(self, a: _At, b: _At, share: float) -> _At:
        """a + share (a - b)."""
        return _At(a.w + share * (a.w - b.w), a.f + share * (a.f - b.f))

    def value(self, at: _At) -> float:
        """R."""
        return self.phi.value_and_slope(at.f)[0]

    def gradient(self, at: _At) -> tuple[float, Vector, float]:
        """As of `_Plain`."""
        value, _, a, product = plane_at(self.map, self.phi, at.f)
        return value, a, value - product


class _Run:
    """The state of proximal gradient."""

    def __init__(self, options: ProximalGradient, run: Monitor, regularizer: HasProx, oracle: _Plain) -> None:
        self.options, self.run, self.oracle, self.prox = options, run, oracle, regularizer.prox
        self.certificate = Certificate(run.regularizer, run.risk.infimum)
        self.curvature = 1.0
        self.restarts = 0
        run.patience = PATIENCE

    def go(self) -> Steps:
        """Iterate as long as there is a step."""
        run, oracle = self.run, self.oracle
        run.finish = lambda: {"restarts": self.restarts, "curvature": self.curvature}
        w = v = oracle.point(run.start)
        value, a, offset = oracle.gradient(v)
        self._note(v, value, a, offset)
        self._improve(w, value)
        yield Step.ITERATION
        self.curvature = self.options.initial_curvature or self._estimate(v, a)
        momentum, longest = 1.0, 0.0
        while True:
            after, after_value = self._step(v, value, a)
            if after is None:
                yield Step.STALLED
                return None
            self._improve(after, after_value)
            length = self.curvature * norm_of(after.w - v.w)
            longest = max(length, longest)
            yield Step.ITERATION
            if run.flat(length, norm_of(a), longest):
                return ""
            uphill = float((v.w - after.w) @ (after.w - w.w)) > 0.0
            if self.options.restart and uphill:
                momentum = 1.0
                self.restarts += 1
            following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
            share = (momentum - 1.0) / following if self.options.momentum else 0.0
            v, w, momentum = oracle.between(after, w, share) if share else after, after, following
            value, a, offset = oracle.gradient(v)
            if not math.isfinite(value):
                v, momentum = after, 1.0
                value, a, offset = oracle.gradient(v)
            self._note(v, value, a, offset)
            self.curvature *= SHRINK

    def _note(self, v: _At, value: float, a: Vector, offset: float) -> None:
        self.run.take_plane(self.certificate, v.w, value, a, offset)

    def _improve(self, at: _At, value: float) -> None:
        self.run.improve(at.w, value + self.run.regularizer.value(at.w), fresh=True)  # its scores are its own

    def _step(self, v: _At, value: float, a: Vector) -> tuple[_At | None, float]:
        """The next point and its risk; None where no step is short enough."""
        proven, slack = self.curvature, 16.0 * ROUNDING * abs(value)
        while self.curvature < LARGEST:
            after = self.oracle.point(self.prox(v.w - a / self.curvature, 1.0 / self.curvature))
            after_value = self.oracle.value(after)
            step = after.w - v.w
            with np.errstate(over="ignore", invalid="ignore"):  # a step so long is too long
                quadratic = 0.5 * self.curvature * float(step @ step)
                ceiling = value + float(a @ step) + quadratic + slack
            if math.isfinite(quadratic) and after_value <= ceiling:
                return after, after_value
            if quadratic <= slack:  # rounding has the last word: it says nothing about the curvature
                self.curvature = proven
                return after, after_value
            self.curvature *= GROWTH
        return None, math.inf

    def _estimate(self, v: _At, a: Vector) -> float:
        """The curvature along the gradient, from a second gradient nearby."""
        with np.errstate(over="ignore"):
            norm = norm_of(a)
        if norm == 0.0 or not math.isfinite(norm):
            return 1.0
        short = 1e-3 * max(1.0, norm_of(v.w)) / norm
        nearby, there, _ = self.oracle.gradient(self.oracle.point(v.w - short * a))
        curvature = norm_of(there - a) / (short * norm)
        return curvature if math.isfinite(nearby) and 1e-12 < curvature < LARGEST else 1.0
