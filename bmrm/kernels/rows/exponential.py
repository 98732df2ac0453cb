"""Exponentials of many numbers at once: vectorised, which a compiled loop around `math.exp` is not.

Nor is NumPy's on many machines, where it takes four times as long.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import strict_jit

LEAST, MOST = -709.0, 710.0
"""Arguments below the first give exp = 0, above the second inf."""
PER_LOG_2, LOG_2_HIGH, LOG_2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
ROUNDER = 6755399441055744.0
"""1.5 * 2^52: adding it leaves the nearest integer in the lowest bits."""
LARGEST = 1023.0
"""Largest exponent of a float64."""
BIAS, SHIFT = np.int64(1023), np.int64(52)
"""Bias and position of the exponent in the bits of a float64."""
RUN = 512
"""Numbers that stay in the L1 cache."""


@strict_jit
def exponentials(x, spare):  # type: ignore[no-untyped-def]
    """x = exp(x), to two units in the last place (above 709.4 to ten digits; 0 below -708.8). `spare` is overwritten.

    exp(x) = 2^n exp(r), n the integer nearest to x / log 2, so that |r| <= log(2) / 2: twelve terms of the series.
    """
    bits = spare.view(np.int64)
    for k in range(x.size):
        number = LEAST if x[k] < LEAST else (MOST if x[k] > MOST else x[k])
        n = (number * PER_LOG_2 + ROUNDER) - ROUNDER
        n = LARGEST if n > LARGEST else n
        spare[k] = n + ROUNDER
        r = (number - n * LOG_2_HIGH) - n * LOG_2_LOW
        tail = 1.0 / 39916800.0 + r * (1.0 / 479001600.0)
        tail = 1.0 / 362880.0 + r * (1.0 / 3628800.0 + r * tail)
        tail = 1.0 / 5040.0 + r * (1.0 / 40320.0 + r * tail)
        tail = 1.0 / 120.0 + r * (1.0 / 720.0 + r * tail)
        tail = 1.0 / 6.0 + r * (1.0 / 24.0 + r * tail)
        x[k] = 1.0 + r * (1.0 + r * (0.5 + r * tail))
    for k in range(x.size):
        bits[k] = (bits[k] + BIAS) << SHIFT
    for k in range(x.size):
        x[k] *= spare[k]


@strict_jit
def exponentiate(x):  # type: ignore[no-untyped-def]
    """x = exp(x), as `exponentials`, for a flat array of any length."""
    spare = np.empty(RUN)
    for start in range(0, x.size, RUN):
        part = x[start : start + RUN]
        exponentials(part, spare[: part.size])
