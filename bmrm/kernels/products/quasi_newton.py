"""Products with the pairs of steps and gradient differences that a quasi-Newton method keeps.

Pairs lie in single precision, as rows of S and Y: a direction needs no more digits, and reading them is what it costs.
Sums are of double precision.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit, jit

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Indices = NDArray[np.int64]

CHUNK = 1024
"""Entries of a vector that stay in the L1 cache while all pairs are applied to them."""


def store_pair(s: Singles, y: Singles, step: Floats, after: Floats, before: Floats, length: float, t: float) -> None:
    """s = step / length and y = (after - before) / (t length): a pair for a step of length 1."""
    with np.errstate(over="ignore", invalid="ignore"):  # a pair that is not finite is not used
        np.multiply(step, 1.0 / length, out=s, casting="same_kind")
        np.multiply(after - before, 1.0 / (t * length), out=y, casting="same_kind")


@fast_jit
def pair_products(S: Singles, Y: Singles, count: int, newest: int, g: Floats, products: Floats) -> None:
    """products[i] = (S_i g, Y_i g, S_i y, Y_i y) for the first `count` pairs, y the row `newest` of Y."""
    products[:count] = 0.0
    for low in range(0, g.size, CHUNK):
        high = min(low + CHUNK, g.size)
        here, y = g[low:high], Y[newest, low:high]
        for k in range(count):
            one, other = S[k, low:high], Y[k, low:high]
            sg = yg = sy = yy = 0.0
            for i in range(high - low):
                a, b, x, z = np.float64(one[i]), np.float64(other[i]), here[i], np.float64(y[i])
                sg += a * x
                yg += b * x
                sy += a * z
                yy += b * z
            products[k, 0] += sg
            products[k, 1] += yg
            products[k, 2] += sy
            products[k, 3] += yy


@jit
def two_loops(order: Indices, products: Floats, sy: Floats, yy: Floats, along_s: Floats, along_y: Floats) -> float:
    """Liu & Nocedal's loops (1989, p. 507) by inner products: H g = share g - along_s S - along_y Y; returns share.

    `order` has the rows in use, the oldest first, products[i] = (S_i g, Y_i g, ..), sy[i, j] = S_i Y_j for i no newer
    than j, yy[i, j] = Y_i Y_j. Rows not in use get 0.
    """
    count = order.size
    newest = order[count - 1]
    share: float = sy[newest, newest] / yy[newest, newest]
    along_s[:] = 0.0
    along_y[:] = 0.0
    for k in range(count - 1, -1, -1):
        i = order[k]
        total = products[i, 0]
        for n in range(k + 1, count):
            total -= sy[i, order[n]] * along_y[order[n]]
        along_y[i] = total / sy[i, i]
    for k in range(count):
        i = order[k]
        total = products[i, 1]
        for n in range(count):
            total -= yy[i, order[n]] * along_y[order[n]]
        total *= share
        for n in range(k):
            total -= sy[order[n], i] * along_s[order[n]]
        along_s[i] = total / sy[i, i] - along_y[i]
    for i in order:
        along_y[i] *= share
    return share


@fast_jit
def combined(S: Singles, Y: Singles, along_s: Floats, along_y: Floats, share: float, g: Floats, out: Floats) -> float:
    """out = share g + the sum of along_s[k] S_k + along_y[k] Y_k; returns <out, g>."""
    total = 0.0
    for low in range(0, g.size, CHUNK):
        high = min(low + CHUNK, g.size)
        here, there = g[low:high], out[low:high]
        for i in range(high - low):
            there[i] = share * here[i]
        for k in range(along_s.size):
            a, b, one, other = along_s[k], along_y[k], S[k, low:high], Y[k, low:high]
            for i in range(high - low):
                there[i] += a * one[i] + b * other[i]
        for i in range(high - low):
            total += there[i] * here[i]
    return total
