"""The rows of one process in dual coordinate ascent: slopes, a copy of the data in visiting order, kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual import rows as dual_rows
from bmrm.kernels.dual import sweep as dual_sweep
from bmrm.kernels.dual.sweep import SCORE, SLOPE, WEIGHT, WIDTH, Dual, Steps
from bmrm.kernels.jit import fast_jit, jit, specialised
from bmrm.kernels.products.vectors import plain
from bmrm.problem import Check, Scores, Vector, unchecked
from bmrm.risk.dual.stored import DualProblem, ShuffledRows

Array = NDArray[np.float64]
LITTLE = 1e-3
"""Share of its curvature that a row steps with to take about the slope that its loss has at a score."""


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

    def settle(self, shift: Vector, share: float = 1.0) -> Vector:
        """Take those slopes (zeros keep the present ones), and return A' slopes."""
        ...

    def offset(self) -> float:
        """The sum of minus the conjugates at the slopes, or less where rounding of them shows."""
        ...

    def squares(self) -> tuple[float, float]:
        """The sum of the squared norms of the rows' features, and the number of rows; those of weight 0 left out."""
        ...

    def slope(self) -> Scores:
        """The slopes, times 1 / S."""
        ...

    def scores(self) -> Scores:
        """Scores at which the rows have these slopes. Only with a free intercept."""
        ...


@dataclass(frozen=True)
class Kernels:
    """Compiled for one loss and one way to store rows."""

    rounds: Callable[..., tuple[int, int]]
    visit: Callable[..., int]
    offsets: Callable[..., float]
    shifted: Callable[..., None]
    near: Callable[..., None]
    inverse: Callable[..., None]


WAYS = {
    "csr": (dual_rows.gather, jit, dual_rows.spread, dual_rows.fetch),
    "valueless": (dual_rows.gather_valueless, jit, dual_rows.spread_valueless, dual_rows.fetch_valueless),
    "dense": (dual_rows.gather_dense, fast_jit, dual_rows.spread_dense, dual_rows.fetch_dense),
}
"""How a row is read (and how that is compiled) and written."""


@cache
def kernels_of(way: str, sparse: bool, prox_row: Callable[..., Any], value_row: Callable[..., Any]) -> Kernels:
    """The kernels for a loss; `sparse` where weights are soft thresholded."""
    gather, compiler, spread, fetch = WAYS[way]
    weigh = dual_rows.soft if sparse else dual_rows.itself
    visit = specialised(
        dual_sweep.sweep,
        gather=specialised(gather, compiler, weigh=weigh),
        spread=spread,
        fetch=fetch,
        weigh=weigh,
        prox_row=prox_row,
        value_row=value_row,
    )
    return Kernels(
        specialised(dual_sweep.rounds, visit=visit),
        visit,
        specialised(
            dual_sweep.offsets,
            value_row=value_row,
            prox_row=prox_row,
            score_of=specialised(dual_sweep.score_of, prox_row=prox_row),
        ),
        specialised(dual_sweep.shifted, prox_row=prox_row),
        specialised(dual_sweep.near, prox_row=prox_row),
        specialised(dual_sweep.inverse, prox_row=prox_row),
    )


class OneScoreRows(ShuffledRows):
    """As of `AscentRows`, for losses of one score with `prox_row` and `value_row`.

    Memory and parameters: see `ShuffledRows`.
    """

    def __init__(self, problem: DualProblem, check: Check = unchecked) -> None:
        super().__init__(problem, check)
        prepared, sparse = problem.prepared, problem.l1 > 0.0
        self._smooth = bool(prepared.smooth)
        self._kernels = kernels_of(self._way, sparse, prepared.loss.prox_row, prepared.loss.value_row)

    def begin(self, start: Scores | None, near: Scores | None, intercept: bool = False) -> None:
        """As of `AscentRows`."""
        if start is None and near is None:
            return
        table = self._state.reshape(-1, WIDTH)
        slopes = np.zeros(table.shape[0]) if start is None else self.mass * np.asarray(start)[self._places]
        if near is None:
            self._kernels.inverse(self._state, plain(slopes), self._arguments)
        else:
            table[:, SLOPE] = np.where(table[:, WEIGHT] > 0.0, slopes, 0.0)
            share = LITTLE if start is None else 1.0
            self._kernels.near(self._state, plain(np.asarray(near)[self._places]), share, self._arguments)
        self._known = True

    def sweep(self, v: Vector, constant: Vector, penalty: float, check: Check = unchecked) -> tuple[Vector, Visits]:
        """As of `AscentRows`; v changes in place."""
        features, bias = v[: self.map.features], self.map.bias
        shift = self._shift
        step = self.shares * self.scale
        scalars = np.array([float(constant[0]), v[-1] if bias else 0.0, 0.0])
        moves = penalty
        if shift is not None:
            scalars[dual_sweep.CONSTANT] -= float(shift @ features)
            moves += float(shift @ shift)
        sums, known = np.zeros(2), self._known
        steps = Steps(self.threshold, step, float(self.shares), float(bias), moves, step * penalty)
        dual = tuple(Dual(self._state, features, scalars, tuple(steps), self._smooth, self._arguments))
        try:
            count, visited = self._rounds(self._kernels, sums, dual, 1, check)
            self._open, self._known = self._shrinking.kept[:count], True
        finally:
            if shift is not None:
                features -= scalars[dual_sweep.TOTAL] * shift
            if bias:
                v[-1] = scalars[dual_sweep.BIAS]
        gap = float(sums[dual_sweep.GAP]) if known else np.nan
        return v, Visits(scalars[dual_sweep.TOTAL :] / self.shares, gap, visited, count)

    def totals(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`."""
        totals = np.empty(1)
        self._kernels.shifted(self._state, plain(shift), share, totals, self._arguments)
        return totals

    def settle(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`; half a pass."""
        if shift[0] != 0.0:
            table = self._state.reshape(-1, WIDTH)
            self._kernels.near(self._state, table[:, SCORE] + shift[0], share, self._arguments)
        return self.map.rmatvec(self._slopes())

    def offset(self) -> float:
        """As of `AscentRows`."""
        return float(self._kernels.offsets(self._state, self._arguments))

    def slope(self) -> Array:
        """As of `AscentRows`; (rows,)."""
        return self._slopes() / self.mass

    def scores(self) -> Array:
        """As of `AscentRows`; (rows,)."""
        return self._of_rows(SCORE)

    def _slopes(self) -> Array:
        return self._of_rows(SLOPE)

    def _of_rows(self, place: int) -> Array:
        numbers = np.empty(self.map.rows)
        numbers[self._places] = self._state.reshape(-1, WIDTH)[:, place]
        return numbers
