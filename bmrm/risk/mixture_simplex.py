"""The minimum over several constants added to the scores of all rows: Newton, or cutting planes by a small simplex.

docs/decisions/free-intercept.md says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import IncompatibleError, ScoreFunction, Scores, Vector
from bmrm.risk.mixture import UNBOUNDED, Mixture, mixture_of

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
ACCURACY = 1e-12
"""Relative distance of the mixture to the minimum at which cutting planes stop."""
WALLS = (1e1, 1e3, 1e6, 1e9, 1e12)
"""How low the artificial planes start, relative to the value; raised while they matter."""
STEPS = 500
PIVOTS = 1000
STEEP_PIVOTS = 200
NUDGE = 1e-9
"""Of the sums, which should be 0; far below the sum of one row's slope, far above rounding."""


class Cut(NamedTuple):
    """phi at `b`, and the sums over rows of its slope there."""

    b: Vector
    value: float
    sums: Vector


@dataclass
class Memory:
    """The second derivative of an earlier search, which need not be that of this one."""

    curvature: Array | None = None


def minimum_over_constants(phi: ScoreFunction, f: Scores, start: Vector, memory: Memory) -> Mixture:
    """The mixture for K scores per row, searched from `start`, (K,)."""
    if phi.smooth:
        found = _newton(phi, f, start, memory)
        return mixture_of([found.b], np.array([found.value]), found.sums[None, :], np.ones(1), found.b)
    return _cutting_planes(phi, f, start)


def _at(phi: ScoreFunction, f: Scores, b: Vector) -> Cut:
    value, slope = phi.value_and_slope(f + phi.constant(b))
    return Cut(b, value, phi.total(slope))


def _newton(phi: ScoreFunction, f: Scores, start: Vector, memory: Memory) -> Cut:
    """A point where the sums are 0 up to rounding."""
    here = _at(phi, f, start)
    for _ in range(STEPS):
        size = float(np.max(np.abs(here.sums)))
        if size == 0.0:
            break
        fresh = memory.curvature is None
        if memory.curvature is None:
            memory.curvature = _curvature(phi, f, here.b)
        # The ridge keeps steps finite where a direction is flat, as a shift of all classes is.
        ridge = 1e-10 * max(float(np.trace(memory.curvature)), size) / len(start)
        step = -np.linalg.solve(memory.curvature + ridge * np.eye(len(start)), here.sums)
        after, length = _at(phi, f, here.b + step), 1.0
        while fresh and after.value > here.value + 0.1 * length * float(step @ here.sums) and length > EPS:
            if _size(after) < 0.5 * size and after.value <= here.value + ACCURACY * abs(here.value):
                break
            length *= 0.5
            after = _at(phi, f, here.b + length * step)
        # An old matrix will do as long as it brings the sums down fast.
        if not fresh and _size(after) > 0.1 * size:
            memory.curvature = None
        if _size(after) < size or after.value < here.value:
            here = after
        elif fresh:
            break
    if float(np.max(np.abs(here.b))) > WALLS[-1] * (1.0 + abs(here.value)):
        raise IncompatibleError(UNBOUNDED)
    return here


def _curvature(phi: ScoreFunction, f: Scores, b: Vector) -> Array:
    """The second derivative in the constants, (K, K)."""
    at, units = f + phi.constant(b), np.eye(len(b))
    inner = np.array([phi.total(phi.curvature_product(at, phi.constant(unit))) for unit in units])
    return np.asarray(0.5 * (inner + inner.T))


def _size(cut: Cut) -> float:
    return float(np.max(np.abs(cut.sums)))


def _cutting_planes(phi: ScoreFunction, f: Scores, start: Vector) -> Mixture:
    """The best mixture of tangents, planes being added where the model and the best point lead."""
    first = _at(phi, f, start)
    # Classes that only compare scores ignore a common shift: then the last constant stays where it is.
    size = len(start) - int(_shift_free(first))
    for wall in WALLS:
        model = Tangents(start, size, first.value - wall * (1.0 + abs(first.value)))
        model.add(first)
        best, inward = first, 0.5
        for _ in range(STEPS):
            b, bound = model.solve()
            rounding = max(ACCURACY * abs(best.value), 16.0 * EPS * model.scale)
            if best.value - bound <= rounding:
                break
            trial = _at(phi, f, inward * best.b + (1.0 - inward) * b)
            if size < len(start) and not _shift_free(trial):
                size = len(start)
                break
            cuts_off = trial.value + trial.sums @ (b - trial.b) > bound + 0.1 * rounding
            if not cuts_off and inward == 0.0 and trial.value >= best.value:
                break
            inward = 0.5 if cuts_off else 0.0
            model.add(trial)
            best = trial if trial.value < best.value else best
        # The shares come from a linear system, so that one of 0 may be off by some rounding for each row of it.
        if model.size == size and model.artificial_share <= 4.0 * EPS * (size + 1):
            return model.mixture(best.b)
    raise IncompatibleError(UNBOUNDED)


def _shift_free(cut: Cut) -> bool:
    return abs(float(cut.sums.sum())) <= 1e-12 * float(np.abs(cut.sums).sum())


class Tangents:
    """max over theta of sum theta_j c_j with sum theta_j g_j = 0 and sum theta_j = 1, by the simplex method.

    Its prices are the minimiser of the model max_j (c_j + <g_j, b - centre>). The first columns, an artificial
    simplex around the origin, make it feasible and keep the model bounded.
    """

    def __init__(self, centre: Vector, size: int, wall: float) -> None:
        self.centre, self.size = centre, size
        self.cuts: list[Cut | None] = [None] * (size + 1)
        self.columns: list[Vector] = [np.append(e, 1.0) for e in np.eye(size)] + [np.append(-np.ones(size), 1.0)]
        self.costs: list[float] = [wall] * (size + 1)
        self.basis = list(range(size + 1))
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
            self.shares = np.maximum(np.linalg.solve(table[self.basis].T, self._goal(NUDGE)), 0.0)
        b = self.centre.copy()
        b[: self.size] -= prices[: self.size]
        return b, float(prices[-1])

    @property
    def scale(self) -> float:
        """The largest number that the value of the model is the difference of."""
        return max((abs(self.costs[k]) for k in self.basis if self.cuts[k] is not None), default=0.0)

    @property
    def artificial_share(self) -> float:
        """The share of the columns that are no tangents."""
        pairs = zip(self.basis, self._exact_shares(), strict=True)
        return float(sum(share for k, share in pairs if self.cuts[k] is None))

    def mixture(self, best: Vector) -> Mixture:
        """The tangents with their shares; `best` is the best point met."""
        pairs = zip(self.basis, self._exact_shares(), strict=True)
        used = [(cut, share) for k, share in pairs if (cut := self.cuts[k]) and share > 4.0 * EPS]
        shares = np.array([share for _, share in used])
        return mixture_of(
            [cut.b for cut, _ in used],
            np.array([cut.value for cut, _ in used]),
            np.array([cut.sums for cut, _ in used]),
            shares / shares.sum(),
            best,
        )

    def _exact_shares(self) -> Vector:
        """The shares without the nudge; what it made negative is 0 but for rounding."""
        square = np.array([self.columns[k] for k in self.basis]).T
        return np.maximum(np.linalg.solve(square, self._goal(0.0)), 0.0)

    def _goal(self, nudge: float) -> Vector:
        """The right-hand side: 0 for each sum, 1 for the shares; uneven nudges part the ties in which pivots cycle."""
        return np.append(nudge * (1.0 + np.sqrt(np.arange(2.0, self.size + 2.0)) % 1.0), 1.0)
