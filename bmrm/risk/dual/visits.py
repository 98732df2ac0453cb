"""What dual ascent needs of the rows of its risk, wherever they are, and what a sweep over them has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Check, Scores, Vector, unchecked

LITTLE = 1e-3
"""Share of its curvature with which a row's proximal step gives about the slope of its loss at a given score."""
NEARBY = 1e-7
"""Step of the difference quotient that stands for a derivative, relative to the size of the shift or 1."""


@dataclass(frozen=True)
class Visits:
    """What a sweep over some rows has found; sums, so that those of several ranks add up.

    Attributes
    ----------
    total : minus the sum of the changes of slopes, over (S l2); (scores per row,).
    gap : what the rows contributed to the duality gap when they were found, times S; nan the first time.
    visited : number of visits.
    left : number of rows not shrunk.
    """

    total: Vector
    gap: float
    visited: float
    left: float


class AscentRows(Protocol):
    """What `Ascent` needs of the rows, wherever they are; every sum is over all of them.

    A point is v = -a / l2, of which soft thresholding makes w, and the constant added to all scores.
    """

    def begin(self, start: Scores | None, near: Scores | None, intercept: bool = False) -> None:
        """Set up, with these slopes; see `DualBlocks`. Comes first, once."""
        ...

    def sweep(self, v: Vector, constant: Vector, penalty: float, check: Check = unchecked) -> tuple[Vector, Visits]:
        """Visit the open rows once; v after it, possibly in place. The constant moves with `penalty` times the total.

        Where `check` raises on the way, v has been moved in place by the rows that were visited.
        """
        ...

    def unshrink(self) -> None:
        """Make all rows open."""
        ...

    def totals(self, shift: Vector, share: float = 1.0) -> Vector:
        """The sum of the slopes, (scores per row,), if the scores of all rows were higher by `shift`, as many numbers.

        Rows answer as with `share` of their curvatures. Only with a free intercept.
        """
        ...

    def derivative(self, shift: Vector, share: float = 1.0) -> NDArray[np.float64]:
        """Of `totals` at `shift`, (scores per row, scores per row); by differences where rows know no other way."""
        nearby = NEARBY * max(1.0, float(np.abs(shift).max()))
        sums = self.totals(shift, share)
        columns = [self.totals(shift + nearby * unit, share) - sums for unit in np.eye(len(shift))]
        matrix = np.array(columns) / nearby
        return np.asarray(0.5 * (matrix + matrix.T))

    def settle(self, shift: Vector, share: float = 1.0) -> Vector:
        """Take those slopes (zeros keep the present ones), and return A' slopes."""
        ...

    def evened(self) -> Vector | None:
        """Change the slopes a little so that they sum to 0, without a search, and return A' slopes; None where in vain.

        Only with a free intercept. The scores that go with the slopes are left as they are.
        """
        return None

    def offset(self) -> float:
        """The sum of minus the conjugates at the slopes, or less where rounding of them shows."""
        ...

    def sizes(self) -> tuple[float, float, float, float]:
        """The sum of the squared norms of the rows' features, and the number of rows; those of weight 0 left out.

        Then the sums of the sizes of scores and of slopes.
        """
        ...

    def slope(self) -> Scores:
        """The slopes, times 1 / S."""
        ...

    def scores(self) -> Scores:
        """Scores at which the rows have these slopes. Only with a free intercept."""
        ...
