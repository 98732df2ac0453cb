"""The minimum over several constants added to the scores of all rows: Newton, or cutting planes by a small simplex.

docs/decisions/free-intercept.md says why.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bmrm.problem import IncompatibleError, ScoreFunction, Scores, Vector, magnitude_of
from bmrm.risk.mixture import EPS, UNBOUNDED, Mixture, mixture_of, overflow
from bmrm.risk.mixture_newton import Array, Memory, Point, newton, point_at, step_to_zero

ACCURACY = 1e-12
"""Relative distance of the mixture to the minimum at which cutting planes stop."""
WALLS = (1e1, 1e3, 1e6, 1e9, 1e12)
"""How low the artificial planes start, relative to the value; raised while they matter."""
STEPS = 500
PIVOTS = 1000
STEEP_PIVOTS = 200
OPPOSITE = 1e4
"""How many Newton steps away the point is with which sums that are nearly 0 are corrected."""
NUDGE = 1e-9
"""Of the sums, which should be 0; far below the sum of one row's slope, far above rounding."""


class Cut(NamedTuple):
    """phi at `b`, and the sums over rows of its slope there."""

    b: Vector
    value: float
    sums: Vector


def minimum_over_constants(phi: ScoreFunction, f: Scores, start: Vector, memory: Memory, rounding: float) -> Mixture:
    """The mixture for K scores per row, searched from `start`, (K,); `rounding` is that of `vanishes`."""
    here = point_at(phi, f, start)
    if not here.finite:
        here = point_at(phi, f, np.zeros(len(start)))
    if not here.finite:
        return overflow(start)
    if phi.smooth and phi.curved:
        here, settled = newton(phi, f, here, memory, rounding)
        if settled:
            alone = mixture_of([here.b], np.array([here.value]), here.sums[None, :], np.ones(1), here.b, here.value)
            return replace(alone, slopes=(here.slope,))
        if memory.curvature is not None:
            corrected = _corrected(phi, f, here, memory.curvature, rounding)
            if corrected is not None:
                return corrected
    return _cutting_planes(phi, f, here, rounding)


def _corrected(phi: ScoreFunction, f: Scores, here: Point, curvature: Array, rounding: float) -> Mixture | None:
    """`here`, whose sums are small, mixed with a little of a point where they are opposite and large; None if in vain.

    Scores are rounded when a constant is added to them, so that no constant makes the sums smaller than the second
    derivative times this rounding; the slopes are right, for the rounded scores.
    """
    step = step_to_zero(curvature, here)
    if step is None:
        return None
    other = point_at(phi, f, here.b + OPPOSITE * step)
    rise = other.sums - here.sums
    if not other.finite or not rise.any():
        return None
    share = float(-(here.sums @ rise) / (rise @ rise))
    if not 0.0 < share < 1.0:
        return None
    shares = np.array([1.0 - share, share])
    left = np.abs(shares @ np.array([here.sums, other.sums]))
    values = np.array([here.value, other.value])
    best = here if here.value <= other.value else other
    found = mixture_of([here.b, other.b], values, np.array([here.sums, other.sums]), shares, best.b, best.value)
    if np.any(left > rounding * magnitude_of(phi, here.slope)) or best.value - found.value > ACCURACY * abs(best.value):
        return None
    return replace(found, slopes=(here.slope, other.slope))


def _at(phi: ScoreFunction, f: Scores, b: Vector) -> Cut:
    here = point_at(phi, f, b)
    return Cut(b, here.value, here.sums)


def _cutting_planes(phi: ScoreFunction, f: Scores, here: Point, rounding: float) -> Mixture:
    """The best mixture of tangents, planes being added where the model and the best point lead."""
    first, start = Cut(here.b, here.value, here.sums), here.b
    terms = float(magnitude_of(phi, here.slope).sum())
    noise = rounding * terms
    # Classes that only compare scores ignore a common shift: then the last constant stays where it is.
    size = len(start) - int(_shift_free(first, terms))
    for wall in WALLS:
        model = Tangents(start, size, first.value - wall * (1.0 + abs(first.value)), noise)
        model.add(first)
        best, inward = first, 0.5
        for _ in range(STEPS):
            b, bound = model.solve()
            accuracy = max(ACCURACY * abs(best.value), 16.0 * EPS * model.scale)
            if best.value - bound <= accuracy:
                if model.feasible:
                    break
                model.part_no_ties()
            trial = _at(phi, f, inward * best.b + (1.0 - inward) * b)
            if size < len(start) and not _shift_free(trial, terms):
                size = len(start)
                break
            cuts_off = trial.value + trial.sums @ (b - trial.b) > bound + 0.1 * accuracy
            if not cuts_off and inward == 0.0 and trial.value >= best.value:
                break
            inward = 0.5 if cuts_off else 0.0
            model.add(trial)
            best = trial if trial.value < best.value else best
        if model.size == size and model.feasible:
            return model.mixture(best)
    raise IncompatibleError(UNBOUNDED)


def _shift_free(cut: Cut, terms: float) -> bool:
    return abs(float(cut.sums.sum())) <= 1e-12 * max(terms, float(np.abs(cut.sums).sum()))


class Tangents:
    """max over theta of sum theta_j c_j with sum theta_j g_j = 0 and sum theta_j = 1, by the simplex method.

    Its prices are the minimiser of the model max_j (c_j + <g_j, b - centre>). The first columns, an artificial
    simplex around the origin, make it feasible and keep the model bounded. `noise` is the rounding of sums.
    """

    def __init__(self, centre: Vector, size: int, wall: float, noise: float) -> None:
        self.centre, self.size = centre, size
        self.cuts: list[Cut | None] = [None] * (size + 1)
        self.columns: list[Vector] = [np.append(e, 1.0) for e in np.eye(size)] + [np.append(-np.ones(size), 1.0)]
        self.costs: list[float] = [wall] * (size + 1)
        self.basis = list(range(size + 1))
        self.nudge, self.noise = NUDGE, noise
        self.shares: Vector = np.linalg.solve(np.array(self.columns).T, self._goal(NUDGE))

    def add(self, cut: Cut) -> None:
        """Take a tangent in."""
        self.cuts.append(cut)
        self.columns.append(np.append(cut.sums[: self.size], 1.0))
        self.costs.append(cut.value - float(cut.sums[: self.size] @ (cut.b - self.centre)[: self.size]))

    def solve(self) -> tuple[Vector, float]:
        """Minimiser of the model, (scores per row,), and its value."""
        table, costs = np.array(self.columns), np.array(self.costs)
        for pivot in range(PIVOTS):
            square = table[self.basis].T
            prices = np.linalg.solve(square.T, costs[self.basis])
            reduced = costs - table @ prices
            noise = 16.0 * EPS * (float(np.max(np.abs(costs[self.basis]))) + float(np.max(np.abs(prices))))
            better = np.flatnonzero(reduced > noise)
            if not better.size:
                break
            # Bland's rule, the first one that helps, ends the cycles that ties can cause.
            enter = int(better[0] if pivot > STEEP_PIVOTS else np.argmax(reduced))
            direction = np.linalg.solve(square, table[enter])
            falling = direction > 1e-12
            if not falling.any():
                break
            ratios = np.where(falling, self.shares / np.where(falling, direction, 1.0), np.inf)
            ties = np.flatnonzero(ratios <= ratios.min())
            leave = int(ties[np.argmin(np.array(self.basis)[ties])])
            self.basis[leave] = enter
            self.shares = np.maximum(np.linalg.solve(table[self.basis].T, self._goal(self.nudge)), 0.0)
        b = self.centre.copy()
        b[: self.size] -= prices[: self.size]
        return b, float(prices[-1])

    @property
    def scale(self) -> float:
        """The largest number that the value of the model is the difference of."""
        return max((abs(self.costs[k]) for k in self.basis if self.cuts[k] is not None), default=0.0)

    @property
    def feasible(self) -> bool:
        """Whether tangents alone make a cut: with their shares the sums are 0 up to rounding."""
        shares, rounding = self._exact_shares(), 4.0 * EPS * (self.size + 1)
        tangents = np.array([self.cuts[k] is not None for k in self.basis])
        # The shares come from a linear system, so that one of 0 may be off by some rounding for each row of it.
        if shares[~tangents].sum() > rounding:
            return False
        sums = np.array([self.columns[k] for k in self.basis])[tangents, :-1]
        return bool(np.all(np.abs(shares[tangents] @ sums) <= rounding * np.abs(sums).sum() + self.noise))

    def part_no_ties(self) -> None:
        """Solve without the nudge from now on: it moved shares by more than rounding, where the sums are tiny."""
        if self.nudge > 0.0:
            self.nudge, self.basis = 0.0, list(range(self.size + 1))
            self.shares = np.linalg.solve(np.array(self.columns[: self.size + 1]).T, self._goal(0.0))

    def mixture(self, best: Cut) -> Mixture:
        """The tangents with their shares; `best` is the best point met."""
        pairs = zip(self.basis, self._exact_shares(), strict=True)
        used = [(cut, share) for k, share in pairs if (cut := self.cuts[k]) and share > 4.0 * EPS]
        shares = np.array([share for _, share in used])
        return mixture_of(
            [cut.b for cut, _ in used],
            np.array([cut.value for cut, _ in used]),
            np.array([cut.sums for cut, _ in used]),
            shares / shares.sum(),
            best.b,
            best.value,
        )

    def _exact_shares(self) -> Vector:
        """The shares without the nudge; what it made negative is 0 but for rounding."""
        square = np.array([self.columns[k] for k in self.basis]).T
        return np.maximum(np.linalg.solve(square, self._goal(0.0)), 0.0)

    def _goal(self, nudge: float) -> Vector:
        """The right-hand side: 0 for each sum, 1 for the shares; uneven nudges part the ties in which pivots cycle."""
        return np.append(nudge * (1.0 + np.sqrt(np.arange(2.0, self.size + 2.0)) % 1.0), 1.0)
