"""The minimum of a quadratic with a norm over one block of coordinates, exactly.

In the eigenbasis of the block's own Gram matrix only the length of the solution is unknown (Yang & Hastie 2024,
adelie; Puig, Wiesel & Hero 2009).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blocks.separable import block_length
from bmrm.kernels.jit import fast_jit, jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROOTS = 60
"""Most Newton steps for the length of a block; they rise to it, about five times."""
LAZY = 0.3
"""A block that is nearer to optimal than this share of the goal is left as it is."""
FAR = 1e100
"""Strengths and slopes beyond it, or below its inverse, have squares that tell nothing."""


class BlockGrams(NamedTuple):
    """Of each block the Gram matrix of its columns, where it is kept, its largest eigenvalue, and its eigenbasis.

    Attributes
    ----------
    starts : (blocks + 1,); the Gram matrix of block b is `values[starts[b] : starts[b + 1]]`, row by row, or nothing.
    values : of all.
    largest : (blocks,) > 0, upper bounds of the largest eigenvalues.
    vectors : (as `values`), row i of a block its i-th eigenvector.
    eigenvalues : (columns,), in the order of `coordinates`; > 0, and 0 where a block is not decomposed.
    """

    starts: Ints
    values: Floats
    largest: Floats
    vectors: Floats
    eigenvalues: Floats


@jit
def length_of(beta, values, first, last, strength, extra, h):  # type: ignore[no-untyped-def]
    """The h > 0 where x = (D + extra + strength / h)^-1 beta has the length h; ||beta|| is beyond the strength.

    There psi(h) = (sum beta_i^2 / ((D_i + extra) h + strength)^2)^-1/2 is 1. As a mean of functions that are linear,
    of exponent -2, psi is concave, so that Newton's steps rise to it, the first one apart.
    """
    for _ in range(ROOTS):
        total, slope = 0.0, 0.0
        for p in range(first, last):
            curvature = values[p] + extra
            part = beta[p] / (curvature * h + strength)
            total += part * part
            slope += part * part * curvature / (curvature * h + strength)
        if not slope > 0.0:
            break
        size = math.sqrt(total)
        after = max(0.0, h + (size - 1.0) * total / slope)
        done = abs(after - h) <= 1e-15 * after
        h = after
        if done:
            break
    return h


@fast_jit
def products(vectors, base, first, last, x, out):  # type: ignore[no-untyped-def]
    """out[first + i] = the product of the i-th vector of a block with x, which is in the order of positions."""
    size = last - first
    for i in range(size):
        total = 0.0
        for p in range(size):
            total += vectors[base + i * size + p] * x[first + p]
        out[first + i] = total


@fast_jit
def combination(vectors, base, first, last, shares, out):  # type: ignore[no-untyped-def]
    """out[first + p] = the p-th number of the sum of the vectors of a block times their shares."""
    size = last - first
    out[first:last] = 0.0
    for i in range(size):
        share = shares[first + i]
        for p in range(size):
            out[first + p] += share * vectors[base + i * size + p]


@jit
def has_minimum(block, grams, penalty):  # type: ignore[no-untyped-def]
    """Whether `group_minimum` serves a block: several coordinates, a norm, no l1, l2 around 0, and decomposed."""
    starts, coordinates, strengths, l1, l2, center = penalty[:6]
    first, last = starts[block], starts[block + 1]
    if last - first < 2 or not 1.0 / FAR < strengths[block] < FAR or not grams.eigenvalues[first] > 0.0:
        return False
    for p in range(first, last):
        j = coordinates[p]
        if l1[j] > 0.0 or (l2[j] > 0.0 and center[j] != 0.0):
            return False
    return True


@jit
def is_alone(grams, base, size, place):  # type: ignore[no-untyped-def]
    """Whether a column is orthogonal to all others of its block, as one without entries is."""
    alone = True
    for q in range(size):
        alone &= q == place or grams.values[base + place * size + q] == 0.0
    return alone


@jit
def group_minimum(block, w, slope, grams, penalty, v, at, beta):  # type: ignore[no-untyped-def]
    """at_b = argmin over x_b of <slope_b, x_b - w_b> + 1/2 <x_b - w_b, G (x_b - w_b)> + the norm, and l2; no l1.

    Vectors are whole; v, `at` and beta for work, at other places, too. Returns a lower bound of the decrease, which is
    1/2 <x_b - w_b, G (x_b - w_b)>; -1 where numbers are so large that nothing was done.
    """
    starts, coordinates, strengths, _, l2 = penalty[:5]
    first, last, base = starts[block], starts[block + 1], grams.starts[block]
    strength, extra, square, fallen = strengths[block], l2[coordinates[first]], 0.0, 0.0
    for p in range(first, last):
        v[p] = slope[coordinates[p]]
    products(grams.vectors, base, first, last, v, at)
    for p in range(first, last):
        v[p] = w[coordinates[p]]
    products(grams.vectors, base, first, last, v, beta)
    for p in range(first, last):
        v[p] = beta[p]
        beta[p] = grams.eigenvalues[p] * beta[p] - at[p]
        square += beta[p] * beta[p]
    if not square < FAR * FAR:
        return -1.0
    if square <= strength * strength:
        for p in range(first, last):
            fallen += 0.5 * grams.eigenvalues[p] * v[p] * v[p]
            at[coordinates[p]] = 0.0
        return fallen
    h = length_of(beta, grams.eigenvalues, first, last, strength, extra, block_length(block, w, penalty))
    for p in range(first, last):
        beta[p] *= h / ((grams.eigenvalues[p] + extra) * h + strength)
        fallen += 0.5 * grams.eigenvalues[p] * (beta[p] - v[p]) * (beta[p] - v[p])
    combination(grams.vectors, base, first, last, beta, v)
    for p in range(first, last):
        k = coordinates[p]
        rests = w[k] == 0.0 and slope[k] == 0.0 and is_alone(grams, base, last - first, p - first)
        at[k] = 0.0 if rests else v[p]
    return fallen
