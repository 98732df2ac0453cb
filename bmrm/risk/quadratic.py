"""The ability `QuadraticModel`: second-order models on few columns, minimised coordinate by coordinate.

A model is least squares: columns times the roots of curvatures, with l1 and l2.
"""

from __future__ import annotations

import math
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Entries, Features
from bmrm.kernels.blocks import descent as by_blocks
from bmrm.kernels.blocks.descent import BlockQuadratic
from bmrm.kernels.masters.soft_descent import violations
from bmrm.kernels.products import columns as kernels
from bmrm.kernels.products.columns import Model, StopRule
from bmrm.kernels.products.vectors import dot
from bmrm.numerics.block_sweeps import LARGEST, BlockSweeps, gram_starts, grams_of
from bmrm.numerics.conjugate_gradients import ConjugateGradients
from bmrm.problem import Vector
from bmrm.problem.meter import UNMETERED, Meter, timed
from bmrm.problem.regularizer import BlockPenalty
from bmrm.risk.products import Columns

Array = NDArray[np.float64]
Places = NDArray[np.int64]
RIDGE = 1e-12
"""Least second derivative, relative to the mean: columns may be empty, or the loss flat."""
STEEPEST = 1e300
"""Replaces a second derivative that overflows: the weight stays where it is."""
PRODUCTS = 5e7
"""Entries visited between two checks of the clock."""
SWEEPS = 8
"""Sweeps of coordinate descent between two rounds of conjugate gradients."""
CG_STEPS, CG_GAIN = 40, 0.2
"""Most steps of conjugate gradients, and the reduction of the residual at which they end."""
PIVOTS, STRAIGHT = 5, 0.5
"""Most restarts of CG in a round; there is none where the best length along the step is at least STRAIGHT."""
NO_STARTS, NO_ROWS = np.zeros(1, np.int64), np.zeros(1, np.uint32)
ENTRY = np.float32
"""Type of the weighted copies: a model need not be exact, and sweeps are limited by memory traffic."""


class SparseCopies(NamedTuple):
    """Columns of sparse data.

    Attributes
    ----------
    size : entries of the data.
    starts, rows, values : entries column by column; no values where all are 1.
    places : which of these columns are meant.
    """

    size: int
    starts: Places
    rows: NDArray[np.uint32]
    values: NDArray[Any]
    places: Places


class Rooted(Protocol):
    """Columns, each entry times the root of its row and the scale of its column."""

    roots: Vector
    shifts: Vector
    """What each column still is to be less, times the roots."""
    sums: Vector
    """Of root times entry, per column."""
    squares: Vector
    """Sums of squares, per column."""
    size: float
    """Entries in them."""
    share: float
    """Of the data that is in these columns."""

    def descend(self, *arguments: Any) -> tuple[float, int, bool]:
        """The kernel `descend`, after its first argument."""
        ...

    def apply(self, chosen: Places, steps: Vector, out: Vector) -> None:
        """Out += the columns `chosen` times `steps`."""
        ...

    def pull(self, chosen: Places, r: Vector) -> Vector:
        """The products of the columns `chosen` with r."""
        ...

    def scores(self, steps: Vector) -> Vector:
        """The columns times `steps`, without the roots, exactly."""
        ...

    def descend_blocks(self, *arguments: Any) -> tuple[float, int, bool, int]:
        """The kernel `descend_blocks`, after its first argument."""
        ...

    def block_grams(self, *arguments: Any) -> None:
        """The kernel `block_grams`, after its first argument."""
        ...


class RootedEntries:
    """As of `Rooted`, sparse.

    Parameters
    ----------
    copies : of the columns.
    roots : (rows,).
    scale : one per column that is not empty; the empty ones are the last.
    shifts : what each column shall be less, times the roots.
    """

    def __init__(self, copies: SparseCopies, roots: Vector, scale: Vector, shifts: Vector) -> None:
        self.roots, self.shifts, self._copies, self._scale = roots, shifts, copies, scale
        count = shifts.size
        self.sums, self.squares = np.zeros(count), np.zeros(count)
        starts, places = copies.starts, copies.places
        entries = int((starts[places + 1] - starts[places]).sum())
        rows, values = np.empty(entries + 1, np.uint32), np.empty(entries + 1, ENTRY)
        self._columns = kernels.Columns(np.empty(count + 1, np.int64), rows, values)
        given = kernels.Columns(starts, copies.rows, copies.values)
        kernels.weigh_entries(given, places, roots, scale, self._columns, self.sums, self.squares)
        self.size, self.share = float(entries), entries / max(1, copies.size)

    def descend(self, *arguments: Any) -> tuple[float, int, bool]:
        """As of `Rooted`."""
        return kernels.descend_sparse(self._columns, *arguments)  # type: ignore[no-any-return]

    def apply(self, chosen: Places, steps: Vector, out: Vector) -> None:
        """As of `Rooted`."""
        kernels.apply_sparse(self._columns, chosen, steps, out)

    def descend_blocks(self, *arguments: Any) -> tuple[float, int, bool, int]:
        """As of `Rooted`."""
        return by_blocks.descend_blocks_sparse(self._columns, *arguments)  # type: ignore[no-any-return]

    def block_grams(self, *arguments: Any) -> None:
        """As of `Rooted`."""
        by_blocks.block_grams_sparse(self._columns, *arguments)

    def pull(self, chosen: Places, r: Vector) -> Vector:
        """As of `Rooted`."""
        out = np.empty(chosen.size)
        kernels.pull_sparse(self._columns, chosen, r, out)
        return out

    def scores(self, steps: Vector) -> Vector:
        """As of `Rooted`."""
        out, copies = np.zeros(self.roots.size), self._copies
        steps = steps[: self._scale.size] * self._scale
        kernels.combine_entries(kernels.Columns(copies.starts, copies.rows, copies.values), copies.places, steps, out)
        return out


class RootedDense:
    """As of `Rooted`, dense.

    Copies are taken around their shifts, or, where a constant is added to all scores, around their means: of features
    that are far from 0 `ENTRY` would keep nothing else.

    Parameters
    ----------
    data, places : full rows, and which columns are meant.
    roots, scale, shifts : as of `RootedEntries`.
    free : whether the scores are determined up to a constant.
    """

    def __init__(
        self, data: Features, places: Places, roots: Vector, scale: Vector, shifts: Vector, free: bool
    ) -> None:
        self.roots, self._scale = roots, scale
        self._rows, self._places = data, places
        self._X = self._rows.table
        count, filled = shifts.size, scale.size
        self._less = self._means() if free else shifts[:filled].copy()
        self.shifts = shifts.copy()
        self.shifts[:filled] = 0.0
        self.sums, self.squares = np.zeros(count), np.zeros(count)
        table = np.zeros((count, roots.size), ENTRY)
        kernels.weigh_dense(self._X, self._places, roots, scale, self._less, table, self.sums, self.squares)
        self._columns = kernels.Columns(NO_STARTS, NO_ROWS, table)
        self.size, self.share = float(table.size), self._places.size / max(1, self._rows.shape[1])

    def _means(self) -> Vector:
        """Of the scaled columns, weighted with the squared roots; 0 where there is none."""
        means, weights = np.zeros(self._places.size), self.roots**2
        kernels.add_dense_sums(self._X, self._places, weights, means)
        with np.errstate(all="ignore"):
            means *= self._scale / float(weights.sum())
        means[~np.isfinite(means)] = 0.0
        return means

    def descend(self, *arguments: Any) -> tuple[float, int, bool]:
        """As of `Rooted`."""
        return kernels.descend_dense(self._columns, *arguments)  # type: ignore[no-any-return]

    def apply(self, chosen: Places, steps: Vector, out: Vector) -> None:
        """As of `Rooted`."""
        kernels.apply_dense(self._columns, chosen, steps, out)

    def descend_blocks(self, *arguments: Any) -> tuple[float, int, bool, int]:
        """As of `Rooted`."""
        return by_blocks.descend_blocks_dense(self._columns, *arguments)  # type: ignore[no-any-return]

    def block_grams(self, *arguments: Any) -> None:
        """As of `Rooted`."""
        by_blocks.block_grams_dense(self._columns, *arguments)

    def pull(self, chosen: Places, r: Vector) -> Vector:
        """As of `Rooted`."""
        out = np.empty(chosen.size)
        kernels.pull_dense(self._columns, chosen, r, out)
        return out

    def scores(self, steps: Vector) -> Vector:
        """As of `Rooted`."""
        w, out = np.zeros(self._rows.shape[1]), np.empty(self.roots.size)
        w[self._places] = steps[: self._scale.size] * self._scale
        less = float(self._less @ steps[: self._scale.size])
        self._rows.products(1).scores(0, out.size, w, -less, out)  # no copy of the columns
        return out


class RootedColumns:
    """As of `ColumnModel`: sweeps, and conjugate gradients on the coordinates in use where sweeps are slow.

    Parameters
    ----------
    entries : the columns.
    intercept : whether a constant added to all scores is minimised over.
    meter : is charged the share of the entries that are met; half a pass of them for a sweep.
    """

    def __init__(self, entries: Rooted, intercept: bool, meter: Meter = UNMETERED) -> None:
        self._entries, self._shifts, self._roots = entries, entries.shifts, entries.roots
        shifts = entries.shifts
        self._root_sum = dot(self._roots, self._roots)
        self._free = intercept and self._root_sum > 0.0
        sums = entries.sums
        with np.errstate(over="ignore", invalid="ignore"):
            if self._free:
                diagonal = entries.squares - sums**2 / self._root_sum
            else:
                diagonal = entries.squares + shifts * (shifts * self._root_sum - 2.0 * sums)
        diagonal[~np.isfinite(diagonal)] = STEEPEST
        mean = float(diagonal.mean()) if diagonal.size else 0.0
        self._diagonal = np.maximum(diagonal, RIDGE * mean if mean > 0.0 else 1.0)
        self._state = np.zeros(6)
        self._steps = np.zeros(sums.size)
        self._last: tuple[Vector, Vector, Vector, float, float] | None = None
        self.meter = meter
        meter.charge(0.5 * entries.share)

    def minimise(
        self, gradient: Vector, w: Vector, l1: float, l2: float, goal: float, share: float, most: int
    ) -> tuple[Vector, float]:
        """As of `ColumnModel`."""
        x: Vector = w.copy()
        r, state = np.zeros(self._roots.size), self._state
        state[:] = 0.0
        model = Model(self._entries.sums, self._diagonal, self._shifts, self._root_sum, gradient, l1, l2, self._free)
        left, reach = most, CG_STEPS
        while True:
            now = min(SWEEPS, left)
            worst, visited = self._descend(model, StopRule(goal, share, now), x, r)
            self.meter.charge(0.5 * self._entries.share * visited / max(1, w.size))
            left -= now
            enough = share * state[2] if share > 0.0 else 0.0  # the first change may have been infinite
            if worst <= goal or state[3] <= enough or left <= 0:
                break
            with np.errstate(over="ignore", invalid="ignore"):  # curvatures may be all but 0, and steps very long
                taken, straight = self._solve(gradient, x, r, l1, l2, 0.3 * goal, reach)
            left -= taken
            reach = min(2 * reach, max(left, CG_STEPS)) if straight and taken >= reach else CG_STEPS
            if left <= 0 or not np.all(np.isfinite(x)):
                break
        if not np.all(np.isfinite(x)):
            x, worst = w.copy(), math.inf
            r[:], state[:] = 0.0, 0.0
        self._steps, self._last = x - w, (gradient, x, r, l1, l2)
        return x, float(worst)

    def _descend(self, model: Model, stop: StopRule, x: Vector, r: Vector) -> tuple[float, int]:
        """The kernel, so many sweeps at a time as take some tenths of a second."""
        state, order, visited, most = self._state, np.arange(x.size), 0, stop.most
        state[4], state[5] = x.size, math.inf
        step = max(1, int(PRODUCTS / max(1.0, self._entries.size)))
        while True:
            self.meter.check()
            now = min(step, most)
            worst, more, ended = self._entries.descend(model, stop._replace(most=now), x, r, state, order)
            visited, most = visited + more, most - now
            if ended or most <= 0:
                return worst, visited

    def distance(self) -> float:
        """As of `ColumnModel`."""
        if self._last is None:
            return math.inf
        gradient, x, r, l1, l2 = self._last
        slope = gradient + self._pull(np.arange(x.size), self._shifts, r + self._state[0] * self._roots)
        return float(violations(slope, x, l1, l2, np.empty_like(x)))

    def by_blocks(self, partition: BlockPenalty) -> BlockColumns:
        """As of `ColumnModel`."""
        return BlockColumns(
            self._entries, self._root_sum, self._shifts, self._diagonal, self._free, partition, self.meter
        )

    @property
    @timed
    def scores(self) -> Vector:
        """As of `ColumnModel`."""
        scores: Vector = self._entries.scores(self._steps) + self._state[0]
        return scores

    def _solve(
        self, gradient: Vector, x: Vector, r: Vector, l1: float, l2: float, goal: float, reach: int
    ) -> tuple[int, bool]:
        """Move x towards the minimum over the coordinates in use with the signs they have, by conjugate gradients.

        Coordinates that would change their sign end at 0. Cutting them off there spoils the step along flat directions,
        so that hardly any of it can be gone; the others are then solved for anew, with these at 0.

        Returns the steps of conjugate gradients, each about as dear as a sweep, at most `reach` at a time, and whether
        no coordinate would change its sign.
        """
        used = np.flatnonzero(x)
        old, shifts = x[used], self._shifts[used]
        signs = np.sign(old)
        slope = gradient[used] + self._pull(used, shifts, r + self._state[0] * self._roots) + l1 * signs + l2 * old
        step, open_, count = np.zeros(used.size), np.arange(used.size), 0
        now, pivots = slope, 0
        enough = CG_GAIN**2 * float(slope @ (slope / (self._diagonal[used] + l2)))
        while True:
            more, taken = self._conjugate(used[open_], shifts[open_], -now[open_], l2, goal, enough, reach)
            count, pivots = count + taken, pivots + 1
            step[open_] += more
            crossed = (old + step) * signs < 0.0
            step[crossed] = -old[crossed]
            ahead, offset = self._apply(used, shifts, step)
            along = ahead + offset * self._roots
            rise, curvature = float(slope @ step), dot(along, along) + l2 * float(step @ step)
            kept = open_[~crossed[open_]]
            if -rise >= STRAIGHT * curvature or pivots == PIVOTS or not 0 < kept.size < open_.size:
                break
            open_ = kept
            now = slope + self._pull(used, shifts, along) + l2 * step
        if not (rise < 0.0 < curvature < math.inf):  # squares can underflow where the loss is all but flat
            return count, False
        t = min(1.0, -rise / curvature)
        x[used] = np.where(old + step == 0.0, 0.0, old + step) if t == 1.0 else old + t * step
        r += t * ahead
        self._state[0] += t * offset
        self._state[1] += t * float(self._entries.sums[used] @ step)
        return count, pivots == 1 and not crossed.any()

    def _conjugate(
        self, used: Places, shifts: Vector, right: Vector, l2: float, goal: float, enough: float, reach: int
    ) -> tuple[Vector, int]:
        """x with (A'A + l2) x = right on the columns `used`, roughly, preconditioned by the diagonal; and the steps.

        Ends when no residual is beyond `goal`, or when their squares, preconditioned, sum to `enough`.
        """
        x: Vector = np.zeros(used.size)
        inverse = 1.0 / (self._diagonal[used] + l2)
        cg = ConjugateGradients(right, lambda residual: inverse * residual)
        count = 0
        while count < reach:
            self.meter.check()
            count += 1
            direction = cg.direction
            ahead, offset = self._apply(used, shifts, direction)
            t = cg.advance(self._pull(used, shifts, ahead + offset * self._roots) + l2 * direction)
            if t is None:
                break
            x = x + t * direction
            if float(np.abs(cg.residual).max()) <= goal or cg.size <= enough:
                break
        return x, count

    def _apply(self, used: Places, shifts: Vector, steps: Vector) -> tuple[Vector, float]:
        """The columns times `steps` without their shifts, and the multiple of the roots that is missing."""
        ahead = np.zeros(self._roots.size)
        self._entries.apply(used, steps, ahead)
        self.meter.charge(0.25 * self._entries.share * used.size / max(1, self._shifts.size))
        return ahead, -dot(self._roots, ahead) / self._root_sum if self._free else -float(shifts @ steps)

    def _pull(self, used: Places, shifts: Vector, along: Vector) -> Vector:
        """A' along."""
        self.meter.charge(0.25 * self._entries.share * used.size / max(1, self._shifts.size))
        product: Vector = self._entries.pull(used, along) - shifts * dot(self._roots, along)
        return product


class BlockColumns(BlockSweeps):
    """As of `BlockModel`, on columns.

    Parameters
    ----------
    entries, root_sum, shifts, diagonal, free, meter : of the `RootedColumns`.
    partition : the blocks of the columns.
    """

    def __init__(
        self,
        entries: Rooted,
        root_sum: float,
        shifts: Vector,
        diagonal: Vector,
        free: bool,
        partition: BlockPenalty,
        meter: Meter,
    ) -> None:
        self._entries, self._root_sum, self._shifts, self._free = entries, root_sum, shifts, free
        self.meter = meter
        starts = gram_starts(partition)
        values = np.empty(starts[-1])
        entries.block_grams(tuple(partition), starts, np.zeros(entries.roots.size), values)
        self._centre(partition, starts, values)
        sizes = np.diff(partition.starts)
        meter.charge(0.25 * entries.share * float((sizes * np.minimum(sizes, LARGEST)).sum()) / max(1, shifts.size))
        model = BlockQuadratic(entries.sums, shifts, root_sum, shifts, free)
        super().__init__(model, grams_of(partition, starts, values, diagonal))
        self._steps = np.zeros(shifts.size)
        self._last: tuple[Vector, Vector, BlockPenalty] | None = None

    def _centre(self, partition: BlockPenalty, starts: Places, values: Vector) -> None:
        """Of columns less what they are to be less, from that of the columns."""
        sums, shifts, total = self._entries.sums, self._shifts, self._root_sum
        if not self._free and not shifts.any():
            return
        for b in np.flatnonzero(np.diff(starts) > 1):
            k = partition.block(int(b))
            if self._free:
                less = np.outer(sums[k], sums[k] / total)
            else:
                cross = np.outer(sums[k], shifts[k])
                less = cross + cross.T - total * np.outer(shifts[k], shifts[k])
            values[starts[b] : starts[b + 1]] -= less.ravel()

    def minimise(
        self, gradient: Vector, w: Vector, penalty: BlockPenalty, goal: float, share: float, most: int
    ) -> tuple[Vector, float]:
        """As of `BlockModel`."""
        x, left = super().minimise(gradient, w, penalty, goal, share, most)
        self._steps, self._last = x - w, (gradient, x, penalty)
        return x, left

    def distance(self) -> float:
        """As of `BlockModel`."""
        if self._last is None:
            return math.inf
        gradient, x, penalty = self._last
        entries, along = self._entries, self.r + self.state[0] * self._entries.roots
        self.meter.charge(0.25 * entries.share)
        slope = gradient + entries.pull(np.arange(x.size), along) - self._shifts * dot(entries.roots, along)
        away, used = np.empty(penalty.blocks), np.empty(penalty.blocks, np.bool_)
        return float(by_blocks.survey(x, -slope, tuple(penalty), away, used))

    def beginning(self, gradient: Vector) -> tuple[Vector, Vector]:
        """As of `BlockSweeps`."""
        return gradient, np.zeros(self._entries.roots.size)

    def descend(self, *arguments: Any) -> tuple[float, int, bool, int]:
        """As of `BlockSweeps`."""
        self.meter.check()
        return self._entries.descend_blocks(*arguments)

    def smooth(self, gradient: Vector, d: Vector, r: Vector, offset: float, level: float) -> float:
        """As of `BlockSweeps`; `level` is less the shifts already."""
        return dot(gradient, d) + 0.5 * (dot(r, r) + offset * (2.0 * level + offset * self._root_sum))

    def spent(self, visited: int) -> None:
        """As of `BlockSweeps`."""
        self.meter.charge(0.5 * self._entries.share * visited / max(1, self._shifts.size))

    @property
    @timed
    def scores(self) -> Vector:
        """As of `ColumnModel`."""
        scores: Vector = self._entries.scores(self._steps) + self.state[0]
        return scores


Chosen = NDArray[np.int64]
ALL_FROM = 0.25
"""Share of the entries above which all columns are copied at once, so that the data is not read repeatedly."""
NO_VALUES = np.empty(0)


class ColumnCopies:
    """The columns of row-wise data that have been asked for so far, copied.

    Memory: for sparse data 4 bytes and a value per entry of these columns, 8 per feature, and as much again as the
    model in use; the data are read once to count, and once whenever a new column is asked for. Dense data are not
    copied.

    Parameters
    ----------
    X : (rows, features).
    columns : scale and shift of the features.
    bias : whether a constant feature 1 follows.
    """

    meter: Meter = UNMETERED

    def __init__(self, X: Features, columns: Columns, bias: bool) -> None:
        self.X, self.columns, self.bias = X, columns, bias
        self.rows, self.features = X.shape
        self._held = None if X.entries is None else _Held(X.entries, self.features, X.nnz)

    def metered(self, meter: Meter) -> ColumnCopies:
        """The same, with the same copies, charged to `meter`."""
        found = copy(self)
        found.meter = meter
        return found

    @timed
    def model(self, columns: Chosen, curvature: Vector, intercept: bool = False) -> RootedColumns:
        """As of `QuadraticModel`."""
        with_bias = bool(columns.size and columns[-1] == self.features)
        kept = columns[: columns.size - int(with_bias)]
        of, roots = self.columns, np.sqrt(np.maximum(np.asarray(curvature, np.float64), 0.0))
        scale = np.ones(kept.size) if of.scale is None else of.scale[kept]
        shifts = np.zeros(columns.size)
        if of.shift is not None:
            shifts[: kept.size] = scale * of.shift[kept]
        if with_bias:  # no entries, and less minus one times the roots
            shifts[-1] = -1.0
        rooted: Rooted
        if self._held is not None:
            rooted = RootedEntries(self._held.take(kept), roots, scale, shifts)
        else:
            rooted = RootedDense(self.X, kept, roots, scale, shifts, intercept)
        return RootedColumns(rooted, intercept, self.meter)


class _Held:
    """Entries of sparse columns, column by column."""

    def __init__(self, X: Entries, features: int, size: int) -> None:
        self._X, self._size = X, size
        self.place = np.full(features, -1, np.int32)
        self.starts = NO_STARTS
        self.rows = NO_ROWS
        self.values: NDArray[Any] = NO_VALUES if X.values is None else X.values[:0]

    @cached_property
    def _counts(self) -> NDArray[np.int32]:
        """Entries of each column."""
        counts = np.zeros(self.place.size, np.int32)
        kernels.count_entries(self._X.indptr, self._X.columns, counts)
        return counts

    def take(self, chosen: Chosen) -> SparseCopies:
        """The `chosen` columns, read where they are not there yet."""
        new = chosen[self.place[chosen] < 0]
        if new.size:
            most = int(self._counts[new].sum(dtype=np.int64)) + self.rows.size > ALL_FROM * self._size
            self._read(np.flatnonzero(self.place < 0) if most else new)
        return SparseCopies(self._size, self.starts, self.rows, self.values, self.place[chosen].astype(np.int64))

    def _read(self, new: Chosen) -> None:
        X = self._X
        place = np.full(self.place.size, -1, np.int32)
        place[new] = np.arange(new.size, dtype=np.int32)
        starts = np.concatenate(([0], np.cumsum(self._counts[new], dtype=np.int64)))
        entries = int(starts[-1])
        rows = np.empty(entries, np.uint32)
        values = NO_VALUES if X.values is None else np.empty(entries, X.values.dtype)
        given = NO_VALUES if X.values is None else X.values
        kernels.gather_entries(X.indptr, X.columns, given, place, starts[:-1].copy(), rows, values)
        self.place[new] = np.arange(new.size, dtype=np.int32) + np.int32(self.starts.size - 1)
        self.starts = np.concatenate((self.starts[:-1], starts + self.starts[-1]))
        self.rows = np.concatenate((self.rows, rows)) if self.starts.size > starts.size else rows
        self.values = np.concatenate((self.values, values)) if self.values.size else values
