"""Harwell-Boeing files of real matrices, by scipy: features, and targets as the right-hand side.

Duff, Grimes & Lewis, "Users' guide for the Harwell-Boeing sparse matrix collection", 1992. Types RUA and RRA (real,
assembled), IUA and IRA. scipy reads no right-hand sides: they are the last lines, and a line of the head.
"""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.files import about, open_text
from bmrm.data.layout import Alike, Layout
from bmrm.data.readers._core.formats import formats
from bmrm.data.readers._core.raw import Raw
from bmrm.problem import InputError

TYPES = ("RUA", "RRA", "IUA", "IRA")
FIELDS = re.compile(r"\(\s*(?:\d+P\s*,?\s*)?(\d*)\s*[EDFGI](\d+)(?:\.\d+)?(?:E\d+)?\s*\)")


@formats.register("harwell_boeing")
@dataclass(frozen=True)
class HarwellBoeing:
    """A sparse real matrix, stored by columns; its right-hand sides, if there are any, are the targets."""

    suffixes: ClassVar[tuple[str, ...]] = (".hb", ".rua", ".rra")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether the third line of the head has a type."""
        lines = head.split(b"\n", 4)
        return len(lines) > 4 and len(lines[0]) >= 72 and lines[2][:3].upper().decode("latin-1") in TYPES

    def scan(self, path: Path, part: int = 0, parts: int = 1, alike: Alike | None = None) -> Raw:
        """The share of the rows; every part reads the whole file."""
        with open_text(path) as file:
            lines = file.read().splitlines()
        with about(path):
            y, lines = _right_hand_sides(lines)
            data = Dataset.from_arrays(_matrix(lines), y)
        if not data.rows:
            raise InputError(f"{path}: the file has no rows")
        data = replace(data, layout=Layout(formats.describe(self), data.features))
        return Raw(data, str(path)).share(part, parts)


def _matrix(lines: list[str]) -> Any:
    from scipy.io import hb_read

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            columns = hb_read(io.StringIO("\n".join(lines) + "\n"))
            columns.check_format(full_check=True)  # before compiled code follows its indices
            found = columns.tocsr()
    except Exception as error:  # scipy raises errors of many types for damaged files
        raise InputError(f"the file is damaged, or of a kind that scipy does not read ({error})") from error
    found.sum_duplicates()
    return found


def _right_hand_sides(lines: list[str]) -> tuple[NDArray[np.float64] | None, list[str]]:
    """The targets, (rows,) or (rows, sides), and the lines of the matrix alone, as scipy takes them."""
    kind = lines[2][:3].upper() if len(lines) > 3 else ""
    if kind not in TYPES:
        raise InputError(f"a matrix of type {kind!r}, expected one of {', '.join(TYPES)} in the third line")
    rows = _count(lines[2][14:28], "rows")
    sides = _count(lines[1][56:70] or "0", "lines of right-hand sides")
    first = lines[0].ljust(80)
    second = f"{lines[1][:56]}{0:14d}"
    third = f"{kind[0]}UA{lines[2][3:70]}"
    if len(lines) < 5:
        raise InputError(f"{len(lines)} lines, expected a head of 4 or 5 and the numbers")
    if not sides:
        return None, [first, second, third, *lines[3:]]
    y = _numbers(lines[-sides:], lines[3][52:72], _described(lines[4]), rows)
    return y, [first, second, third, lines[3][:52], *lines[5:-sides]]


def _described(line: str) -> int:
    """How many right-hand sides there are."""
    if line[:1].upper() != "F":
        raise InputError(f"right-hand sides of type {line[:3]!r}, expected F (full)")
    return _count(line[14:28], "right-hand sides")


def _numbers(lines: list[str], form: str, sides: int, rows: int) -> NDArray[np.float64]:
    fields = FIELDS.fullmatch(form.strip().upper())
    if fields is None:
        raise InputError(f"numbers of right-hand sides in the form {form.strip()!r}, expected such as (3E25.16)")
    width = int(fields[2])
    texts = [line[k : k + width] for line in lines for k in range(0, len(line.rstrip()), width)]
    try:
        numbers = np.array([float(text.upper().replace("D", "E")) for text in texts[: rows * sides]])
    except ValueError as error:
        raise InputError(f"right-hand sides: {error}") from None
    if len(numbers) < rows * sides:
        raise InputError(f"{len(numbers)} numbers of right-hand sides, expected {rows * sides}")
    table = numbers.reshape(sides, rows).T
    return table[:, 0] if sides == 1 else np.ascontiguousarray(table)


def _count(text: str, what: str) -> int:
    if not text.strip().isdigit():
        raise InputError(f"{text.strip()!r} {what}, expected a whole number in the head")
    return int(text)
