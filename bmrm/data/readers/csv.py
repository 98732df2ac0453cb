"""Comma-separated numbers, one row per line; some columns may hold the labels."""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.files import open_text
from bmrm.data.label_types import stored
from bmrm.data.layout import Alike, Layout, shown_names
from bmrm.data.readers._core.formats import formats
from bmrm.data.readers._core.raw import Raw
from bmrm.data.readers._core.shares import row_share
from bmrm.problem import InputError, Targets
from bmrm.registry import nearest, parameter

_DELIMITERS = ",;\t"
_INTEGER = re.compile(r"[-+]?[0-9]+$")


@formats.register("csv")
@dataclass(frozen=True)
class Csv:
    """Comma-, semicolon- or tab-separated numbers; labels may be text."""

    label: str | int | tuple[str | int, ...] | None = parameter(
        -1,
        doc="the column of labels: its name, or its number from 0 (-1: the last); a list of columns of numbers for "
        "several targets per row; null: none",
        example=0,
    )
    header: bool | None = parameter(
        None, doc="the first row holds names; null: it does where none of its fields is a number", example=True
    )
    delimiter: str | None = parameter(
        None, doc="one character; null: comma, semicolon or tab, by the first row", example=";"
    )

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv")

    def __post_init__(self) -> None:
        if isinstance(self.label, list):
            object.__setattr__(self, "label", tuple(self.label))
        if self.label == ():
            raise InputError("Csv: label is an empty list, expected columns, or null for none")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise InputError(f"Csv: delimiter is {self.delimiter!r}, expected one character")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether the first line has a delimiter and its fields no colons."""
        line = head.split(b"\n", 1)[0].strip()
        return any(mark in line for mark in (b",", b";", b"\t")) and b":" not in line and b"\0" not in line

    @property
    def keeps_groups(self) -> bool:
        """As of `Divisible`: there are no groups."""
        return True

    def heading(self, text: bytes) -> int:
        """As of `Divisible`: the names of the columns."""
        end, first = 0, b""
        while end < len(text) and not first.strip():
            start, end = end, _end_of_record(text, end)
            first = text[start:end]
        fields = next(csv.reader([first.decode("utf-8-sig", "replace")], delimiter=self._delimiter(first)), [])
        headed = not any(_is_number(field) for field in fields) if self.header is None else self.header
        return end if headed else 0

    def last_border(self, text: bytes) -> int:
        """As of `Divisible`: the end of the last line that is not inside quotes."""
        end = text.rfind(b"\n")
        while end >= 0 and text.count(b'"', 0, end) % 2:
            end = text.rfind(b"\n", 0, end)
        return end + 1

    def has_rows(self, text: bytes) -> bool:
        """As of `Divisible`: whether a line is not blank."""
        return bool(text.strip())

    def _delimiter(self, line: bytes) -> str:
        return self.delimiter or max(_DELIMITERS, key=line.decode("utf-8", "replace").count)

    def scan(self, path: Path, part: int = 0, parts: int = 1, alike: Alike | None = None) -> Raw:
        """The share of the rows; every part reads the whole file, because a quoted field may hold a newline."""
        with open_text(path) as text:
            table = _Table(path, self, text, alike)
        start, stop = row_share(table.rows, part, parts)
        return Raw(table.dataset(), str(path)).kept(start, stop)


def _end_of_record(text: bytes, start: int) -> int:
    """Behind the first line from `start` that does not end inside quotes."""
    end = text.find(b"\n", start)
    while end >= 0 and text.count(b'"', start, end) % 2:
        end = text.find(b"\n", end + 1)
    return len(text) if end < 0 else end + 1


class _Table:
    """The fields of a file: numbers by row, labels separately."""

    def __init__(self, path: Path, options: Csv, text: Any, alike: Alike | None = None) -> None:
        self.path, self.options = path, options
        self.numbers = array("d")
        self.labels: list[list[str]] = []
        self.lines = array("q")
        records = self._records(text, options.delimiter)
        line, first = next(records, (0, []))
        if not first:
            raise InputError(f"{path}: the file has no rows")
        self.width = len(first)
        headed = not any(_is_number(field) for field in first) if options.header is None else options.header
        self.headed = headed
        self.names = [field.strip() for field in first] if headed else [str(k) for k in range(self.width)]
        wanted = options.label if isinstance(options.label, tuple) else (options.label,)
        known = None if alike is None else self._labels_alike(alike, headed)
        self.label = (
            known if known is not None else [self._label_column(label, headed) for label in wanted if label is not None]
        )
        if len(set(self.label)) < len(self.label):
            raise InputError(f"{path}: a label column is named twice in {options.label}")
        self.features = [k for k in range(self.width) if k not in self.label]
        if not self.features:
            raise InputError(f"{path}: no columns beside the labels, expected at least one feature")
        if not headed:
            self._add(line, first)
        for line, fields in records:
            self._add(line, fields)
        self.rows = len(self.lines)
        if self.rows == 0:
            raise InputError(f"{path}: the file has no rows")

    def dataset(self) -> Dataset:
        """All rows."""
        X = np.frombuffer(self.numbers).reshape(self.rows, len(self.features))
        finite = np.isfinite(X)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            self._refuse(self.lines[int(row)], self.features[int(column)], str(X[row, column]))
        y, dtype = self._targets()
        return Dataset(X.copy(), Targets(y, dtype=dtype), self._layout(), bool(self.label))

    def _layout(self) -> Layout:
        """The layout by which other files are read in the same way."""
        names, labels = (
            (tuple(self.names[k] for k in columns) if self.headed else None) for columns in (self.features, self.label)
        )
        return Layout(formats.describe(self.options), len(self.features), names, labels, tuple(self.label))

    def _labels_alike(self, alike: Alike, headed: bool) -> list[int] | None:
        """The columns of labels according to other files; None if names and positions do not determine them."""
        layout, there = alike.layout, set(self.names) if headed else set()
        if headed and layout.labels is not None:
            missing = [label for label in layout.labels if label not in there]
            if missing and (alike.labelled or len(missing) < len(layout.labels)):
                close = nearest(missing[0], [name for name in self.names if name not in (layout.names or ())])
                raise InputError(f"{self.path}: no {shown_names(missing, 'column')} with the labels{close}")
            return [] if missing else [self._label_column(label, True) for label in layout.labels]
        if headed and layout.names is not None and there.issuperset(layout.names):
            others = [k for k, name in enumerate(self.names) if name not in layout.names]
            if len(others) == 1 or (not others and not alike.labelled):
                return others
        if self.width == layout.features and not alike.labelled:
            return []
        return None if layout.places is None else [self._label_column(place, headed) for place in layout.places]

    def _records(self, text: Any, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
        """Line number and fields of every record that is not blank."""
        if delimiter is None:
            first = text.readline()
            text.seek(0)
            delimiter = max(_DELIMITERS, key=first.count)
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            for fields in reader:
                if fields and any(field.strip() for field in fields):
                    yield reader.line_num, fields
        except csv.Error as error:
            raise InputError(f"{self.path}, line {reader.line_num}: {error}") from error

    def _label_column(self, label: str | int, headed: bool) -> int:
        if isinstance(label, str):
            if not headed:
                raise InputError(f"{self.path}: label column {label!r}, but the file has no header")
            if self.names.count(label) != 1:
                close = nearest(label, self.names)
                raise InputError(
                    f"{self.path}: {self.names.count(label)} columns are named {label!r}, expected one{close}"
                )
            return self.names.index(label)
        if not -self.width <= label < self.width:
            raise InputError(f"{self.path}: label column {label}, but there are {self.width} columns")
        return label % self.width

    def _add(self, line: int, fields: Sequence[str]) -> None:
        if len(fields) != self.width:
            raise InputError(f"{self.path}, line {line}: {len(fields)} fields, expected {self.width}")
        features = fields
        if self.label:
            self.labels.append([fields[k].strip() for k in self.label])
            features = [fields[k] for k in self.features]
        try:
            if "_" in "".join(features):
                raise ValueError
            self.numbers.extend(map(float, features))
        except ValueError:
            column = next(k for k in self.features if not _is_number(fields[k]))
            self._refuse(line, column, repr(fields[column]))
        self.lines.append(line)

    def _refuse(self, line: int, column: int, field: str) -> None:
        raise InputError(f"{self.path}, line {line}, column {self.names[column]!r}: {field}, expected a finite number")

    def _targets(self) -> tuple[NDArray[Any], str]:
        """Labels and their type: integers, where all are written as such, else numbers, else text."""
        if not self.label:
            return np.zeros(self.rows), ""
        if len(self.label) == 1 and not all(_is_number(label) for (label,) in self.labels):
            missing = next((k for k, (label,) in enumerate(self.labels) if not label), None)
            if missing is not None:
                raise InputError(f"{self.path}, line {self.lines[missing]}: the label is missing")
            return np.array([label for (label,) in self.labels], dtype=np.str_), ""
        for line, labels in zip(self.lines, self.labels, strict=True):
            for column, label in zip(self.label, labels, strict=True):
                if not _is_number(label) or not math.isfinite(float(label)):
                    self._refuse(line, column, str(float(label)) if _is_number(label) else repr(label))
        if len(self.label) == 1 and all(_INTEGER.match(label) for (label,) in self.labels):
            whole = [int(label) for (label,) in self.labels]
            if min(whole) >= -(2**63) and max(whole) < 2**63:
                return stored(np.array(whole, np.int64))
        numbers = np.array([[float(label) for label in labels] for labels in self.labels])
        return (numbers[:, 0] if len(self.label) == 1 else numbers), ""


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field
