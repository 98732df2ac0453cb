"""Sums over the points of a line w + t step, without the points themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit

Floats = NDArray[np.float64]

CHUNK = 2048
"""Entries of both vectors that stay in the L1 cache while all t are served."""


@fast_jit
def absolute_line(w: Floats, step: Floats, t: Floats, values: Floats, slopes: Floats) -> None:
    """values[k] = ||w + t[k] step||_1 and slopes[k] its derivative in t, where an entry that is 0 counts 0."""
    values[:] = 0.0
    slopes[:] = 0.0
    for low in range(0, w.size, CHUNK):
        high = min(low + CHUNK, w.size)
        x, s = w[low:high], step[low:high]
        for k in range(t.size):
            at = t[k]
            total = 0.0
            slope = 0.0
            for i in range(high - low):
                point = x[i] + at * s[i]
                total += abs(point)
                slope += s[i] if point > 0.0 else (-s[i] if point < 0.0 else 0.0)
            values[k] += total
            slopes[k] += slope
