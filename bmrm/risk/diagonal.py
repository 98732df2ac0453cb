"""The diagonal of A' diag(weights) A, for Jacobi preconditioning."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Csr, Matrix, part_of
from bmrm.problem import Vector
from bmrm.risk.columns import Columns
from bmrm.risk.products import products_of

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
    squares, total = _sums(X, weights, 2), float(weights.sum())
    if columns.shift is not None:
        squares += columns.shift * (columns.shift * total - 2.0 * _sums(X, weights, 1))
    if columns.scale is not None:
        squares *= columns.scale**2
    return np.append(squares, total) if bias else squares


def _sums(X: Matrix, weights: Vector, power: int) -> NDArray[np.float64]:
    sums = np.zeros(X.shape[1])
    for start in range(0, X.shape[0], ROWS):
        stop = min(start + ROWS, X.shape[0])
        part = part_of(X, start, stop)
        products_of(squared(part) if power == 2 else part, 1).add_pull_back(0, stop - start, weights[start:stop], sums)
    return sums


def squared(part: Matrix) -> Matrix:
    """The squares of the entries, float64."""
    if not isinstance(part, Csr):
        return np.asarray(part, np.float64) ** 2
    if part.values is None:
        return part
    first, last = int(part.indptr[0]), int(part.indptr[-1])
    values = part.values[first:last].astype(np.float64) ** 2
    return Csr(part.indptr - first, part.indices[first:last], values, part.columns)
