"""A free intercept: one that the regularizer does not touch, minimised over in every evaluation.

phi~(f) = min over b of phi(f + b) is convex in the scores f and costs no product with the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import (
    Check,
    Hessian,
    IncompatibleError,
    Intercept,
    Risk,
    Scored,
    ScoreFunction,
    Scores,
    Space,
    Vector,
    ability,
)
from bmrm.problem.abilities import (
    AtOnce,
    DualBlocks,
    Fingerprint,
    Gathered,
    Magnitudes,
    ProblemSize,
    QuadraticModel,
    Rounding,
    RowParts,
    RowSample,
    Traffic,
)
from bmrm.problem.counted import metered, metered_risk
from bmrm.problem.meter import UNMETERED, Meter, timed, timed_curve
from bmrm.problem.regularizer import space_of
from bmrm.problem.risk import Settled
from bmrm.risk.constants.mixture import Mixture, derivative_of, point_at, refuse_degenerate, rounding_of_sums, slope_of
from bmrm.risk.constants.newton import inverse_of, second_derivative
from bmrm.risk.constants.search import minimum_over_constant
from bmrm.risk.constants.simplex import Past, minimum_over_constants
from bmrm.risk.dual.steps import free_steps

T = TypeVar("T")


class FreeIntercept:
    """R~(w) = min over b of R(w, b), where b is added to all scores (a b for each score of a row).

    Parameters
    ----------
    risk : any risk with the ability `Scored`, distributed or not, that has no intercept of its own.

    Raises
    ------
    IncompatibleError
        Where `risk` has no scores, where a constant added to all scores changes nothing (`roc_area`), or where the
        minimum over b is -inf.
    """

    def __init__(self, risk: Risk) -> None:
        scored = ability(risk, Scored)
        if scored is None:
            raise IncompatibleError("a free intercept needs a risk with scores; use data.bias: regularized or none")
        refuse_degenerate(scored.phi)
        self.risk = risk
        self.map, self._of_rows = scored.map, scored.phi
        self.settled = Settled(space_of(risk).same)
        self.dim, self.infimum = risk.dim, risk.infimum
        self._whole: FreeIntercept | None = None
        """That this one is a metered copy of."""
        self.meter: Meter = UNMETERED

    @cached_property
    def phi(self) -> ProfiledPhi:
        """R~(w) = phi(A w), made where it is needed: little data are solved without it."""
        return ProfiledPhi(self._of_rows, self.infimum)

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """R~(w) and a subgradient, a new array (dim,); one pass over the data."""
        value, slope = self.phi.value_and_slope(self.map.matvec(w))
        return value, self.map.rmatvec(slope)

    def intercept(self, w: Vector) -> Vector:
        """The b to be added to scores that `w` gives, (scores per row,): the minimising one.

        Where a solver has settled for another with these weights, it is that one. Charged to no run.
        """
        if self._whole is not None:
            return self._whole.intercept(w)
        settled = self.settled.of(w)
        return np.array(self.phi.mixture(self.map.matvec(w)).best if settled is None else settled)

    def metered(self, meter: Meter) -> FreeIntercept:
        """The same, charged to `meter`; its searches for several constants ask the check of that."""
        found = copy(self)
        found._whole, found.meter = self._whole or self, meter
        found.risk = metered_risk(self.risk, meter)
        found.map, found.phi = metered(self.map, meter), self.phi.metered(meter)
        return found

    def ability(self, kind: type[T]) -> T | None:
        """What `WITH_INTERCEPT` makes of that of the risk; subsets and blocks of rows do not share one b."""
        change = WITH_INTERCEPT.get(kind)
        offered = None if change is None else ability(self.risk, kind)
        found: T | None = None if change is None or offered is None else change(self, offered)
        return found

    def scored(self, inner: Scored) -> Scored:
        """With several constants each has a search of its own, that remembers what it has found."""
        phi = self.phi if self._whole is None else self._whole.phi.metered(self.meter)
        return Scored(self.map, phi, Intercept(inner.phi, self.settled))

    def rounding(self, inner: Rounding) -> Rounding:
        """What is added at the best intercept."""

        def at(w: Vector, constant: Vector | None = None, reach: float = 0.0) -> Magnitudes:
            b = self.meter.timed(0.0, self.intercept, w)
            return inner.at(w, b if constant is None else b + constant, reach)

        return Rounding(
            inner.subject,
            inner.foreign,
            at,
            inner.row_norm,
            lambda: max(self.phi.constant_found, self.settled.largest),
        )

    def gathered(self, inner: Gathered) -> FreeIntercept:
        """All rows in one process, with an intercept; what is settled there is the model's."""
        found = FreeIntercept(inner.gathered())
        found.settled = self.settled
        return found


WITH_INTERCEPT: dict[type, Callable[[FreeIntercept, Any], Any]] = {
    Scored: FreeIntercept.scored,
    DualBlocks: lambda risk, steps: free_steps(steps),
    RowSample: lambda risk, drawn: RowSample(drawn.rows, lambda *given: FreeIntercept(drawn.sample(*given))),
    Gathered: lambda risk, ranks: Gathered(lambda: risk.gathered(ranks)),
    Fingerprint: lambda risk, inner: Fingerprint(lambda: f"free intercept:{inner.fingerprint()}"),
    Rounding: FreeIntercept.rounding,
    AtOnce: lambda risk, inner: replace(inner, settled=risk.settled),
    **dict.fromkeys((Traffic, Space, ProblemSize, QuadraticModel, RowParts), lambda risk, inner: inner),
}
"""Abilities of the risk that a free intercept offers, by kind, and how they change; it withholds all others."""


@dataclass(frozen=True, eq=False)
class SchurComplement:
    """What products with the second derivative at one point share.

    Attributes
    ----------
    at, here : the scores, a copy, and with the best constants.
    inverse : of the second derivative in the constants, (scores per row, scores per row).
    """

    at: Scores
    here: Scores
    inverse: NDArray[np.float64]


class _OutOfTimeError(Exception):
    """There is no time for a search."""


@dataclass
class _Search:
    """Where searches have ended: the best constants, how far from there the next may be, and a second derivative."""

    near: Vector
    reach: float = 1.0
    schur: SchurComplement | None = None


class ProfiledPhi(ScoreFunction):
    """phi~(f) = min over b of phi(f + b), for any score function.

    The last minimiser is remembered as the start of the next search; it has no other effect.
    """

    meter: Meter = UNMETERED

    def __init__(self, phi: ScoreFunction, infimum: float = -math.inf) -> None:
        self.phi, self.infimum = phi, infimum
        hessian: Hessian = "product" if phi.facts.curved else "none"  # no diagonal: the rows share b; see Intercept
        self.facts = replace(
            phi.facts, infimum=infimum, hessian=hessian, hessian_total=False, prox=False, piecewise_linear=False
        )
        self._last = _Search(np.zeros(phi.facts.scores_per_row))
        self._past = Past()

    @cached_property
    def _rounding(self) -> float:
        return rounding_of_sums(self.phi)

    def metered(self, meter: Meter) -> ProfiledPhi:
        """The same, timed; searches for several constants, which may be long, go on from here each for itself."""
        found = copy(self)
        found.meter = meter
        if self.facts.scores_per_row > 1:
            found._last = copy(self._last)
        return found

    @property
    def constant_found(self) -> float:
        """The size of the constants at which the last search has ended."""
        return float(np.abs(self._last.near).max())

    def mixture(self, f: Scores, check: Check | None = None) -> Mixture:
        """The minimum over b at scores `f`, with the shares that make a valid cut.

        `check` is called within a search for several constants; that of the run by default.
        """
        last = self._last
        if self.facts.scores_per_row == 1:
            near = float(last.near[0])
            found = minimum_over_constant(self.phi, f, near, last.reach, self._rounding, self.infimum)
        else:
            check = self.meter.check if check is None else check
            found = minimum_over_constants(self.phi, f, last.near, self._past, self._rounding, self.infimum, check)
        if not math.isfinite(found.value):
            return found
        moved = float(np.max(np.abs(found.best - last.near)))
        last.reach = max(2.0 * moved, 1e-6 * (1.0 + float(np.max(np.abs(found.best)))))
        last.near = found.best
        return found

    @timed
    def value_and_slope(self, f: Scores) -> tuple[float, Scores]:
        """phi~(f), up to rounding from below, and a subgradient."""
        found = self.mixture(f)
        return found.value, slope_of(self.phi, f, found)

    @timed
    def tangent(self, f: Scores) -> tuple[float, Scores, float]:
        """phi at the best constants that were met, a subgradient, and the height of its plane."""
        found = self.mixture(f)
        return found.least, slope_of(self.phi, f, found), found.value

    @timed
    def attained(self, f: Scores) -> tuple[float, Vector]:
        """phi at the best constants that were met, and these; a single one by a search that remembers nothing.

        Where time is spent, the search for several ends: they are those of the last one, or 0.
        """
        if self.facts.scores_per_row == 1:
            found = ProfiledPhi(self.phi, self.infimum).mixture(f)
            return found.least, found.best
        try:
            self._in_time()
            found = self.mixture(f, self._in_time)
        except _OutOfTimeError:
            known = (self._last.near, np.zeros_like(self._last.near))
            best = min((point_at(self.phi, f, b) for b in known), key=lambda at: (not at.finite, at.value))
            return best.value, best.b
        return found.least, found.best

    def _in_time(self, products: float = 0.0, /) -> None:
        self.meter.check()
        if self.meter.spent():
            raise _OutOfTimeError

    @timed_curve
    def along(self, f: Scores, step: Scores) -> Callable[[Vector], tuple[Vector, Vector]]:
        """The function t -> (phi~(f + t step), its derivative in t), for a vector of t; a search for each t."""

        def curve(ts: Vector) -> tuple[Vector, Vector]:
            values, derivatives = np.empty(len(ts)), np.empty(len(ts))
            for k, t in enumerate(ts):
                here = f + step * float(t)
                found = self.mixture(here)
                # Without a mixture the infimum would be all there is, a step in the curve.
                values[k] = found.value if found.points else found.least
                rises = math.isfinite(found.value)  # else it does away from where phi~ is finite, at t = 0
                derivatives[k] = derivative_of(self.phi, here, step, found) if rises else math.copysign(math.inf, t)
            return values, derivatives

        return curve

    @timed
    def hessian_product(self, f: Scores, step: Scores) -> Scores:
        """phi~''(f) step = H (step - c), c the constant that makes the product sum to 0 (a Schur complement)."""
        phi, schur = self.phi, self._last.schur
        # Products of one point follow each other; scores may have changed in place, on this rank or another.
        if schur is None or self._moved(f, schur.at):
            schur = self._last.schur = self._schur_complement(f)
        shift = schur.inverse @ phi.total(phi.hessian_product(schur.here, step))
        return phi.hessian_product(schur.here, step - phi.constant(shift))

    def _moved(self, f: Scores, before: Scores) -> bool:
        step = f - before
        return self.phi.product(step, step) != 0.0

    def _schur_complement(self, f: Scores) -> SchurComplement:
        phi = self.phi
        here = f + phi.constant(self.mixture(f).best)
        inner = second_derivative(phi, here, self.meter.check)
        return SchurComplement(1.0 * f, here, inverse_of(inner, self.meter.check))

    @timed
    def constant(self, b: Vector) -> Scores:
        """The scores whose every row is `b`."""
        return self.phi.constant(b)

    @timed
    def total(self, scores: Scores) -> Vector:
        """The sum over all rows, (scores per row,)."""
        return self.phi.total(scores)

    @timed
    def product(self, slope: Scores, f: Scores) -> float:
        """<slope, f>."""
        return self.phi.product(slope, f)

    @timed
    def magnitude(self, scores: Scores) -> Vector:
        """The sum of absolute values over all rows, (scores per row,)."""
        return self.phi.magnitude(scores)
