"""Data frames as arrays: pandas, polars and similar; none of them is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.label_types import is_na
from bmrm.data.layout import shown
from bmrm.problem import InputError


def is_frame(X: Any) -> bool:
    """Whether `X` has named columns and can become an array."""
    return hasattr(X, "to_numpy") and hasattr(X, "columns")


def refuse_hidden(values: Any, name: str) -> None:
    """Raise InputError for what `numpy.asarray` does not show: rows not computed yet, entries that are masked."""
    if type(values).__name__ == "LazyFrame":
        raise InputError(f"{name} is a LazyFrame, whose rows are not computed yet; expected {name}.collect()")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        place = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        where = ", ".join(f"{what} {at}" for what, at in zip(("row", "column"), place, strict=False))
        raise InputError(f"{name}: {where} is masked, expected no missing values (`filled` gives them one)")


def categories_of(y: Any) -> list[Any] | None:
    """The categories of a column in their order; None where it has none, or they have no order.

    Ordered ones are those of an ordered categorical of pandas, and of an Enum of polars.
    """
    if is_frame(y) and len(y.columns) == 1:
        y = y.iloc[:, 0] if hasattr(y, "iloc") else y.to_series()
    kind = getattr(y, "dtype", None)
    if type(kind).__name__ == "Enum" or getattr(kind, "ordered", None):
        return list(getattr(kind, "categories", ())) or None
    return None


def names_of(X: Any) -> tuple[str, ...] | None:
    """The names of the columns of a frame; None where they are numbers.

    Raises InputError if some are text and others are not, since they then cannot be matched by name.
    """
    names = tuple(X.columns)
    text = [isinstance(name, str) for name in names]
    if any(text) and not all(text):
        other = names[text.index(False)]
        raise InputError(f"X: column {other!r:.60} has a name that is no text, others have; expected names of one kind")
    return tuple(map(str, names)) if names and all(text) else None


def values_of(X: Any, name: str = "X") -> Any:
    """The numbers of a frame, (rows, columns), or a scipy matrix where all its columns are sparse.

    Missing values become nan. Raises InputError naming the first column with values that are not numbers.
    """
    if not len(X.columns):
        return np.empty((len(X), 0))
    sparse = getattr(X, "sparse", None)  # pandas has this where every column is sparse, and raises where not
    if sparse is not None and hasattr(sparse, "to_coo"):
        X = without_fill(X)
        if hasattr(X, "sparse"):
            return sparse.to_coo()
    array = np.asarray(X.to_numpy())
    if array.dtype.kind in "fiub" or array.ndim != 2:
        return array
    numbers = np.empty(array.shape)
    for k, column in enumerate(X.columns):
        held = np.asarray(X.iloc[:, k] if hasattr(X, "iloc") else X[:, k])
        numbers[:, k] = held if held.dtype.kind in "fiub" else _numbers(held, f"{name}: column {shown(str(column))}")
    return numbers


def without_fill(X: Any) -> Any:
    """A frame of sparse columns as a dense one where what is not stored is not 0, which a sparse matrix cannot say."""
    zero = all(np.isscalar(kind.fill_value) and kind.fill_value == 0 for kind in X.dtypes)
    return X if zero else X.sparse.to_dense()


def _numbers(column: NDArray[Any], place: str) -> NDArray[np.float64]:
    numbers = np.empty(column.shape)
    for row, value in enumerate(column.tolist()):
        try:
            if isinstance(value, (str, bytes, complex)) or column.dtype.kind in "mM":
                raise TypeError
            numbers[row] = np.nan if value is None or is_na(value) else float(value)
        except (TypeError, ValueError):
            held = "text" if isinstance(value, str) else type(value).__name__
            raise InputError(f"{place} holds {held} (row {row}: {value!r:.40}), expected numbers") from None
    return numbers
