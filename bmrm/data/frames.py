"""Data frames as arrays: pandas, polars and similar; none of them is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.layout import shown
from bmrm.problem import InputError


def is_frame(X: Any) -> bool:
    """Whether `X` has named columns and can become an array."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


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
    sparse = getattr(X, "sparse", None)  # pandas has this where every column is sparse, and raises where not
    if sparse is not None and hasattr(sparse, "to_coo"):
        return sparse.to_coo()
    array = np.asarray(X.to_numpy())
    if array.dtype.kind in "fiub" or array.ndim != 2:
        return array
    numbers = np.empty(array.shape)
    for k, column in enumerate(X.columns):
        held = np.asarray(X.iloc[:, k] if hasattr(X, "iloc") else X[:, k])
        numbers[:, k] = held if held.dtype.kind in "fiub" else _numbers(held, f"{name}: column {shown(str(column))}")
    return numbers


def _numbers(column: NDArray[Any], place: str) -> NDArray[np.float64]:
    numbers = np.empty(column.shape)
    for row, value in enumerate(column.tolist()):
        try:
            if isinstance(value, (str, bytes, complex)) or column.dtype.kind in "mM":
                raise TypeError
            numbers[row] = np.nan if value is None or _missing(value) else float(value)
        except (TypeError, ValueError):
            held = "text" if isinstance(value, str) else type(value).__name__
            raise InputError(f"{place} holds {held} (row {row}: {value!r:.40}), expected numbers") from None
    return numbers


def _missing(value: Any) -> bool:
    """Whether it is pandas' NA, which is equal to nothing, not even to a truth value."""
    return type(value).__name__ in ("NAType", "NaTType")
