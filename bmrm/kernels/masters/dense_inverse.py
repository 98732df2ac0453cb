"""The inverse of a small dense matrix whose rows and columns come and go one at a time.

The matrix M has a row per plane and a column per equation; X = M^-1 is kept in the leading part of a larger array.
Every change costs O(q^2) for q rows; rounding adds up, so the inverse is made anew now and then.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit

Floats = NDArray[np.float64]

REGULAR = 1e-13
"""Smallest pivot of a regular matrix whose entries are about 1."""


@fast_jit
def invert(M: Floats, q: int, X: Floats) -> bool:
    """X = M^-1 for the leading q x q parts, by Gauss and Jordan with row pivots; M is overwritten.

    Returns whether M is regular.
    """
    for i in range(q):
        X[i, :q] = 0.0
        X[i, i] = 1.0
    for c in range(q):
        pivot = c
        for i in range(c + 1, q):
            if abs(M[i, c]) > abs(M[pivot, c]):
                pivot = i
        if not abs(M[pivot, c]) > REGULAR:
            return False
        if pivot != c:
            for k in range(q):
                M[c, k], M[pivot, k] = M[pivot, k], M[c, k]
                X[c, k], X[pivot, k] = X[pivot, k], X[c, k]
        scale = 1.0 / M[c, c]
        row, out = M[c], X[c]
        for k in range(q):
            row[k] *= scale
            out[k] *= scale
        for i in range(q):
            factor = M[i, c]
            if i != c and factor != 0.0:
                other, result = M[i], X[i]
                for k in range(c, q):
                    other[k] -= factor * row[k]
                for k in range(q):
                    result[k] -= factor * out[k]
    return True


@fast_jit
def times(X: Floats, q: int, x: Floats, out: Floats) -> None:
    """out = X x."""
    for c in range(q):
        row = X[c]
        total = 0.0
        for t in range(q):
            total += row[t] * x[t]
        out[c] = total


@fast_jit
def add_times_transposed(X: Floats, low: int, high: int, x: Floats, q: int, out: Floats) -> None:
    """out += the sum over i in [low, high) of x[i - low] X[i]."""
    for i in range(low, high):
        factor = x[i - low]
        row = X[i]
        for t in range(q):
            out[t] += factor * row[t]


@fast_jit
def replace_row(X: Floats, q: int, y: Floats, r: int) -> None:
    """Row r of M becomes the one with y = that row times X."""
    pivot = 1.0 / y[r]
    for c in range(q):
        row = X[c]
        factor = row[r] * pivot
        for t in range(q):
            row[t] -= factor * y[t]
        row[r] = factor


@fast_jit
def replace_column(X: Floats, q: int, u: Floats, c: int) -> None:
    """Column c of M becomes the one with u = X times that column."""
    chosen = X[c]
    scale = 1.0 / u[c]
    for t in range(q):
        chosen[t] *= scale
    for k in range(q):
        factor = u[k]
        if k != c and factor != 0.0:
            row = X[k]
            for t in range(q):
                row[t] -= factor * chosen[t]


@fast_jit
def border(X: Floats, q: int, y: Floats, u: Floats, complement: float) -> None:
    """M gains a row with y = the row times X, a column with u = X times it, and the corner of that Schur complement."""
    scale = 1.0 / complement
    for c in range(q):
        row = X[c]
        factor = u[c] * scale
        for t in range(q):
            row[t] += factor * y[t]
        row[q] = -factor
    last = X[q]
    for t in range(q):
        last[t] = -y[t] * scale
    last[q] = scale


@fast_jit
def shrink(X: Floats, q: int, c: int, r: int) -> None:
    """M loses column c and row r; the last ones take their places. X[c, r] is not 0."""
    scale = 1.0 / X[c, r]
    gone = X[c]
    for k in range(q):
        if k != c:
            row = X[k]
            factor = row[r] * scale
            for t in range(q):
                row[t] -= factor * gone[t]
    last = q - 1
    if c != last:
        for k in range(q):
            X[c, k] = X[last, k]
    if r != last:
        for k in range(last):
            X[k, r] = X[k, last]
