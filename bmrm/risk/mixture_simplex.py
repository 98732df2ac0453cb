"""The minimum over several constants added to the scores of all rows: Newton, or cutting planes by a small simplex.

docs/decisions/free-intercept.md says why.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import IncompatibleError, ScoreFunction, Scores, Vector
from bmrm.risk.mixture import UNBOUNDED, Mixture, mixture_of

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
ACCURACY = 1e-13
"""Relative distance of the mixture to the minimum at which cutting planes stop."""
WALLS = (1e3, 1e6, 1e9, 1e12)
"""How low the artificial planes start, relative to the value; raised while they matter."""
STEPS = 2000


class Cut(NamedTuple):
    """phi at `b`, and the sums over rows of its slope there."""

    b: Vector
    value: float
    sums: Vector


def minimum_over_constants(phi: ScoreFunction, f: Scores, start: Vector) -> Mixture:
    """The mixture for K scores per row, searched from `start`, (K,)."""
    if phi.smooth:
        found = _newton(phi, f, start)
        return mixture_of([found.b], np.array([found.value]), found.sums[None, :], np.ones(1))
    return _cutting_planes(phi, f, start)


def _at(phi: ScoreFunction, f: Scores, b: Vector) -> Cut:
    value, slope = phi.value_and_slope(f + phi.constant(b))
    return Cut(b, value, phi.total(slope))


def _newton(phi: ScoreFunction, f: Scores, start: Vector) -> Cut:
    """A point where the sums are 0 up to rounding."""
    here = _at(phi, f, start)
    for _ in range(STEPS):
        size = float(np.max(np.abs(here.sums)))
        if size == 0.0:
            break
        at = f + phi.constant(here.b)
        inner = np.array([phi.total(phi.curvature_product(at, phi.constant(e))) for e in np.eye(len(start))])
        # The ridge keeps steps finite where a direction is flat, as a shift of all classes is.
        scale = max(float(np.trace(inner)), size) / len(start)
        step = -np.linalg.solve(0.5 * (inner + inner.T) + 1e-10 * scale * np.eye(len(start)), here.sums)
        after, length = _at(phi, f, here.b + step), 1.0
        while not after.value <= here.value + 0.1 * length * float(step @ here.sums) and length > EPS:
            if float(np.max(np.abs(after.sums))) < 0.5 * size and after.value <= here.value + ACCURACY * abs(
                here.value
            ):
                break
            length *= 0.5
            after = _at(phi, f, here.b + length * step)
        if not float(np.max(np.abs(after.sums))) < size and after.value >= here.value:
            break
        here = after
    if float(np.max(np.abs(here.b))) > WALLS[-1] * (1.0 + abs(here.value)):
        raise IncompatibleError(UNBOUNDED)
    return here


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
            if best.value - bound <= ACCURACY * abs(best.value):
                break
            trial = _at(phi, f, inward * best.b + (1.0 - inward) * b)
            if size < len(start) and not _shift_free(trial):
                size = len(start)
                break
            cuts_off = trial.value + trial.sums @ (b - trial.b) > bound + 0.1 * ACCURACY * abs(best.value)
            if not cuts_off and inward == 0.0 and trial.value >= best.value:
                break
            inward = 0.5 if cuts_off else 0.0
            model.add(trial)
            best = trial if trial.value < best.value else best
        if model.size == size and model.artificial_share <= EPS:
            return model.mixture()
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
        self.shares: Vector = np.full(size + 1, 1.0 / (size + 1))

    def add(self, cut: Cut) -> None:
        """Take a tangent in."""
        self.cuts.append(cut)
        self.columns.append(np.append(cut.sums[: self.size], 1.0))
        self.costs.append(cut.value - float(cut.sums[: self.size] @ (cut.b - self.centre)[: self.size]))

    def solve(self) -> tuple[Vector, float]:
        """Minimiser of the model, (scores per row,), and its value."""
        table, costs = np.array(self.columns), np.array(self.costs)
        for _ in range(STEPS):
            square = table[self.basis].T
            prices = np.linalg.solve(square.T, costs[self.basis])
            reduced = costs - table @ prices
            enter = int(np.argmax(reduced))
            if reduced[enter] <= 16.0 * EPS * max(1e-300, float(np.max(np.abs(costs[self.basis])))):
                break
            direction = np.linalg.solve(square, table[enter])
            falling = direction > 1e-12
            if not falling.any():
                break
            ratios = np.where(falling, self.shares / np.where(falling, direction, 1.0), np.inf)
            leave = int(np.argmin(ratios))
            self.basis[leave] = enter
            goal = np.zeros(self.size + 1)
            goal[-1] = 1.0
            self.shares = np.maximum(np.linalg.solve(table[self.basis].T, goal), 0.0)
        b = self.centre.copy()
        b[: self.size] -= prices[: self.size]
        return b, float(prices[-1])

    @property
    def artificial_share(self) -> float:
        """The share of the columns that are no tangents."""
        return float(sum(share for k, share in zip(self.basis, self.shares, strict=True) if self.cuts[k] is None))

    def mixture(self) -> Mixture:
        """The tangents with their shares."""
        used = [(cut, share) for k, share in zip(self.basis, self.shares, strict=True) if (cut := self.cuts[k])]
        shares = np.array([share for _, share in used])
        return mixture_of(
            [cut.b for cut, _ in used],
            np.array([cut.value for cut, _ in used]),
            np.array([cut.sums for cut, _ in used]),
            shares / shares.sum(),
        )
