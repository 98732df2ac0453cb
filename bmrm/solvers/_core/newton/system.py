"""The linear systems of Newton's method in few dimensions, with or without a free intercept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blas_threads import lapack, lapack_threads
from bmrm.problem import Check, Vector, unchecked

Matrix = NDArray[np.float64]
RIDGE = 1e-15
"""First damping, as a share of the mean of the diagonal, where rounding has made a matrix indefinite."""
FACTOR_SPEED = 20.0
"""Operations of a Cholesky factorisation that take the time of one product of two entries of a sparse row."""
ROWS = 256
LARGE, PANEL = 1024, 512
"""Rows from which a matrix is factored in panels, and rows of a panel: at 8,000 rows about a tenth of a second between
two checks of the clock."""


def factoring(size: int) -> float:
    """What a Cholesky factor of so many rows takes, in products of two entries of a sparse row."""
    return size**3 / 3.0 / FACTOR_SPEED


def solve_positive(matrix: Matrix, right: Vector, check: Check = unchecked) -> Vector:
    """x with matrix x = right by Cholesky, with a ridge where that fails; `check` is called now and then.

    The `matrix` is symmetric and in C order; what is above its diagonal stays, the rest is overwritten.
    """
    diagonal, ridge = matrix.diagonal().copy(), 0.0
    while True:
        check(factoring(matrix.shape[0]))
        with lapack_threads(matrix.shape[0]):
            x, info = _solved(matrix, right, check)
        if info == 0 and np.isfinite(x).all():
            return np.asarray(x, np.float64)
        ridge = 100.0 * ridge if ridge else RIDGE * float(np.mean(np.abs(diagonal)))
        if not (np.isfinite(ridge) and ridge > 0.0):
            return np.array(right)
        untouched = np.triu(matrix, 1)
        matrix = untouched + untouched.T
        np.fill_diagonal(matrix, diagonal + ridge)


def _solved(matrix: Matrix, right: Vector, check: Check) -> tuple[Vector, int]:
    """x, and not 0 where the matrix is not positive definite."""
    functions = lapack()
    size = matrix.shape[0]
    # the transpose of a symmetric matrix is itself, and in the order that LAPACK overwrites
    if size <= LARGE:
        _, x, info = functions.dposv(matrix.T, right, lower=0, overwrite_a=1)
        return x, info
    lower = np.tril(np.ones((PANEL, PANEL), np.bool_))
    for first in range(0, size, PANEL):
        check()
        behind = min(first + PANEL, size)
        corner = matrix[first:behind, first:behind]
        root, info = functions.dpotrf(corner, lower=1, clean=1)
        if info != 0:
            return right, info
        part = lower[: len(corner), : len(corner)]
        corner[part] = root[part]
        panel = matrix[behind:, first:behind]
        panel[:] = functions.dtrtrs(root, panel.T, lower=1)[0].T
        for k in range(behind, size, PANEL):
            check()
            end = min(k + PANEL, size)
            columns = panel[k - behind : end - behind]
            block = matrix[k:end, k:end]
            block -= (columns @ columns.T) * lower[: end - k, : end - k]
            matrix[end:, k:end] -= panel[end - behind :] @ columns.T
    return functions.dpotrs(matrix.T, right, lower=0)[0], 0


def add_to_diagonal(matrix: Matrix, number: float) -> None:
    """In place, for a matrix in C order."""
    matrix.reshape(-1)[:: matrix.shape[0] + 1] += number


def newton_step(
    hessian: Matrix,
    gradient: Vector,
    border: Vector | None,
    corner: float,
    rest: float,
    check: Check = unchecked,
) -> Vector:
    """-H^-1 g of the weights, or of the weights and a free intercept where there is a `border`.

    Parameters
    ----------
    hessian : of the weights, (dim, dim); overwritten.
    gradient : with respect to the weights.
    border, corner : the derivatives of the gradient in the intercept, with respect to weights and intercept.
    rest : derivative with respect to the intercept.
    check : called now and then.
    """
    if border is None:
        return -solve_positive(hessian, gradient, check)
    if not corner > 0.0:  # no curvature along the intercept: leave it
        return np.append(-solve_positive(hessian, gradient, check), 0.0)
    for k in range(0, border.size, ROWS):  # some rows at a time: no second matrix
        hessian[k : k + ROWS] -= np.outer(border[k : k + ROWS], border / corner)
    step = -solve_positive(hessian, gradient - border * (rest / corner), check)
    return np.append(step, -(rest + float(border @ step)) / corner)
