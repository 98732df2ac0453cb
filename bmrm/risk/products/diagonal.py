"""The diagonal of A' diag(weights) A, for Jacobi preconditioning, and the norms of rows."""

from __future__ import annotations

import numpy as np

from bmrm.data.matrix import Features, Matrix, features_of
from bmrm.problem import Vector
from bmrm.risk.products.columns import Columns


def diagonal(X: Features, columns: Columns, bias: bool, weights: Vector) -> Vector:
    """For each input the sum over rows of weight times its square; inputs are scaled features, then the bias.

    Parameters
    ----------
    X : (rows, features).
    columns : scale and shift of the features.
    bias : whether a constant feature 1 follows.
    weights : (rows,).
    """
    squares = X.weighted_squares(weights, columns.shift)  # around the shift, not by the difference of large sums
    if columns.scale is not None:
        squares *= columns.scale**2
    return np.append(squares, float(weights.sum())) if bias else squares


def row_norms(matrix: Matrix | Features, columns: Columns) -> Vector:
    """(rows,): the root of the sum over features of ((x - shift) scale)^2, sparse data staying sparse."""
    X = features_of(matrix)
    features = X.shape[1]
    factor = np.ones(features) if columns.scale is None else columns.scale**2
    shift = np.zeros(features) if columns.shift is None else columns.shift
    norms = np.empty(X.shape[0])
    for start, stop in X.ranges():
        part, out, cross = X.part(start, stop), norms[start:stop], np.zeros(stop - start)
        part.squared().products(1).scores(0, stop - start, factor, float(shift @ (factor * shift)), out)
        if columns.shift is not None:
            part.products(1).scores(0, stop - start, factor * shift, 0.0, cross)
            out -= 2.0 * cross
    return np.sqrt(np.maximum(norms, 0.0))
