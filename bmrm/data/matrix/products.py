"""Products of rows of features with weights and with slopes, for each way that features are stored.

Each class offers the same methods for rows [start, stop), and two for listed rows, which are read where they lie. `v`
is (features,) with one score per row and (features, K) with K, `offset` a number or (K,). Safe to call from several
threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products import csr, csr_many, dense, listed

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
NO_VALUES = np.ones(1)
PART = 4096
"""Rows that are read at once if they are not resident."""


class Products(Protocol):
    """What a map needs to know of the features."""

    def scores(self, start: int, stop: int, v: Array, offset: Any, out: Array) -> None:
        """Fill `out` with the scores of the rows."""
        ...

    def add_rmatvec(self, start: int, stop: int, slope: Array, gradient: Array) -> None:
        """Add X' slope of the rows to `gradient`, shaped like `v`; rows of slope 0 cost nothing."""
        ...

    def sweep(self, start: int, stop: int, slope: Array) -> Sweep:
        """X' slope of the rows, to be taken feature range by feature range."""
        ...

    def scores_of(self, rows: Rows, v: Array, offset: Any, out: Array) -> None:
        """Fill `out` with the scores of the listed rows, repetition allowed."""
        ...

    def add_rmatvec_of(self, rows: Rows, active: Rows, slope: Array, gradient: Array) -> None:
        """Add X' slope of the listed rows to `gradient`; `active` are the positions in `rows` whose slope is not 0."""
        ...


class Sweep(Protocol):
    """X' slope in pieces, from the first feature to the last."""

    def add_until(self, first: int, stop: int, gradient: Array) -> None:
        """Add the features [first, stop) to those of `gradient`; `first` is where the last call stopped."""
        ...


def active_rows(slope: Array) -> Rows:
    """The rows of a slope, one number per row or several, that are not 0."""
    return csr.active_rows(slope) if slope.ndim == 1 else csr_many.active_rows(slope)


class InParts(Protocol):
    """Rows that can be had part by part."""

    def part(self, start: int, stop: int) -> InParts: ...

    def select(self, rows: Rows) -> InParts: ...

    def products(self, scores_per_row: int) -> Products: ...


class PartProducts:
    """Rows that are read part by part; the one read last is kept, in each thread."""

    def __init__(self, features: InParts, scores_per_row: int) -> None:
        self._features, self._width = features, scores_per_row
        self._last = threading.local()

    def scores(self, start: int, stop: int, v: Array, offset: Any, out: Array) -> None:
        for a, b, part in self._parts(start, stop):
            part.scores(0, b - a, v, offset, out[a - start : b - start])

    def add_rmatvec(self, start: int, stop: int, slope: Array, gradient: Array) -> None:
        for a, b, part in self._parts(start, stop):
            part.add_rmatvec(0, b - a, slope[a - start : b - start], gradient)

    def sweep(self, start: int, stop: int, slope: Array) -> Sweep:
        return _PartSweep(self, start, stop, slope)

    def scores_of(self, rows: Rows, v: Array, offset: Any, out: Array) -> None:
        self._features.select(rows).products(self._width).scores(0, rows.size, v, offset, out)

    def add_rmatvec_of(self, rows: Rows, active: Rows, slope: Array, gradient: Array) -> None:
        self._features.select(rows).products(self._width).add_rmatvec(0, rows.size, slope, gradient)

    def _parts(self, start: int, stop: int) -> Iterator[tuple[int, int, Products]]:
        for first in range(start, stop, PART):
            span = first, min(first + PART, stop)
            if getattr(self._last, "span", None) != span:
                self._last.products = self._features.part(*span).products(self._width)
                self._last.span = span
            yield *span, self._last.products


class _PartSweep:
    """All at the first piece: rows are read once."""

    def __init__(self, products: PartProducts, start: int, stop: int, slope: Array) -> None:
        self._products, self._rows, self._slope = products, (start, stop), slope
        self._whole: Array | None = None

    def add_until(self, first: int, stop: int, gradient: Array) -> None:
        if self._whole is None:
            self._whole = np.zeros_like(gradient)
            self._products.add_rmatvec(*self._rows, self._slope, self._whole)
        gradient[first:stop] += self._whole[first:stop]


class CsrProducts:
    """Sparse rows, one score per row."""

    def __init__(self, indptr: Rows, indices: NDArray[np.uint32], values: NDArray[Any] | None) -> None:
        self.indptr, self.indices, self.values = indptr, indices, values

    def scores(self, start: int, stop: int, v: Array, offset: Any, out: Array) -> None:
        indptr = self.indptr[start : stop + 1]
        if self.values is None:
            csr.scores_valueless(indptr, self.indices, v, offset, out)
        else:
            csr.scores(indptr, self.indices, self.values, v, offset, out)

    def add_rmatvec(self, start: int, stop: int, slope: Array, gradient: Array) -> None:
        indptr = self.indptr[start : stop + 1]
        if self.values is None:
            csr.scatter_valueless(indptr, self.indices, slope, csr.active_rows(slope), gradient)
        else:
            csr.scatter(indptr, self.indices, self.values, slope, csr.active_rows(slope), gradient)

    def sweep(self, start: int, stop: int, slope: Array) -> Sweep:
        return _CsrSweep(self, self.indptr[start : stop + 1], slope)

    def scores_of(self, rows: Rows, v: Array, offset: Any, out: Array) -> None:
        listed.csr_scores(*self._stored, rows, v, offset, out)

    def add_rmatvec_of(self, rows: Rows, active: Rows, slope: Array, gradient: Array) -> None:
        listed.csr_scatter(*self._stored, rows, active, slope, gradient)

    @property
    def _stored(self) -> tuple[Any, ...]:
        """As the kernels for listed rows take them."""
        ones = self.values is None
        return self.indptr, self.indices, NO_VALUES if ones else self.values, ones


class _CsrSweep:
    def __init__(self, products: CsrProducts, indptr: Rows, slope: Array) -> None:
        self.products, self.indptr, self.slope = products, indptr, slope
        self.active = csr.active_rows(slope)
        self.cursor = indptr[self.active]

    def add_until(self, first: int, stop: int, gradient: Array) -> None:
        p = self.products
        here = (self.slope, self.active, self.cursor, stop, gradient)
        if p.values is None:
            csr.scatter_range_valueless(self.indptr, p.indices, *here)
        else:
            csr.scatter_range(self.indptr, p.indices, p.values, *here)


class CsrManyProducts:
    """Sparse rows, several scores per row."""

    def __init__(self, indptr: Rows, indices: NDArray[np.uint32], values: NDArray[Any] | None) -> None:
        self.indptr, self.indices = indptr, indices
        self.ones = values is None
        self.values = NO_VALUES if values is None else values

    def scores(self, start: int, stop: int, v: Array, offset: Any, out: Array) -> None:
        csr_many.scores(self.indptr[start : stop + 1], self.indices, self.values, self.ones, v, offset, out)

    def add_rmatvec(self, start: int, stop: int, slope: Array, gradient: Array) -> None:
        indptr = self.indptr[start : stop + 1]
        active = csr_many.active_rows(slope)
        csr_many.scatter(indptr, self.indices, self.values, self.ones, slope, active, gradient)

    def sweep(self, start: int, stop: int, slope: Array) -> Sweep:
        return _CsrManySweep(self, self.indptr[start : stop + 1], slope)

    def scores_of(self, rows: Rows, v: Array, offset: Any, out: Array) -> None:
        listed.csr_many_scores(self.indptr, self.indices, self.values, self.ones, rows, v, offset, out)

    def add_rmatvec_of(self, rows: Rows, active: Rows, slope: Array, gradient: Array) -> None:
        listed.csr_many_scatter(self.indptr, self.indices, self.values, self.ones, rows, active, slope, gradient)


class _CsrManySweep:
    def __init__(self, products: CsrManyProducts, indptr: Rows, slope: Array) -> None:
        self.products, self.indptr, self.slope = products, indptr, slope
        self.active = csr_many.active_rows(slope)
        self.cursor = indptr[self.active]

    def add_until(self, first: int, stop: int, gradient: Array) -> None:
        p = self.products
        csr_many.scatter_range(
            self.indptr, p.indices, p.values, p.ones, self.slope, self.active, self.cursor, stop, gradient
        )


class DenseProducts:
    """Dense rows, one score per row."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X

    def scores(self, start: int, stop: int, v: Array, offset: Any, out: Array) -> None:
        dense.scores(self.X[start:stop], v, offset, out)

    def add_rmatvec(self, start: int, stop: int, slope: Array, gradient: Array) -> None:
        dense.scatter(self.X[start:stop], slope, csr.active_rows(slope), 0, gradient)

    def sweep(self, start: int, stop: int, slope: Array) -> Sweep:
        return _DenseSweep(self.X[start:stop], slope)

    def scores_of(self, rows: Rows, v: Array, offset: Any, out: Array) -> None:
        listed.dense_scores(self.X, rows, v, offset, out)

    def add_rmatvec_of(self, rows: Rows, active: Rows, slope: Array, gradient: Array) -> None:
        listed.dense_scatter(self.X, rows, active, slope, gradient)


class _DenseSweep:
    def __init__(self, X: NDArray[Any], slope: Array) -> None:
        self.X, self.slope = X, slope
        self.active = csr.active_rows(slope)

    def add_until(self, first: int, stop: int, gradient: Array) -> None:
        dense.scatter(self.X, self.slope, self.active, first, gradient[first:stop])


class DenseManyProducts:
    """Dense rows, several scores per row: BLAS, on float64 copies of float32 chunks."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X

    def scores(self, start: int, stop: int, v: Array, offset: Any, out: Array) -> None:
        for rows in self._blocks(start, stop):
            np.matmul(_float64(self.X[start:stop][rows]), v, out=out[rows])
        if np.any(offset):
            out += offset

    def add_rmatvec(self, start: int, stop: int, slope: Array, gradient: Array) -> None:
        for rows in self._blocks(start, stop):
            gradient += _float64(self.X[start:stop][rows]).T @ slope[rows]

    def sweep(self, start: int, stop: int, slope: Array) -> Sweep:
        return _DenseManySweep(self, start, stop, slope)

    def scores_of(self, rows: Rows, v: Array, offset: Any, out: Array) -> None:
        np.matmul(_float64(self.X[rows]), v, out=out)  # BLAS wants them side by side
        out += offset

    def add_rmatvec_of(self, rows: Rows, active: Rows, slope: Array, gradient: Array) -> None:
        gradient += _float64(self.X[rows]).T @ slope

    def _blocks(self, start: int, stop: int) -> list[slice]:
        """Slices within the rows, short where the data have to be converted."""
        length = stop - start
        if self.X.dtype == np.float64:
            return [slice(0, length)]
        size = max(1, 2**17 // max(1, self.X.shape[1]))
        return [slice(first, min(first + size, length)) for first in range(0, length, size)]


class _DenseManySweep:
    def __init__(self, products: DenseManyProducts, start: int, stop: int, slope: Array) -> None:
        self.products, self.rows, self.slope = products, slice(start, stop), slope

    def add_until(self, first: int, stop: int, gradient: Array) -> None:
        X = self.products.X[self.rows, first:stop]
        for rows in self.products._blocks(self.rows.start, self.rows.stop):
            gradient[first:stop] += _float64(X[rows]).T @ self.slope[rows]


def _float64(X: NDArray[Any]) -> Array:
    return X.astype(np.float64, copy=False)
