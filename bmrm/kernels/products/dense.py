"""Products with dense rows, one score per row; sums are float64 for float32 data too.

Compiled loops and no BLAS: its threads would compete with ours, and it would sum float32 data in float32.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import fast_jit

U = np.uint64
"""Type of indices: signed ones would cost a check for negative values in the loop."""


@fast_jit
def scores(X, w, offset, out):  # type: ignore[no-untyped-def]
    """out[i] = <row i, w> + offset."""
    for i in range(out.size):
        total = 0.0
        for j in range(w.size):
            total += X[i, j] * w[j]
        out[i] = total + offset


@fast_jit
def scatter(X, slope, active, first, gradient):  # type: ignore[no-untyped-def]
    """gradient[j] += the sum over rows i of `active` of slope[i] X[i, first + j]."""
    count, width = active.size, gradient.size
    four = count - count % 4
    for k in range(0, four, 4):
        a, b, c, d = U(active[k]), U(active[k + 1]), U(active[k + 2]), U(active[k + 3])
        r, s, t, u = slope[a], slope[b], slope[c], slope[d]
        for j in range(width):
            at = U(first) + U(j)
            gradient[j] += (r * X[a, at] + s * X[b, at]) + (t * X[c, at] + u * X[d, at])
    for k in range(four, count):
        a = U(active[k])
        s = slope[a]
        for j in range(width):
            gradient[j] += s * X[a, U(first) + U(j)]
