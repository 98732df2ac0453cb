"""Pivoted incomplete Cholesky factor of a kernel matrix, whose rows are features.

Fine & Scheinberg, "Efficient SVM training using low-rank kernel representations", JMLR 2, 2001; low-rank kernels for
bundle methods: Teo, Smola, Vishwanathan & Le, KDD 2007, figure 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.data.features import register
from bmrm.data.features._core.kernels import OF_NAME, Kernel, KernelMap, checked_kernel
from bmrm.data.features._core.rows import AllRows, dtype_of, plain
from bmrm.data.matrix import Csr, Matrix
from bmrm.kernels.products.pivoted_cholesky import advance
from bmrm.problem import InputError
from bmrm.registry import check_parameters, parameter

LEAST = 1e-10
"""What of the largest k(x, x) may be left where no pivot is taken any more: rounding is a share of what was there."""


@register("incomplete_cholesky", map=KernelMap)
@dataclass(frozen=True)
class IncompleteCholesky:
    """K ~ L L': the next pivot is the row of which most is left; row i of L are the features of row i.

    For each pivot P the kernel of all rows with it is computed; other rows have the features k(x, P) L_P'^-1. Costs m
    rank^2 for m rows, and 8 m rank bytes.

    Parameters
    ----------
    rank : features at most.
    trace : stop where the trace of K - L L' is at most this share of that of K; 0 for not.
    kernel : of `sklearn.metrics.pairwise.pairwise_kernels`, positive semidefinite; or `module:function` of two matrices
        of rows, in Python also the function itself.
    gamma : of kernels that have it; null for 1 / features.
    degree, coef0 : of kernels that have them.

    Raises
    ------
    InputError
        For a kernel that is unknown, is not defined for such rows, or is negative on the diagonal.
    """

    rank: int = parameter(500, least=1, doc="features at most", example=3)
    trace: float = parameter(0.0, least=0.0, below=1.0, doc="share of the trace that may be left", example=0.5)
    kernel: Any = parameter("rbf", doc=OF_NAME, example="laplacian")  # noqa: RUF009 (a field with a range)
    gamma: float | None = parameter(None, above=0.0, doc="of the kernel; null for 1 / features", example=0.7)
    degree: float = parameter(3.0, above=0.0, doc="of the kernel polynomial", example=2.0)
    coef0: float = parameter(1.0, doc="of the kernels polynomial and sigmoid", example=0.5)

    def __post_init__(self) -> None:
        check_parameters(self)
        checked_kernel(self.kernel, "incomplete_cholesky")

    def numbers(self, X: Matrix) -> int:
        """As of `Features`."""
        return self.rank * int(X.shape[0])

    def fitted(self, rows: AllRows) -> tuple[KernelMap, Matrix]:
        """As of `Features`."""
        from scipy.linalg import solve_triangular
        from scipy.sparse import csr_matrix, vstack

        X = rows.X
        kernel = Kernel(self.kernel, self.gamma or 1.0 / max(1, X.shape[1]), self.degree, self.coef0)
        mine, left = plain(X), kernel.diagonal(X)
        most = min(self.rank, rows.total)
        factor, pivots, corner = np.zeros((most, X.shape[0])), [], np.zeros((most, most))
        whole = float(rows.sum(np.array([left.sum()]))[0])
        rest, first = whole, None
        for count in range(most):
            value, row, beside = rows.of_largest(left, factor[:count])
            first = value if first is None else first
            if not value > LEAST * first or rest <= self.trace * whole:
                break
            x: Any = csr_matrix(row) if isinstance(X, Csr) else row[None].astype(X.dtype)
            corner[count, :count], corner[count, count] = beside, np.sqrt(value)
            column = np.ascontiguousarray(kernel.between(mine, x)[:, 0])
            advance(factor, count, column, corner[count, :count].copy(), float(corner[count, count]), left)
            rest = float(rows.sum(np.array([left.sum()]))[0])
            pivots.append(x)
        if not pivots:
            raise InputError("features: the kernel of no row with itself is above 0")
        rank = len(pivots)
        table = solve_triangular(corner[:rank, :rank], np.eye(rank), lower=True).T
        kept: Matrix = Csr.from_scipy(vstack(pivots, format="csr")) if isinstance(X, Csr) else np.concatenate(pivots)
        made = np.ascontiguousarray(factor[:rank].T.astype(dtype_of(X), copy=False))
        return KernelMap(kernel, kept, np.ascontiguousarray(table)), made
