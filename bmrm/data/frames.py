"""Data frames as arrays: pandas, polars and similar; none of them is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.label_types import is_na
from bmrm.data.layout import shown
from bmrm.data.raw_columns import (
    CATEGORY,
    DATES,
    NUMBER,
    REFUSE,
    REMEDY,
    Codes,
    Column,
    RawTable,
    level_of,
    no_levels,
    numbered,
)
from bmrm.problem import InputError

NUMERIC = "int", "uint", "float", "bool", "double", "sparse[", "decimal"
"""Prefixes of the names of numeric types of pandas, polars and Arrow, in lower case."""
CATEGORICAL = "category", "categorical", "enum", "dictionary"
"""Of types that are categories."""
TIMES = "date", "time", "period", "duration", "interval"
"""Of types of dates and durations."""
KindOf = Callable[[str, int], "str | None"]
"""The kind of a column, by its name and place; None where its type says it."""


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


def has_numbers_only(X: Any) -> bool:
    """Whether the types of all columns of a frame are those of numbers; so is one that tells no types."""
    return all(str(kind).lower().startswith(NUMERIC) for kind in getattr(X, "dtypes", ()))


def table_of(X: Any, kind_of: KindOf, missing: str, name: str = "X") -> RawTable:
    """The columns of a data frame, or of an array (rows, columns) of numbers or objects.

    Parameters
    ----------
    X : with one column or more.
    kind_of : says what is wanted of a column; where it says nothing, text and categories are categories.
    missing : "refuse", or what stands in place of missing values, which then are nan and -1 here.
    name : of the argument, for messages.

    Raises
    ------
    InputError
        Naming the column, and the row where there is one: values that are missing, infinite, or neither numbers nor
        text; text that is numbers or dates.
    """
    frame = is_frame(X)
    named = names_of(X) if frame else None
    names = numbered(X.shape[1]) if named is None else named
    kinds, columns = [], []
    for k, one in enumerate(names):
        held = X[:, k] if not hasattr(X, "iloc") else X.iloc[:, k]
        called = f"column {k if named is None else shown(one)}"
        kind, column = _column(held, kind_of(one, k), f"{name}: {called}")
        _check(column, missing == REFUSE, f"{name}: row", called)
        kinds.append(kind)
        columns.append(column)
    return RawTable(tuple(names), tuple(kinds), tuple(columns), len(X), named is not None)


def _column(held: Any, kind: str | None, place: str) -> tuple[str, Column]:
    """The kind and the values of a column, of which `kind` is wanted."""
    stated = str(held.dtype).lower()
    if kind in (None, NUMBER) and stated.startswith(NUMERIC):
        return NUMBER, _floats(held, place)
    if stated.startswith(TIMES) and kind in (None, NUMBER):
        raise InputError(f"{place} holds {stated}: {DATES}")
    values = held.tolist() if isinstance(held, np.ndarray) else held.to_list()
    category = kind not in (None, NUMBER) or (kind is None and stated.startswith(CATEGORICAL))
    try:
        distinct = dict.fromkeys(values)
    except TypeError:  # lists and the like, which are neither
        return NUMBER, _numbers(np.asarray(held), place)
    text = next((value for value in distinct if isinstance(value, str)), None)
    if not category and (text is None or kind == NUMBER):
        return NUMBER, _numbers(np.asarray(held), place)
    codes = Codes.of_values(values)
    if category:
        return kind or CATEGORY, codes
    other = next((value for value in distinct if not isinstance(value, str) and level_of(value) is not None), None)
    if other is not None:
        raise InputError(
            f"{place} holds text (row {values.index(text)}: {text!r:.40}) and others (row {values.index(other)}: "
            f"{other!r:.40}), expected one of them; categorical takes all for categories"
        )
    if (found := no_levels(codes.levels)) is not None:
        told = DATES if found[1] == "dates" else "expected numbers; convert them, or name the column in categorical"
        raise InputError(f"{place} holds text (row {codes.first_of(found[0])}: {found[0]!r:.40}), {told}")
    return CATEGORY, codes


def _floats(held: Any, place: str) -> NDArray[Any]:
    array = np.asarray(held)
    if array.dtype.kind in "fiub":
        return array if array.dtype == np.float32 else array.astype(np.float64)
    return _numbers(array, place)


def _check(column: Column, complete: bool, row: str, name: str) -> None:
    """Raise InputError for a number that is infinite and, where all must be there, a value that is missing."""
    if isinstance(column, Codes):
        wrong, said = column.codes < 0, f"missing, expected a level; {REMEDY}"
        wrong = wrong if complete else np.zeros(0, bool)
    else:
        wrong = ~np.isfinite(column) if complete else np.isinf(column)
        first = column[np.argmax(wrong)] if wrong.any() else 0.0
        said = f"{first}, expected a finite number{f'; {REMEDY}' if np.isnan(first) else ''}"
    if wrong.any():
        raise InputError(f"{row} {int(np.argmax(wrong))}, {name} is {said}")
