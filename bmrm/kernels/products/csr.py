"""Products with sparse rows, one score per row.

Indices come as uint32 views and positions are uint64: a signed index costs a sign extension and a wrap-around check,
two to three times the loop. Four accumulators hide the latency of the additions. Plain `jit`, since the vectorised
gathers that `fast_jit` allows are slower. Sums are float64 whatever the values are.

`indptr` has one entry more than there are rows; its entries are positions in the whole of `indices` and `values`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import jit
from bmrm.kernels.products.prefetch import prefetch

U = np.uint64
"""Type of positions. What is added to them must have it too: uint64 + int64 would be float64."""
AHEAD = U(128)
"""Entries between the one in use and the one that is prefetched."""
WIDE = 1 << 14
"""Weights beyond which they compete with the entries for the cache, so that prefetching pays."""


@jit
def scores(indptr, indices, values, w, offset, out):  # type: ignore[no-untyped-def]
    """out[i] = <row i, w> + offset."""
    wide = w.size > WIDE
    for i in range(out.size):
        a, b, c, d = offset, 0.0, 0.0, 0.0
        p, end = U(indptr[i]), U(indptr[i + 1])
        while p + U(4) <= end:
            if wide:
                prefetch(values, p + AHEAD)
                prefetch(indices, p + AHEAD)
            a += values[p] * w[indices[p]]
            b += values[p + U(1)] * w[indices[p + U(1)]]
            c += values[p + U(2)] * w[indices[p + U(2)]]
            d += values[p + U(3)] * w[indices[p + U(3)]]
            p += U(4)
        while p < end:
            a += values[p] * w[indices[p]]
            p += U(1)
        out[i] = (a + b) + (c + d)


@jit
def scores_valueless(indptr, indices, w, offset, out):  # type: ignore[no-untyped-def]
    """As `scores`, where every stored value is 1."""
    wide = w.size > WIDE
    for i in range(out.size):
        a, b, c, d = offset, 0.0, 0.0, 0.0
        p, end = U(indptr[i]), U(indptr[i + 1])
        while p + U(4) <= end:
            if wide:
                prefetch(indices, p + AHEAD)
            a += w[indices[p]]
            b += w[indices[p + U(1)]]
            c += w[indices[p + U(2)]]
            d += w[indices[p + U(3)]]
            p += U(4)
        while p < end:
            a += w[indices[p]]
            p += U(1)
        out[i] = (a + b) + (c + d)


def active_rows(slope: NDArray[np.float64]) -> NDArray[np.int64]:
    """The positions where `slope` is not 0."""
    active: NDArray[np.int64] = (slope != 0.0).nonzero()[0]
    return active


@jit
def scatter(indptr, indices, values, slope, active, gradient):  # type: ignore[no-untyped-def]
    """gradient += the sum over rows i of `active` of slope[i] times row i."""
    for r in range(active.size):
        i = U(active[r])
        s = slope[i]
        p, end = U(indptr[i]), U(indptr[i + U(1)])
        # Two at a time, which the compiler may not do: only we know that the columns of a row differ.
        while p + U(2) <= end:
            j, k = indices[p], indices[p + U(1)]
            at_j, at_k = gradient[j] + s * values[p], gradient[k] + s * values[p + U(1)]
            gradient[j], gradient[k] = at_j, at_k
            p += U(2)
        if p < end:
            gradient[indices[p]] += s * values[p]


@jit
def scatter_valueless(indptr, indices, slope, active, gradient):  # type: ignore[no-untyped-def]
    """As `scatter`, where every stored value is 1."""
    for r in range(active.size):
        i = U(active[r])
        s = slope[i]
        p, end = U(indptr[i]), U(indptr[i + U(1)])
        while p + U(2) <= end:
            j, k = indices[p], indices[p + U(1)]
            at_j, at_k = gradient[j] + s, gradient[k] + s
            gradient[j], gradient[k] = at_j, at_k
            p += U(2)
        if p < end:
            gradient[indices[p]] += s


@jit
def scatter_range(indptr, indices, values, slope, active, cursor, stop, gradient):  # type: ignore[no-untyped-def]
    """As `scatter`, for the columns below `stop` that earlier calls have not done.

    `active` lists the rows to visit; `cursor` holds for each the position reached, `indptr` of the row at first, and
    moves on.
    """
    for k in range(active.size):
        i = U(active[k])
        s = slope[i]
        p, end = U(cursor[k]), U(indptr[i + U(1)])
        while p < end and indices[p] < stop:
            gradient[indices[p]] += s * values[p]
            p += U(1)
        cursor[k] = p


@jit
def scatter_range_valueless(indptr, indices, slope, active, cursor, stop, gradient):  # type: ignore[no-untyped-def]
    """As `scatter_range`, where every stored value is 1."""
    for k in range(active.size):
        i = U(active[k])
        s = slope[i]
        p, end = U(cursor[k]), U(indptr[i + U(1)])
        while p < end and indices[p] < stop:
            gradient[indices[p]] += s
            p += U(1)
        cursor[k] = p
