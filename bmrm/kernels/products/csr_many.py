"""Products with sparse rows, several scores per row: `w` and `gradient` are (columns, K), scores (rows, K).

Conventions as in `csr`. `ones` is False where `values` is to be read; where it is True, every stored value is 1 and
`values` is a dummy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import jit

U = np.uint64
NARROW = U(12)
"""Scores per row up to which blocks of four scalars are faster than a vectorised loop."""


@jit
def scores(indptr, indices, values, ones, w, offset, out):  # type: ignore[no-untyped-def]
    """out[i, k] = <row i, column k of w> + offset[k]."""
    width = U(out.shape[1])
    fours = width - width % U(4) if width <= NARROW else U(0)
    for i in range(out.shape[0]):
        start, end = U(indptr[i]), U(indptr[i + 1])
        for k in range(U(0), fours, U(4)):
            a, b, c, d = offset[k], offset[k + U(1)], offset[k + U(2)], offset[k + U(3)]
            for p in range(start, end):
                value = 1.0 if ones else np.float64(values[p])
                j = indices[p]
                a += value * w[j, k]
                b += value * w[j, k + U(1)]
                c += value * w[j, k + U(2)]
                d += value * w[j, k + U(3)]
            out[i, k], out[i, k + U(1)], out[i, k + U(2)], out[i, k + U(3)] = a, b, c, d
        if width <= NARROW:
            for k in range(fours, width):
                a = offset[k]
                for p in range(start, end):
                    a += (1.0 if ones else np.float64(values[p])) * w[indices[p], k]
                out[i, k] = a
        else:
            for k in range(width):
                out[i, k] = offset[k]
            for p in range(start, end):
                value = 1.0 if ones else np.float64(values[p])
                j = indices[p]
                for k in range(width):
                    out[i, k] += value * w[j, k]


@jit
def _mark(slope, active):  # type: ignore[no-untyped-def]
    count = U(0)
    for i in range(slope.shape[0]):
        used = False
        for k in range(slope.shape[1]):
            used |= slope[i, k] != 0.0
        active[count] = i
        count += U(used)
    return count


def active_rows(slope: NDArray[np.float64]) -> NDArray[np.int64]:
    """The rows where some slope is not 0."""
    active = np.empty(slope.shape[0], np.int64)
    return active[: _mark(slope, active)]


@jit
def scatter(indptr, indices, values, ones, slope, active, gradient):  # type: ignore[no-untyped-def]
    """gradient[j, k] += the sum over rows i of `active` of slope[i, k] times entry j; slopes of 0 cost little."""
    width = U(slope.shape[1])
    fours = width - width % U(4)
    for r in range(active.size):
        i = U(active[r])
        start, end = U(indptr[i]), U(indptr[i + U(1)])
        used = U(0)
        for k in range(width):
            used += U(slope[i, k] != 0.0)
        if width > NARROW and U(4) * used > width:
            for p in range(start, end):
                value = 1.0 if ones else np.float64(values[p])
                j = indices[p]
                for k in range(width):
                    gradient[j, k] += value * slope[i, k]
            continue
        # Margin losses touch two classes of many: fours of zeros are skipped.
        for k in range(U(0), fours, U(4)):
            a, b, c, d = slope[i, k], slope[i, k + U(1)], slope[i, k + U(2)], slope[i, k + U(3)]
            if a == 0.0 and b == 0.0 and c == 0.0 and d == 0.0:
                continue
            for p in range(start, end):
                value = 1.0 if ones else np.float64(values[p])
                j = indices[p]
                at_a, at_b = gradient[j, k] + value * a, gradient[j, k + U(1)] + value * b
                at_c, at_d = gradient[j, k + U(2)] + value * c, gradient[j, k + U(3)] + value * d
                gradient[j, k], gradient[j, k + U(1)] = at_a, at_b
                gradient[j, k + U(2)], gradient[j, k + U(3)] = at_c, at_d
        for k in range(fours, width):
            a = slope[i, k]
            if a != 0.0:
                for p in range(start, end):
                    gradient[indices[p], k] += (1.0 if ones else np.float64(values[p])) * a


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
