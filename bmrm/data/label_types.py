"""Conversion of labels of any type to the few that are used inside, and back, so that predictions have the user's type.

Losses see float64, or int64 if float64 cannot hold all labels, or text; truth values become 0 and 1, times the integers
by which NumPy stores them.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import InputError

EXACT = 2**53
"""float64 is exact for integers up to this size."""
_WHOLE = "iubmM"


def stored(array: NDArray[Any], name: str = "y") -> tuple[NDArray[Any], str]:
    """Labels as float64, int64 or text, and the name of their type; "" for text and numbers that stay float64.

    Parameters
    ----------
    array : (rows,) of any type.
    name : of the argument, for messages.

    Raises
    ------
    InputError
        For labels that are missing, of mixed types, or that no type of NumPy holds, naming the row.
    """
    if array.dtype.kind in "OT":
        array = of_one_type(array, name)
    kind = array.dtype.kind
    if kind == "U":
        return array, ""
    if kind in "mM" and np.isnat(array).any():
        raise InputError(f"{name}: row {int(np.argmax(np.isnat(array)))} is missing (NaT), expected a label")
    if kind == "u" and array.size and int(array.max()) >= 2**63:
        row = int(np.argmax(array))
        raise InputError(f"{name}: row {row} is {array[row]}, expected integers below 2^63 (larger ones as text)")
    if kind in _WHOLE:
        whole = array.astype(np.int64)
        small = not whole.size or (int(whole.max()) <= EXACT and int(whole.min()) >= -EXACT)
        return whole.astype(np.float64) if small else whole, _name_of(array.dtype)
    if kind == "f":
        return array.astype(np.float64, copy=False), "" if array.dtype.itemsize >= 8 else array.dtype.name
    if kind == "c":
        raise InputError(f"{name}: complex numbers, expected real ones")
    raise InputError(f"{name} holds {'bytes' if kind == 'S' else array.dtype}, expected labels or numbers")


@cache
def _name_of(dtype: np.dtype[Any]) -> str:
    return str(dtype.newbyteorder("=").name)


def as_listed(values: Sequence[Any], array: NDArray[Any]) -> NDArray[Any]:
    """The array of a list, unless NumPy converts its numbers to text or rounds its integers."""
    if array.dtype.kind == "U":
        changed = not all(isinstance(value, str) and not value.endswith("\0") for value in values)
    else:
        changed = any(isinstance(value, int) and abs(value) > EXACT for value in values)
    return np.array(values, object) if changed else array


def type_of_numbers(numbers: NDArray[np.float64]) -> str:
    """The type of labels that were read as numbers from text: int64 if all are whole, else ""."""
    whole = np.all(np.abs(numbers) <= EXACT) and np.all(numbers == np.rint(numbers))
    return "int64" if whole and numbers.size else ""


@cache
def is_whole(dtype: str) -> bool:
    """Whether labels of that type are integers, or stand for some."""
    return bool(dtype) and np.dtype(dtype).kind in _WHOLE


def restored(labels: Sequence[Any], dtype: str) -> NDArray[Any]:
    """The inverse of `stored` for single labels; those that cannot have that type are returned unchanged."""
    plain: NDArray[Any] = np.array(labels) if len(labels) else np.empty(0)
    if not dtype or plain.dtype.kind not in "fiub":
        return plain
    if not is_whole(dtype):
        return plain.astype(dtype)
    whole = [int(label) for label in labels]
    turned = np.array(whole, np.int64).astype(dtype)
    return turned if turned.astype(np.int64).tolist() == whole == plain.tolist() else plain


def restored_rows(y: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Stored labels of many rows in the type that they had."""
    if not dtype or y.dtype.kind == "U":
        return y
    return (y.astype(np.int64) if is_whole(dtype) else y).astype(dtype)


def shown_label(label: Any, dtype: str) -> str:
    """A label as the user wrote it, for messages; cut where it is long."""
    if dtype and not isinstance(label, str):
        label = restored([label], dtype)[0]
        label = str(label) if np.dtype(dtype).kind in "mM" else label.item()
    text = repr(label)
    return text if len(text) <= 60 else text[:56] + "...'"


def of_one_type(array: NDArray[Any], name: str = "y") -> NDArray[Any]:
    """The objects as an array of truth values, integers, times, text or numbers; InputError names the row."""
    values = array.ravel().tolist()
    for row, value in enumerate(values):
        if value is None or is_na(value):
            raise InputError(f"{name}: row {row} is missing ({value}), expected numbers or labels")
        if isinstance(value, (list, tuple, set, frozenset, dict, np.ndarray)):
            raise InputError(f"{name}: row {row} is {value!r:.60}, expected one label per row, or a set in every row")
    found = {_sort_of(value) for value in values}
    if found == {"text"}:
        ends = next((row for row, value in enumerate(values) if value.endswith("\0")), None)
        if ends is not None:
            raise InputError(f"{name}: row {ends} is {values[ends]!r:.60}, expected text that does not end with a NUL")
        return np.array(values, np.str_)
    if "text" in found:
        row = next(k for k, value in enumerate(values) if isinstance(value, str))
        missing = next((k for k, value in enumerate(values) if value != value), None)
        if missing is not None:
            raise InputError(f"{name}: row {missing} is missing (nan), expected text as in row {row}")
        other = next(k for k, value in enumerate(values) if not isinstance(value, str))
        raise InputError(
            f"{name}: row {row} is the text {values[row]!r:.60}, row {other} is {values[other]!r:.60}; expected labels "
            "of one type"
        )
    if found == {"truth"}:
        return np.array(values, np.bool_)
    if found == {"time"}:
        if any(getattr(value, "tzinfo", None) is not None for value in values):
            raise InputError(f"{name}: times with a time zone, expected times without")
        return np.array(values, "M8")
    try:
        if found <= {"integer", "truth"} and found:
            return np.array([int(value) for value in values], np.int64)
        return np.array([float(value) for value in values], np.float64)
    except OverflowError:
        raise InputError(f"{name}: integers of more than 64 bits, expected them as text") from None
    except (TypeError, ValueError):
        kinds = [_sort_of(value) for value in values]
        row = kinds.index("other" if "other" in kinds else "time")
        raise InputError(f"{name}: row {row} is {values[row]!r:.60}, expected a label or a number") from None


def is_na(value: Any) -> bool:
    """Whether it is NA or NaT of pandas, which are equal to nothing, not even to a truth value."""
    return type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, (np.datetime64, np.timedelta64)) and bool(np.isnat(value))
    )


def _sort_of(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, (bool, np.bool_)):
        return "truth"
    if isinstance(value, (int, np.integer)):
        return "integer"
    if isinstance(value, (datetime.date, np.datetime64)):
        return "time"
    return "number" if isinstance(value, (float, np.floating)) else "other"
