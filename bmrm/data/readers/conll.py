"""Tokens in columns, one per line, with a blank line between sentences, as in the shared tasks of CoNLL."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.files import about, checked_path, open_lines, open_text
from bmrm.data.layout import Alike
from bmrm.data.matrix import Csr
from bmrm.data.readers._core.columns import columns_there
from bmrm.data.readers._core.formats import formats
from bmrm.data.readers._core.raw import Raw
from bmrm.data.readers._core.sentences import BySentences, has_columns, refuse_attributes
from bmrm.data.readers._core.shares import row_share
from bmrm.data.readers._core.templates import BUILT_IN, Interned, Sentences, Template, intern, parse
from bmrm.data.vocabulary import MOST_HASH_BITS, NamedColumns, Vocabulary
from bmrm.problem import InputError, Targets, shown
from bmrm.registry import check_parameters, nearest, parameter

Ids = NDArray[np.int64]
_HEAD = 1 << 16


@formats.register("conll")
@dataclass(frozen=True)
class Conll(BySentences):
    """Columns of text, one token per line, a blank line between sentences; features by templates."""

    templates: str = parameter(
        "chunking",
        doc="`chunking` or `tagging`, a file of templates, or templates themselves, a line each",
        example="w=%x[0,0]",
    )
    label: int | None = parameter(-1, doc="the column of labels, from 0 (-1: the last); null: none", example=0)
    min_count: int = parameter(1, least=1, doc="tokens that must have a feature for it to be kept", example=2)
    hash_bits: int | None = parameter(
        None,
        least=1,
        most=MOST_HASH_BITS,
        doc="hash features to `2**hash_bits` columns; null: a dictionary of all",
        example=10,
    )
    boundary: str = parameter(
        "mark", choices=("mark", "drop"), doc="whether places beyond a sentence have a name", example="drop"
    )
    separator: str | None = parameter(
        None,
        doc="between columns; null: blanks and tabs, or tabs alone where all lines have as many and blanks in tokens",
        example="\t",
    )
    columns: int | None = parameter(
        None,
        least=1,
        doc="columns with the label; a file with one less has no labels; null: as many as there are",
        example=4,
    )

    suffixes: ClassVar[tuple[str, ...]] = (".conll", ".iob", ".iob2")

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.separator == "":
            raise InputError("Conll: separator is empty, expected a character or null")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether the first lines are columns of text, with blank lines between sentences.

        Parameters
        ----------
        head : the first bytes of a file.
        """
        return has_columns(head)

    def scan(self, path: Path, part: int = 0, parts: int = 1, alike: Alike | None = None) -> Raw:
        """The share of the sentences; every part reads the whole file, which is cheap compared with making features.

        Parameters
        ----------
        path : the file.
        part, parts : which share of the sentences, of how many; default all.
        alike : how the training files were read; default None: these are the training files.
        """
        templates = parse(self._template_text())
        if self.separator is None:
            with open_lines(path) as file:
                refuse_attributes(file.read(_HEAD), path)
        table = _Table.read(path, self.separator, self.columns)
        label = self._label_column(table, path)
        groups = np.repeat(np.arange(table.starts.size - 1), np.diff(table.starts))
        start, stop = row_share(groups.size, part, parts, groups)
        table = table.part(start, stop)
        columns = [column for k, column in enumerate(table.columns) if k != label]
        y = np.zeros(stop - start) if label is None else np.array(table.columns[label], np.str_)
        read = replace(self, separator=table.separator)  # other files are read in the same way
        raw, targets = read._rows(templates, columns, table.starts, str(path)), Targets(y, None, groups[start:stop])
        return replace(raw, data=replace(raw.data, targets=targets, labelled=label is not None))

    def raw(self, columns: Sequence[Sequence[str]], starts: Ids, origin: str) -> Raw:
        """Tokens from Python: a text per token in each column, and where each sentence starts; no labels.

        Parameters
        ----------
        columns : of each column the text of every token.
        starts : (sentences + 1,), the token with which each sentence begins, and their number.
        origin : what messages call them.
        """
        return self._rows(parse(self._template_text()), columns, starts, origin)

    def _rows(self, templates: Sequence[Template], columns: Sequence[Sequence[str]], starts: Ids, origin: str) -> Raw:
        inputs = [intern(column) for column in columns]
        names, X = self._features(templates, inputs, starts, origin)
        named = NamedColumns(tuple(names), self.min_count, self.hash_bits, self._described(len(inputs)))
        groups = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        return Raw(Dataset(X, Targets(np.zeros(groups.size), None, groups), labelled=False), origin, names=named)

    def _described(self, inputs: int) -> dict[str, Any]:
        """These options including the templates and the number of columns, as a model stores them."""
        columns = inputs + 1 if self.label is not None else inputs
        return formats.describe(replace(self, templates=self._template_text(), columns=columns))

    def _template_text(self) -> str:
        if self.templates in BUILT_IN:
            return BUILT_IN[self.templates]
        if "%" in self.templates:
            return self.templates
        try:
            there = Path(self.templates).is_file()
        except (OSError, ValueError):  # a name that no file can have
            there = False
        if not there:
            close = nearest(self.templates, BUILT_IN)
            raise InputError(
                f"templates {shown(self.templates)}: no file, no built-in set{close}, and no macros such as %x[0,0]"
            )
        with open_text(Path(self.templates)) as file:
            return file.read()

    def _label_column(self, table: _Table, path: Path) -> int | None:
        width = len(table.columns)
        if self.columns is not None and width not in (self.columns, self.columns - 1):
            raise InputError(f"{path}: {width} columns, expected {self.columns}")
        whole = self.columns or width
        if self.label is None:
            return None
        if not -whole <= self.label < whole:
            raise InputError(f"{path}: label column {self.label}, expected {columns_there(whole)}")
        label = self.label % whole
        if width == whole:
            return label
        if label != whole - 1:
            raise InputError(f"{path}: {width} columns, expected {whole}, the label in column {label}")
        return None

    def _features(
        self, templates: Sequence[Template], inputs: Sequence[Interned], starts: Ids, origin: str
    ) -> tuple[list[str], Csr]:
        with about(origin):
            names, places = Sentences(inputs, starts, self.boundary == "mark").features(templates)
        places.sort(axis=1)
        kept = places >= 0
        kept[:, 1:] &= places[:, 1:] != places[:, :-1]
        indptr = np.concatenate(([0], np.cumsum(kept.sum(axis=1)))).astype(np.int64)
        return names, Csr(indptr, places[kept].astype(np.int32), None, len(names))


@dataclass(frozen=True)
class _Table:
    """The columns of a file, and the starts of sentences, followed by the number of tokens."""

    columns: list[Sequence[str]]
    starts: Ids
    separator: str | None = None

    @classmethod
    def read(cls, path: Path, separator: str | None, width: int | None) -> _Table:
        """The table; `width`: the number of columns with the label, None where that is not known."""
        with open_text(path) as file:
            lines = [line.rstrip("\r") for line in file.read().split("\n")]
        numbers = [number for number, line in enumerate(lines) if line.strip(_BLANKS)]
        if not numbers:
            raise InputError(f"{path}: the file has no tokens")
        rows, separator = _fields([lines[number] for number in numbers], separator)
        counts = Counter(map(len, rows))
        if len(counts) > 1:
            raise InputError(_uneven(path, numbers, rows, counts, width))
        breaks = [at for at, (a, b) in enumerate(pairwise(numbers), 1) if b > a + 1]
        return cls(list(zip(*rows, strict=True)), np.array([0, *breaks, len(rows)], np.int64), separator)

    def part(self, start: int, stop: int) -> _Table:
        """The tokens [start, stop), whole sentences."""
        first, last = np.searchsorted(self.starts, (start, stop))
        columns = [column[start:stop] for column in self.columns]
        return _Table(columns, self.starts[first : last + 1] - start, self.separator)


_BLANKS = " \t\r\v\f"
"""Characters between columns; other blanks, such as U+00A0, belong to tokens."""


def _fields(lines: Sequence[str], separator: str | None) -> tuple[list[list[str]], str | None]:
    """The fields of each line, and what is between them; None for blanks and tabs."""
    if separator is not None:
        return [line.split(separator) for line in lines], separator
    rows = [line.split() if line.isascii() else _split(line) for line in lines]
    counts, tabs = set(map(len, rows)), {line.count("\t") for line in lines}
    if len(tabs) == 1 and 0 not in tabs and counts != {max(tabs) + 1} and (len(counts) > 1 or max(tabs) > 1):
        return [line.split("\t") for line in lines], "\t"  # one tab may stand before what a program has added
    return rows, None


def _split(line: str) -> list[str]:
    return [field for field in _BETWEEN.split(line) if field]


_BETWEEN = re.compile(f"[{_BLANKS}]+")


def _uneven(
    path: Path, numbers: Sequence[int], rows: Sequence[Sequence[str]], counts: Counter[int], width: int | None
) -> str:
    """A message on the first line that has not as many columns as most, or as are known."""
    known = [count for count in (width, None if width is None else width - 1) if counts[count or 0]]
    usual = max(known or counts, key=lambda count: counts[count or 0])
    row = next(k for k, fields in enumerate(rows) if len(fields) != usual)
    told = "; comments are not read" if rows[row][0].startswith("#") else ""
    return f"{path}, line {numbers[row] + 1}: {len(rows[row])} columns, expected {usual}{told}"


def read_conll(
    path: Path | str, options: Conll | None = None, vocabulary: Vocabulary | None = None
) -> tuple[Dataset, Vocabulary]:
    """The sentences of a file, and the columns of their features.

    Parameters
    ----------
    path : possibly compressed.
    options : None for the defaults.
    vocabulary : that of training data; None makes one from this file.
    """
    raw = (Conll() if options is None else options).scan(checked_path(path))
    assert raw.names is not None
    vocabulary = raw.own_vocabulary() if vocabulary is None else vocabulary
    return raw.indexed(vocabulary).dataset(), vocabulary
