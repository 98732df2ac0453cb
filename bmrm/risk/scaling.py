"""Statistics of the features, over all ranks, and the `Columns` or rows made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset, near_one
from bmrm.data.matrix import features_of, plain_matrix
from bmrm.data.matrix.features import COMMON, units_of
from bmrm.problem import InputError, Vector
from bmrm.risk.linear_map import DataMap
from bmrm.risk.products import Columns

Array = NDArray[np.float64]
HUGE, HUGE_SUMS = 1e270, 2.0**-64
"""Size of features from which sums may overflow, and the factor by which they are scaled before."""
SMALLEST = 1e-290
"""Sizes below this are no scale: their inverse is too near the largest float64."""
FAR = 1e3
"""Ratio of a feature's middle to its half range above which it is shifted before it is scaled, so that digits are
kept."""
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
    *sizes, heaviest = group.max(np.append(features_of(data.X).largest(), weights.max(initial=0.0)))
    largest, weights = np.array(sizes), near_one(weights, float(heaviest))
    less = HUGE_SUMS if largest.max(initial=0.0) > HUGE else 1.0
    sums = group.sum(np.append(DataMap(data.X).rmatvec(weights * less), weights.sum()))
    mass = sums[-1]
    if not mass > 0.0:
        raise InputError("scale: standardize needs at least one row of positive weight")
    mean, units = sums[:-1] / (mass * less), units_of(largest)
    squares = group.sum(features_of(data.X).squares_around(mean, weights, units))
    deviation = np.sqrt(squares / mass)
    varies = deviation > CONSTANT * (largest / units)
    constant = np.maximum(units, 1.0)  # what rounding leaves of large ones stays small
    return Columns(scale=_inverse(np.where(varies, deviation * units, constant), data), shift=mean)


def max_abs(data: Dataset, group: Adder) -> Columns:
    """Every feature divided by its largest absolute value; features that are always 0 stay 0."""
    largest = group.max(features_of(data.X).largest())
    return Columns(scale=_inverse(np.where(largest > 0.0, largest, 1.0), data))


def unit_norm(data: Dataset) -> Dataset:
    """A copy with rows of Euclidean norm 1; rows of zeros stay so. Values keep their precision."""
    return replace(data, X=plain_matrix(features_of(data.X).of_norm_one()))


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
    factors = np.ldexp(1.0, powers)
    shift = None if columns.shift is None else columns.shift * factors
    return replace(data, X=plain_matrix(features_of(data.X).times(factors))), Columns(columns.scale / factors, shift)


def far_columns(data: Dataset, group: Adder) -> Vector | None:
    """Collective: the middle of each feature that lies far from 0, 0 for the others; None where none does.

    Products of such features with weights are differences of numbers that are much larger. Where a constant is added to
    all scores, features may be moved: the weights stay what they are.
    """
    X, everywhere = features_of(data.X), np.ones(data.features, bool)
    if data.rows:
        few = np.abs(X.block(np.array([0, data.rows // 2, data.rows - 1])).astype(np.float64))
        least = few.min(axis=0)
        everywhere = (least >= (1.0 - 4.0 / FAR) * few.max(axis=0)) & (least > 0.0)  # others lie nearer to 0
        if everywhere.any():
            everywhere &= X.everywhere()
    if not group.max(np.array([float(everywhere.any())]))[0]:
        return None
    ends = np.full((2, data.features), -np.inf)
    if data.rows:
        ends[:] = 1.0  # what is not stored is 0
        most, least = X.ends(everywhere)
        ends[:, everywhere] = most, -least
    highest, lowest = group.max(ends.ravel()).reshape(2, -1) * [[1.0], [-1.0]]
    middle, half = 0.5 * highest + 0.5 * lowest, 0.5 * highest - 0.5 * lowest
    far = np.isfinite(middle) & (np.abs(middle) > FAR * half) & ((half > 0.0) | (np.abs(middle) > FAR))
    return np.where(far, middle, 0.0) if far.any() else None


def moved(data: Dataset, shift: Vector) -> Dataset:
    """A copy whose features are less by `shift`, which is 0 but for those that every row has."""
    return replace(data, X=plain_matrix(features_of(data.X).less(shift)))


def refuse_overflow(data: Dataset, columns: Columns) -> None:
    """Raise InputError for features that are not scaled and so large that sums of their squares overflow."""
    found = features_of(data.X).far_entry() if columns.scale is None else None
    if found is None:
        return
    row, column, value = found
    raise InputError(
        f"X: row {row}, column {column} is {value:g}, so that sums of squares overflow; expected smaller numbers, "
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
"""Scalings by the names of `data.scale`: `rows` changes every data set, `columns` is computed from the training set."""


def _weights(data: Dataset) -> Vector:
    weights = data.targets.weights
    return np.ones(data.rows) if weights is None else np.asarray(weights, np.float64)


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
