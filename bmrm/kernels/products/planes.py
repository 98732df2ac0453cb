"""Products of many dense rows with one vector, and combinations of few of them.

One thread: OpenBLAS starts its own for such products, which on a busy machine wait for one another (8 ms where one
thread takes 1.6). Four rows at a time, so that the vector is read once for four; rows of weight 0 are not read.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit

Floats = NDArray[np.float64]

CHUNK = 4096
"""Columns that `combine` finishes before it goes on: 32 KB, an L1 cache."""


@fast_jit
def products(rows: Floats, x: Floats, out: Floats) -> None:
    """out[i] = <rows[i], x>."""
    n = rows.shape[0]
    i = 0
    while i + 4 <= n:
        r0, r1, r2, r3 = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for k in range(x.size):
            a += r0[k] * x[k]
            b += r1[k] * x[k]
            c += r2[k] * x[k]
            d += r3[k] * x[k]
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
        i += 4
    while i < n:
        row = rows[i]
        a = 0.0
        for k in range(x.size):
            a += row[k] * x[k]
        out[i] = a
        i += 1


@fast_jit
def combine(alpha: Floats, rows: Floats, total: Floats) -> None:
    """total += alpha' rows."""
    used = np.empty(alpha.size, np.int64)
    n = 0
    for i in range(alpha.size):
        if alpha[i] != 0.0:
            used[n] = i
            n += 1
    for low in range(0, total.size, CHUNK):
        high = min(low + CHUNK, total.size)
        part = total[low:high]
        p = 0
        while p + 4 <= n:
            i, j, q, r = used[p], used[p + 1], used[p + 2], used[p + 3]
            r0, r1, r2, r3 = rows[i, low:high], rows[j, low:high], rows[q, low:high], rows[r, low:high]
            a, b, c, d = alpha[i], alpha[j], alpha[q], alpha[r]
            for k in range(high - low):
                part[k] += (a * r0[k] + b * r1[k]) + (c * r2[k] + d * r3[k])
            p += 4
        while p < n:
            row = rows[used[p], low:high]
            a = alpha[used[p]]
            for k in range(high - low):
                part[k] += a * row[k]
            p += 1
