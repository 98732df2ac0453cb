"""Statistics of the features, over all ranks, and the `Columns` or rows made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset, near_one
from bmrm.data.matrix import Csr, Matrix
from bmrm.problem import InputError, Vector
from bmrm.risk.linear_map import DataMap
from bmrm.risk.products.columns import Columns

Array = NDArray[np.float64]
TINY = float(np.finfo(np.float64).tiny)
CONSTANT = 1e-12
"""Standard deviation relative to the largest value below which a feature counts as constant."""


class Adder(Protocol):
    """What scaling needs of the group of ranks; `bmrm.mpi.group.Alone` for one process."""

    def sum(self, array: Array) -> Array:
        """The elementwise sum over ranks."""
        ...

    def max(self, array: Array) -> Array:
        """The elementwise maximum over ranks."""
        ...


def standardize(data: Dataset, group: Adder) -> Columns:
    """Mean 0 and standard deviation 1 for every feature, weights of rows counted; constant features become 0.

    The variance is the sum of squared differences to the mean over the sum of weights, as in scikit-learn's
    `StandardScaler`.
    """
    weights = _weights(data)
    largest = float(group.max(np.array([weights.max(initial=0.0)]))[0])
    weights = near_one(weights, largest)
    sums = group.sum(np.append(DataMap(data.X).rmatvec(weights), weights.sum()))
    mass = sums[-1]
    if not mass > 0.0:
        raise InputError("scale: standardize needs at least one row of positive weight")
    mean = sums[:-1] / mass
    squares = group.sum(_squares_around(data.X, mean, weights))
    deviation = np.sqrt(squares / mass)
    varies = deviation > CONSTANT * group.max(_largest(data.X))
    return Columns(scale=1.0 / np.where(varies, deviation, 1.0), shift=mean)


def max_abs(data: Dataset, group: Adder) -> Columns:
    """Every feature divided by its largest absolute value; features that are always 0 stay 0."""
    largest = group.max(_largest(data.X))
    return Columns(scale=1.0 / np.where(largest >= TINY, largest, 1.0))


def unit_norm(data: Dataset) -> Dataset:
    """A copy with rows of Euclidean norm 1; rows of zeros stay so. Values keep their precision."""
    X = data.X
    if not isinstance(X, Csr):
        norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
        return replace(data, X=(X / np.where(norms > 0.0, norms, 1.0)[:, None]).astype(X.dtype))
    values = _values(X)
    rows = _rows_of_entries(X)
    norms = np.sqrt(np.bincount(rows, weights=values.astype(np.float64) ** 2, minlength=X.rows))
    scaled = (values / np.where(norms > 0.0, norms, 1.0)[rows]).astype(X.dtype)
    indptr, indices = X.indptr - X.indptr[0], X.indices[X.indptr[0] : X.indptr[-1]]
    return replace(data, X=Csr(indptr, indices, scaled, X.columns))


@dataclass(frozen=True)
class Scaling:
    """A way to scale: of the columns, over all ranks, or of each row."""

    columns: Callable[[Dataset, Adder], Columns | None]
    rows: Callable[[Dataset], Dataset]


SCALINGS = {
    "none": Scaling(lambda data, group: None, lambda data: data),
    "standardize": Scaling(standardize, lambda data: data),
    "max_abs": Scaling(max_abs, lambda data: data),
    "unit_norm": Scaling(lambda data, group: None, unit_norm),
}
"""By the names of `data.scale`: `rows` changes every data set that is used, `columns` comes from the training set."""


def _weights(data: Dataset) -> Vector:
    weights = data.targets.weights
    return np.ones(data.rows) if weights is None else np.asarray(weights, np.float64)


def _squares_around(X: Matrix, mean: Vector, weights: Vector) -> Vector:
    """For each feature the weighted sum of (x - mean)^2; what is not stored counts as 0."""
    if not isinstance(X, Csr):
        total = np.zeros(X.shape[1])
        for start in range(0, X.shape[0], 4096):
            part = slice(start, start + 4096)
            total += weights[part] @ (X[part] - mean) ** 2
        return total
    columns, rows = X.indices[X.indptr[0] : X.indptr[-1]], _rows_of_entries(X)
    squares = weights[rows] * (_values(X) - mean[columns]) ** 2
    around = np.bincount(columns, weights=squares, minlength=X.columns)
    return np.asarray(around + _absent(columns, rows, weights, X.columns) * mean**2)


def _absent(columns: NDArray[np.int32], rows: NDArray[np.int64], weights: Vector, features: int) -> Vector:
    """For each feature the weights of the rows that do not store it, though others be far larger.

    The difference of all weights and those of its rows: of their multiples of a unit, whose sums are exact, and of the
    rest, whose rounding is of no account.
    """
    unit = np.ldexp(1.0, max(int(np.frexp(weights.sum())[1]) - 52, -1022))
    whole = np.rint(weights / unit) * unit
    absent = np.zeros(features)
    for part in (whole, weights - whole):
        absent += part.sum() - np.bincount(columns, weights=part[rows], minlength=features)
    return np.maximum(absent, 0.0)


def _largest(X: Matrix) -> Vector:
    """The largest absolute value of each feature."""
    if not isinstance(X, Csr):
        return np.asarray(np.abs(X).max(axis=0, initial=0.0), np.float64)
    largest = np.zeros(X.columns)
    np.maximum.at(largest, X.indices[X.indptr[0] : X.indptr[-1]], np.abs(_values(X)))
    return largest


def _values(X: Csr) -> NDArray[Any]:
    return np.ones(X.nnz) if X.values is None else X.values[X.indptr[0] : X.indptr[-1]]


def _rows_of_entries(X: Csr) -> NDArray[np.int64]:
    return np.repeat(np.arange(X.rows), np.diff(X.indptr))
