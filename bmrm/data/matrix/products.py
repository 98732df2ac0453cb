"""Products of rows of features with weights and with slopes, for each way that features are stored.

Each class offers the same methods for rows [start, stop), and two for listed rows, which are read where they lie. `v`
is (features,) with one score per row and (features, K) with K, `offset` a number or (K,). Safe to call from several
threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products import csr, csr_many, dense, listed

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
NO_VALUES = np.ones(1)
Sweep = Callable[[int, int, Array], None]
"""Adds the features [first, stop) of X' slope to those of a gradient; `first` is where the last call stopped."""


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


def active_rows(slope: Array) -> Rows:
    """The rows of a slope, one number per row or several, that are not 0."""
    return csr.active_rows(slope) if slope.ndim == 1 else csr_many.active_rows(slope)


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
        indptr, active = self.indptr[start : stop + 1], csr.active_rows(slope)
        cursor = indptr[active]

        def add_until(first: int, stop: int, gradient: Array) -> None:
            here = (slope, active, cursor, stop, gradient)
            if self.values is None:
                csr.scatter_range_valueless(indptr, self.indices, *here)
            else:
                csr.scatter_range(indptr, self.indices, self.values, *here)

        return add_until

    def scores_of(self, rows: Rows, v: Array, offset: Any, out: Array) -> None:
        listed.csr_scores(*self._stored, rows, v, offset, out)

    def add_rmatvec_of(self, rows: Rows, active: Rows, slope: Array, gradient: Array) -> None:
        listed.csr_scatter(*self._stored, rows, active, slope, gradient)

    @property
    def _stored(self) -> tuple[Any, ...]:
        """As the kernels for listed rows take them."""
        ones = self.values is None
        return self.indptr, self.indices, NO_VALUES if ones else self.values, ones


class CsrManyProducts:
    """Sparse rows, several scores per row."""

    def __init__(self, indptr: Rows, indices: NDArray[np.uint32], values: NDArray[Any] | None) -> None:
        self.indptr = indptr
        self._stored = indices, NO_VALUES if values is None else values, values is None

    def scores(self, start: int, stop: int, v: Array, offset: Any, out: Array) -> None:
        csr_many.scores(self.indptr[start : stop + 1], *self._stored, v, offset, out)

    def add_rmatvec(self, start: int, stop: int, slope: Array, gradient: Array) -> None:
        indptr = self.indptr[start : stop + 1]
        active = csr_many.active_rows(slope)
        csr_many.scatter(indptr, *self._stored, slope, active, gradient)

    def sweep(self, start: int, stop: int, slope: Array) -> Sweep:
        indptr, active = self.indptr[start : stop + 1], csr_many.active_rows(slope)
        cursor = indptr[active]
        return lambda first, stop, gradient: csr_many.scatter_range(
            indptr, *self._stored, slope, active, cursor, stop, gradient
        )

    def scores_of(self, rows: Rows, v: Array, offset: Any, out: Array) -> None:
        listed.csr_many_scores(self.indptr, *self._stored, rows, v, offset, out)

    def add_rmatvec_of(self, rows: Rows, active: Rows, slope: Array, gradient: Array) -> None:
        listed.csr_many_scatter(self.indptr, *self._stored, rows, active, slope, gradient)


class DenseProducts:
    """Dense rows, one score per row."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X

    def scores(self, start: int, stop: int, v: Array, offset: Any, out: Array) -> None:
        dense.scores(self.X[start:stop], v, offset, out)

    def add_rmatvec(self, start: int, stop: int, slope: Array, gradient: Array) -> None:
        dense.scatter(self.X[start:stop], slope, csr.active_rows(slope), 0, gradient)

    def sweep(self, start: int, stop: int, slope: Array) -> Sweep:
        X, active = self.X[start:stop], csr.active_rows(slope)
        return lambda first, stop, gradient: dense.scatter(X, slope, active, first, gradient[first:stop])

    def scores_of(self, rows: Rows, v: Array, offset: Any, out: Array) -> None:
        listed.dense_scores(self.X, rows, v, offset, out)

    def add_rmatvec_of(self, rows: Rows, active: Rows, slope: Array, gradient: Array) -> None:
        listed.dense_scatter(self.X, rows, active, slope, gradient)


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
        def add_until(first: int, last: int, gradient: Array) -> None:
            X = self.X[start:stop, first:last]
            for rows in self._blocks(start, stop):
                gradient[first:last] += _float64(X[rows]).T @ slope[rows]

        return add_until

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


def _float64(X: NDArray[Any]) -> Array:
    return X.astype(np.float64, copy=False)
