"""The diagonal of A' diag(weights) A, for Jacobi preconditioning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Csr, Matrix, part_of
from bmrm.problem import Vector
from bmrm.risk.products.blocks import products_of
from bmrm.risk.products.columns import Columns

ROWS = 8192
"""Rows whose squares are held at once."""


def diagonal(X: Matrix, columns: Columns, bias: bool, weights: Vector) -> Vector:
    """For each input the sum over rows of weight times its square; inputs are scaled features, then the bias.

    Parameters
    ----------
    X : (rows, features).
    columns : scale and shift of the features.
    bias : whether a constant feature 1 follows.
    weights : (rows,).
    """
    total = float(weights.sum())
    if columns.shift is None:
        squares = _sums(X, weights, squared)
    else:  # around the shift, not by the difference of large sums
        squares = _sums(X, weights, lambda part: squared(part, columns.shift))
        if isinstance(X, Csr):
            absent = np.maximum(total - _sums(X, weights, ones), 0.0)
            absent[np.bincount(X.indices[X.indptr[0] : X.indptr[-1]], minlength=X.columns) == X.rows] = 0.0
            squares += columns.shift**2 * absent
    if columns.scale is not None:
        squares *= columns.scale**2
    return np.append(squares, total) if bias else squares


def _sums(X: Matrix, weights: Vector, changed: Callable[[Matrix], Matrix]) -> NDArray[np.float64]:
    sums = np.zeros(X.shape[1])
    for start in range(0, X.shape[0], ROWS):
        stop = min(start + ROWS, X.shape[0])
        part = changed(part_of(X, start, stop))
        products_of(part, 1).add_rmatvec(0, stop - start, weights[start:stop], sums)
    return sums


def squared(part: Matrix, shift: Vector | None = None) -> Matrix:
    """The squares of the entries, less the shift of their column, float64."""
    if not isinstance(part, Csr):
        exact = np.asarray(part, np.float64)
        return np.asarray(exact if shift is None else exact - shift) ** 2
    if part.values is None and shift is None:
        return part
    first, last = int(part.indptr[0]), int(part.indptr[-1])
    indices = part.indices[first:last]
    values = np.ones(last - first) if part.values is None else part.values[first:last].astype(np.float64)
    values = values if shift is None else values - shift[indices]
    return Csr(part.indptr - first, indices, values**2, part.columns)


def ones(part: Matrix) -> Matrix:
    """A one for each entry."""
    return replace(part, values=None) if isinstance(part, Csr) else part
