"""Products of rows of features with weights and with slopes, for each way that features are stored.

Each class offers the same methods for rows [start, stop), and two for listed rows, which are read where they lie. `v`
is (features,) with one score per row and (features, K) with K, `offset` a number or (K,). Safe to call from several
threads.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Csr, Matrix
from bmrm.kernels.products import csr, csr_many, dense, listed

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
NO_VALUES = np.ones(1)


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


def products_of(X: Matrix, scores_per_row: int) -> Products:
    """The products for this kind of matrix and number of scores."""
    if isinstance(X, Csr):
        return CsrProducts(X) if scores_per_row == 1 else CsrManyProducts(X)
    return DenseProducts(X) if scores_per_row == 1 else DenseManyProducts(X)


class CsrProducts:
    """Sparse rows, one score per row."""

    def __init__(self, X: Csr) -> None:
        self.indptr = X.indptr
        self.indices = X.indices.view(np.uint32)
        self.values = X.values

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

    def __init__(self, X: Csr) -> None:
        self.indptr = X.indptr
        self.indices = X.indices.view(np.uint32)
        self.ones = X.values is None
        self.values = NO_VALUES if X.values is None else X.values

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
