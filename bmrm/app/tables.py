"""Tables on standard output: wrapped to the width of a terminal, a line for each row where they are piped."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NARROWEST = 20
"""Least width of the last cell of a line, in columns of the terminal."""
GAP = "  "


def width() -> int | None:
    """Of the terminal; None where standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def csv_text(rows: Iterable[Sequence[Any]], delimiter: str = ",") -> str:
    """The text of a CSV file."""
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def print_json(value: Any) -> None:
    """For programs."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The rows below the headings; on a terminal the last cell is wrapped to fit."""
    print("\n".join(lines(headings, rows, width())))


def print_pairs(title: str, pairs: Mapping[str, str]) -> None:
    """A title, and a line for each name and value; on a terminal values are wrapped to fit."""
    limit = width()
    heading = [title] if limit is None else textwrap.wrap(title, max(limit, NARROWEST))
    print("\n".join([*heading, *pair_lines(pairs, limit)]))


def lines(headings: Sequence[str], rows: Sequence[Sequence[str]], limit: int | None) -> list[str]:
    """The lines of a table, none longer than `limit`, which is taken as at least `NARROWEST`."""
    widths = [max(len(cell) for cell in column) for column in zip(headings, *rows)]
    return [line for cells in [headings, *rows] for line in _lines_of(cells, widths, limit)]


def pair_lines(pairs: Mapping[str, str], limit: int | None) -> list[str]:
    """The lines of names and values, values wrapped to the right of the names."""
    indent = max(map(len, pairs), default=0) + 2 * len(GAP)
    return [line for name, value in pairs.items() for line in _wrapped(f"{GAP}{name}".ljust(indent), value, limit)]


def _lines_of(cells: Sequence[str], widths: Sequence[int], limit: int | None) -> list[str]:
    start = "".join(f"{cell:<{size}}{GAP}" for cell, size in zip(cells[:-1], widths[:-1]))
    return _wrapped(start, cells[-1], limit)


def _wrapped(start: str, text: str, limit: int | None) -> list[str]:
    """`start` and a text, wrapped to the right of it; below it where there are fewer than `NARROWEST` characters.

    Or where a word is longer than what is left beside, and not than a line.
    """
    if limit is None:
        return [(start + " ".join(text.split())).rstrip()]
    options: dict[str, Any] = {"subsequent_indent": " " * len(start), "break_on_hyphens": False}
    indent, room, beside = 2 * GAP, max(limit, NARROWEST), limit - len(start)
    longest = max(map(len, text.split()), default=0)
    if beside >= min(NARROWEST, len(text)) and not beside < longest <= room - len(indent):
        return textwrap.wrap(text, limit, initial_indent=start, **options) or [start.rstrip()]
    options |= {"subsequent_indent": indent}
    above = textwrap.wrap(" ".join(start.split()), room, **options)
    return above + textwrap.wrap(text, room, initial_indent=indent, **options)
