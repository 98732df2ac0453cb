"""Arrays as kernels want them, and sums without the threads that BLAS would start."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit

Array = NDArray[np.float64]


@fast_jit
def inner(a, b):  # type: ignore[no-untyped-def]
    """`dot` of vectors, for use in kernels."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@fast_jit
def _column_sums(table, out):  # type: ignore[no-untyped-def]
    for i in range(table.shape[0]):
        for k in range(table.shape[1]):
            out[k] += table[i, k]


@fast_jit
def _column_sizes(table, out):  # type: ignore[no-untyped-def]
    for i in range(table.shape[0]):
        for k in range(table.shape[1]):
            out[k] += abs(table[i, k])


def column_sizes(table: Array) -> Array:
    """The sum of absolute values over axis 0 of a vector or a matrix."""
    if table.ndim == 1:
        return np.asarray(np.abs(table).sum())
    out = np.zeros(table.shape[1])
    _column_sizes(plain(table), out)
    return out


def column_sums(table: Array) -> Array:
    """The sum over axis 0 of a vector or a matrix; faster than NumPy's for few columns. It may overflow."""
    if table.ndim == 1:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(table.sum())
    out = np.zeros(table.shape[1])
    _column_sums(plain(table), out)
    return out


def dot(a: Array, b: Array) -> float:
    """The sum of products of two float64 arrays of one shape."""
    return float(inner(a.ravel(), b.ravel()))


def norm(a: Array) -> float:
    """The Euclidean norm; inf, without a warning, where it overflows."""
    return math.sqrt(dot(a, a))


def careful_norm(a: Array) -> float:
    """The Euclidean norm, also where squares overflow or vanish."""
    length = norm(a)
    if 1e-140 < length < math.inf:
        return length
    largest = float(np.abs(a).max(initial=0.0))
    return largest * norm(a / largest) if 0.0 < largest < math.inf else largest


@fast_jit
def _sizes(a, w):  # type: ignore[no-untyped-def]
    product, size, square = 0.0, 0.0, 0.0
    for i in range(a.size):
        term = a[i] * w[i]
        product += term
        size += abs(term)
        square += w[i] * w[i]
    return product, size, square


def dot_and_sizes(a: Array, w: Array) -> tuple[float, float, float]:
    """<a, w>, the sum of its absolute terms, and the norm of w, for vectors."""
    product, size, square = _sizes(a, w)
    return float(product), float(size), math.sqrt(square)


def blend(a: Array, b: Array, share: float) -> Array:
    """(1 - share) a + share b, for vectors."""
    out = (1.0 - share) * a
    out += share * b
    return out


def plain(array: Array) -> Array:
    """`array` as float64, contiguous and writable, copied only if it is not (kernels compile again for each kind)."""
    array = np.ascontiguousarray(array, np.float64)
    return array if array.flags.writeable else array.copy()
