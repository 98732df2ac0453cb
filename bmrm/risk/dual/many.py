"""The rows of one process in dual coordinate ascent, for losses of several scores: a block of slopes at a time."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual import many as dual_many
from bmrm.kernels.dual import rows as dual_rows
from bmrm.kernels.dual import team as dual_team
from bmrm.kernels.dual.many import SPARE, VALUE, Dual
from bmrm.kernels.dual.sweep import CURVE, TARGET, WEIGHT, WIDTH
from bmrm.kernels.jit import specialised
from bmrm.kernels.products import laplacian
from bmrm.kernels.products.vectors import plain
from bmrm.problem import Check, Scores, Vector, unchecked
from bmrm.problem.basics import provides
from bmrm.problem.loss import HasProxShares
from bmrm.risk.dual.stored import FETCH, READ, DualProblem, Row, ShuffledRows, sweep_kernels
from bmrm.risk.dual.visits import LITTLE

Array = NDArray[np.float64]
EVEN = 1e-13
"""Largest sum of the slopes of a score, as a share of all weights, that counts as 0: rounding."""
FAITHFUL = 1e4
"""Proximal step so large that it acts as the projection of given slopes onto the domain of the conjugate."""


@cache
def kernels_of(way: str, sparse: bool, prox_row: Row, offset_row: Row, value_row: Row) -> Any:
    """The kernels for a loss; `sparse` where weights are soft thresholded."""
    weigh = dual_rows.soft if sparse else dual_rows.itself
    functions = {"prox_scores_row": prox_row, "offset_scores_row": offset_row, "value_scores_row": value_row}
    functions |= {"weigh": weigh, "fetch": FETCH[way], "spread_row": specialised(dual_many.spread, **READ[way])}
    functions["gather_row"] = specialised(dual_many.gather, weigh=weigh, **READ[way])
    return sweep_kernels(dual_many, ("near", "shifted", "evened"), dual_team.many_scores, functions)


class ManyScoreRows(ShuffledRows):
    """As of `AscentRows`, for losses of K scores with `prox_scores_row`, `offset_scores_row` and `value_scores_row`.

    The losses do not change when all scores of a row do by the same amount, so the slopes of a row sum to 0.

    Memory and parameters: see `ShuffledRows`; besides K slopes a row, and K scores with a free intercept.
    """

    def __init__(self, problem: DualProblem, check: Check = unchecked) -> None:
        super().__init__(problem, check)
        loss, width = problem.prepared.loss, problem.prepared.scores_per_row
        self._loss = loss
        rows = loss.prox_scores_row, loss.offset_scores_row, loss.value_scores_row
        self._kernels = kernels_of(self._way, problem.l1 > 0.0, *rows)
        self._slopes = np.zeros((self.map.rows, width))
        self._held = np.empty((0, width))
        self._room = np.empty((SPARE + 2, width))

    def begin(self, start: Scores | None, near: Scores | None, intercept: bool = False) -> None:
        """As of `AscentRows`; without `near` the slopes are nearly the feasible ones next to `start`."""
        if intercept:
            self._held = np.zeros_like(self._slopes)
        if start is None and near is None:
            return
        table = self._state.reshape(-1, WIDTH)
        weights, curves = table[:, WEIGHT], table[:, CURVE]
        if start is not None:
            self._slopes[:] = np.where(weights[:, None] > 0.0, self.mass * np.asarray(start)[self._places], 0.0)
        if near is None:
            scores, curves = np.zeros_like(self._slopes), FAITHFUL / np.where(weights > 0.0, weights, 1.0)
        else:
            scores = self._with_offset(near)
            curves = curves * (LITTLE if start is None else 1.0)
        self._take_near(plain(scores), plain(curves))
        self._known = True

    def _take_near(self, scores: Array, curves: Array) -> None:
        self._kernels.near(self._state, self._slopes, scores, curves, self._held, self._room, self._arguments)

    def _dual(self, features: Array, numbers: Array, steps: tuple[float, ...]) -> tuple[Any, ...]:
        room = np.empty_like(self._room)
        added = np.empty((0, room.shape[1])) if self._added is None else self._added
        return tuple(
            Dual(self._state, self._slopes, features, numbers, steps, added, self._held, room, self._arguments)
        )

    def totals(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`; without a free intercept zeros."""
        total = np.zeros(self._slopes.shape[1])
        self._kernels.shifted(
            self._state, self._slopes, self._held, plain(shift), share, total, self._room, self._arguments
        )
        return total

    def derivative(self, shift: Vector, share: float = 1.0) -> Array:
        """As of `AscentRows`: in one pass for a loss that knows the derivative of its proximal map."""
        if not provides(self._loss, HasProxShares):
            return super().derivative(shift, share)
        table, slopes = self._state.reshape(-1, WIDTH), self._slopes.copy()
        curves = plain(share * table[:, CURVE])
        held, nowhere = self._held + shift, np.empty((0, len(shift)))
        self._kernels.near(self._state.copy(), slopes, held, curves, nowhere, self._room, self._arguments)
        steps, slopes = (curves * table[:, WEIGHT])[self._present], slopes[self._present]
        curves, y = curves[self._present], table[self._present, TARGET].astype(np.int64)
        shares = self._loss.prox_shares(curves[:, None] * slopes, steps, y)
        return laplacian.total(shares / curves[:, None])

    def settle(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`; half a pass."""
        if self._held.size and np.any(shift):
            self._held += shift
            self._take_near(self._held, share * plain(self._state.reshape(-1, WIDTH)[:, CURVE]))
        return self.map.rmatvec(self._unshuffled(self._slopes))

    def evened(self) -> Vector | None:
        """As of `AscentRows`, for slopes s (p - e_y), p shares of classes: what one has too much of goes to others.

        It is the rounding of Altschuler, Weed & Rigollet, "Near-linear time approximation algorithms for optimal
        transport via Sinkhorn iteration", NeurIPS 2017, Algorithm 2.
        """
        table, width = self._state.reshape(-1, WIDTH)[self._present], self._slopes.shape[1]
        due = np.bincount(table[:, TARGET].astype(np.int64), weights=table[:, WEIGHT], minlength=width)
        sums = self._slopes[self._present].sum(axis=0)
        more, less = np.maximum(sums, 0.0), np.maximum(-sums, 0.0)
        if len(due) > width or not 0.0 < less.sum() < np.inf:
            return None
        kept = np.where(more > 0.0, due / np.where(more > 0.0, due + more, 1.0), 1.0)
        left = np.empty(width)
        arguments = kept, less / less.sum(), left, self._room, self._arguments
        self._kernels.evened(self._state, self._slopes, *arguments)
        if not np.abs(left).max() <= EVEN * due.sum():
            return None
        return self.map.rmatvec(self._unshuffled(self._slopes))

    def offset(self) -> float:
        """As of `AscentRows`."""
        raised = self._planes_raised(self._slopes)
        return float(self._state.reshape(-1, WIDTH)[self._present, VALUE].sum()) + raised

    def slope(self) -> Array:
        """As of `AscentRows`; (rows, K)."""
        return self._unshuffled(self._slopes) / self.mass

    def scores(self) -> Array:
        """As of `AscentRows`; (rows, K)."""
        return self._without_offset(self._held)
