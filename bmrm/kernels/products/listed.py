"""Products with listed rows, which are read where they lie: row `rows[r]` of the data is row r of scores and slopes.

Conventions as in `csr`, `csr_many` and `dense`, and `ones` as in `csr_many`; `active` are the positions in `rows` of
slopes other than 0. A row may be listed more than once.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import fast_jit, jit

U = np.uint64
"""Type of indices: signed ones would cost a check for negative values in the loop."""


@jit
def csr_scores(indptr, indices, values, ones, rows, w, offset, out):  # type: ignore[no-untyped-def]
    """out[r] = <row rows[r], w> + offset."""
    for r in range(rows.size):
        i = U(rows[r])
        a, b, c, d = offset, 0.0, 0.0, 0.0
        p, end = U(indptr[i]), U(indptr[i + U(1)])
        if ones:
            while p + U(4) <= end:
                a += w[indices[p]]
                b += w[indices[p + U(1)]]
                c += w[indices[p + U(2)]]
                d += w[indices[p + U(3)]]
                p += U(4)
            while p < end:
                a += w[indices[p]]
                p += U(1)
        else:
            while p + U(4) <= end:
                a += values[p] * w[indices[p]]
                b += values[p + U(1)] * w[indices[p + U(1)]]
                c += values[p + U(2)] * w[indices[p + U(2)]]
                d += values[p + U(3)] * w[indices[p + U(3)]]
                p += U(4)
            while p < end:
                a += values[p] * w[indices[p]]
                p += U(1)
        out[r] = (a + b) + (c + d)


@jit
def csr_scatter(indptr, indices, values, ones, rows, active, slope, gradient):  # type: ignore[no-untyped-def]
    """gradient += the sum over positions r of `active` of slope[r] times row rows[r]."""
    for r in active:
        i, s = U(rows[U(r)]), slope[U(r)]
        p, end = U(indptr[i]), U(indptr[i + U(1)])
        # Two at a time, which the compiler may not do: only we know that the columns of a row differ.
        while p + U(2) <= end:
            j, k = indices[p], indices[p + U(1)]
            one = s if ones else s * values[p]
            other = s if ones else s * values[p + U(1)]
            at_j, at_k = gradient[j] + one, gradient[k] + other
            gradient[j], gradient[k] = at_j, at_k
            p += U(2)
        if p < end:
            gradient[indices[p]] += s if ones else s * values[p]


@jit
def csr_many_scores(indptr, indices, values, ones, rows, w, offset, out):  # type: ignore[no-untyped-def]
    """out[r, k] = <row rows[r], column k of w> + offset[k]."""
    width = U(out.shape[1])
    for r in range(rows.size):
        i = U(rows[r])
        for k in range(width):
            out[r, k] = offset[k]
        for p in range(U(indptr[i]), U(indptr[i + U(1)])):
            value = 1.0 if ones else np.float64(values[p])
            j = indices[p]
            for k in range(width):
                out[r, k] += value * w[j, k]


@jit
def csr_many_scatter(indptr, indices, values, ones, rows, active, slope, gradient):  # type: ignore[no-untyped-def]
    """gradient[j, k] += the sum over positions r of `active` of slope[r, k] times entry j of row rows[r]."""
    width = U(slope.shape[1])
    for r in active:
        i = U(rows[U(r)])
        for k in range(width):
            s = slope[U(r), k]
            if s != 0.0:
                for p in range(U(indptr[i]), U(indptr[i + U(1)])):
                    gradient[indices[p], k] += (1.0 if ones else np.float64(values[p])) * s


@fast_jit
def dense_scores(X, rows, w, offset, out):  # type: ignore[no-untyped-def]
    """out[r] = <row rows[r], w> + offset."""
    for r in range(rows.size):
        i, total = U(rows[r]), 0.0
        for j in range(w.size):
            total += X[i, j] * w[j]
        out[r] = total + offset


@fast_jit
def dense_scatter(X, rows, active, slope, gradient):  # type: ignore[no-untyped-def]
    """gradient += the sum over positions r of `active` of slope[r] times row rows[r]."""
    for r in active:
        i, s = U(rows[U(r)]), slope[U(r)]
        for j in range(gradient.size):
            gradient[j] += s * X[i, j]
