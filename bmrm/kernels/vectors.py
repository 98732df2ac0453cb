"""Arrays as kernels want them, and sums without the threads that BLAS would start."""

from __future__ import annotations

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


def column_sums(table: Array) -> Array:
    """The sum over axis 0 of a vector or a matrix; faster than NumPy's for few columns."""
    if table.ndim == 1:
        return np.asarray(table.sum())
    out = np.zeros(table.shape[1])
    _column_sums(plain(table), out)
    return out


def dot(a: Array, b: Array) -> float:
    """The sum of products of two float64 arrays of one shape."""
    return float(inner(a.ravel(), b.ravel()))


def plain(array: Array) -> Array:
    """`array` as float64, contiguous and writable, copied only if it is not (kernels compile again for each kind)."""
    array = np.ascontiguousarray(array, np.float64)
    return array if array.flags.writeable else array.copy()
