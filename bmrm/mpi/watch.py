"""What a guarded rank judges of the points that it is asked at, and of the rows that a sum is made of.

Section 4.1 of the KDD 2007 paper: what an owner hands out is a combination of many observations, and he may check
whether the objective falls on his portion of the data.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.guard import NAME, RefusedError
from bmrm.mpi.share import Rank
from bmrm.problem import Regularizer, Vector
from bmrm.risk.linear import LinearRisk
from bmrm.risk.rounding import AbsoluteMap

Floats = NDArray[np.float64]
ALONE = 1e-9
"""Share of the size of all scores that is left beside one feature where a point isolates it; honest points leave 0.03
or more, where features differ by five powers of ten."""
SEVERE = 1e9
"""How many times the ceiling an owner's part of the objective may be at a single point: of honest solvers it is at most
75, of lbfgs 3e6 where features are not scaled."""
PATIENCE, LOWER = 500, 0.95
"""Most points above the ceiling, one after another, none so much lower than those before: of runs that converge at most
70, of `bundle` with a tiny lambda 190."""
TRIALS = 500
"""Most points on one line: honest searches have at most 46."""
COUNTS, DOMINANT = 1e-3, 0.5
"""Share of a row in a sum, relative to the largest, from which it counts; and largest share of all that one may have,
as of the rules of frequency and dominance (Hundepool et al. 2012, section 4.2)."""
ROUNDING = 1e-9


class Watch:
    """The checks of one rank.

    Parameters
    ----------
    rank : whose rows are guarded.
    min_rows : of at least how many rows each sum must be made.

    Attributes
    ----------
    risk : this rank's term of R.
    """

    def __init__(self, rank: Rank, min_rows: int) -> None:
        self.rank, self.min_rows = rank, min_rows
        self.risk = cast(LinearRisk, rank.share.risk)
        self._omega: Regularizer | None = None
        self._ceiling, self._above, self._low = math.inf, 0, math.inf
        self._sparse = False
        map: Any = self.risk.map
        shape = self.risk.layout.new(self.risk.data.rows, np.zeros(self.risk.layout.extra)).shape
        sizes = AbsoluteMap(map).rmatvec(np.ones(shape))[: self.risk.rows_map.dim]
        self._sizes = sizes.reshape(self.risk.rows_map.inputs, -1)[: self.risk.rows_map.features, 0]
        self._features = int(np.count_nonzero(self._sizes))

    def begin(self, omega: Regularizer, ceiling: float) -> None:
        """From here on the objective is known.

        Parameters
        ----------
        omega : the regularizer, of w.
        ceiling : what this rank's part of the objective, Omega(w) and its term of R(w), is at most wherever J is no
            larger than at weights of 0: J(0) less the infima of the other terms.
        """
        self._omega, self._ceiling, self._sparse = omega, ceiling, not omega.smooth

    def zero(self) -> float:
        """This rank's term of R at weights of 0."""
        return float(self.risk.phi.value_and_slope(self.risk.map.matvec(np.zeros(self.risk.dim)))[0])

    def refuse(self, why: str) -> NoReturn:
        """Raise RefusedError."""
        raise RefusedError(f"{NAME} refuses a request: {why}")

    # -- what is judged

    def weights(self, w: Any) -> Vector:
        """Those of a request, which isolate no feature."""
        if not isinstance(w, np.ndarray) or w.shape != (self.risk.dim,) or w.dtype.kind != "f":
            self.refuse("no weights where there should be some")
        if not np.isfinite(w).all():
            self.refuse("a point that is not finite")
        self.spread(w)
        return w

    def spread(self, w: Vector) -> None:
        """Refuse a point, or a direction, in which one feature has all the weight: the answer would tell of it alone.

        Regularizers that make zeros lead there themselves; with these it is not looked at.
        """
        if self._sparse or self._features < 2:
            return
        risk = self.risk
        table = np.abs(w[: risk.rows_map.dim]).reshape(risk.rows_map.inputs, -1)[: risk.rows_map.features]
        parts = table.sum(axis=1) * self._sizes
        most = int(np.argmax(parts))
        top, parts[most] = parts[most], 0.0
        if top > 0.0 and float(parts.sum()) <= ALONE * top:
            self.refuse("the weights of a point isolate a feature: all others are 0, or next to it")

    def many(self, *scores: Floats) -> None:
        """Refuse a sum over rows that is made of fewer than `min_rows` of them, or mostly of one.

        These are the rules of frequency and dominance by which statistical offices publish sums. Rows whose share is
        less than a thousandth of the largest do not count.

        Parameters
        ----------
        scores : a number, or several, for each row; of more than one the products.
        """
        sizes = np.abs(self.risk.layout.table(scores[0]))
        for more in scores[1:]:
            sizes = sizes * np.abs(self.risk.layout.table(more))
        sizes = sizes.sum(axis=1) if sizes.ndim > 1 else sizes
        largest = float(sizes.max(initial=0.0))
        if not 0.0 < largest < math.inf:
            return
        sizes = sizes / largest
        count = int(np.count_nonzero(sizes >= COUNTS))
        if count < self.min_rows:
            self.refuse(
                f"the answer would be made of {count} row{'' if count == 1 else 's'}, expected at least {self.min_rows}"
                " (min_rows), or none"
            )
        if float(sizes.sum()) * DOMINANT < 1.0 - ROUNDING:
            self.refuse(f"a single row would make {1.0 / float(sizes.sum()):.0%} of the answer, expected at most half")

    def evaluated(self, w: Vector | float, value: float, slope: Floats) -> None:
        """Judge a point by its weights, this rank's term of R there, and its slope."""
        there = np.broadcast_to(np.asarray(w), (self.risk.dim,))
        self.spread(there)
        self.many(slope)
        self.falls(self.part(there, value))

    def part(self, w: Vector, value: float) -> float:
        """This rank's part of the objective."""
        return value if self._omega is None else float(self._omega.value(w)) + value

    def falls(self, part: float) -> None:
        """Refuse where this rank's part of the objective does not stay below what it is while J falls.

        Where J is no larger than at weights of 0 it is at most the ceiling. Honest solvers try points above that, too,
        but come back, or find lower and lower ones.
        """
        ceiling = self._ceiling
        if part <= ceiling + ROUNDING * abs(ceiling):
            self._above, self._low = 0, math.inf
            return
        self._above += 1
        if part < LOWER * self._low:
            self._above, self._low = 0, part
        if ceiling > 0.0 and SEVERE * ceiling < part < math.inf:
            self.refuse(
                f"the objective does not fall as expected: this rank's part of it is {part:.3g}, at weights of 0 all"
                f" of it is {ceiling:.3g}"
            )
        if self._above > PATIENCE:
            self.refuse(
                f"the objective does not fall as expected: at {self._above} points, one after another, this rank's"
                f" part of it has been above {ceiling:.3g}, which all of it is at weights of 0, and has not come down"
            )

    def trials(self, count: int) -> None:
        """Refuse a line that is scanned: where the slope jumps there are the scores of single rows."""
        if count > TRIALS:
            self.refuse(f"more than {TRIALS} points on one line, which would tell the scores of rows")
