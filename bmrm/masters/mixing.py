"""Planes in a few free variables, mixed so that these cancel: a linear program of few rows, by the simplex method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Vector

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
PIVOTS = 300
STEEP_PIVOTS = 60
IDLE = 2
"""Pivots, for each row, that may bring nothing: then rounding rules, and the mixture so far, a valid one, will do."""
NUDGE = 1e-9
"""Of the sums, which should be 0; far below the sum of one row's slope, far above rounding."""


class Mixing:
    """max over theta >= 0 of sum theta_j c_j with sum theta_j g_j = 0 and sum theta_j = 1.

    Its prices are the minimiser of the model max_j (c_j + <g_j, x>). The first columns, an artificial simplex around
    the origin, make it feasible and keep the model bounded.

    Parameters
    ----------
    size : of x.
    wall : c of the artificial columns, far below what the minimum may be.
    noise : the rounding of the g_j.
    """

    def __init__(self, size: int, wall: float, noise: float) -> None:
        self.size, self.noise, self._nudge = size, noise, NUDGE
        self._table: Array = np.vstack((np.eye(size), -np.ones(size)))
        self._table = np.hstack((self._table, np.ones((size + 1, 1))))
        self._costs: Vector = np.full(size + 1, wall)
        self._artificial = size + 1
        self._basis = list(range(size + 1))

    def add(self, g: Vector, c: float) -> None:
        """Take a plane in."""
        self._table = np.vstack((self._table, np.append(g, 1.0)))
        self._costs = np.append(self._costs, c)

    def price(self, costs: Vector, wall: float) -> None:
        """Other c for all planes, in the order in which they came."""
        self._costs = np.concatenate((np.full(self._artificial, wall), costs))

    def keep(self, chosen: NDArray[np.int64]) -> None:
        """Forget the planes that are neither chosen (increasing numbers, from 0) nor in use; see `used`."""
        rows = np.concatenate((np.arange(self._artificial), chosen + self._artificial))
        places = {int(row): k for k, row in enumerate(rows)}
        self._table, self._costs = self._table[rows], self._costs[rows]
        self._basis = [places[row] for row in self._basis]

    @property
    def used(self) -> NDArray[np.int64]:
        """The numbers of the planes that are at work."""
        return np.sort([row - self._artificial for row in self._basis if row >= self._artificial]).astype(np.int64)

    def solve(self) -> tuple[Vector, float]:
        """The minimiser x of the model, and its value there."""
        table, costs = self._table, self._costs
        prices, goal, highest, idle = np.zeros(self.size + 1), self._goal(self._nudge), -np.inf, 0
        for pivot in range(PIVOTS):
            inverse = self._inverse()
            shares = np.maximum(goal @ inverse, 0.0)
            prices = inverse @ costs[self._basis]
            reduced = costs - table @ prices
            noise = 16.0 * EPS * (float(np.max(np.abs(costs[self._basis]))) + float(np.max(np.abs(prices))))
            better = np.flatnonzero(reduced > noise)
            idle = 0 if prices[-1] > highest + noise else idle + 1
            highest = max(highest, float(prices[-1]))
            if not better.size or idle > IDLE * (self.size + 1):
                break
            # Bland's rule, the first one that helps, ends the cycles that ties can cause.
            enter = int(better[0] if pivot > STEEP_PIVOTS else np.argmax(reduced))
            direction = table[enter] @ inverse
            falling = direction > 1e-12
            if not falling.any():
                break
            ratios = np.where(falling, shares / np.where(falling, direction, 1.0), np.inf)
            ties = np.flatnonzero(ratios <= ratios.min())
            leave = int(ties[np.argmin(np.array(self._basis)[ties])])
            self._basis[leave] = enter
        return -prices[: self.size], float(prices[-1])

    def _inverse(self) -> Array:
        """Of the basis; where rounding has made that singular, the artificial planes take its place."""
        try:
            inverse = np.linalg.inv(self._table[self._basis])
        except np.linalg.LinAlgError:
            self._basis = list(range(self._artificial))
            inverse = np.linalg.inv(self._table[self._basis])
        return np.asarray(inverse, np.float64)

    @property
    def artificial(self) -> float:
        """The share of the artificial planes, with the nudge."""
        return float(self._solved(self._nudge)[np.array(self._basis) < self._artificial].sum())

    @property
    def residual(self) -> Vector:
        """What the sums of the planes at work add up to, (size,)."""
        planes = np.array(self._basis) >= self._artificial
        left: Vector = self._exact_shares()[planes] @ self._table[self._basis][planes, :-1]
        return left

    @property
    def scale(self) -> float:
        """The largest number that the value of the model is the difference of."""
        return max((abs(float(self._costs[k])) for k in self._basis if k >= self._artificial), default=0.0)

    @property
    def feasible(self) -> bool:
        """Whether planes alone make a cut: with their shares the sums are 0 up to rounding."""
        shares, rounding = self._exact_shares(), 4.0 * EPS * (self.size + 1)
        planes = np.array(self._basis) >= self._artificial
        # The shares come from a linear system, so that one of 0 may be off by some rounding for each row of it.
        if shares[~planes].sum() > rounding:
            return False
        sums = self._table[self._basis][planes, :-1]
        return bool(np.all(np.abs(shares[planes] @ sums) <= rounding * np.abs(sums).sum() + self.noise))

    def part_no_ties(self) -> None:
        """Solve without the nudge from now on: it moved shares by more than rounding, where the sums are tiny."""
        if self._nudge > 0.0:
            self._nudge, self._basis = 0.0, list(range(self._artificial))

    def mixture(self) -> list[tuple[int, float]]:
        """The numbers of the planes with their shares."""
        pairs = [
            (row - self._artificial, float(share))
            for row, share in zip(self._basis, self._exact_shares(), strict=True)
            if row >= self._artificial and share > 4.0 * EPS
        ]
        whole = sum(share for _, share in pairs)
        return [(plane, share / whole) for plane, share in pairs]

    def _exact_shares(self) -> Vector:
        """The shares without the nudge; what it made negative is 0 but for rounding."""
        return np.maximum(self._solved(0.0), 0.0)

    def _solved(self, nudge: float) -> Vector:
        """The shares for sums of 0, but for the nudge."""
        shares: Vector = self._goal(nudge) @ self._inverse()
        return shares

    def _goal(self, nudge: float) -> Vector:
        """The right-hand side: 0 for each sum, 1 for the shares; uneven nudges part the ties in which pivots cycle."""
        return np.append(nudge * (1.0 + np.sqrt(np.arange(2.0, self.size + 2.0)) % 1.0), 1.0)
