"""Second-order models of a risk on few columns, minimised coordinate by coordinate: the ability `QuadraticModel`."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Entries, Features
from bmrm.kernels.products import columns as kernels
from bmrm.problem import UNMETERED, Meter, Vector, timed
from bmrm.risk.products.columns import Columns
from bmrm.risk.quadratic.rooted_columns import (
    NO_ROWS,
    NO_STARTS,
    Rooted,
    RootedColumns,
    RootedDense,
    RootedEntries,
    SparseCopies,
)

Chosen = NDArray[np.int64]
ALL_FROM = 0.25
"""Share of the entries from which on all are copied at once, lest the data be read again and again."""
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
