"""Rows of features with their targets, validated once, at the edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.frames import is_frame, names_of, values_of
from bmrm.data.labels import LabelSets
from bmrm.data.layout import Layout, shown
from bmrm.data.matrix import Csr, Matrix, nnz_of, part_of, with_columns
from bmrm.problem import InputError, Targets, Vector


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples: `X` of shape (rows, features) and what is known of each row.

    Attributes
    ----------
    X : `Csr` (with values or valueless), or a dense C-contiguous float32 or float64 array.
    targets : labels or numbers `y`, sample weights and groups, one of each per row.
    layout : how the rows came about, names of the columns among it; None where nothing is known of that.
    labelled : whether `targets.y` was given; where not, it is 0.
    """

    X: Matrix
    targets: Targets
    layout: Layout | None = None
    labelled: bool = True

    def __post_init__(self) -> None:
        if self.X.shape[0] != self.targets.rows:
            raise InputError(f"X has {self.X.shape[0]} rows, y has {self.targets.rows}")

    @property
    def rows(self) -> int:
        """Number of examples."""
        return int(self.X.shape[0])

    @property
    def features(self) -> int:
        """Number of columns of `X`."""
        return int(self.X.shape[1])

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the columns of `X`; None where they have none."""
        return None if self.layout is None else self.layout.names

    @property
    def nnz(self) -> int:
        """Stored entries of `X`; rows times features where it is dense."""
        return nnz_of(self.X)

    def part(self, start: int, stop: int) -> Dataset:
        """The rows [start, stop), as views."""
        return replace(self, X=part_of(self.X, start, stop), targets=self.targets.part(start, stop))

    def select(self, rows: NDArray[np.integer[Any]]) -> Dataset:
        """A copy of the chosen rows, in the order given."""
        X, t = self.X, self.targets
        y = t.y.select(rows) if isinstance(t.y, LabelSets) else t.y[rows]
        weights = None if t.weights is None else t.weights[rows]
        groups = None if t.groups is None else t.groups[rows]
        chosen = X.select(rows) if isinstance(X, Csr) else X[rows]
        return replace(self, X=chosen, targets=Targets(y, weights, groups))

    def with_features(self, features: int) -> Dataset:
        """The same rows with columns of zeros added; fewer columns than there are is an InputError."""
        return replace(self, X=with_columns(self.X, features))

    def with_weights(self, weights: Any) -> Dataset:
        """The same rows with these sample weights, shape (rows,), finite, >= 0 and not all 0."""
        checked = check_weights(weights, self.rows)
        return replace(self, targets=replace(self.targets, weights=checked))

    @classmethod
    def from_arrays(cls, X: Any, y: Any = None, weights: Any = None, groups: Any = None) -> Dataset:
        """Check and convert arrays; none of them is changed, and `X` is not copied where it fits as it is.

        Parameters
        ----------
        X : (rows, features): array-like of numbers (float32 stays, all else becomes float64), any scipy.sparse matrix
            (duplicates are summed), or a data frame of pandas or polars, whose names of columns are kept. All finite.
        y : (rows,) numbers or strings, (rows, outputs) numbers, or `LabelSets`; None means 0 for every row.
        weights : (rows,) finite, >= 0, not all 0; None means 1 for every row.
        groups : (rows,) integers; None means no groups.

        Raises
        ------
        InputError
            Naming the array, and the row and column where there is one.
        """
        matrix, names = named_matrix(X)
        rows = int(matrix.shape[0])
        labels = np.zeros(rows) if y is None else check_labels(y, rows)
        return cls(
            matrix,
            Targets(
                labels,
                None if weights is None else check_weights(weights, rows),
                None if groups is None else check_groups(groups, rows),
            ),
            None if names is None else Layout(features=matrix.shape[1], names=names),
            y is not None,
        )


def named_matrix(X: Any) -> tuple[Matrix, tuple[str, ...] | None]:
    """As `check_matrix`, and the names of the columns of a data frame."""
    if not is_frame(X):
        return check_matrix(X), None
    names = names_of(X)
    return check_matrix(values_of(X), names), names


def check_matrix(X: Any, names: Sequence[str] | None = None) -> Matrix:
    """`X` as a `Csr` or a dense array of finite numbers; InputError names the first bad row and column."""
    if isinstance(X, Csr):
        return _finite_csr(X)
    if hasattr(X, "tocsr") and hasattr(X, "nnz"):
        if len(X.shape) != 2:
            raise InputError(f"X has shape {tuple(X.shape)}, expected (rows, features)")
        return _finite_csr(Csr.from_scipy(X)).without_unit_values()
    dense = np.asarray(X)
    if dense.ndim != 2:
        raise InputError(f"X has shape {dense.shape}, expected (rows, features)")
    if np.iscomplexobj(dense):
        raise InputError("X is complex, expected real numbers")
    if dense.dtype != np.float32:
        dense = _to_float64(dense, "X")
    if not _all_finite(dense):
        row, column = np.argwhere(~np.isfinite(dense))[0]
        which = column if names is None else shown(names[column])
        raise InputError(f"X: row {row}, column {which} is {dense[row, column]}, expected a finite number")
    return np.ascontiguousarray(dense)


def check_labels(y: Any, rows: int) -> Any:
    """`y` as float64, as strings or as `LabelSets`, one entry per row."""
    if isinstance(y, LabelSets):
        _check_length("y", len(y), rows)
        return y
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise InputError(f"y has shape {array.shape}, expected ({rows},) or ({rows}, outputs)")
    _check_length("y", array.shape[0], rows)
    if array.ndim == 1 and (array.dtype.kind == "U" or _all_strings(array)):
        return array.astype(np.str_)
    numbers = _to_float64(array, "y")
    if not _all_finite(numbers):
        place = np.argwhere(~np.isfinite(numbers))[0]
        where = f"row {place[0]}" + (f", column {place[1]}" if len(place) > 1 else "")
        raise InputError(f"y: {where} is {numbers[tuple(place)]}, expected a finite number")
    return np.ascontiguousarray(numbers)


def check_weights(weights: Any, rows: int) -> Vector:
    """Sample weights as float64, finite, >= 0 and (where there are rows) not all 0."""
    array = _to_float64(np.asarray(weights), "weights")
    if array.ndim != 1:
        raise InputError(f"weights have shape {array.shape}, expected ({rows},)")
    _check_length("weights", array.shape[0], rows)
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0.0)))
    if bad.size:
        raise InputError(f"weights: row {bad[0]} is {array[bad[0]]}, expected a finite number >= 0")
    if rows and not array.any():
        raise InputError("weights are all 0, expected at least one above 0")
    return np.ascontiguousarray(array)


def check_groups(groups: Any, rows: int) -> NDArray[np.int64]:
    """Groups as int64, one per row."""
    array = np.asarray(groups)
    if array.ndim != 1:
        raise InputError(f"groups have shape {array.shape}, expected ({rows},)")
    _check_length("groups", array.shape[0], rows)
    if array.dtype.kind in "iub":
        return np.ascontiguousarray(array, np.int64)
    numbers = _to_float64(array, "groups")
    bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers == np.round(numbers)) & (np.abs(numbers) < 2.0**63)))
    if bad.size:
        raise InputError(f"groups: row {bad[0]} is {array[bad[0]]}, expected an integer")
    return numbers.astype(np.int64)


def _finite_csr(matrix: Csr) -> Csr:
    if matrix.values is None or _all_finite(matrix.values):
        return matrix
    entry = int(np.flatnonzero(~np.isfinite(matrix.values))[0])
    row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
    raise InputError(
        f"X: row {row}, column {matrix.indices[entry]} is {matrix.values[entry]}, expected a finite number"
    )


def _all_finite(array: NDArray[Any]) -> bool:
    # The sum is finite where every term is, unless it overflows: a cheap first look without a temporary.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum(dtype=np.float64))) or bool(np.isfinite(array).all())


def _all_strings(array: NDArray[Any]) -> bool:
    return array.dtype.kind in "OT" and array.size > 0 and all(isinstance(value, str) for value in array)


def _to_float64(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    if np.iscomplexobj(array):
        raise InputError(f"{name}: complex numbers, expected real ones")
    if array.dtype.kind in "US":
        raise InputError(f"{name} holds text, expected numbers")
    try:
        return np.asarray(array, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: {error}; expected numbers") from error


def _check_length(name: str, length: int, rows: int) -> None:
    if length != rows:
        raise InputError(f"{name} has {length} entries, X has {rows} rows")
