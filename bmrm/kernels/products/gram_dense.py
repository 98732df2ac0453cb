"""X' diag(weights) X for dense rows of few features, as the lower triangle, with the weighted sums of the columns.

A hundred rows are turned into columns in the cache, where two columns at a time are multiplied with two others: BLAS
has no good kernel for matrices so narrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit

Array = NDArray[np.float64]

ROWS = 128


def add_gram(X: Any, weights: Array, rows: NDArray[np.int64], out: Array, sums: Array) -> None:
    """Of `rows`, add products of columns to the lower triangle of `out`, and the sums of columns to `sums`."""
    room = np.zeros((X.shape[1] + 1, ROWS)), np.empty((3, ROWS))  # one column more: pairs come out even
    _add_gram(X, weights, rows, *room, out, sums)


@fast_jit
def _add_gram(X, weights, rows, table, scaled, out, sums):  # type: ignore[no-untyped-def]
    width = X.shape[1]
    p, q, weight = scaled[0], scaled[1], scaled[2]
    for first in range(0, rows.size, ROWS):
        count = min(ROWS, rows.size - first)
        for r in range(count):
            i = rows[first + r]
            weight[r] = weights[i]
            for j in range(width):
                table[j, r] = X[i, j]
        for i in range(0, width, 2):
            pair, in_p, in_q = i + 1 < width, 0.0, 0.0
            for r in range(count):
                p[r], q[r] = weight[r] * table[i, r], weight[r] * table[i + 1, r]
                in_p += p[r]
                in_q += q[r]
            sums[i] += in_p
            if pair:
                sums[i + 1] += in_q
            for j in range(0, i + 1, 2):
                a, b, c, d = 0.0, 0.0, 0.0, 0.0
                for r in range(count):
                    a += p[r] * table[j, r]
                    b += p[r] * table[j + 1, r]
                    c += q[r] * table[j, r]
                    d += q[r] * table[j + 1, r]
                out[i, j] += a
                if j < i:
                    out[i, j + 1] += b
                if pair:
                    out[i + 1, j] += c
                    out[i + 1, j + 1] += d
