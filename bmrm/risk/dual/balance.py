"""The constants at which slopes sum to 0, for a free intercept in the dual."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bmrm.numerics.roots import secant_root
from bmrm.problem import Check, Vector, unchecked

Totals = Callable[[Vector], Vector]
"""From constants that are added to the scores of all rows to the sums of their slopes, (scores per row,)."""
Matrix = NDArray[np.float64]
Derivative = Callable[[Vector], Matrix]
"""From such constants to the derivative of the sums, (scores per row, scores per row)."""
TRIES = 100
"""Steps of Newton's method at most."""
BALANCED, ROUGHLY = 1e-13, 1e-6
"""Share of the sizes of slopes that may be left of a sum: rounding, and that of one sum over slopes of few digits."""
NEAR = 1e-6
"""The first constant that is tried, in units."""
RIDGE = 1e-12
"""What is added to a singular matrix, relative to its trace."""


class Balance:
    """Searches the constants, one for each score, at which slopes sum to 0.

    With one score by secants; with several by Newton's method, its matrix a derivative and then Broyden's updates, with
    searches along the line where a step brings little. The matrix is remembered: it hardly changes from one search to
    the next.

    Parameters
    ----------
    scores : how many.
    slopes : the sum of their sizes.
    unit : the mean size of scores.
    """

    def __init__(self, scores: int, slopes: float, unit: float = 1.0) -> None:
        self._scores, self._slopes, self._unit = scores, slopes, unit
        self._matrix: Matrix | None = None

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
        for _ in range(TRIES):
            check()
            if np.abs(sums).max() <= BALANCED * self._slopes:
                return here
            fresh = self._matrix is None
            if self._matrix is None:
                self._matrix = derivative(here)[:-1, :-1]
            step = self._step(sums)
            after = totals(here + step)
            if np.abs(after).max() <= 0.5 * np.abs(sums).max():
                change = (after - sums)[:-1] - self._matrix @ step[:-1]
                self._matrix += np.outer(change, step[:-1]) / float(step @ step)
                here, sums = here + step, after
                continue
            self._matrix = None
            if fresh:

                def along(t: Vector, at: Vector = here, way: Vector = step) -> float:
                    check()
                    with np.errstate(over="ignore", invalid="ignore"):  # slopes far away may be as large as any number
                        return float(totals(at + t[0] * way) @ way)

                length = secant_root(along, first=0.5)
                if not length:
                    break
                here = here + length * step
                sums = totals(here)
        return None

    def _step(self, sums: Vector) -> Vector:
        assert self._matrix is not None
        ridge = RIDGE * max(float(np.trace(self._matrix)), BALANCED * self._slopes)
        matrix = self._matrix + ridge * np.eye(self._scores - 1)
        try:
            part = np.linalg.solve(matrix, -sums[:-1])
        except np.linalg.LinAlgError:
            part = np.linalg.lstsq(matrix, -sums[:-1], rcond=None)[0]
        return np.append(part, 0.0)
