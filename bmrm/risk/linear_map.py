"""A: data times weights, the only place where passes over the data happen."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Features, Matrix, features_of
from bmrm.data.matrix.products import active_rows
from bmrm.kernels.products import laplacian
from bmrm.kernels.products.vectors import column_sums, plain
from bmrm.kernels.workers import Workers
from bmrm.problem import IncompatibleError, InputError, Vector
from bmrm.problem.meter import UNMETERED, Meter, half_pass
from bmrm.risk.products import Columns, diagonal, gram_of, gram_of_scores

Array = NDArray[np.float64]
Span = tuple[int, int]
"""Rows [start, stop)."""

WORK_PER_THREAD = 400_000
"""Non-zeros times scores below which another thread costs more than it saves."""
CHUNK_BYTES = 2_000_000
"""Bytes of a chunk of rows and its scores: measured; smaller chunks cost more in calls than the L2 cache saves."""
CHUNK_ROWS = 512
"""Least rows of a chunk: fewer would cost more in calls than the cache saves."""
MOST = 0.8
"""Largest share of the rows, those with a non-zero slope, up to which they are visited one by one."""
COPIED, LARGE = 0.3, 400_000
"""Largest share of the rows that is copied for products with their Gram matrix, and entries times scores of all above
which that is done: from a cache rows are read as fast where they are."""
NO_TOTAL = np.empty(0)
"""Stands for a sum of slopes that is not needed."""


@dataclass(frozen=True)
class _Weighted:
    """A copy of the rows whose weights are not 0.

    Attributes
    ----------
    map, rows, weights : of them, their numbers, and their weights.
    """

    map: DataMap
    rows: NDArray[np.int64]
    weights: Array

    def serves(self, weights: Array) -> bool:
        """Whether nobody has changed them meanwhile."""
        same = np.count_nonzero(weights) == np.count_nonzero(self.weights)
        return same and np.array_equal(weights[self.rows], self.weights)


class DataMap:
    """The scores `A w` of rows of features, and `A'` times a slope.

    With K scores per row, `w` is the (inputs, K) matrix in C order, flattened; scores are then (rows, K). Inputs are
    the features and, with `bias`, a constant 1 after them.

    Parameters
    ----------
    X : features, (rows, features).
    scores_per_row : K.
    columns : scale and shift of the features, applied to weights and gradients instead of the data.
    bias : whether a constant feature 1 follows the features (never scaled).
    workers : the threads for large data; None for one per usable core.

    Attributes
    ----------
    needs_total : whether `outward` looks at the sum of the slopes.
    meter : what products are charged to, with their `share` in a pass.
    """

    meter: Meter = UNMETERED
    share = 1.0

    def __init__(
        self,
        X: Matrix | Features,
        *,
        scores_per_row: int = 1,
        columns: Columns | None = None,
        bias: bool = False,
        workers: Workers | None = None,
    ) -> None:
        self.X = features_of(X)
        self.rows, self.features = self.X.shape
        self.scores_per_row = scores_per_row
        self.columns = Columns() if columns is None else columns
        self.columns.check(self.features)
        self.bias = bias
        self.inputs = self.features + int(bias)
        self.dim = self.inputs * scores_per_row
        self.workers = Workers() if workers is None else workers
        self.products = self.X.products(scores_per_row)
        self._shapes = self._shape_of(self.inputs), self._shape_of(self.features)
        self.needs_total = bias or self.columns.shift is not None
        self._spans: list[Span] | None = None
        self._last: tuple[Callable[[], Array | None], _Weighted | None] = lambda: None, None
        """The last weights that were asked for, and their rows if these are few."""

    def metered(self, meter: Meter) -> DataMap:
        """The same map, whose products are charged to `meter`."""
        found = copy(self)
        found.meter = meter
        return found

    @half_pass
    def matvec(self, w: Vector) -> Array:
        """A w, a new array (rows,) or (rows, K)."""
        v, offset = self.inward(w)
        out = np.empty(self._shape_of(self.rows))
        if not v.any():  # where most solvers begin
            out[:] = offset
            return out

        def work(span: Span) -> None:
            self.products.scores(span[0], span[1], v, offset, out[span[0] : span[1]])

        self.workers.map(work, self.spans(0, self.rows))
        return out

    @half_pass
    def rmatvec(self, slope: Array) -> Vector:
        """A' slope, a new array (dim,); rows of slope 0 are skipped."""
        slope = plain(slope)

        def work(span: Span) -> Array:
            gradient = self.zeros()
            self.products.add_rmatvec(span[0], span[1], slope[span[0] : span[1]], gradient)
            return gradient

        total = column_sums(slope) if self.needs_total else NO_TOTAL
        return self.outward(added(self.workers.map(work, self.spans(0, self.rows))), total)

    def rmatvec_parts(self, slope: Array, parts: int) -> Iterator[tuple[slice, Vector]]:
        """A' slope in `parts` consecutive pieces (fewer where there are fewer inputs), each as soon as it is ready.

        Yields (where in the (dim,) vector, the piece). The borders depend on `dim`, `scores_per_row` and `parts` only.
        """
        slope, K = plain(slope), self.scores_per_row
        total = column_sums(slope)
        spans = self.spans(0, self.rows)
        sweeps = [self.products.sweep(a, b, slope[a:b]) for a, b in spans]
        gradients = [self.zeros() for _ in spans]
        first = 0
        for stop in borders(self.inputs, parts):
            last = min(stop, self.features)

            def work(k: int, first: int = first, last: int = last) -> Array:
                sweeps[k](first, last, gradients[k])
                return gradients[k][first:last]

            raw = added(self.workers.map(work, range(len(spans))))
            piece = self.columns.scaled_part(slice(first, last), raw, total)
            if stop > last:
                piece = np.concatenate([piece, np.reshape(total, (1, *piece.shape[1:]))])
            yield slice(first * K, stop * K), piece.ravel()
            first = stop

    @half_pass
    def diagonal(self, weights: Array) -> Vector:
        """The diagonal of `gram(weights)`, a new array (dim,), weights as of `gram`."""
        some = self._rows_of(weights)
        X, c = (self.X, plain(weights)) if some is None else (some.map.X, some.weights)
        if self.scores_per_row == 1:
            return diagonal(X, self.columns, self.bias, c)
        total = c.sum(axis=1, keepdims=True)
        own = c - np.divide(c**2, total, out=np.zeros_like(c), where=total > 0.0)
        table = [diagonal(X, self.columns, self.bias, np.ascontiguousarray(column)) for column in own.T]
        return np.column_stack(table).ravel()

    @half_pass
    def gram(self, weights: Array, columns: NDArray[np.int64] | None = None) -> Array:
        """A' diag(weights) A, dense and symmetric, or its part for some increasing `columns`.

        With several scores per row, weights c (rows, K) stand for diag(c) - c c' / sum(c) in each row, all columns.
        """
        weights = plain(weights)
        self._charge(weights, columns)
        if self.scores_per_row != 1:
            if columns is not None:
                raise IncompatibleError("parts of Gram matrices are known for one score per row only; use lbfgs")
            return gram_of_scores(weights, self.inputs, self._gram_of_one)
        return self._gram_of_one(weights, columns)

    def _gram_of_one(self, weights: Array, columns: NDArray[np.int64] | None = None) -> Array:
        """The inputs' matrix, for weights of rows."""
        width = self.X.nnz / max(1, self.rows)
        work = np.count_nonzero(weights) * width * (width + 1.0) / 2.0
        count = min(self.workers.threads, int(work / (WORK_PER_THREAD + self.inputs**2)))

        def part(span: Span) -> Array:
            rows = self.X if span == (0, self.rows) else self.X.part(*span)
            return gram_of(rows, self.columns, self.bias, weights[span[0] : span[1]], columns, self.meter.check)

        count = max(1, count) if self.X.resident else 1
        return added(self.workers.map(part, self._split(0, self.rows, count)))

    def gram_product(self, weights: Array, w: Vector) -> Vector:
        """`gram(weights)` times w, a new array (dim,), weights as of `gram`.

        A pass over the rows whose weights are not 0. Where these are few, and sparse, they are copied, until other
        weights are asked for or these are gone.
        """
        begin = self.meter.begin()
        try:
            some = self._rows_of(weights)
            if some is not None:
                return some.map._gram_product(some.weights, w)
            return self._gram_product(plain(weights), w)
        finally:
            self.meter.end(begin, self.share * self.product_share(weights))

    def product_share(self, weights: Array) -> float:
        """Share of the rows in the last product with these weights."""
        of, some = self._last
        some = some if of() is weights else None
        return 1.0 if some is None else some.rows.size / max(1, self.rows)

    def _rows_of(self, weights: Array) -> _Weighted | None:
        """A copy of the rows whose weights are not 0, where that is worth it."""
        if self.X.full or not self.X.resident or self.X.nnz * self.scores_per_row <= LARGE:
            return None
        of, some = self._last
        if of() is not weights:
            some = None
            if 0 < self.active(weights) <= COPIED * self.rows:
                rows = active_rows(plain(weights))
                map = self.alike(self.X.select(rows, self.meter.check))
                map.meter = UNMETERED
                some = _Weighted(map, rows, plain(weights)[rows])
        if some is not None and not some.serves(plain(weights)):
            some = None
        self._last = weakref.ref(weights), some
        return some

    def _gram_product(self, weights: Array, w: Vector) -> Vector:
        v, offset = self.inward(w)
        part = self._part_of_one if self.scores_per_row == 1 else self._part_of_many

        def work(span: Span) -> tuple[Array, Array]:
            gradient, total = self.zeros(), np.zeros(self._shape_of(1)[1:])
            part(span, weights, v, offset, gradient, total)
            return gradient, total

        gradients, totals = zip(*self.workers.map(work, self.spans(0, self.rows)), strict=True)
        return self.outward(added(list(gradients)), sum(totals))

    def _part_of_one(self, span: Span, weights: Array, v: Array, offset: Any, gradient: Array, total: Array) -> None:
        """Add the product of a span of rows of one score; rows of weight 0 cost nothing where they are many."""
        start, stop = span
        rows = start + active_rows(weights[start:stop])
        if rows.size > MOST * (stop - start):
            f = np.empty(stop - start)
            self.products.scores(start, stop, v, offset, f)
            f *= weights[start:stop]
            self.products.add_rmatvec(start, stop, f, gradient)
        else:
            f = np.empty(rows.size)
            self.products.scores_of(rows, v, offset, f)
            f *= weights[rows]
            self.products.add_rmatvec_of(rows, np.arange(rows.size), f, gradient)
        if self.needs_total:
            total += column_sums(f)

    def _part_of_many(self, span: Span, weights: Array, v: Array, offset: Any, gradient: Array, total: Array) -> None:
        """Add the product of a span of rows of several scores, chunk by chunk."""
        for start, stop in self.chunks(*span):
            f = np.empty(self._shape_of(stop - start))
            self.products.scores(start, stop, v, offset, f)
            laplacian.multiply(weights[start:stop], f)
            self.products.add_rmatvec(start, stop, f, gradient)
            if self.needs_total:
                total += column_sums(f)

    @half_pass
    def gram_blocks(self, weights: Array, least: float = 0.0) -> Array:
        """For each of the K scores of a row A' diag(weights) A of its part of w; (K, inputs, inputs).

        Rows of less weight than `least` times the mean of that score's are left out.
        """
        table = np.ascontiguousarray(self._kept(weights, least).T)
        self._charge(weights, None, least)
        count = min(self.workers.threads, self.scores_per_row)

        blocks = np.empty((self.scores_per_row, self.inputs, self.inputs))

        def some(classes: range) -> None:
            for k in classes:
                blocks[k] = gram_of(self.X, self.columns, self.bias, table[k], None, self.meter.check)

        edges = borders(self.scores_per_row, count)
        self.workers.map(some, [range(a, b) for a, b in pairwise([0, *edges])])
        return blocks

    def _kept(self, weights: Array, least: float) -> Array:
        """As a table, zero where less than `least` times the mean of that score's."""
        table = plain(weights).reshape(self.rows, self.scores_per_row)
        if not (least > 0.0 and self.rows):
            return table
        return table * (table >= (least / self.rows) * column_sums(table))

    def _charge(self, weights: Array, columns: NDArray[np.int64] | None, least: float | None = None) -> None:
        if self.meter is not UNMETERED:
            work, a_pass = self.gram_work(weights, columns, least)
            self.meter.charge(0.0, self.share * work / max(a_pass, 1.0))

    def gram_work(
        self, weights: Array, columns: NDArray[np.int64] | None, least: float | None = None
    ) -> tuple[float, float]:
        """Products of two numbers that Gram matrices take, of all scores or (`least` given) the blocks; and a pass.

        Entries are taken to be spread evenly over the columns.
        """
        table, K = self._kept(weights, least or 0.0), self.scores_per_row
        matrices = K * (K - 1) // 2 if least is None and K > 1 else K
        parts = [table[:, 0]] if table.all() else [*table.T]  # all rows count alike
        if least is None and len(parts) > 1:
            parts = [one * other for one, other in combinations(parts, 2)]
        share = 1.0 if columns is None else columns.size / self.inputs
        work = sum(self.X.gram_work(part, share) for part in parts)
        return work * matrices / len(parts), 2.0 * self.X.nnz * K

    def active(self, weights: Array) -> int:
        """How many rows have a weight other than 0."""
        return int(np.count_nonzero(weights if weights.ndim == 1 else np.abs(weights).sum(axis=1)))

    def alike(self, X: Features) -> DataMap:
        """A map of other rows with the same scaling, bias, threads and meter."""
        found = DataMap(
            X, scores_per_row=self.scores_per_row, columns=self.columns, bias=self.bias, workers=self.workers
        )
        found.meter, found.share = self.meter, self.share * found.rows / max(1, self.rows)
        return found

    def several(self, count: int) -> DataMap:
        """As of `SeveralPoints`, where there is one score per row."""
        found = DataMap(self.X, scores_per_row=count, columns=self.columns, bias=self.bias, workers=self.workers)
        found.meter, found.share = self.meter, self.share
        return found

    def shifts(self) -> Vector | None:
        """As of `SeveralPoints`."""
        if self.columns.shift is None:
            return None
        sizes = np.abs(self.columns.shift if self.columns.scale is None else self.columns.shift * self.columns.scale)
        return np.concatenate((sizes, np.zeros(int(self.bias))))

    def full_columns(self, columns: NDArray[np.int64]) -> Array:
        """As of `FullColumns`."""
        with_bias = bool(columns.size and columns[-1] == self.features)
        kept = columns[: columns.size - int(with_bias)]
        out = np.ones((columns.size, self.rows))
        self.meter.charge(0.5 * self.share * kept.size / max(1, self.features))
        table = out[: kept.size]
        table[:] = self.X.full_columns(kept).T
        if self.columns.shift is not None:
            table -= self.columns.shift[kept, None]
        if self.columns.scale is not None:
            table *= self.columns.scale[kept, None]
        return out

    @property
    def offset(self) -> int | None:
        """Where in w the weight of the constant feature stands, with one score per row; None where there is none."""
        return self.features if self.bias and self.scores_per_row == 1 else None

    def raw_weights(self, w: Vector) -> tuple[Array, Vector]:
        """Weights (features,) or (features, K) and intercept (K,) that give the same scores on raw features."""
        table = self._table(w)
        intercept = table[self.features] if self.bias else np.zeros(table.shape[1:])
        weights, shifted = self.columns.raw_weights(table[: self.features], intercept)
        return weights.copy(), np.array(np.atleast_1d(shifted))

    # ------------------------------------------------------------------------------------------
    # Used by the fused passes of LinearRisk, too
    # ------------------------------------------------------------------------------------------

    def inward(self, w: Vector) -> tuple[Array, NDArray[np.float64] | float]:
        """Weights and offset for the features as they are stored."""
        table = self._table(w)
        v = table[: self.features]
        offset = table[self.features] if self.bias else np.zeros(table.shape[1:])
        v, offset = self.columns.raw_weights(v, offset)
        return plain(v), float(offset) if v.ndim == 1 else plain(offset)

    def outward(self, gradient: Array, total: Array) -> Vector:
        """The (dim,) gradient, from that for stored features and the sum of the slopes; may reuse `gradient`."""
        scaled = self.columns.scaled_gradient(gradient, total)
        if self.bias:
            scaled = np.concatenate([scaled, np.reshape(total, (1, *scaled.shape[1:]))])
        return scaled.ravel()

    def zeros(self, spare: int = 0) -> Array:
        """A gradient of 0 for stored features, in memory that has room for `spare` numbers behind it."""
        size = self.features * self.scores_per_row
        return np.zeros(size + spare)[:size].reshape(self._shapes[1])

    def spans(self, start: int, stop: int) -> list[Span]:
        """The rows shared out to threads, by non-zeros; one span where threads would not pay."""
        whole = (start, stop) == (0, self.rows)
        if whole and self._spans is not None:
            return self._spans
        spans = self._shared_out(start, stop)
        if whole:
            self._spans = spans
        return spans

    def _shared_out(self, start: int, stop: int) -> list[Span]:
        work = self.X.entries_before(stop) - self.X.entries_before(start)
        count = min(self.workers.threads, int(work * self.scores_per_row) // WORK_PER_THREAD)
        return self._split(start, stop, max(1, count))

    def chunks(self, start: int, stop: int) -> list[Span]:
        """The rows cut into chunks that fit the cache."""
        return self._split(start, stop, max(1, round((stop - start) / self._rows_of_chunk())))

    def _rows_of_chunk(self) -> int:
        size = self.X.nnz / max(1, self.rows) * self.X.bytes_per_entry + 8 * self.scores_per_row
        return max(CHUNK_ROWS, int(CHUNK_BYTES / max(1.0, size)))

    def listed(self, rows: NDArray[np.int64]) -> list[list[NDArray[np.int64]]]:
        """Listed rows cut into chunks that fit the cache, a list of them per thread."""
        width = self.X.nnz / max(1, self.rows)
        count = min(self.workers.threads, int(rows.size * width * self.scores_per_row) // WORK_PER_THREAD)
        size = self._rows_of_chunk()
        return [np.array_split(some, max(1, round(some.size / size))) for some in np.array_split(rows, max(1, count))]

    def _split(self, start: int, stop: int, count: int) -> list[Span]:
        """`count` spans of about equal work, empty ones left out (but for one, where there are no rows)."""
        if count == 1:
            return [(start, stop)]
        cuts = self.X.cuts(start, stop, count)
        edges = [start, *np.unique(np.clip(cuts, start, stop)).tolist(), stop]
        return [(a, b) for a, b in pairwise(edges) if b > a] or [(start, stop)]

    def _shape_of(self, length: int) -> tuple[int, ...]:
        return (length,) if self.scores_per_row == 1 else (length, self.scores_per_row)

    def _table(self, w: Vector) -> Array:
        w = np.asarray(w, np.float64)
        if w.shape != (self.dim,):
            raise InputError(f"w has shape {w.shape}, expected ({self.dim},)")
        return w.reshape(self._shapes[0])


def borders(length: int, parts: int) -> list[int]:
    """The ends of `parts` pieces of about equal length (fewer where `length` is less)."""
    count = max(1, min(parts, length))
    return [length * (k + 1) // count for k in range(count)]


def added(arrays: list[Array]) -> Array:
    """The sum of the arrays, into the first."""
    for array in arrays[1:]:
        arrays[0] += array
    return arrays[0]
