"""What a map asks of rows of features, whatever way they are stored."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Check, IncompatibleError, Vector, unchecked
from bmrm.problem.meter import FULL, FULL_SPEED

if TYPE_CHECKING:
    from bmrm.data.matrix.products import Products, Sweep

Array = NDArray[np.float64]
Places = NDArray[np.int64]
PART = 4096
"""Rows that are read at once if they are not resident."""
ROWS = 8192
"""Rows that are copied and changed at once."""
COPIED = 1 << 21
"""Entries copied between two checks of the clock: writing to fresh memory may be many times slower than copying."""


class Entries(NamedTuple):
    """Sparse rows as kernels take them: the entries of row i are those at `indptr[i]` to `indptr[i + 1]`."""

    indptr: NDArray[np.int64]
    columns: NDArray[np.uint32]
    values: NDArray[Any] | None
    """None where all are 1."""


class Features(ABC):
    """Rows of features, however they are stored: nothing outside this folder knows.

    What is here works part by part, so that rows on disk are one more class with `shape`, `nnz`, `dtype` and `part`.
    Rows in memory have faster ways of their own.

    Attributes
    ----------
    resident : whether rows can be read at random, copied and kept: dual steps, copies of columns and samples need it.
    entries, table : the arrays of sparse rows, or the array of full rows; None where they are not such.
    rows_at_once : so many are copied and changed at once, by default.
    """

    resident: ClassVar[bool] = False
    rows_at_once: int = ROWS
    entries: Entries | None = None
    table: NDArray[Any] | None = None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""

    @property
    @abstractmethod
    def nnz(self) -> int:
        """Number of stored entries."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""

    @abstractmethod
    def part(self, start: int, stop: int) -> Features:
        """The rows [start, stop), resident; views where all are."""

    # -- size

    @property
    def bytes_per_entry(self) -> int:
        """Bytes that are read for an entry."""
        return self.dtype.itemsize

    @property
    def longest_row(self) -> int:
        """Entries of the longest row."""
        return max((part.longest_row for _, _, part in self.parts()), default=0)

    @property
    def full(self) -> bool:
        """Whether rows are multiplied as full ones, by BLAS."""
        return self.nnz > FULL * self.shape[0] * max(1, self.shape[1])

    @property
    def described(self) -> str:
        """How they are stored, in words."""
        return f"{type(self).__name__} {self.dtype}"

    def entries_before(self, row: int) -> int:
        """Entries of the rows before, about, up to a constant."""
        return row * self.nnz // max(1, self.shape[0])

    def cuts(self, start: int, stop: int, count: int) -> Places:
        """The inner borders of `count` ranges of the rows [start, stop) with about as many entries each."""
        return np.linspace(start, stop, count + 1)[1:-1].astype(np.int64)

    def fits(self, columns: int) -> bool:
        """Whether these can be rows of so many columns: sparse ones may have fewer."""
        return self.shape[1] == columns

    def checked(self, name: str = "X") -> Features:
        """These rows; InputError where indices lie outside, naming the matrix."""
        return self

    # -- rows

    def ranges(self, size: int | None = None) -> Iterator[tuple[int, int]]:
        """Ranges of `size` rows; None: of `rows_at_once`."""
        rows, size = self.shape[0], self.rows_at_once if size is None else size
        for start in range(0, rows, size):
            yield start, min(start + size, rows)

    def parts(self) -> Iterator[tuple[int, int, Features]]:
        """Some rows [start, stop) at a time."""
        for start, stop in self.ranges():
            yield start, stop, self.part(start, stop)

    def select(self, rows: NDArray[np.integer[Any]], check: Check = unchecked) -> Features:
        """A copy of the chosen rows, in the order given; repetition is allowed. `check` is called from time to time."""
        raise IncompatibleError(f"rows of {self.described} cannot be read at random")

    def block(self, rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """The chosen rows as a full array."""
        return self.select(rows).block(np.arange(len(rows)))

    def arrays(self) -> Iterator[NDArray[Any] | None]:
        """What the rows consist of, the same however they lie in memory: for digests."""
        for _, _, part in self.parts():
            yield from part.arrays()

    # -- products

    def products(self, scores_per_row: int) -> Products:
        """The products with weights and slopes."""
        return PartProducts(self, scores_per_row)

    def gram(self, weights: Vector, kept: Places | None, check: Check) -> tuple[Array, Vector | None]:
        """X' diag(weights) X, of the columns `kept` where they are given; and X' weights, where that comes with it."""
        size = self.shape[1] if kept is None else kept.size
        raw = np.zeros((size, size))
        for start, stop, part in self.parts():
            check()
            raw += part.gram(weights[start:stop], kept, check)[0]
        return raw, None

    def full_columns(self, kept: Places) -> Array:
        """The columns `kept` as a full array, (rows, kept), float64."""
        return np.concatenate([np.empty((0, kept.size)), *(part.full_columns(kept) for _, _, part in self.parts())])

    def gram_work(self, weights: Vector, share: float) -> float:
        """Products of two entries that `gram` takes, with a `share` of each row, in the time of those of a pass."""
        width = share * self.nnz / max(1, self.shape[0])
        products = float(np.count_nonzero(weights)) * width * (width + 1.0) / 2.0
        return products / (FULL_SPEED if self.full else 1.0)

    def row_products(self, scale: Vector | None, shift: Vector | None, check: Check) -> Array:
        """The inner products of the rows with columns (x - shift) scale, (rows, rows)."""
        table = np.array(self.block(np.arange(self.shape[0])), np.float64)
        return full_row_products(table, scale, shift, check)

    # -- changed rows

    def changed(self, change: Callable[[Features], Features]) -> Features:
        """Rows of which each part is changed when it is read."""
        return ChangedFeatures(self, change)

    def squared(self, shift: Vector | None = None) -> Features:
        """The squares of the entries, less the shift of their column, float64."""
        return self.changed(lambda part: part.squared(shift))

    def times(self, factors: Vector) -> Features:
        """Each column times its factor."""
        return self.changed(lambda part: part.times(factors))

    def less(self, shift: Vector) -> Features:
        """Each column less a shift, which is 0 but for columns that every row has."""
        return self.changed(lambda part: part.less(shift))

    def of_norm_one(self) -> Features:
        """Rows divided by their Euclidean norm; rows of zeros stay so. Values keep their precision."""
        return self.changed(lambda part: part.of_norm_one())

    def absolute_parts(self) -> Iterator[tuple[int, int, Features]]:
        """The absolute values of the entries, some rows [start, stop) at a time; each is valid until the next."""
        for first, _, part in self.parts():
            for start, stop, absolute in part.absolute_parts():
                yield first + start, first + stop, absolute

    # -- statistics

    def weighted_squares(self, weights: Vector, shift: Vector | None) -> Vector:
        """For each column the sum over rows of weight times (x - shift)^2."""
        sums = np.zeros(self.shape[1])
        for start, stop, part in self.parts():
            part.squared(shift).products(1).add_rmatvec(0, stop - start, weights[start:stop], sums)
        return sums

    def everywhere(self) -> NDArray[np.bool_]:
        """The columns that every row has."""
        found = np.ones(self.shape[1], bool)
        for _, _, part in self.parts():
            found &= part.everywhere()
        return found

    def touched(self, rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        """In how many of the chosen rows each column is not 0."""
        found = np.zeros(self.shape[1], np.int64)
        for start, stop, part in self.parts():
            found += part.touched(rows[start:stop])
        return found

    def largest(self) -> Vector:
        """The largest absolute value of each column."""
        found = np.zeros(self.shape[1])
        for _, _, part in self.parts():
            np.maximum(found, part.largest(), out=found)
        return found

    def ends(self, chosen: NDArray[np.bool_]) -> tuple[Vector, Vector]:
        """The largest and the smallest value of the chosen columns, which every row has."""
        ends = [part.ends(chosen) for _, _, part in self.parts()]
        return np.max([most for most, _ in ends], axis=0), np.min([least for _, least in ends], axis=0)

    def squares_around(self, mean: Vector, weights: Vector, units: Vector) -> Vector:
        """For each column the weighted sum of ((x - mean) / unit)^2; what is not stored counts as 0."""
        total = np.zeros(self.shape[1])
        for start, stop, part in self.parts():
            total += part.squares_around(mean, weights[start:stop], units)
        return total

    def far_entry(self) -> tuple[int, int, float] | None:
        """(row, column, value) of the largest entry where sums of squares overflow, else None."""
        for start, _, part in self.parts():
            found = part.far_entry()
            if found is not None:
                return start + found[0], *found[1:]
        return None

    def mean_norm(self, few: Places, scale: Vector | None) -> float:
        """Of the chosen rows with scaled columns."""
        return self.select(few).mean_norm(np.arange(len(few)), scale)

    def compact(self) -> tuple[Array, NDArray[np.integer[Any]] | slice]:
        """All rows in full, without the columns that are empty in all of them, and which columns these are."""
        return self.select(np.arange(self.shape[0])).compact()

    def tiny(self) -> list[Features]:
        """Two rows stored in this way, once for each of the ways in which their Gram matrices are made."""
        return [self.part(0, min(2, self.shape[0]))]


class PartProducts:
    """Rows that are read part by part; the one read last is kept, in each thread."""

    def __init__(self, features: Features, scores_per_row: int) -> None:
        self._features, self._width = features, scores_per_row
        self._last = threading.local()

    def scores(self, start: int, stop: int, v: Array, offset: Any, out: Array) -> None:
        for a, b, part in self._parts(start, stop):
            part.scores(0, b - a, v, offset, out[a - start : b - start])

    def add_rmatvec(self, start: int, stop: int, slope: Array, gradient: Array) -> None:
        for a, b, part in self._parts(start, stop):
            part.add_rmatvec(0, b - a, slope[a - start : b - start], gradient)

    def sweep(self, start: int, stop: int, slope: Array) -> Sweep:
        whole: list[Array] = []

        def add_until(first: int, last: int, gradient: Array) -> None:
            if not whole:  # all at the first piece: rows are read once
                whole.append(np.zeros_like(gradient))
                self.add_rmatvec(start, stop, slope, whole[0])
            gradient[first:last] += whole[0][first:last]

        return add_until

    def scores_of(self, rows: Places, v: Array, offset: Any, out: Array) -> None:
        self._features.select(rows).products(self._width).scores(0, rows.size, v, offset, out)

    def add_rmatvec_of(self, rows: Places, active: Places, slope: Array, gradient: Array) -> None:
        self._features.select(rows).products(self._width).add_rmatvec(0, rows.size, slope, gradient)

    def _parts(self, start: int, stop: int) -> Iterator[tuple[int, int, Products]]:
        size = min(PART, self._features.rows_at_once)
        for first in range(start, stop, size):
            span = first, min(first + size, stop)
            if getattr(self._last, "span", None) != span:
                self._last.products = self._features.part(*span).products(self._width)
                self._last.span = span
            yield *span, self._last.products


class ChangedFeatures(Features):
    """Rows that are changed when they are read.

    Parameters
    ----------
    features : that are not resident.
    change : of some rows.
    """

    def __init__(self, features: Features, change: Callable[[Features], Features]) -> None:
        self._features, self._change = features, change
        self.rows_at_once = features.rows_at_once

    @property
    def shape(self) -> tuple[int, int]:
        """As of those inside."""
        return self._features.shape

    @property
    def nnz(self) -> int:
        """As of those inside."""
        return self._features.nnz

    @property
    def dtype(self) -> np.dtype[Any]:
        """As of those inside, or float64."""
        return self._change(self._features.part(0, min(1, self.shape[0]))).dtype

    def part(self, start: int, stop: int) -> Features:
        """The rows, changed."""
        return self._change(self._features.part(start, stop))


def pieces(rows: int, entries: int, check: Check) -> Iterator[slice]:
    """Ranges of rows that are copied at a time, given the number of entries; `check` is called between them."""
    size = max(1, int(COPIED / max(1.0, entries / max(1, rows))))
    for first in range(0, rows, size):
        if first:
            check()
        yield slice(first, min(first + size, rows))


def units_of(sizes: Vector) -> Vector:
    """For each size the power of two next below it; 1 for 0."""
    return np.where(sizes > 0.0, np.ldexp(1.0, np.frexp(sizes)[1] - 1), 1.0)


COMMON = 200
"""Binary exponents of features, up and down, within which squares and their sums neither overflow nor underflow."""


def squares_differ(sizes: Vector) -> bool:
    """Whether squares of some rows overflow or vanish."""
    there = sizes[sizes > 0.0]
    return bool(there.size) and not (there.min() > 2.0**-COMMON and there.max() < 2.0**COMMON)


def weighted_square(block: Array, weights: Vector) -> Array:
    """block' diag(weights) block; a product of a matrix with itself is half the work for BLAS."""
    least, most = float(weights.min()), float(weights.max())
    if least < 0.0:
        product: Array = (block * weights[:, None]).T @ block
    elif least == most:
        product = most * (block.T @ block)
    else:
        scaled = block * np.sqrt(weights)[:, None]
        product = scaled.T @ scaled
    return product


PRODUCTS = 4e9
"""Products of two numbers between two checks of the clock: some tenths of a second."""


def full_row_products(table: Array, scale: Vector | None, shift: Vector | None, check: Check) -> Array:
    """The inner products of full rows, which are changed: half of them at once where that is quick, else by blocks."""
    if shift is not None:
        table -= shift
    if scale is not None:
        table *= scale
    rows, width = table.shape
    size = max(1, int(PRODUCTS / max(1, rows * width)))
    if size >= rows:
        check()
        at_once: Array = table @ table.T
        return at_once
    found = np.empty((rows, rows))
    for first in range(0, rows, size):
        check()
        block = slice(first, first + size)
        found[first:, block] = table[first:] @ table[block].T
        found[block, first:] = found[first:, block].T
    return found


ENTRIES = 1 << 17
"""Entries of a dense block, which is held twice, once with weights."""


def blocks_of(active: Places, width: int) -> list[Places]:
    """Rows in blocks."""
    size = max(64, ENTRIES // max(1, width))
    return [active[first : first + size] for first in range(0, active.size, size)]
