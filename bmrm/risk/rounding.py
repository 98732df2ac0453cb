"""What is added where the risk of rows is evaluated, in absolute values: the measure of its rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import norm, plain
from bmrm.losses._core.over_ranks import ManyRanks, OverRanks
from bmrm.losses._core.prepared import PreparedRows
from bmrm.losses.base import RowLoss
from bmrm.problem import Loss, ScoreFunction, Vector, facts_of
from bmrm.problem.abilities import Magnitudes, Rounding
from bmrm.problem.meter import half_pass
from bmrm.problem.results import is_own
from bmrm.risk.linear_map import DataMap
from bmrm.risk.score_function import LossPhi
from bmrm.risk.score_layout import ScoreLayout, TailedMap

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
TINY = 1e-300
"""Change of scores that only crosses a kink at 0."""
SIDES = 4
"""Most evaluations, two at a time, for the other sides of kinks between the scores of a row: enough for 16 scores."""
FEW, FEW_ENTRIES = 32, 8192
"""Most rows whose norm is computed for an estimate, and most entries in them; at least one row."""


class AbsoluteMap:
    """|A| v and |A|' s for v, s >= 0: the scores and the gradient that there would be if nothing cancelled.

    Parameters
    ----------
    map : A.
    """

    def __init__(self, map: DataMap | TailedMap) -> None:
        self.map = map
        self.rows_map = map.rows_map if isinstance(map, TailedMap) else map
        self.meter, self.share = map.meter, self.rows_map.share

    @property
    def longest(self) -> int:
        """Terms of the longest row, with those that scaling adds."""
        X = self.rows_map.X
        if not X.shape[0]:
            return 0
        return X.longest_row + (self.rows_map.features if self.rows_map.columns.shift is not None else 0) + 1

    @half_pass
    def matvec(self, v: Vector) -> Array:
        """|A| v, like scores."""
        rows_map, columns = self.rows_map, self.rows_map.columns
        table = v[: rows_map.dim].reshape(rows_map.inputs, rows_map.scores_per_row)
        inner = table[: rows_map.features]
        if columns.scale is not None:
            inner = inner * np.abs(columns.scale)[:, None]
        offset = table[rows_map.features] if rows_map.bias else np.zeros(rows_map.scores_per_row)
        if columns.shift is not None:
            offset = offset + np.abs(columns.shift) @ inner
        one = rows_map.scores_per_row == 1
        inner, out = plain(inner[:, 0] if one else inner), np.empty(self._shape(rows_map.rows))
        for start, stop, part in rows_map.X.absolute_parts():
            part.products(rows_map.scores_per_row).scores(
                0, stop - start, inner, float(offset[0]) if one else offset, out[start:stop]
            )
        return np.concatenate((out.ravel(), v[rows_map.dim :])) if isinstance(self.map, TailedMap) else out

    @half_pass
    def rmatvec(self, slope: Array) -> Vector:
        """|A|' slope, (dim,); parameters of a loss may add up all slopes there are."""
        rows_map, columns = self.rows_map, self.rows_map.columns
        tail = self.map.layout.extra if isinstance(self.map, TailedMap) else 0
        table = np.ascontiguousarray(slope.ravel()[: slope.size - tail]).reshape(self._shape(rows_map.rows))
        gradient, total = rows_map.zeros(), np.atleast_1d(table.sum(axis=0))
        for start, stop, part in rows_map.X.absolute_parts():
            rows = np.ascontiguousarray(table[start:stop])
            part.products(rows_map.scores_per_row).add_rmatvec(0, stop - start, rows, gradient)
        matrix = gradient.reshape(rows_map.features, rows_map.scores_per_row)
        if columns.shift is not None:
            matrix = matrix + np.multiply.outer(np.abs(columns.shift), total)
        if columns.scale is not None:
            matrix = matrix * np.abs(columns.scale)[:, None]
        parts = [matrix.ravel(), total] if rows_map.bias else [matrix.ravel()]
        return np.concatenate([*parts, np.full(tail, float(slope.sum()))])

    def _shape(self, rows: int) -> tuple[int, ...]:
        return (rows,) if self.rows_map.scores_per_row == 1 else (rows, self.rows_map.scores_per_row)


def row_norm(map: DataMap | TailedMap) -> float:
    """The norm of a row with its constant, as far as its terms do not cancel: the mean of a few rows, evenly spread."""
    rows_map = map.rows_map if isinstance(map, TailedMap) else map
    X, columns = rows_map.X, rows_map.columns
    if not X.shape[0]:
        return 0.0
    count = max(1, min(FEW, X.shape[0], FEW_ENTRIES * X.shape[0] // max(1, X.nnz)))
    few = np.arange(count) * X.shape[0] // count
    shift = columns.shift
    shifted = 0.0 if shift is None else norm(shift if columns.scale is None else shift * columns.scale)
    return X.mean_norm(few, columns.scale) + shifted + float(rows_map.bias)


def measured(
    phi: ScoreFunction,
    layout: ScoreLayout,
    f: Array,
    free: Array,
    longest: int,
    constant: Array,
    coupled: bool,
    far: bool,
    offset: Array | None = None,
    ranks: ManyRanks | None = None,
) -> tuple[Array, float, float, float]:
    """Slopes in absolute values, what makes the value besides, the length of sums, and the growth of the first.

    That is by what share they are larger where scores are larger by 1; see `Magnitudes`.

    Parameters
    ----------
    phi, layout : of the scores.
    f : scores.
    free : the scores that there would be if nothing cancelled.
    longest : terms of one score.
    constant : added to all scores, its absolute value; (scores per row,).
    coupled : whether scores of several rows are added, as along a sentence.
    far : whether planes were taken elsewhere, on the other side of kinks: their slopes may be those at 0 as well.
    offset : what phi adds to the scores, like them; None for nothing.
    ranks : those that have the other scores of phi; then what makes the value, and the length, are this one's parts.
    """
    value, sizes = phi.value_and_slope(f)
    sizes = np.abs(sizes)
    at_zero = np.abs(phi.value_and_slope(np.zeros_like(f))[1])
    scores = np.abs(f) if offset is None else np.abs(f) + np.abs(offset)
    beside = scores + free
    beside *= (longest + 4.0) * EPS
    beside += TINY
    for side in _sides(f.shape, 0 if ranks is None else ranks.rank):
        beside *= side
        for moved in (np.add, np.subtract):  # the other side of kinks that rounding cannot tell
            np.maximum(sizes, np.abs(phi.value_and_slope(moved(f, beside))[1]), out=sizes)
        beside *= side
    if far and not phi.facts.smooth:
        np.maximum(sizes, at_zero, out=sizes)
    del beside
    table = layout.table(sizes)
    if table.ndim > 1:  # of scores that are equal within rounding any may have the slope
        table[:] = table.sum(axis=1, keepdims=True)
    length = float(np.count_nonzero(table) + longest)
    total, growth = abs(value), 0.0
    if coupled or (phi.facts.smooth and table.ndim > 1):
        # exponents, or sums of scores that are compared, are differences of scores: their rounding is in the slopes
        inside = float(scores.sum()) if coupled else float(scores.max(initial=0.0))
        largest, terms, of_all = float(np.maximum(sizes, at_zero).max(initial=0.0)), length, inside
        if ranks is not None:
            largest = float(ranks.table(np.array([largest])).max())
            terms, of_all = ranks.sum(np.array([length, inside])).tolist()
        total += inside * largest
        sizes *= 1.0 + of_all / max(terms, 1.0)
        if phi.facts.smooth:  # a maximum has the slope of some labeling or ranking, whose plane holds as well
            growth = (f.size if coupled else 1.0) / (max(length, 1.0) + inside)
    added = (sizes + at_zero) * scores
    # With free constants planes come from other constants, where rows whose slope is 0 here are at a kink.
    total += float(added.sum() if constant.any() else added[sizes > 0.0].sum()) + float((table * constant).sum())
    return sizes, total, length, growth


def _sides(shape: tuple[int, ...], seed: int) -> Iterator[NDArray[np.int8]]:
    """Signs, so that scores of one row, as far as there are `SIDES` tables for it, differ by each other at least once.

    Digits of the number of the score; of rows that are compared with one another they are random.
    """
    if len(shape) == 1:
        yield np.random.default_rng(seed).choice(np.array([-1, 1], np.int8), shape)
        return
    scores = np.arange(shape[1])
    for digit in range(min(SIDES, max(1, int(shape[1] - 1).bit_length()))):
        yield np.where((scores >> digit) & 1, np.int8(1), np.int8(-1))


def rounding_of(loss: Loss, map: DataMap | TailedMap, at: Callable[..., Magnitudes]) -> Rounding:
    """The ability of a loss over rows, of which `map` has some."""
    return Rounding(f"loss {facts_of(loss).title}", not is_own(loss), at, partial(row_norm, map))


def row_rounding(loss: Loss, map: DataMap | TailedMap, phi: LossPhi, layout: ScoreLayout) -> Rounding:
    """The ability `Rounding` of R(w) = phi(A w) over the rows of one process."""

    def at(w: Vector, constant: Vector | None = None, reach: float = 0.0) -> Magnitudes:
        b = np.zeros(phi.facts.scores_per_row) if constant is None else np.abs(constant)
        without = AbsoluteMap(map)
        f, free = map.matvec(w), without.matvec(np.abs(w))
        if reach > 0.0 and not phi.facts.smooth:
            free = free + reach * row_norm(map)
        if constant is not None:
            f, free = f + phi.constant(constant), free + phi.constant(b)
        with np.errstate(all="ignore"):  # any w may be asked for
            coupled = loss.decomposes != "rows"
            offset, bare = phi.bound.offset, phi.bound.bare
            far, ranks = reach > 0.0, bare.ranks if isinstance(bare, OverRanks) else None
            sizes, terms, length, growth = measured(
                phi, layout, f, free, without.longest, b, coupled, far, offset, ranks
            )
            terms += _cancelled(loss, phi, f if offset is None else f + offset)
        return Magnitudes(without.rmatvec(sizes), terms, length, growth * row_norm(map) if growth else 0.0)

    return rounding_of(loss, map, lambda *given: map.meter.timed(0.0, at, *given))


def _cancelled(loss: Loss, phi: LossPhi, f: Array) -> float:
    """What cancels inside the losses of rows, over the mass."""
    whole = phi.bound.bare
    if not (isinstance(loss, RowLoss) and isinstance(whole, PreparedRows) and whole.rows):
        return 0.0
    sizes = loss.cancelled(f, whole.y)
    weighted = sizes if whole.weights is None or np.ndim(sizes) == 0 else whole.weights * sizes
    return float(np.sum(weighted)) / phi.facts.mass
