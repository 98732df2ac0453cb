"""What the master of the elastic net does besides the simplex QP: its Gram matrix, and its dual on a line."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDS = 200
"""Most Newton steps and bisections of a search."""


@fast_jit
def change_gram(rows: Floats, first: int, n: int, columns: Ints, sign: Floats, G: Floats) -> None:
    """G += the sum over q of sign[q] c_q c_q' with c_q = rows[:, columns[q]], for the rows in [first, n).

    G stays symmetric to the last bit.
    """
    few = columns.size
    table = np.empty((few, n))
    for i in range(first, n):
        row = rows[i]
        for q in range(few):
            table[q, i] = row[columns[q]]
    for i in range(first, n):
        out = G[i]
        q = 0
        while q + 4 <= few:
            r0, r1, r2, r3 = table[q], table[q + 1], table[q + 2], table[q + 3]
            a, b, c, d = sign[q] * r0[i], sign[q + 1] * r1[i], sign[q + 2] * r2[i], sign[q + 3] * r3[i]
            for j in range(first, i + 1):
                out[j] += (a * r0[j] + b * r1[j]) + (c * r2[j] + d * r3[j])
            q += 4
        while q < few:
            r0 = table[q]
            a = sign[q] * r0[i]
            for j in range(first, i + 1):
                out[j] += a * r0[j]
            q += 1
    for i in range(first, n):
        for j in range(first, i):
            G[j, i] = G[i, j]


@fast_jit
def weights_of(pull: Floats, l1: float, l2: float, w: Floats) -> tuple[float, float]:
    """w = -soft(pull, l1) / l2, with soft(x, l1) = sign(x) max(|x| - l1, 0); returns ||w||_1 and ||w||^2."""
    absolute = 0.0
    square = 0.0
    for i in range(pull.size):
        x = pull[i]
        size = max(abs(x) - l1, 0.0) / l2
        absolute += size
        square += size * size
        w[i] = -size if x > l1 else size
    return absolute, square


@fast_jit
def slope_along(pull: Floats, step: Floats, l1: float, t: float) -> tuple[float, float]:
    """<soft(pull + t step, l1), step> and its derivative in t."""
    slope = 0.0
    curvature = 0.0
    for i in range(pull.size):
        s = step[i]
        x = pull[i] + t * s
        excess = max(abs(x) - l1, 0.0)
        slope += excess * (s if x > 0.0 else -s)
        curvature += s * s if excess > 0.0 else 0.0
    return slope, curvature


@fast_jit
def longest_rise(pull: Floats, step: Floats, l1: float, linear: float) -> float:
    """The t in [0, 1] at which linear t - 1/2 ||soft(pull + t step, l1)||^2 is largest.

    The derivative is piecewise linear and falls: Newton's steps, exact on the last piece, inside a bracket.
    """
    slope, curvature = slope_along(pull, step, l1, 1.0)
    if linear >= slope:
        return 1.0
    low, high = 0.0, 1.0
    t = 1.0
    for _ in range(ROUNDS):
        trial = t + (linear - slope) / curvature if curvature > 0.0 else 0.5 * (low + high)
        if not low < trial < high:
            trial = 0.5 * (low + high)
        if trial == t or not low < trial < high:
            return t
        t = trial
        slope, curvature = slope_along(pull, step, l1, t)
        if abs(linear - slope) <= 1e-15 * abs(linear):
            return t
        if linear > slope:
            low = t
        else:
            high = t
    return t
