"""Planes in a few free variables, mixed so that these cancel: a linear program of few rows, by the simplex method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.masters.small_simplex import pivoted
from bmrm.problem import Vector

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
NUDGE = 1e-9
"""Perturbation of the right-hand side 0 of the sums, against cycling: far below one row's slope, far above rounding."""

AWAY = 4.0
"""Assumed distance from 0 of the x of another minimum, as a multiple of those at hand."""
KNOWN = 4.0
"""Rank tolerance, in units of roundoff: a slope with a larger part outside the span of the others is a new one."""


class Mixing:
    """max over theta >= 0 of sum theta_j c_j with sum theta_j g_j = 0 and sum theta_j = 1.

    Its prices are the minimiser of the model max_j (c_j + <g_j, x>). Artificial columns, a simplex around the origin,
    make it feasible and keep the model bounded. All is done in the directions in which planes have slopes by more than
    rounding: in the others, as a common shift of scores that are only compared, there is nothing to cancel. The unit of
    slopes is the largest one.

    Parameters
    ----------
    size : of x.
    """

    def __init__(self, size: int) -> None:
        self.size, self._nudge, self._wall, self._unit = size, NUDGE, -1.0, 1.0
        self._slopes: Array = np.zeros((0, size))
        self._noises: Vector = np.zeros(0)
        self._known: Array = np.zeros((0, size))
        """Orthonormal directions, those of the columns of `_table`."""
        self._costs: Vector = np.zeros(0)
        self._begin()

    def _begin(self) -> None:
        """The table, the artificial columns first, and these for a basis."""
        n = len(self._known)
        self._unit = float(np.abs(self._slopes).max(initial=0.0)) or 1.0
        corner = np.hstack((np.vstack((np.eye(n), -np.ones(n))), np.ones((n + 1, 1))))
        planes = np.hstack((self._slopes @ self._known.T / self._unit, np.ones((len(self._slopes), 1))))
        self._table: Array = np.vstack((corner, planes))
        self._costs = np.concatenate((np.full(n + 1, self._wall), self._costs[len(self._costs) - len(planes) :]))
        self._artificial = n + 1
        self._restart()

    def _restart(self) -> None:
        self._basis = list(range(self._artificial))
        self._inverted: tuple[list[int], Array] | None = None

    def add(self, g: Vector, c: float, noise: float) -> None:
        """Take a plane in; `noise` is the rounding of its g."""
        along = self._known @ g
        self._slopes, self._noises = np.vstack((self._slopes, g)), np.append(self._noises, noise)
        self._costs = np.append(self._costs, c)
        new = g - along @ self._known
        length = float(np.linalg.norm(new))
        if len(self._known) < self.size and length > KNOWN * noise:
            new -= (self._known @ new) @ self._known
            self._known = np.vstack((self._known, new / np.linalg.norm(new)))
            self._begin()
        else:
            self._table = np.vstack((self._table, np.append(along / self._unit, 1.0)))

    def price(self, costs: Vector, value: float, depth: float) -> None:
        """Other c for all planes, in the order in which they came.

        `value` is at least that of the model; `depth` says how far x may be where planes do not bound the model: so
        much would the artificial planes, with slopes of 1, lie below the value.
        """
        self._wall = value - depth * self._unit
        self._costs = np.concatenate((np.full(self._artificial, self._wall), costs))

    def keep(self, chosen: NDArray[np.int64]) -> None:
        """Forget the planes that are neither chosen (increasing numbers, from 0) nor in use; see `used`."""
        rows = np.concatenate((np.arange(self._artificial), chosen + self._artificial))
        places = {int(row): k for k, row in enumerate(rows)}
        self._table, self._costs, self._slopes = self._table[rows], self._costs[rows], self._slopes[chosen]
        self._noises = self._noises[chosen]
        self._basis, self._inverted = [places[row] for row in self._basis], None

    @property
    def used(self) -> NDArray[np.int64]:
        """The numbers of the planes that are at work."""
        return np.sort([row - self._artificial for row in self._basis if row >= self._artificial]).astype(np.int64)

    def solve(self) -> tuple[Vector, float]:
        """The minimiser x of the model, the smallest one, and its value there."""
        n, goal = len(self._known), self._goal(self._nudge)
        basis = np.array(self._basis)
        inverse = self._pivoted(goal, basis)
        if inverse is None:
            basis = np.arange(self._artificial)
            inverse = self._pivoted(goal, basis)
        if inverse is None:
            basis = np.arange(self._artificial)
            inverse = np.asarray(np.linalg.inv(self._table[basis]), np.float64)
        self._basis = basis.tolist()
        self._inverted = self._basis[:], inverse
        prices = inverse @ self._costs[basis]
        return -prices[:n] @ self._known / self._unit, float(prices[-1])

    def _pivoted(self, goal: Vector, basis: NDArray[np.int64]) -> Array | None:
        """As `pivoted`; None where rounding makes the basis singular."""
        try:
            return np.asarray(pivoted(self._table, self._costs, goal, basis), np.float64)
        except np.linalg.LinAlgError:
            return None

    def _inverse(self) -> Array:
        """Of the basis; where rounding has made that singular, the artificial planes take its place."""
        if self._inverted is None or self._inverted[0] != self._basis:
            try:
                inverse = np.linalg.inv(self._table[self._basis])
            except np.linalg.LinAlgError:
                self._restart()
                inverse = np.linalg.inv(self._table[self._basis])
            self._inverted = list(self._basis), np.asarray(inverse, np.float64)
        return self._inverted[1]

    @property
    def artificial(self) -> float:
        """The share of the artificial planes, with the nudge."""
        return float(self._solved(self._nudge)[~self._planes].sum())

    @property
    def residual(self) -> Vector:
        """What the sums of the planes at work add up to, (size,)."""
        left: Vector = self._exact_shares()[self._planes] @ self._at_work
        return left

    def lost(self, x: Vector) -> float:
        """What the mixture may be too high at 0 by, for sums that do not quite cancel, if the minimum is about at x.

        Those in directions without slopes too: their rounding counts where x is far.
        """
        left, known = self.residual, self._known
        along, at = known @ left, known @ x
        return float(np.abs(along) @ np.abs(at) + np.abs(left - along @ known) @ np.abs(x - at @ known))

    @property
    def scale(self) -> float:
        """The largest number that the value of the model is the difference of."""
        return max((abs(float(self._costs[k])) for k in self._basis if k >= self._artificial), default=0.0)

    @property
    def feasible(self) -> bool:
        """Whether planes alone make a cut: with their shares the sums are 0 up to rounding."""
        shares, rounding = self._exact_shares(), 4.0 * EPS * (self.size + 1)
        # The shares come from a linear system, so that one of 0 may be off by some rounding for each row of it.
        noise = float(self._noises[self.used].max(initial=0.0))
        if shares[~self._planes].sum() > rounding + noise / self._unit:
            return False
        sums = self._at_work
        left = np.abs(shares[self._planes] @ sums)
        return bool(np.all(left <= rounding * np.abs(sums).sum() + (1.0 + KNOWN) * noise))

    @property
    def _planes(self) -> NDArray[np.bool_]:
        """Which places of the basis have planes, not artificial ones."""
        return np.array(self._basis) >= self._artificial

    @property
    def _at_work(self) -> Array:
        """Slopes of the planes in the basis, in its order."""
        return self._slopes[[row - self._artificial for row in self._basis if row >= self._artificial]]

    def part_no_ties(self) -> None:
        """Solve without the nudge from now on: it moved shares by more than rounding, where the sums are tiny."""
        if self._nudge > 0.0:
            self._nudge = 0.0
            self._restart()

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
        """The right-hand side: 0 for each sum, 1 for the shares; perturbed unevenly against cycling."""
        return np.append(nudge * (1.0 + np.sqrt(np.arange(2.0, len(self._known) + 2.0)) % 1.0), 1.0)
