"""One line of svmlight text in plain Python: the definition of the format.

The compiled scan gives the same for common lines and passes all others to `parse_line`.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

from bmrm.data.files import is_number

MOST_INDEX = 2**31 - 1
EXACT = 2.0**53
"""float64 is exact for integers up to this size."""


class Row(NamedTuple):
    """One parsed line."""

    labels: list[float]
    """Integers that float64 does not hold are Python's."""
    group: int | None
    indices: list[int]
    values: list[float]


def parse_line(
    line: bytes, *, multilabel: bool = False, least: int = 0, limit: float = sys.float_info.max
) -> Row | None:
    """Read one line; None if it has no row.

    Parameters
    ----------
    line : the bytes, with or without the newline.
    multilabel : whether a row has any number of labels, joined by commas.
    least : the smallest index allowed.
    limit : the largest absolute value allowed.

    Raises
    ------
    ValueError
        With what is wrong and what was expected.
    """
    tokens = line.split(b"#", 1)[0].split()
    if not tokens:
        return None
    labels: list[float] = []
    if not (multilabel and b":" in tokens[0]):
        first = tokens.pop(0)
        if b"," in first and not multilabel:
            raise ValueError(f"label {_shown(first)}, expected one number (several labels need multilabel: true)")
        labels = [_label(token) for token in (first.split(b",") if multilabel else [first])]
    group = None
    if tokens and tokens[0].startswith(b"qid"):
        head, colon, text = tokens.pop(0).partition(b":")
        if not colon:
            raise ValueError(f"{_shown(head)}, expected qid:integer or index:value")
        group = _integer(text, "qid")
        if not -(2**63) <= group < 2**63:
            raise ValueError(f"qid {_shown(text)}, expected a 64-bit integer")
    indices: list[int] = []
    values: list[float] = []
    before = least - 1
    for token in tokens:
        text, colon, value = token.partition(b":")
        if not colon:
            raise ValueError(f"{_shown(token)}, expected index:value")
        index = _integer(text, "index")
        if index <= before:
            if index < least:
                raise ValueError(f"index {index}, expected indices from {least}")
            raise ValueError(f"index {index} after {before}, expected rising indices")
        if index > MOST_INDEX:
            raise ValueError(f"index {index}, expected at most {MOST_INDEX}")
        values.append(_number(value, f"value of index {index}", limit))
        indices.append(index)
        before = index
    return Row(labels, group, indices, values)


def _label(token: bytes) -> float:
    """A number; an integer if float64 is not exact, which must have 64 bits: beyond, labels would become one."""
    number = _number(token, "label", sys.float_info.max)
    if abs(number) < EXACT or not token.lstrip(b"+-").isdigit() or abs(int(token)) == EXACT:
        return number
    if not -(2**63) <= int(token) < 2**63:
        raise ValueError(
            f"label {_shown(token)}, expected integers of 64 bits (larger numbers of a regression with a point: 1e20)"
        )
    return int(token)


def _number(token: bytes, what: str, limit: float) -> float:
    number = float(token) if is_number(token) else math.nan
    if not abs(number) <= limit:
        raise ValueError(f"{what} is {_shown(token)}, expected a finite number")
    return number


def _integer(token: bytes, what: str) -> int:
    try:
        if b"_" not in token:
            return int(token)
    except ValueError:
        pass
    raise ValueError(f"{what} {_shown(token)}, expected an integer")


def _shown(token: bytes) -> str:
    text = token.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 40 else text[:37] + "...")
