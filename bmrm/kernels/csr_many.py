"""Products with sparse rows, several scores per row: `w` and `gradient` are (columns, K), scores (rows, K).

Conventions as in `csr`. `ones` is False where `values` is to be read; where it is True, every stored value is 1 and
`values` is a dummy.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import jit

U = np.uint64


@jit
def scores(indptr, indices, values, ones, w, offset, out):  # type: ignore[no-untyped-def]
    """out[i, k] = <row i, column k of w> + offset[k]."""
    width = out.shape[1]
    for i in range(out.shape[0]):
        for k in range(width):
            out[i, k] = offset[k]
        for p in range(U(indptr[i]), U(indptr[i + 1])):
            value = 1.0 if ones else np.float64(values[p])
            j = indices[p]
            for k in range(width):
                out[i, k] += value * w[j, k]


@jit
def active_rows(slope):  # type: ignore[no-untyped-def]
    """The rows where some slope is not 0, int64."""
    active, count = np.empty(slope.shape[0], np.int64), U(0)
    for i in range(slope.shape[0]):
        used = False
        for k in range(slope.shape[1]):
            used |= slope[i, k] != 0.0
        active[count] = i
        count += U(used)
    return active[:count]


@jit
def scatter(indptr, indices, values, ones, slope, gradient):  # type: ignore[no-untyped-def]
    """gradient[j, k] += the sum over rows i of slope[i, k] times entry j of row i; rows of slope 0 cost nothing."""
    active = active_rows(slope)
    width = slope.shape[1]
    columns, amounts = np.empty(width, np.int64), np.empty(width)
    for r in range(active.size):
        i = U(active[r])
        # Margin losses touch two classes of many: then only those columns are visited.
        used = U(0)
        for k in range(width):
            columns[used] = k
            amounts[used] = slope[i, k]
            used += U(slope[i, k] != 0.0)
        few = U(4) * used < U(width)
        for p in range(U(indptr[i]), U(indptr[i + U(1)])):
            value = 1.0 if ones else np.float64(values[p])
            j = indices[p]
            if few:
                for n in range(used):
                    gradient[j, U(columns[n])] += value * amounts[n]
            else:
                for k in range(width):
                    gradient[j, k] += value * slope[i, k]


@jit
def scatter_range(indptr, indices, values, ones, slope, active, cursor, stop, gradient):  # type: ignore[no-untyped-def]
    """As `scatter`, for the columns below `stop` that earlier calls have not done; `cursor` as in `csr`."""
    width = slope.shape[1]
    for r in range(active.size):
        i = U(active[r])
        p, end = U(cursor[r]), U(indptr[i + U(1)])
        while p < end and indices[p] < stop:
            value = 1.0 if ones else np.float64(values[p])
            j = indices[p]
            for k in range(width):
                gradient[j, k] += value * slope[i, k]
            p += U(1)
        cursor[r] = p
