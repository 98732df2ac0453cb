"""The matrix of features: sparse rows, with or without values, or a dense array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.structure import check_compressed, check_csr, check_sparse, damaged
from bmrm.problem import Check, InputError, unchecked

MOST_COLUMNS = 2**31
"""Column numbers are int32, counted from 0."""
COPIED = 1 << 21
"""Entries that are copied between two checks of the clock: fresh memory may be many times slower than copying."""


@dataclass(frozen=True, eq=False)
class Csr:
    """Sparse rows.

    The entries of row `i` are those at positions `indptr[i]` to `indptr[i + 1]` of `indices` and `values`. A part of
    a matrix keeps the whole `indices` and `values`, so `indptr[0]` may be above 0.

    Attributes
    ----------
    indptr : (rows + 1,) int64, positions in `indices`, never falling.
    indices : (at least indptr[-1],) int32, column of each entry, strictly rising within a row.
    values : like `indices`, float32 or float64; None where every stored value is 1 (valueless CSR).
    columns : number of columns.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[Any] | None
    columns: int

    def __post_init__(self) -> None:
        for array, what in ((self.indptr, "indptr"), (self.indices, "indices")):
            if not isinstance(array, np.ndarray):
                raise InputError(f"Csr: {what} is a {type(array).__name__}, expected an array")
        if not isinstance(self.columns, (int, np.integer)) or self.columns < 0:
            raise InputError(f"Csr: columns is {self.columns!r:.40}, expected an integer >= 0")
        if self.indptr.dtype != np.int64 or self.indices.dtype != np.int32:
            raise InputError(f"Csr: indptr {self.indptr.dtype}, indices {self.indices.dtype}, expected int64 and int32")
        if self.values is not None and self.values.dtype not in (np.float32, np.float64):
            raise InputError(f"Csr: values are {self.values.dtype}, expected float32 or float64")
        if not (self.indptr.ndim == self.indices.ndim == 1 and self.indptr.size):
            raise InputError(f"Csr: indptr {self.indptr.shape}, indices {self.indices.shape}, expected two lists")
        if self.values is not None and self.values.shape != self.indices.shape:
            raise InputError(f"Csr: {self.indices.size} indices, values of shape {self.values.shape}, expected as many")

    def checked(self, name: str = "X") -> Csr:
        """This matrix; InputError where positions or columns lie outside, or those of a row do not rise, naming it."""
        if not check_compressed(self.indptr, self.indices, self.shape, name):
            within = np.diff(np.repeat(np.arange(self.rows), np.diff(self.indptr))) == 0
            at = int(np.argmax(within & (np.diff(self._slice_of(self.indices)) <= 0))) + int(self.indptr[0])
            row = int(np.searchsorted(self.indptr, at, side="right")) - 1
            raise InputError(
                f"{name}: row {row} has column {self.indices[at + 1]} after {self.indices[at]}, expected rising numbers"
            )
        return self

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.indptr.shape[0]) - 1

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return int(self.indptr[-1] - self.indptr[0])

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.rows, self.columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values; float64 where there are none."""
        return np.dtype(np.float64) if self.values is None else self.values.dtype

    def part(self, start: int, stop: int) -> Csr:
        """The rows [start, stop), as views."""
        return replace(self, indptr=self.indptr[start : stop + 1])

    def with_columns(self, columns: int) -> Csr:
        """The same entries in a matrix with at least as many columns; fewer is an InputError."""
        if columns < self.columns:
            raise InputError(f"the data have {self.columns} features, expected at most {columns}")
        return replace(self, columns=columns)

    def select(self, rows: NDArray[np.integer[Any]], check: Check = unchecked) -> Csr:
        """A copy of the chosen rows, in the order given; repetition is allowed. `check` is called from time to time."""
        starts = self.indptr[rows]
        lengths = self.indptr[np.asarray(rows) + 1] - starts
        indptr = np.zeros(lengths.shape[0] + 1, np.int64)
        np.cumsum(lengths, out=indptr[1:])
        indices = np.empty(indptr[-1], self.indices.dtype)
        values = None if self.values is None else np.empty(indptr[-1], self.values.dtype)
        for some in pieces(lengths.shape[0], int(indptr[-1]), check):
            part = slice(indptr[some.start], indptr[some.stop])
            entries = np.repeat(starts[some] - indptr[some], lengths[some]) + np.arange(part.start, part.stop)
            indices[part] = self.indices[entries]
            if values is not None and self.values is not None:
                values[part] = self.values[entries]
        return Csr(indptr, indices, values, self.columns)

    def without_unit_values(self) -> Csr:
        """The same matrix, valueless where every stored value is 1."""
        values = self._slice_of(self.values)
        return replace(self, values=None) if values is not None and bool(np.all(values == 1.0)) else self

    @classmethod
    def from_scipy(cls, matrix: Any) -> Csr:
        """From any scipy.sparse matrix or array, which is not changed; arrays of the right types are shared with it.

        float32 values stay float32, every other real type becomes float64; duplicates are summed, rows sorted.
        """
        check_sparse(matrix)
        if np.issubdtype(matrix.dtype, np.complexfloating):
            raise InputError("X is complex, expected real numbers")
        if matrix.dtype.kind not in "fiub":
            raise InputError(f"X holds {matrix.dtype}, expected numbers")
        if matrix.dtype.kind in "iu" or matrix.dtype == np.float16:
            matrix = matrix.astype(np.float64)  # sums of duplicates may not fit small numbers
        try:
            rows = matrix.tocsr()
        except (IndexError, OverflowError, TypeError, ValueError) as error:
            raise damaged(matrix.format, "X", error) from error
        if rows.shape[1] > MOST_COLUMNS:
            raise InputError(f"X has {rows.shape[1]} columns, expected at most {MOST_COLUMNS}")
        # The flags of scipy are cached by the caller's object and may be stale, so look at the indices themselves.
        if not check_csr(rows, "X"):
            rows = rows.copy()
            rows.has_sorted_indices = rows.has_canonical_format = False
            rows.sum_duplicates()
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        stored = int(rows.indptr[-1])
        return cls(
            np.ascontiguousarray(rows.indptr, np.int64),
            np.ascontiguousarray(rows.indices[:stored], np.int32),
            np.ascontiguousarray(rows.data[:stored], dtype),
            int(rows.shape[1]),
        )

    def to_scipy(self) -> Any:
        """A scipy.sparse.csr_array with the same entries; values may be shared with this matrix."""
        from scipy.sparse import csr_array

        values = self._slice_of(self.values)
        data = np.ones(self.nnz) if values is None else values
        return csr_array((data, self._slice_of(self.indices), self.indptr - self.indptr[0]), shape=self.shape)

    def to_dense(self) -> NDArray[Any]:
        """A new 2-D array with the same entries."""
        dense = np.zeros(self.shape, self.dtype)
        values = self._slice_of(self.values)
        row = np.repeat(np.arange(self.rows), np.diff(self.indptr))
        dense[row, self._slice_of(self.indices)] = 1.0 if values is None else values
        return dense

    def _slice_of(self, array: Any) -> Any:
        """The entries of `indices` or `values` that belong to these rows."""
        return None if array is None else array[self.indptr[0] : self.indptr[-1]]


Matrix = Csr | NDArray[Any]
"""Rows of features: `Csr`, or a C-contiguous float32 or float64 array of shape (rows, columns)."""


def nnz_of(matrix: Matrix) -> int:
    """Number of stored entries; rows times columns of a dense array."""
    return matrix.nnz if isinstance(matrix, Csr) else int(matrix.size)


def part_of(matrix: Matrix, start: int, stop: int) -> Matrix:
    """The rows [start, stop), as views."""
    return matrix.part(start, stop) if isinstance(matrix, Csr) else matrix[start:stop]


def rows_of(matrix: Matrix, rows: NDArray[np.integer[Any]], check: Check = unchecked) -> Matrix:
    """A copy of the chosen rows, in the order given; `check` is called from time to time."""
    if isinstance(matrix, Csr):
        return matrix.select(rows, check)
    out = np.empty((len(rows), matrix.shape[1]), matrix.dtype)
    for some in pieces(len(out), out.size, check):
        np.take(matrix, rows[some], axis=0, out=out[some], mode="clip")
    return out


def pieces(rows: int, entries: int, check: Check) -> Iterator[slice]:
    """Ranges of rows that are copied at a time, given the number of entries; `check` is called between them."""
    size = max(1, int(COPIED / max(1.0, entries / max(1, rows))))
    for first in range(0, rows, size):
        if first:
            check()
        yield slice(first, min(first + size, rows))


def with_columns(matrix: Matrix, columns: int) -> Matrix:
    """The matrix padded with empty columns; fewer than it has is an InputError."""
    if isinstance(matrix, Csr):
        return matrix.with_columns(columns)
    missing = columns - matrix.shape[1]
    if missing < 0:
        raise InputError(f"the data have {matrix.shape[1]} features, expected at most {columns}")
    return np.pad(matrix, ((0, 0), (0, missing))) if missing else matrix
