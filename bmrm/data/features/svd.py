"""The leading right singular vectors of the rows: a truncated singular value decomposition, by ARPACK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.features import register
from bmrm.data.features._core.linear import ProjectionMap
from bmrm.data.features._core.rows import AllRows, plain
from bmrm.data.matrix import Csr, Matrix
from bmrm.problem import Vector
from bmrm.registry import check_parameters, parameter

FEW = 64
"""Most features of which all eigenvectors are computed."""
RANK = 1e-12
"""Share of the largest eigenvalue of X'X below which an eigenvector stands for rounding."""


@register("svd", map=ProjectionMap)
@dataclass(frozen=True)
class Svd:
    """x V, V the right singular vectors of the largest singular values of X: `sklearn.decomposition.TruncatedSVD`.

    Of standardized columns these are principal components. They are eigenvectors of X'X, which is never made of many
    features: ARPACK multiplies by X, over all ranks. Of each vector the entry of largest absolute value is positive.
    Where X has a smaller rank than is asked for there are fewer features.

    Parameters
    ----------
    rank : features at most.
    """

    rank: int = parameter(10, least=1, doc="features at most", example=3)

    def __post_init__(self) -> None:
        check_parameters(self)

    def numbers(self, X: Matrix) -> int:
        """As of `Features`."""
        return min(self.rank, int(X.shape[1])) * (int(X.shape[0]) + int(X.shape[1]))

    def fitted(self, rows: AllRows) -> tuple[ProjectionMap, Matrix]:
        """As of `Features`."""
        X = plain(rows.X)
        features = int(X.shape[1])
        rank = min(self.rank, features)
        few = features <= FEW or rank > features // 2
        values, vectors = _of_table(X, rows) if few else _of_products(X, rows, rank)
        order = np.argsort(-values, kind="stable")[:rank]
        kept = order[values[order] > RANK * max(values.max(initial=0.0), 0.0)]
        V = vectors[:, kept if len(kept) else order[:1]]
        largest = V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])]
        found = ProjectionMap(np.ascontiguousarray(V * np.where(largest < 0.0, -1.0, 1.0)))
        return found, found.apply(rows.X)


Eigen = tuple[Vector, NDArray[np.float64]]


def _of_table(X: Any, rows: AllRows) -> Eigen:
    """All eigenvalues and eigenvectors of X'X."""
    table = X.T @ X
    dense = np.asarray(table.toarray() if isinstance(rows.X, Csr) else table, np.float64)
    values, vectors = np.linalg.eigh(rows.sum(dense))
    return values, vectors


def _of_products(X: Any, rows: AllRows, rank: int) -> Eigen:
    """Those of the largest eigenvalues, by products with X; the same steps on every rank."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    features = int(X.shape[1])

    def product(v: Vector) -> Vector:
        return rows.sum(np.asarray(X.T @ (X @ v.reshape(-1)), np.float64))

    start = np.random.default_rng(0).standard_normal(features)
    operator: Any = LinearOperator((features, features), matvec=product, dtype=np.float64)
    values, vectors = eigsh(operator, k=rank, v0=start)
    return values, vectors
