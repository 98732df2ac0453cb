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

from bmrm.data.dataset import Dataset, check_groups, check_weights
from bmrm.data.files import open_text
from bmrm.data.label_types import stored
from bmrm.data.layout import Alike
from bmrm.data.readers._core.columns import LABEL_DOC, Table, Wanted, group_parameter, weight_parameter
from bmrm.data.readers._core.formats import formats
from bmrm.data.readers._core.raw import Raw
from bmrm.data.readers._core.shares import row_share
from bmrm.problem import InputError, Targets, Vector
from bmrm.registry import parameter

_DELIMITERS = ",;\t"
_INTEGER = re.compile(r"[-+]?[0-9]+$")


@formats.register("csv")
@dataclass(frozen=True)
class Csv:
    """Comma-, semicolon- or tab-separated numbers; labels may be text."""

    label: str | int | tuple[str | int, ...] | None = parameter(
        -1,
        doc=LABEL_DOC,
        example=0,
    )
    header: bool | None = parameter(
        None, doc="the first row holds names; null: it does where none of its fields is a number", example=True
    )
    delimiter: str | None = parameter(
        None, doc="one character; null: comma, semicolon or tab, by the first row", example=";"
    )
    weight: str | int | None = weight_parameter()
    group: str | int | None = group_parameter()

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
        """As of `Divisible`: where there are none."""
        return self.group is None

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
            table = _Rows(path, self, text, alike)
        data = table.dataset()
        start, stop = row_share(table.rows, part, parts, data.targets.groups)
        return Raw(data, str(path)).kept(start, stop)


def _end_of_record(text: bytes, start: int) -> int:
    """Behind the first line from `start` that does not end inside quotes."""
    end = text.find(b"\n", start)
    while end >= 0 and text.count(b'"', start, end) % 2:
        end = text.find(b"\n", end + 1)
    return len(text) if end < 0 else end + 1


class _Rows:
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
        self.roles = Table(path, self.names, headed).roles(Wanted(options.label, options.weight, options.group), alike)
        self.extra: dict[int, list[str]] = {
            column: [] for column in (self.roles.weight, self.roles.group) if column is not None
        }
        if not headed:
            self._add(line, first)
        for line, fields in records:
            self._add(line, fields)
        self.rows = len(self.lines)
        if self.rows == 0:
            raise InputError(f"{path}: the file has no rows")

    def dataset(self) -> Dataset:
        """All rows."""
        features = self.roles.features
        X = np.frombuffer(self.numbers).reshape(self.rows, len(features))
        finite = np.isfinite(X)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            self._refuse(self.lines[int(row)], features[int(column)], str(X[row, column]))
        y, dtype = self._targets()
        layout = self.roles.layout(formats.describe(self.options), self.names if self.headed else None)
        return Dataset(X.copy(), Targets(y, self._weights(), self._groups(), dtype), layout, bool(self.roles.label))

    def _weights(self) -> Vector | None:
        if self.roles.weight is None:
            return None
        texts = self.extra[self.roles.weight]
        for line, text in zip(self.lines, texts, strict=True):
            if not _is_number(text) or not 0.0 <= float(text) < math.inf:
                where = f"{self.path}, line {line}, column {self.names[self.roles.weight]!r}"
                raise InputError(f"{where}: {text!r}, expected a finite number >= 0")
        try:
            return check_weights(list(map(float, texts)), self.rows)
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from error

    def _groups(self) -> NDArray[np.int64] | None:
        if self.roles.group is None:
            return None
        texts = self.extra[self.roles.group]
        missing = next((line for line, text in zip(self.lines, texts, strict=True) if not text), None)
        if missing is not None:
            raise InputError(f"{self.path}, line {missing}, column {self.names[self.roles.group]!r}: no group")
        whole = all(_INTEGER.match(text) and len(text) < 19 for text in texts)
        return check_groups(list(map(int, texts)) if whole else texts, self.rows)

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

    def _add(self, line: int, fields: Sequence[str]) -> None:
        if len(fields) != self.width:
            raise InputError(f"{self.path}, line {line}: {len(fields)} fields, expected {self.width}")
        features = fields
        roles = self.roles
        if len(roles.features) < self.width:
            self.labels.append([fields[k].strip() for k in roles.label])
            features = [fields[k] for k in roles.features]
        for column, texts in self.extra.items():
            texts.append(fields[column].strip())
        try:
            if "_" in "".join(features):
                raise ValueError
            self.numbers.extend(map(float, features))
        except ValueError:
            column = next(k for k in roles.features if not _is_number(fields[k]))
            taken = ", ".join(repr(self.names[k]) for k in roles.label)
            told = f"; labels are taken from column {taken}, another is named by data.format: {{name: csv, label: ...}}"
            self._refuse(line, column, repr(fields[column]), told if taken else "")
        self.lines.append(line)

    def _refuse(self, line: int, column: int, field: str, told: str = "") -> None:
        where = f"{self.path}, line {line}, column {self.names[column]!r}"
        raise InputError(f"{where}: {field}, expected a finite number{told}")

    def _targets(self) -> tuple[NDArray[Any], str]:
        """Labels and their type: integers, where all are written as such, else numbers, else text."""
        label = self.roles.label
        if not label:
            return np.zeros(self.rows), ""
        if len(label) == 1 and not all(_is_number(one) for (one,) in self.labels):
            missing = next((k for k, (one,) in enumerate(self.labels) if not one), None)
            if missing is not None:
                raise InputError(f"{self.path}, line {self.lines[missing]}: the label is missing")
            return np.array([one for (one,) in self.labels], dtype=np.str_), ""
        for line, labels in zip(self.lines, self.labels, strict=True):
            for column, text in zip(label, labels, strict=True):
                if not _is_number(text) or not math.isfinite(float(text)):
                    self._refuse(line, column, str(float(text)) if _is_number(text) else repr(text))
        if len(label) == 1 and all(_INTEGER.match(one) for (one,) in self.labels):
            whole = [int(one) for (one,) in self.labels]
            if min(whole) >= -(2**63) and max(whole) < 2**63:
                return stored(np.array(whole, np.int64))
        numbers = np.array([[float(one) for one in labels] for labels in self.labels])
        return (numbers[:, 0] if len(label) == 1 else numbers), ""


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field
