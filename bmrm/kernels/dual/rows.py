"""One row of the data at a time, as dual coordinate ascent needs it: its product with the weights, and its addition.

A row's products come as a pair of functions: `gather` returns <row i, w>, `spread` adds a multiple of row i to v. With
an l1 norm the weights are w = soft(v, threshold), computed where they are used. `matrix` is `Rows`, (indptr, indices)
where every stored value is 1, or (X,) for dense rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit, inlined, jit
from bmrm.kernels.products.prefetch import prefetch

U = np.uint64
LINE = U(16)
"""Indices in a cache line, twice as many as values."""
HALF_LINE = U(8)
FAR = U(256)
"""Entries of a row that are asked for beforehand."""


class Rows(NamedTuple):
    """Sparse rows: `indptr` (rows + 1,), `indices` and `values` (entries,). Indices are uint32, see `products.csr`."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    values: NDArray[Any]


@inlined
def itself(v, threshold):  # type: ignore[no-untyped-def]
    """The weight without an l1 norm."""
    return v


@jit
def soft(v, threshold):  # type: ignore[no-untyped-def]
    """The weight with one."""
    return max(v - threshold, 0.0) + min(v + threshold, 0.0)


def gather(matrix, i, v, threshold):  # type: ignore[no-untyped-def]
    """A template over `weigh`: <row i, w>."""
    indptr, indices, values = matrix
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    p, end = U(indptr[i]), U(indptr[i + U(1)])
    while p + U(4) <= end:
        a += values[p] * weigh(v[indices[p]], threshold)  # type: ignore[name-defined]  # noqa: F821
        b += values[p + U(1)] * weigh(v[indices[p + U(1)]], threshold)  # type: ignore[name-defined]  # noqa: F821
        c += values[p + U(2)] * weigh(v[indices[p + U(2)]], threshold)  # type: ignore[name-defined]  # noqa: F821
        d += values[p + U(3)] * weigh(v[indices[p + U(3)]], threshold)  # type: ignore[name-defined]  # noqa: F821
        p += U(4)
    while p < end:
        a += values[p] * weigh(v[indices[p]], threshold)  # type: ignore[name-defined]  # noqa: F821
        p += U(1)
    return (a + b) + (c + d)


def gather_valueless(matrix, i, v, threshold):  # type: ignore[no-untyped-def]
    """As `gather`, where every stored value is 1."""
    indptr, indices = matrix
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    p, end = U(indptr[i]), U(indptr[i + U(1)])
    while p + U(4) <= end:
        a += weigh(v[indices[p]], threshold)  # type: ignore[name-defined]  # noqa: F821
        b += weigh(v[indices[p + U(1)]], threshold)  # type: ignore[name-defined]  # noqa: F821
        c += weigh(v[indices[p + U(2)]], threshold)  # type: ignore[name-defined]  # noqa: F821
        d += weigh(v[indices[p + U(3)]], threshold)  # type: ignore[name-defined]  # noqa: F821
        p += U(4)
    while p < end:
        a += weigh(v[indices[p]], threshold)  # type: ignore[name-defined]  # noqa: F821
        p += U(1)
    return (a + b) + (c + d)


def gather_dense(matrix, i, v, threshold):  # type: ignore[no-untyped-def]
    """As `gather`, for dense rows."""
    x, total = matrix[0][i], 0.0
    for j in range(v.size):
        total += x[j] * weigh(v[j], threshold)  # type: ignore[name-defined]  # noqa: F821
    return total


@jit
def spread(matrix, i, step, v):  # type: ignore[no-untyped-def]
    """v += step times row i."""
    indptr, indices, values = matrix
    p, end = U(indptr[i]), U(indptr[i + U(1)])
    # Two at a time, which the compiler may not do: only we know that the columns of a row differ.
    while p + U(2) <= end:
        j, k = indices[p], indices[p + U(1)]
        at_j, at_k = v[j] + step * values[p], v[k] + step * values[p + U(1)]
        v[j], v[k] = at_j, at_k
        p += U(2)
    if p < end:
        v[indices[p]] += step * values[p]


@jit
def spread_valueless(matrix, i, step, v):  # type: ignore[no-untyped-def]
    """As `spread`, where every stored value is 1."""
    indptr, indices = matrix
    p, end = U(indptr[i]), U(indptr[i + U(1)])
    while p + U(2) <= end:
        j, k = indices[p], indices[p + U(1)]
        at_j, at_k = v[j] + step, v[k] + step
        v[j], v[k] = at_j, at_k
        p += U(2)
    if p < end:
        v[indices[p]] += step


@fast_jit
def spread_dense(matrix, i, step, v):  # type: ignore[no-untyped-def]
    """As `spread`, for dense rows."""
    x = matrix[0][i]
    for j in range(v.size):
        v[j] += step * x[j]


@jit
def fetch(matrix, i):  # type: ignore[no-untyped-def]
    """Ask for row i, which comes soon; of a long row for the beginning, the processor then sees where it leads."""
    indptr, indices, values = matrix
    p, end = U(indptr[i]), U(indptr[i + U(1)])
    end = min(end, p + FAR)
    while p < end:
        prefetch(indices, p)
        prefetch(values, p)
        prefetch(values, p + HALF_LINE)
        p += LINE


@jit
def fetch_valueless(matrix, i):  # type: ignore[no-untyped-def]
    """As `fetch`, where every stored value is 1."""
    indptr, indices = matrix
    p, end = U(indptr[i]), U(indptr[i + U(1)])
    end = min(end, p + FAR)
    while p < end:
        prefetch(indices, p)
        p += LINE


@jit
def fetch_dense(matrix, i):  # type: ignore[no-untyped-def]
    """Dense rows are long: the processor sees where they lead."""
