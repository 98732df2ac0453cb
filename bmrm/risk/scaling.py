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
HUGE, HUGE_SUMS = 1e270, 2.0**-64
"""Features that may sum up to more than float64 holds, and the factor with which they are summed."""
SMALLEST = 1e-290
"""Sizes whose inverse is too near the largest number to be a scale."""
COMMON = 200
"""Powers of two, up and down, between which squares of features and sums of them neither overflow nor vanish."""
FAR = 1e3
"""How many times as far from 0 as from its middle a feature lies whose digits go into its middle."""
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
    *sizes, heaviest = group.max(np.append(_largest(data.X), weights.max(initial=0.0)))
    largest, weights = np.array(sizes), near_one(weights, float(heaviest))
    less = HUGE_SUMS if largest.max(initial=0.0) > HUGE else 1.0
    sums = group.sum(np.append(DataMap(data.X).rmatvec(weights * less), weights.sum()))
    mass = sums[-1]
    if not mass > 0.0:
        raise InputError("scale: standardize needs at least one row of positive weight")
    mean, units = sums[:-1] / (mass * less), _units(largest)
    squares = group.sum(_squares_around(data.X, mean, weights, units))
    deviation = np.sqrt(squares / mass)
    varies = deviation > CONSTANT * (largest / units)
    return Columns(scale=_inverse(np.where(varies, deviation * units, 1.0), data), shift=mean)


def max_abs(data: Dataset, group: Adder) -> Columns:
    """Every feature divided by its largest absolute value; features that are always 0 stay 0."""
    largest = group.max(_largest(data.X))
    return Columns(scale=_inverse(np.where(largest > 0.0, largest, 1.0), data))


def unit_norm(data: Dataset) -> Dataset:
    """A copy with rows of Euclidean norm 1; rows of zeros stay so. Values keep their precision."""
    X = data.X
    if not isinstance(X, Csr):
        sizes = np.abs(X).max(axis=1, initial=0.0).astype(np.float64)
        table = X / _units(sizes)[:, None] if _squares_differ(sizes) else X
        norms = np.sqrt(np.einsum("ij,ij->i", table, table, dtype=np.float64))
        return replace(data, X=(table / np.where(norms > 0.0, norms, 1.0)[:, None]).astype(X.dtype))
    values, rows = _values(X), _rows_of_entries(X)
    exact = values.astype(np.float64)
    sizes = np.zeros(X.rows)
    np.maximum.at(sizes, rows, np.abs(exact))
    if _squares_differ(sizes):
        exact /= _units(sizes)[rows]
    norms = np.sqrt(np.bincount(rows, weights=exact**2, minlength=X.rows))
    scaled = (exact / np.where(norms > 0.0, norms, 1.0)[rows]).astype(X.dtype)
    indptr, indices = X.indptr - X.indptr[0], X.indices[X.indptr[0] : X.indptr[-1]]
    return replace(data, X=Csr(indptr, indices, scaled, X.columns))


def within_range(data: Dataset, columns: Columns) -> tuple[Dataset, Columns]:
    """The same scaled features, without numbers whose squares overflow or vanish.

    Features whose scale is beyond 2^200 or below 2^-200 are multiplied by a power of two, which rounds nothing, in a
    copy of the data, and the others are left alone; `columns` are then those of the copy.
    """
    if columns.scale is None:
        return data, columns
    powers = np.frexp(columns.scale)[1]
    powers[np.abs(powers) <= COMMON] = 0
    if not powers.any():
        return data, columns
    X, factors = data.X, np.ldexp(1.0, powers)
    if isinstance(X, Csr):
        values = (X.values if X.values is not None else np.ones(X.indices.size)) * factors[X.indices]
        changed: Matrix = replace(X, values=values)
    else:
        changed = X * factors
    shift = None if columns.shift is None else columns.shift * factors
    return replace(data, X=changed), Columns(columns.scale / factors, shift)


def far_columns(data: Dataset, group: Adder) -> Vector | None:
    """Collective: the middle of each feature that lies far from 0, 0 for the others; None where none does.

    Products of such features with weights are differences of numbers that are much larger. Where a constant is added to
    all scores, features may be moved: the weights stay what they are.
    """
    X, features = data.X, data.features
    everywhere = (
        np.bincount(_columns(X), minlength=features) >= X.rows if isinstance(X, Csr) else np.ones(features, bool)
    )
    if not group.max(np.array([float(everywhere.any())]))[0]:
        return None
    ends = np.full((2, features), -np.inf)
    if data.rows:
        ends[:] = 1.0  # what is not stored is 0
        if isinstance(X, Csr):
            chosen = everywhere[_columns(X)]
            table = _values(X)[chosen].astype(np.float64)[np.argsort(_columns(X)[chosen], kind="stable")]
            table = table.reshape(-1, data.rows).T
        else:
            table = X
        ends[:, everywhere] = table.max(axis=0, initial=-np.inf), -table.min(axis=0, initial=np.inf)
    highest, lowest = group.max(ends.ravel()).reshape(2, -1) * [[1.0], [-1.0]]
    middle, half = 0.5 * highest + 0.5 * lowest, 0.5 * highest - 0.5 * lowest
    far = np.isfinite(middle) & (np.abs(middle) > FAR * half) & ((half > 0.0) | (np.abs(middle) > FAR))
    return np.where(far, middle, 0.0) if far.any() else None


def moved(data: Dataset, shift: Vector) -> Dataset:
    """A copy whose features are less by `shift`, which is 0 but for those that every row has."""
    X = data.X
    if isinstance(X, Csr):
        assert X.values is not None
        return replace(data, X=replace(X, values=(X.values - shift[X.indices]).astype(X.values.dtype)))
    return replace(data, X=(X - shift).astype(X.dtype))


def refuse_overflow(data: Dataset, columns: Columns) -> None:
    """Raise InputError for features that are not scaled and so large that sums of their squares overflow."""
    values = _values(data.X) if isinstance(data.X, Csr) else data.X.reshape(-1)
    if columns.scale is not None or values.dtype == np.float32:
        return
    with np.errstate(over="ignore"):
        if np.isfinite(values @ values):
            return
    at = int(np.argmax(np.abs(values)))
    row, column = divmod(at, data.features)
    if isinstance(data.X, Csr):
        row, column = int(_rows_of_entries(data.X)[at]), int(data.X.indices[data.X.indptr[0] + at])
    raise InputError(
        f"X: row {row}, column {column} is {values[at]:g}, so that sums of squares overflow; expected smaller numbers, "
        "or scale: standardize, max_abs or unit_norm"
    )


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


def _units(sizes: Vector) -> Vector:
    """For each size the power of two next below it; 1 for 0."""
    return np.where(sizes > 0.0, np.ldexp(1.0, np.frexp(sizes)[1] - 1), 1.0)


def _inverse(sizes: Vector, data: Dataset) -> Vector:
    """1 / sizes; InputError for a feature too small for that."""
    small = np.flatnonzero(sizes < SMALLEST)
    if small.size:
        names = data.feature_names
        which = small[0] if names is None else repr(names[small[0]])
        raise InputError(
            f"scale: feature {which} is at most {sizes[small[0]]:g} in size, whose inverse is too large; multiply the "
            "feature, or leave it out"
        )
    return 1.0 / sizes


def _squares_differ(sizes: Vector) -> bool:
    """Whether squares of some rows overflow or vanish."""
    there = sizes[sizes > 0.0]
    return bool(there.size) and not (there.min() > 2.0**-COMMON and there.max() < 2.0**COMMON)


def _squares_around(X: Matrix, mean: Vector, weights: Vector, units: Vector) -> Vector:
    """For each feature the weighted sum of ((x - mean) / unit)^2; what is not stored counts as 0."""
    mean = mean / units
    if not isinstance(X, Csr):
        total = np.zeros(X.shape[1])
        for start in range(0, X.shape[0], 4096):
            part = slice(start, start + 4096)
            total += weights[part] @ (X[part] / units - mean) ** 2
        return total
    columns, rows = X.indices[X.indptr[0] : X.indptr[-1]], _rows_of_entries(X)
    squares = weights[rows] * (_values(X) / units[columns] - mean[columns]) ** 2
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


def _columns(X: Csr) -> NDArray[np.int32]:
    return X.indices[X.indptr[0] : X.indptr[-1]]


def _rows_of_entries(X: Csr) -> NDArray[np.int64]:
    return np.repeat(np.arange(X.rows), np.diff(X.indptr))
