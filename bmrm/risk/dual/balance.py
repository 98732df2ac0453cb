"""The constants at which slopes sum to 0, for a free intercept in the dual."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blas_threads import LARGE, lapack, lapack_threads
from bmrm.numerics.roots import secant_root
from bmrm.problem import Check, Vector, unchecked

Totals = Callable[[Vector], Vector]
"""From constants that are added to the scores of all rows to the sums of their slopes, (scores per row,)."""
Matrix = NDArray[np.float64]
Derivative = Callable[[Vector], Matrix]
"""From such constants to the derivative of the sums, (scores per row, scores per row)."""
TRIES = 100
"""Most Newton steps, and most updates of a matrix, unless there are more scores."""
BALANCED, ROUGHLY = 1e-13, 1e-6
"""Largest sum of slopes, relative to the sum of their absolute values, that counts as 0: by rounding, and for one score
per row, whose slopes have few digits."""
PATIENCE = 4
"""Steps in a row that do not halve the largest sum after which, where it is `ROUGHLY` 0, rounding is the limit."""
FLAT = 0.1
"""Share of the sums along a step that a search along it may leave."""
NEAR = 1e-6
"""First constant that is tried, in units of the scores."""
RIDGE = 1e-12
"""Damping of a singular matrix, relative to its trace."""


class Inverse:
    """The inverse of a derivative and of Broyden's updates of it: one factor, and two vectors for each update.

    Parameters
    ----------
    matrix : symmetric, raised so that it is not singular.
    """

    def __init__(self, matrix: Matrix) -> None:
        functions, self._size = lapack(), min(len(matrix), LARGE - 1)  # one thread: a factor is as dear as a few sums
        with lapack_threads(self._size):
            factor, failed = functions.dpotrf(matrix.T, lower=1)
        self._factor: Matrix = factor
        self._whole: Matrix | None = _inverse(matrix) if failed else None
        """Where there is no factor."""
        self._updates: list[tuple[Vector, Vector]] = []

    def __len__(self) -> int:
        """How many updates there are."""
        return len(self._updates)

    def times(self, right: Vector) -> Vector:
        """The inverse times a vector."""
        if self._whole is None:
            with lapack_threads(self._size):
                found = lapack().dpotrs(self._factor, right, lower=1)[0]
        else:
            found = self._whole @ right
        for left, step in self._updates:
            found = found + left * float(step @ found)
        return np.asarray(found)

    def update(self, step: Vector, change: Vector) -> None:
        """Of the matrix: `change` is what it should have given for `step`."""
        product = self.times(change)
        size = float(step @ product)
        if size != 0.0:
            self._updates.append(((step - product) / size, step))


def _inverse(matrix: Matrix) -> Matrix:
    try:
        return np.asarray(np.linalg.inv(matrix))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(matrix))


class Balance:
    """Searches the constants, one for each score, at which slopes sum to 0.

    With one score by secants; with several by Newton's method, the inverse of a derivative and then Broyden's updates,
    with searches along the line where a step brings little. It is remembered: it hardly changes from one search to
    the next.

    Parameters
    ----------
    scores : how many.
    slopes : the sum of their sizes.
    unit : the mean size of scores.
    """

    def __init__(self, scores: int, slopes: float, unit: float = 1.0) -> None:
        self._scores, self._slopes, self._unit = scores, slopes, unit
        self._inverse: Inverse | None = None

    def find(self, totals: Totals, derivative: Derivative, check: Check = unchecked) -> Vector | None:
        """Constants at which `totals` is 0; None where none are found. `check` is called between evaluations.

        `totals` is the gradient of a convex function; with several scores its components sum to 0, and nothing changes
        when all constants do by the same amount, so that the last of them stays 0.
        """
        if self._scores == 1:
            root = secant_root(totals, NEAR * self._unit)
            constant = np.array([0.0 if root is None else root])
            # Where targets are so large that slopes jump from one number to the next there is none.
            return None if root is None or abs(float(totals(constant)[0])) > ROUGHLY * self._slopes else constant
        here = np.zeros(self._scores)
        sums = totals(here)
        least, idle = math.inf, 0
        for _ in range(TRIES):
            check()
            size = float(np.abs(sums).max())
            if size <= BALANCED * self._slopes:
                return here
            idle = idle + 1 if size > 0.5 * least else 0
            least = min(least, size)
            if idle > PATIENCE and least <= ROUGHLY * self._slopes:
                break
            fresh = self._inverse is None
            if self._inverse is None:
                self._inverse = self._inverted(derivative(here)[:-1, :-1])
                check()
            step = np.append(self._inverse.times(-sums[:-1]), 0.0)
            after = totals(here + step)
            if np.abs(after).max() <= 0.5 * np.abs(sums).max():
                self._inverse.update(step[:-1], (after - sums)[:-1])
                if len(self._inverse) > max(TRIES, self._scores):
                    self._inverse = None
                here, sums = here + step, after
                continue
            self._inverse = None
            if fresh:

                def along(t: Vector, at: Vector = here, way: Vector = step) -> float:
                    check()
                    with np.errstate(over="ignore", invalid="ignore"):  # slopes far away may be as large as any number
                        return float(totals(at + t[0] * way) @ way)

                before = float(sums @ step)
                length = secant_root(along, first=0.5, enough=FLAT * abs(before))
                if not length:
                    break
                here = here + length * step
                sums = totals(here)
                if abs(float(sums @ step)) > 0.5 * abs(before):
                    break  # from one number to the next they jump over 0, as those of rows 1e12 times as heavy do
        return None

    def _inverted(self, matrix: Matrix) -> Inverse:
        ridge = RIDGE * max(float(np.trace(matrix)), BALANCED * self._slopes)
        return Inverse(matrix + ridge * np.eye(self._scores - 1))
