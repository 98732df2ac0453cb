"""Comma-separated columns of numbers and text, one row per line; some columns may hold the labels."""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset, check_groups, check_weights
from bmrm.data.files import HEAD, about, is_number, open_text
from bmrm.data.label_types import stored
from bmrm.data.layout import Alike
from bmrm.data.raw_columns import CATEGORY, DATES, NUMBER, REMEDY, Codes, Coding, Column, RawTable, no_levels
from bmrm.data.readers._core.columns import MISSING, Table, Wanted, must_be_encoded
from bmrm.data.readers._core.csv_head import DELIMITERS, LINES, Head, head_of, likely_delimiter
from bmrm.data.readers._core.formats import Divisible, formats
from bmrm.data.readers._core.raw import Raw
from bmrm.problem import InputError, Targets, Vector, shown
from bmrm.registry import parameter

_INTEGER = re.compile(r"[-+]?[0-9]+$")
_COUNTED = 10
"""Fewest rows for which a column that counts them is reported."""


@formats.register("csv")
@dataclass(frozen=True)
class Csv(Wanted, Divisible):
    """Numbers and text between commas, semicolons, tabs or bars."""

    header: bool | None = parameter(
        None,
        doc="the first row holds names; null: it does where none of its fields is a number, or where they count the "
        "columns or are unlike the rows below",
        example=True,
    )
    delimiter: str | None = parameter(
        None, doc="one character; null: comma, semicolon, tab or bar, by the first rows", example=";"
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
        """Whether the first line that is no comment has a delimiter and its fields no colons."""
        lines = (line.strip() for line in head.split(b"\n"))
        line = next((line for line in lines if line and not line.startswith(b"#")), b"")
        return any(mark.encode() in line for mark in DELIMITERS) and b":" not in line and b"\0" not in line

    @property
    def keeps_groups(self) -> bool:
        """As of `Divisible`: where there are none."""
        return self.group is None

    def settled(self, text: bytes, alike: Alike | None) -> Csv:
        """As of `Divisible`: delimiter and header."""
        head = self._head_of(text, alike)
        return replace(self, delimiter=head.delimiter, header=head.names is not None)

    def heading(self, text: bytes) -> int:
        """As of `Divisible`: what is before the rows, such as the names of the columns."""
        end = 0
        for _ in range(self._head_of(text, None).skipped):
            end = text.find(b"\n", end) + 1 or len(text)
        return end

    def _head_of(self, text: bytes, alike: Alike | None) -> Head:
        lines = text[:HEAD].decode("utf-8", "replace").split("\n")
        rest = lines.pop()  # behind the last line end: nothing, or a line that may be cut
        whole = [f"{line}\n" for line in lines] + ([rest] if rest and len(text) <= HEAD else [])
        return head_of(whole[:LINES], self.delimiter, self.header, alike, len(whole) > LINES or len(text) > HEAD)

    def last_border(self, text: bytes) -> int:
        """As of `Divisible`: the end of the last line that is not inside quotes."""
        end = text.rfind(b"\n")
        while end >= 0 and text.count(b'"', 0, end) % 2:
            end = text.rfind(b"\n", 0, end)
        return end + 1

    def scan(self, path: Path, part: int = 0, parts: int = 1, alike: Alike | None = None) -> Raw:
        """The share of the rows; every part reads the whole file, because a quoted field may hold a newline."""
        return self.scan_columns(path, part, parts, alike, Coding() if alike is None else None)

    def scan_columns(
        self, path: Path, part: int, parts: int, alike: Alike | None = None, coding: Coding | None = None
    ) -> Raw:
        """As of `Tabular`."""
        with open_text(path) as text:
            rows = _Rows(path, self, text, alike, coding)
        return Raw(rows.dataset(), str(path), table=rows.table, coding=coding).share(part, parts)


class _Numbers:
    """Numbers of consecutive rows, of the columns that hold numbers in all of them."""

    def __init__(self, columns: Sequence[int], first: int) -> None:
        self.columns, self.first = list(columns), first
        self.values = array("d")

    def column(self, column: int, rows: int) -> NDArray[np.float64]:
        """The numbers of a column, up to a row; nan for one that has none here."""
        count = rows - self.first
        if column not in self.columns:
            return np.full(count, np.nan)
        return np.frombuffer(self.values).reshape(count, len(self.columns))[:, self.columns.index(column)]


class _Texts:
    """The number of each row's text among the different ones of a column."""

    def __init__(self, missing: int) -> None:
        self.levels: dict[str, int] = {}
        self.codes = array("i", [-1] * missing)

    def column(self) -> Codes:
        return Codes(tuple(self.levels), np.frombuffer(self.codes, np.int32).copy())


class _Rows:
    """The fields of a file: numbers by row, labels separately; text by the number of its level."""

    def __init__(self, path: Path, options: Csv, text: Any, alike: Alike | None, coding: Coding | None) -> None:
        self.path, self.options = path, options
        self.labels: list[list[str]] = []
        self.lines = array("q")
        sample = list(islice(text, LINES))
        self.head = head_of(sample, options.delimiter, options.header, alike, len(sample) == LINES)
        records = self._records(chain(sample[self.head.skipped :], text))
        line, first = next(records, (0, []))
        if not first:
            raise InputError(f"{path}: the file has no rows")
        headed = self.head.names is not None
        count = len(first) - self.head.empty_last
        self.names = list(self.head.names) if self.head.names is not None else [str(k) for k in range(count)]
        self.width = len(self.names)
        if self.width == 1 and options.stated:
            self._refuse_one_column(first)
        columns = Table(path, self.names, headed, self.head.index)
        self.roles = columns.roles(options, alike)
        self.complete, self.kinds = columns.kinds(self.roles, coding, alike)
        self.encoded = must_be_encoded(coding, alike)
        self.texts = {column: _Texts(0) for column, kind in self.kinds.items() if kind not in (None, NUMBER)}
        self.numbers = [_Numbers([k for k in self.roles.features if k not in self.texts], 0)]
        self.extra: dict[int, list[str]] = {
            column: [] for column in (self.roles.weight, self.roles.group) if column is not None
        }
        self._add(line, first)
        for line, fields in records:
            self._add(line, fields)
        self.rows = len(self.lines)

        self._refuse_no_levels()
        self.table = self._table() if self.texts or self.encoded else None

    def dataset(self) -> Dataset:
        """All rows; without features where these are still to be made of the columns of `table`."""
        X = np.empty((self.rows, 0))
        if self.table is None:
            X = np.frombuffer(self.numbers[0].values).reshape(self.rows, len(self.roles.features))
            self._check(X, self.roles.features)
        y, dtype = self._targets()
        layout = self.roles.layout(formats.describe(self.options), self.names if self.head.names is not None else None)
        layout = replace(layout, notes=(*self.head.notes, *layout.notes, *self._counting()))
        return Dataset(X.copy(), Targets(y, self._weights(), self._groups(), dtype), layout, bool(self.roles.label))

    def _check(self, X: NDArray[np.float64], columns: Sequence[int]) -> None:
        """Raise InputError for a number that is not finite; where values may be missing, only for an infinite one."""
        finite = np.isfinite(X) if self.complete else ~np.isinf(X)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            self._refuse(self.lines[int(row)], columns[int(column)], str(X[row, column]))

    def _table(self) -> RawTable:
        """The columns of the features."""
        kinds, columns = [], list[Column]()
        for k in self.roles.features:
            if k in self.texts:
                kinds.append(self.kinds[k] or CATEGORY)
                columns.append(self.texts[k].column())
            else:
                kinds.append(NUMBER)
                numbers = self._column(k)
                self._check(numbers[:, None], [k])
                columns.append(numbers)
        headed = self.head.names is not None
        names = (self.names[k] if headed else f"x{k}" for k in self.roles.features)
        return RawTable(tuple(names), tuple(kinds), tuple(columns), self.rows, headed)

    def _column(self, column: int) -> NDArray[np.float64]:
        """The numbers of a column, so far."""
        ends = [*(one.first for one in self.numbers[1:]), len(self.lines)]
        return np.concatenate([one.column(column, end) for one, end in zip(self.numbers, ends)])

    def _refuse_no_levels(self) -> None:
        """Raise InputError where text of which nobody has said that it is levels seems to be something else."""
        for k, texts in self.texts.items():
            found = no_levels(tuple(texts.levels)) if self.kinds.get(k) is None else None
            if found is None:
                continue
            row = texts.codes.index(texts.levels[found[0]])
            if found[1] == "dates":
                where = f"{self.path}, line {self.lines[row]}, column {self.names[k]!r}"
                raise InputError(f"{where}: {shown(found[0])}; {DATES}")
            self._refuse(self.lines[row], k, shown(found[0]), self._told(found[0], row == 0))

    def _counting(self) -> Iterator[str]:
        """A note where the first feature is the number of the row."""
        column = self.roles.features[0]
        if column in self.texts or self.rows < _COUNTED:
            return
        numbers = self._column(column)
        first = float(numbers[0])
        if first in (0.0, 1.0) and np.array_equal(numbers, np.arange(self.rows) + first):
            name = self.names[self.roles.features[0]]
            yield f"column {shown(name)} counts the rows from {first:g} and is a feature; data.ignore leaves it out"

    def _weights(self) -> Vector | None:
        if self.roles.weight is None:
            return None
        texts = self.extra[self.roles.weight]
        for line, text in zip(self.lines, texts, strict=True):
            if not is_number(text) or not 0.0 <= float(text) < math.inf:
                where = f"{self.path}, line {line}, column {self.names[self.roles.weight]!r}"
                self._refuse_missing(texts, self.roles.weight, "weight")
                raise InputError(f"{where}: {text!r}, expected a finite number >= 0")
        with about(self.path):
            return check_weights(list(map(float, texts)), self.rows, some=False)

    def _groups(self) -> NDArray[np.int64] | None:
        if self.roles.group is None:
            return None
        texts = self.extra[self.roles.group]
        self._refuse_missing(texts, self.roles.group, "group")
        whole = all(_INTEGER.match(text) and len(text) < 19 for text in texts)
        return check_groups(list(map(int, texts)) if whole else texts, self.rows)

    def _records(self, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
        """Line number and fields of every record that is not blank."""
        reader, before = csv.reader(lines, delimiter=self.head.delimiter, strict=True), self.head.skipped
        try:
            for fields in reader:
                if any("\0" in field for field in fields):
                    raise InputError(f"{self.path}, line {reader.line_num + before}: a NUL character, expected text")
                if fields and any(field.strip() for field in fields):
                    yield reader.line_num + before, fields
        except csv.Error as error:
            raise InputError(f"{self.path}, line {reader.line_num + before}: {error}") from error

    def _refuse_one_column(self, first: Sequence[str]) -> None:
        """Say what is between the fields of a file that seems to have one column."""
        text = self.head.delimiter.join(first) if self.head.names is None else self.names[0]
        other = likely_delimiter(text)
        told = (
            "expected features beside the label"
            if other is None
            else (
                f"expected several with {self.head.delimiter!r} between them; what is between them is named by "
                f"data.format: {{name: csv, delimiter: {other!r}}}"
            )
        )
        raise InputError(f"{self.path}: one column, {shown(text)}, {told}")

    def _add(self, line: int, fields: Sequence[str]) -> None:
        if len(fields) != self.width:
            if not (self.head.empty_last and len(fields) == self.width + 1 and not fields[-1].strip()):
                self._refuse_width(line, fields)
            fields = fields[:-1]
        if len(self.roles.features) < self.width:
            self.labels.append([fields[k].strip() for k in self.roles.label])
        for column, texts in self.extra.items():
            texts.append(fields[column].strip())
        for column, gathered in self.texts.items():
            self._add_text(gathered, line, column, fields[column].strip())
        numbers = self.numbers[-1]
        features = fields if len(numbers.columns) == self.width else [fields[k] for k in numbers.columns]
        try:
            if "_" in "".join(features):
                raise ValueError
            numbers.values.extend(map(float, features))
        except ValueError:
            self._add_others(line, fields)
        self.lines.append(line)

    def _add_text(self, texts: _Texts, line: int, column: int, field: str) -> None:
        if field in MISSING:
            if self.complete:
                where = f"{self.path}, line {line}, column {self.names[column]!r}"
                raise InputError(f"{where}: the value is missing ({field!r}); {REMEDY}")
            texts.codes.append(-1)
        else:
            texts.codes.append(texts.levels.setdefault(field, len(texts.levels)))

    def _add_others(self, line: int, fields: Sequence[str]) -> None:
        """The fields of a row that are not all numbers: values are missing, or columns hold text."""
        rows, numbers = len(self.lines), self.numbers[-1]
        del numbers.values[(rows - numbers.first) * len(numbers.columns) :]
        other = [k for k in numbers.columns if not is_number(fields[k]) and fields[k].strip() not in MISSING]
        for k in other:
            if self.kinds.get(k) == NUMBER or not np.isnan(self._column(k)).all():
                self._refuse(line, k, shown(fields[k]), self._told(fields[k], not self.lines))
            self.texts[k] = _Texts(rows)
            self._add_text(self.texts[k], line, k, fields[k].strip())
        if other:
            numbers = _Numbers([k for k in numbers.columns if k not in other], rows)
            self.numbers.append(numbers)
        for k in numbers.columns:
            there = is_number(fields[k])
            if not there and self.complete:
                self._refuse(line, k, shown(fields[k]))
            numbers.values.append(float(fields[k]) if there else math.nan)

    def _told(self, field: str, first: bool) -> str:
        """What may be the cause of a field that is no number."""
        other = next((mark for mark in DELIMITERS if mark in field), None)
        if other == self.head.delimiter:
            return f"; a number in quotes is one without {other!r}, whatever groups its digits"
        if other is not None:
            return (
                f"; numbers have a point, not a comma, and between fields is {self.head.delimiter!r}, unless "
                f"data.format: {{name: csv, delimiter: {other!r}}} says so"
            )
        if first and self.head.names is None:
            return "; if the first line holds names: data.header: true"
        taken = ", ".join(repr(self.names[k]) for k in self.roles.label)
        return (
            f"; labels are taken from column {taken}, another is named by data.format: {{name: csv, label: ...}}, and "
            "data.ignore leaves columns out; data.categorical makes categories of a column"
            if taken
            else "; data.ignore leaves columns out, data.categorical makes categories of a column"
        )

    def _refuse_width(self, line: int, fields: Sequence[str]) -> None:
        told = ""
        if fields[0].lstrip().startswith("#"):
            told = "; lines that begin with # are comments before the first row only"
        elif not self.lines:
            told = "; if the file has other fields: data.format: {name: csv, delimiter: ...}"
        raise InputError(f"{self.path}, line {line}: {len(fields)} fields, expected {self.width}{told}")

    def _refuse(self, line: int, column: int, field: str, told: str = "") -> None:
        where = f"{self.path}, line {line}, column {self.names[column]!r}"
        told = f" (the value is missing; {REMEDY})" if field.strip().strip("'") in MISSING else told
        raise InputError(f"{where}: {field}, expected a finite number{told}")

    def _refuse_missing(self, texts: Sequence[str], column: int, what: str) -> None:
        if MISSING.isdisjoint(texts):
            return
        row = next(k for k, text in enumerate(texts) if text in MISSING)
        where = f"{texts[row]!r} in column {self.names[column]!r}"
        raise InputError(f"{self.path}, line {self.lines[row]}: the {what} is missing ({where})")

    def _targets(self) -> tuple[NDArray[Any], str]:
        """Labels and their type: integers, where all are written as such, else numbers, else text."""
        label = self.roles.label
        if not label:
            return np.zeros(self.rows), ""
        if len(label) == 1:
            self._refuse_missing([one for (one,) in self.labels], label[0], "label")
        if len(label) == 1 and not all(is_number(one) for (one,) in self.labels):
            return np.array([one for (one,) in self.labels], dtype=np.str_), ""
        for line, labels in zip(self.lines, self.labels, strict=True):
            for column, text in zip(label, labels, strict=True):
                if not is_number(text) or not math.isfinite(float(text)):
                    self._refuse(line, column, str(float(text)) if is_number(text) else shown(text))
        if len(label) == 1 and all(_INTEGER.match(one) for (one,) in self.labels):
            for line, (one,) in zip(self.lines, self.labels, strict=True):
                if not -(2**63) <= int(one) < 2**63:
                    where = f"{self.path}, line {line}, column {self.names[label[0]]!r}"
                    raise InputError(
                        f"{where}: label {shown(one)}, expected integers of 64 bits (larger numbers of a regression "
                        "with a point: 1e20)"
                    )
            return stored(np.array([int(one) for (one,) in self.labels], np.int64))
        numbers = np.array([[float(one) for one in labels] for labels in self.labels])
        return (numbers[:, 0] if len(label) == 1 else numbers), ""
