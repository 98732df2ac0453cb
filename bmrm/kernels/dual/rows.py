"""One row of the data at a time, as dual coordinate ascent needs it: its product with the weights, and its addition.

A row is read through three functions: `span(matrix, i)`, the positions of its entries, and `column(matrix, p)` and
`entry(matrix, i, p)` for each of them. For one score `gather` returns <row i, w>, and `spread` adds a multiple of row i
to v. With an l1 norm the weights are w = soft(v, threshold), computed where they are used. `matrix` is `Rows`, (indptr,
indices) where every stored value is 1, or (X,) for dense rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit, inlined, jit
from bmrm.kernels.products.prefetch import prefetch

U = np.uint64
LINE = U(16)
"""Indices in a cache line; a line has half as many values."""
HALF_LINE = U(8)
FAR = U(256)
"""Most entries of a row that are prefetched."""


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


@inlined
def span(matrix, i):  # type: ignore[no-untyped-def]
    """The positions of a sparse row."""
    return U(matrix[0][i]), U(matrix[0][i + U(1)])


@inlined
def span_dense(matrix, i):  # type: ignore[no-untyped-def]
    """The positions of a dense row."""
    return U(0), U(matrix[0].shape[1])


@inlined
def column(matrix, p):  # type: ignore[no-untyped-def]
    """The column of a sparse row's position."""
    return matrix[1][p]


@inlined
def column_dense(matrix, p):  # type: ignore[no-untyped-def]
    """The column of a dense row's position."""
    return p


@inlined
def entry(matrix, i, p):  # type: ignore[no-untyped-def]
    """The value at a sparse row's position."""
    return float(matrix[2][p])


@inlined
def entry_valueless(matrix, i, p):  # type: ignore[no-untyped-def]
    """The value where all are 1."""
    return 1.0


@inlined
def entry_dense(matrix, i, p):  # type: ignore[no-untyped-def]
    """The value at a dense row's position."""
    return float(matrix[0][i, p])


def gather(matrix, i, v, threshold):  # type: ignore[no-untyped-def]
    """A template over `weigh`, `span`, `column` and `entry`: <row i, w>, of a sparse row."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    p, end = span(matrix, i)
    while p + U(4) <= end:
        q, r, s = p + U(1), p + U(2), p + U(3)
        a += entry(matrix, i, p) * weigh(v[column(matrix, p)], threshold)  # type: ignore[name-defined]  # noqa: F821
        b += entry(matrix, i, q) * weigh(v[column(matrix, q)], threshold)  # type: ignore[name-defined]  # noqa: F821
        c += entry(matrix, i, r) * weigh(v[column(matrix, r)], threshold)  # type: ignore[name-defined]  # noqa: F821
        d += entry(matrix, i, s) * weigh(v[column(matrix, s)], threshold)  # type: ignore[name-defined]  # noqa: F821
        p += U(4)
    while p < end:
        a += entry(matrix, i, p) * weigh(v[column(matrix, p)], threshold)  # type: ignore[name-defined]  # noqa: F821
        p += U(1)
    return (a + b) + (c + d)


def gather_dense(matrix, i, v, threshold):  # type: ignore[no-untyped-def]
    """As `gather`, for dense rows."""
    x, total = matrix[0][i], 0.0
    for j in range(v.size):
        total += x[j] * weigh(v[j], threshold)  # type: ignore[name-defined]  # noqa: F821
    return total


def spread(matrix, i, step, v):  # type: ignore[no-untyped-def]
    """A template over `span`, `column` and `entry`: v += step times row i, a sparse one."""
    p, end = span(matrix, i)
    # Two at a time, which the compiler may not do: only we know that the columns of a row differ.
    while p + U(2) <= end:
        j, k = column(matrix, p), column(matrix, p + U(1))
        at_j, at_k = v[j] + step * entry(matrix, i, p), v[k] + step * entry(matrix, i, p + U(1))
        v[j], v[k] = at_j, at_k
        p += U(2)
    if p < end:
        v[column(matrix, p)] += step * entry(matrix, i, p)


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
