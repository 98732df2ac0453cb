"""Sparse rows, with or without values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.index_arrays import check_compressed, check_csr, check_sparse, damaged
from bmrm.data.matrix.features import (
    ROWS,
    Array,
    Entries,
    Features,
    Places,
    blocks_of,
    full_row_products,
    pieces,
    squares_differ,
    units_of,
    weighted_square,
)
from bmrm.problem import Check, InputError, Vector, unchecked
from bmrm.problem.meter import FULL_SPEED

if TYPE_CHECKING:
    from bmrm.data.matrix.products import Products

MOST_COLUMNS = 2**31
"""Most columns: their numbers are int32, counted from 0."""
PRODUCTS = 1e8
"""Products of two entries between two checks of the clock: about a tenth of a second."""
OPEN = 0.07
"""Density above which BLAS on dense rows is faster than a product of sparse matrices: measured."""
NO_ROWS, NO_VALUES = np.empty(0, np.int64), np.ones(1)


@dataclass(frozen=True, eq=False)
class Csr(Features):
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
    resident = True

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

    @property
    def own(self) -> Csr:
        """The same rows in arrays of their entries alone, counted from 0; views but for `indptr`."""
        indices, values = self._slice_of(self.indices), self._slice_of(self.values)
        return Csr(self.indptr - self.indptr[0], indices, values, self.columns)

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

        return csr_array((self._values, self._columns, self.indptr - self.indptr[0]), shape=self.shape)

    def to_dense(self) -> NDArray[Any]:
        """A new 2-D array with the same entries."""
        dense = np.zeros(self.shape, self.dtype)
        dense[self._row_of_entries, self._columns] = 1.0 if self.values is None else self._values
        return dense

    # -- as of `Features`

    @property
    def described(self) -> str:
        """As of `Features`."""
        return "sparse, all values 1" if self.values is None else f"sparse {self.values.dtype}"

    def fits(self, columns: int) -> bool:
        """As of `Features`."""
        return self.columns <= columns

    @property
    def bytes_per_entry(self) -> int:
        """As of `Features`."""
        return 4 if self.values is None else 4 + self.values.dtype.itemsize

    @property
    def longest_row(self) -> int:
        """As of `Features`."""
        return int(np.diff(self.indptr).max(initial=0))

    @property
    def entries(self) -> Entries:  # type: ignore[override]
        """As of `Features`."""
        return Entries(self.indptr, self.indices.view(np.uint32), self.values)

    def entries_before(self, row: int) -> int:
        """As of `Features`."""
        return int(self.indptr[row])

    def cuts(self, start: int, stop: int, count: int) -> Places:
        """As of `Features`."""
        goals = np.linspace(self.indptr[start], self.indptr[stop], count + 1)[1:-1]
        return start + np.searchsorted(self.indptr[start:stop], goals)

    def block(self, rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """As of `Features`."""
        return self.select(rows).to_dense()

    def arrays(self) -> Iterator[NDArray[Any] | None]:
        """As of `Features`."""
        own = self.own
        yield from (own.indptr, own.indices, own.values)

    def products(self, scores_per_row: int) -> Products:
        """As of `Features`."""
        from bmrm.data.matrix.products import CsrManyProducts, CsrProducts

        return (CsrProducts if scores_per_row == 1 else CsrManyProducts)(*self.entries)

    def gram(self, weights: Vector, kept: Places | None, check: Check) -> tuple[Array, Vector | None]:
        """As of `Features`."""
        from bmrm.kernels.products.gram import mirror

        size = self.columns if kept is None else kept.size
        raw = np.zeros((size, size))
        if kept is None and self.full:
            self._add_nearly_full(weights, raw, check)
        else:
            self._add_sparse(weights, kept, raw, check)
        mirror(raw)
        return raw, None

    def full_columns(self, kept: Places) -> Array:
        """As of `Features`."""
        return np.asarray(self.to_scipy()[:, kept].toarray(), np.float64)

    def _add_sparse(self, weights: Vector, kept: Places | None, out: Array, check: Check) -> None:
        """The lower triangle."""
        from bmrm.kernels.products import gram

        (indptr, indices, values), position = self.entries, NO_ROWS
        if kept is not None:
            position = np.full(self.columns, -1, np.int64)
            position[kept] = np.arange(kept.size)
        each = self.nnz / max(1, self.rows)
        for start, stop in self.ranges(max(1, int(PRODUCTS / max(1.0, each * each)))):
            check()
            # row starts count from the first entry of all, so that some of them do
            starts, some = indptr[start : stop + 1], weights[start:stop]
            if kept is not None:
                given = NO_VALUES if values is None else values
                gram.add_gram_of_columns(starts, indices, given, values is None, some, position, out)
            elif values is None:
                gram.add_gram_valueless(starts, indices, some, out)
            else:
                gram.add_gram(starts, indices, values, some, out)

    def _add_nearly_full(self, weights: Vector, out: Array, check: Check) -> None:
        from bmrm.kernels.products.csr import active_rows
        from bmrm.kernels.products.gram import densify

        indptr, indices, values = self.entries
        for rows in blocks_of(active_rows(weights), self.columns):
            check()
            block = np.empty((rows.size, self.columns))
            densify(indptr, indices, NO_VALUES if values is None else values, values is None, rows, block)
            out += weighted_square(block, weights[rows])

    def gram_work(self, weights: Vector, share: float) -> float:
        """As of `Features`."""
        from bmrm.kernels.products.gram import lengths

        entries, squares = lengths(self.indptr, weights)
        return share * float(share * squares + entries) / 2.0 / (FULL_SPEED if self.full else 1.0)

    def row_products(self, scale: Vector | None, shift: Vector | None, check: Check) -> Array:
        """As of `Features`; with (x - s)(y - s) = xy - xs - ys + ss, the shift being scaled, too."""
        if self.nnz > OPEN * self.rows * self.columns:
            return full_row_products(np.array(self.to_dense(), np.float64), scale, shift, check)
        scaled = self.to_scipy().astype(np.float64)
        if scale is not None:
            scaled = scaled.multiply(scale[None, :]).tocsr()
        found: Array = (scaled @ scaled.T).toarray()
        if shift is not None:
            less = shift if scale is None else shift * scale
            along = scaled @ less
            found += float(less @ less) - along[:, None] - along[None, :]
        return found

    def squared(self, shift: Vector | None = None) -> Csr:
        """As of `Features`."""
        if self.values is None and shift is None:
            return self
        indices, values = self._columns, self._values.astype(np.float64)
        values = values if shift is None else values - shift[indices]
        return Csr(self.indptr - self.indptr[0], indices, values**2, self.columns)

    def absolute_parts(self) -> Iterator[tuple[int, int, Csr]]:
        """As of `Features`."""
        for start, stop in self.ranges(ROWS):
            part = self.part(start, stop)
            if self.values is not None:
                part = Csr(part.indptr - part.indptr[0], part._columns, np.abs(part._values), self.columns)
            yield start, stop, part

    def times(self, factors: Vector) -> Csr:
        """As of `Features`."""
        values = np.ones(self.indices.size) if self.values is None else self.values
        return replace(self, values=values * factors[self.indices])

    def less(self, shift: Vector) -> Csr:
        """As of `Features`."""
        values = np.ones(self.indices.size) if self.values is None else self.values
        return replace(self, values=(values - shift[self.indices]).astype(values.dtype))

    def of_norm_one(self) -> Csr:
        """As of `Features`."""
        rows, exact = self._row_of_entries, self._values.astype(np.float64)
        sizes = np.zeros(self.rows)
        np.maximum.at(sizes, rows, np.abs(exact))
        if squares_differ(sizes):
            exact /= units_of(sizes)[rows]
        norms = np.sqrt(np.bincount(rows, weights=exact**2, minlength=self.rows))
        scaled = (exact / np.where(norms > 0.0, norms, 1.0)[rows]).astype(self.dtype)
        return Csr(self.indptr - self.indptr[0], self._columns, scaled, self.columns)

    def everywhere(self) -> NDArray[np.bool_]:
        """As of `Features`."""
        return np.bincount(self._columns, minlength=self.columns) >= self.rows

    def weighted_squares(self, weights: Vector, shift: Vector | None) -> Vector:
        """As of `Features`; what is not stored is 0, around the shift too."""
        squares = super().weighted_squares(weights, shift)
        if shift is None:
            return squares
        present = np.zeros(self.columns)
        replace(self, values=None).products(1).add_rmatvec(0, self.rows, weights, present)
        absent = np.maximum(float(weights.sum()) - present, 0.0)
        absent[self.everywhere()] = 0.0
        return np.asarray(squares + shift**2 * absent)

    def _absent(self, weights: Vector) -> Vector:
        """For each column the weights of the rows that do not store it, though the weights of others be far larger.

        The difference of all weights and those of its rows: of their multiples of a unit, whose sums are exact, and of
        the rest, whose rounding is of no account.
        """
        unit = np.ldexp(1.0, max(int(np.frexp(weights.sum())[1]) - 52, -1022))
        whole = np.rint(weights / unit) * unit
        absent, rows = np.zeros(self.columns), self._row_of_entries
        for part in (whole, weights - whole):
            absent += part.sum() - np.bincount(self._columns, weights=part[rows], minlength=self.columns)
        return np.maximum(absent, 0.0)

    def touched(self, rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        """As of `Features`."""
        there = rows[self._row_of_entries] & (self._values != 0.0)
        return np.bincount(self._columns[there], minlength=self.columns)

    def largest(self) -> Vector:
        """As of `Features`."""
        largest = np.zeros(self.columns)
        np.maximum.at(largest, self._columns, np.abs(self._values))
        return largest

    def ends(self, chosen: NDArray[np.bool_]) -> tuple[Vector, Vector]:
        """As of `Features`."""
        kept = chosen[self._columns]
        values = self._values[kept].astype(np.float64)[np.argsort(self._columns[kept], kind="stable")]
        table = values.reshape(-1, self.rows)
        return table.max(axis=1, initial=-np.inf), table.min(axis=1, initial=np.inf)

    def squares_around(self, mean: Vector, weights: Vector, units: Vector) -> Vector:
        """As of `Features`."""
        columns, middle = self._columns, mean / units
        squares = weights[self._row_of_entries] * (self._values / units[columns] - middle[columns]) ** 2
        around = np.bincount(columns, weights=squares, minlength=self.columns)
        return np.asarray(around + self._absent(weights) * middle**2)

    def far_entry(self) -> tuple[int, int, float] | None:
        """As of `Features`."""
        values = self._values
        if not _overflows(values):
            return None
        at = int(np.argmax(np.abs(values)))
        return int(self._row_of_entries[at]), int(self._columns[at]), float(values[at])

    def mean_norm(self, few: Places, scale: Vector | None) -> float:
        """As of `Features`; squares that overflow are avoided."""
        some = self.select(few)
        entries = some._values.astype(np.float64)
        if scale is not None:
            entries = entries * scale[some._columns]
        largest = float(np.abs(entries).max(initial=0.0)) or 1.0
        sums = np.bincount(some._row_of_entries, (entries / largest) ** 2, few.size)
        return largest * float(np.sqrt(sums).mean())

    def compact(self) -> tuple[Array, NDArray[np.integer[Any]] | slice]:
        """As of `Features`."""
        marked, place = np.zeros(self.columns, bool), np.empty(self.columns, np.intp)
        marked[self._columns] = True
        used = np.flatnonzero(marked)
        place[used] = np.arange(used.size)
        raw = np.zeros((self.rows, used.size))
        raw[self._row_of_entries, place[self._columns]] = 1.0 if self.values is None else self._values
        return raw, used

    def tiny(self) -> list[Features]:
        """As of `Features`: sparse and full."""
        indices = np.array([0, 1, 0, 1], np.int32)
        values = None if self.values is None else np.ones(4, self.values.dtype)
        return [Csr(np.array([0, 1, 2]), indices, values, 4), Csr(np.array([0, 2, 4]), indices, values, 2)]

    # -- the entries of these rows alone

    @property
    def _columns(self) -> NDArray[np.int32]:
        return self.indices[self.indptr[0] : self.indptr[-1]]

    @property
    def _values(self) -> NDArray[Any]:
        return np.ones(self.nnz) if self.values is None else self.values[self.indptr[0] : self.indptr[-1]]

    @property
    def _row_of_entries(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.rows), np.diff(self.indptr))

    def _slice_of(self, array: Any) -> Any:
        """The entries of `indices` or `values` that belong to these rows."""
        return None if array is None else array[self.indptr[0] : self.indptr[-1]]


def _overflows(values: NDArray[Any]) -> bool:
    """Whether the sum of squares does; float32 never does."""
    if values.dtype == np.float32:
        return False
    with np.errstate(over="ignore"):
        return not np.isfinite(values @ values)
