"""Rows' matrices diag(c) - c c' / sum(c) of several scores: second derivatives of softmax, and at kinks of maxima."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit


@fast_jit
def multiply(c, f):  # type: ignore[no-untyped-def]
    """Replace each row of `f` by the matrix of the row of `c` times it; c, (rows, K), is not negative.

    That is c times the scores minus their mean. Both are taken relative to the score of the largest c, so that the
    product is exact to its last digits where that has nearly all.
    """
    width = f.shape[1]
    for i in range(f.shape[0]):
        mass, most, at = 0.0, -1.0, 0
        for k in range(width):
            part = c[i, k]
            mass += part
            if part > most:
                most, at = part, k
        origin, mean = f[i, at], 0.0
        for k in range(width):
            f[i, k] -= origin
            mean += c[i, k] * f[i, k]
        mean /= mass if mass > 0.0 else 1.0
        for k in range(width):
            f[i, k] = c[i, k] * (f[i, k] - mean)


@fast_jit
def diagonal(c):  # type: ignore[no-untyped-def]
    """Replace each c by the diagonal of its row's matrix, c times the share of the others."""
    width = c.shape[1]
    for i in range(c.shape[0]):
        mass = 0.0
        for k in range(width):
            mass += c[i, k]
        share = 1.0 / mass if mass > 0.0 else 0.0
        for k in range(width):
            c[i, k] *= (mass - c[i, k]) * share


def total(c: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of the rows' matrices, (K, K).

    Its rows add up to 0: so the diagonal keeps the digits that sum(c) - sum(c^2) would lose where one c has nearly all.
    """
    masses = c.sum(axis=1, keepdims=True)
    scaled = c / np.sqrt(np.where(masses > 0.0, masses, 1.0))
    found = -(scaled.T @ scaled)
    np.fill_diagonal(found, 0.0)
    np.fill_diagonal(found, -found.sum(axis=1))
    return np.asarray(found)
