"""Newton's system of few rows in many dimensions, by the inner products of the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import RowPart, Scores, Vector
from bmrm.solvers._core.newton.system import add_to_diagonal, solve_positive

Array = NDArray[np.float64]


def rank_of(curvature: Scores) -> int:
    """How many vectors `vectors_of` gives."""
    present = curvature > 0.0
    if curvature.ndim == 1:
        return int(np.count_nonzero(present))
    return int(np.count_nonzero(present)) - int(np.count_nonzero(present.any(axis=1)))


def step_by_rows(part: RowPart, curvature: Scores, gradient: Vector, l2: float) -> Vector:
    """-(l2 + A' C A)^-1 gradient, A of the rows of `part` and C their `curvature`, as of `MoreauEnvelope`.

    With C = Z Z' the system l2 + Z' A A' Z is solved instead (Woodbury); A A' are the rows' inner products.
    """
    rows, vectors = vectors_of(curvature)
    matrix = part.parts.products()[np.ix_(rows, rows)]
    matrix *= vectors @ vectors.T
    add_to_diagonal(matrix, l2)
    scores = part.map.matvec(gradient).reshape(part.rows, -1)
    shares = solve_positive(matrix, np.sum(scores[rows] * vectors, axis=1))
    slope = np.zeros(scores.shape)
    np.add.at(slope, rows, vectors * shares[:, None])
    return (part.map.rmatvec(slope.reshape(curvature.shape)) - gradient) / l2


def vectors_of(curvature: Scores) -> tuple[NDArray[np.int64], Array]:
    """Z: the rows (r,) and vectors of scores (r, K) such that C is the sum of z z' over the vectors of each row.

    diag(c) - c c' / sum(c) by Cholesky's method: with t_k the sum of c_k and what follows, vector k is
    sqrt(c_k t_{k+1} / t_k) (e_k - (c_{k+1}, ...) / t_{k+1}).
    """
    if curvature.ndim == 1:
        rows = np.flatnonzero(curvature > 0.0)
        return rows, np.sqrt(curvature[rows])[:, None]
    tails = np.cumsum(curvature[:, ::-1], axis=1)[:, ::-1]
    chosen, vectors = [], []
    for k in range(curvature.shape[1] - 1):
        rows = np.flatnonzero((curvature[:, k] > 0.0) & (tails[:, k + 1] > 0.0))
        found = np.zeros((rows.size, curvature.shape[1]))
        found[:, k] = 1.0
        found[:, k + 1 :] = -curvature[rows, k + 1 :] / tails[rows, k + 1, None]
        found *= np.sqrt(curvature[rows, k] * tails[rows, k + 1] / tails[rows, k])[:, None]
        chosen.append(rows)
        vectors.append(found)
    return np.concatenate(chosen), np.concatenate(vectors)
