"""One step of the pivoted Cholesky factor of a kernel matrix, stored by pivot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit

Floats = NDArray[np.float64]

CHUNK = 2048
"""Rows that are finished before the next ones: 16 KB, so that the new column stays in an L1 cache."""


@fast_jit
def advance(factor: Floats, count: int, column: Floats, pivot: Floats, root: float, left: Floats) -> None:
    """Fill factor[count] with (column - sum_i pivot[i] factor[i]) / root, and take its squares from `left`.

    `column` is the kernel with the pivot, `pivot` its row of the factor so far, `left` what is left of the diagonal.
    """
    rows = column.size
    for start in range(0, rows, CHUNK):
        stop = min(start + CHUNK, rows)
        out = factor[count, start:stop]
        for k in range(out.size):
            out[k] = column[start + k]
        i = 0
        while i + 4 <= count:
            a, b, c, d = pivot[i], pivot[i + 1], pivot[i + 2], pivot[i + 3]
            r0, r1 = factor[i, start:stop], factor[i + 1, start:stop]
            r2, r3 = factor[i + 2, start:stop], factor[i + 3, start:stop]
            for k in range(out.size):
                out[k] -= a * r0[k] + b * r1[k] + c * r2[k] + d * r3[k]
            i += 4
        while i < count:
            a, row = pivot[i], factor[i, start:stop]
            for k in range(out.size):
                out[k] -= a * row[k]
            i += 1
        for k in range(out.size):
            value = out[k] / root
            out[k] = value
            left[start + k] = max(0.0, left[start + k] - value * value)
