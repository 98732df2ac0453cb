"""Attribute files of CRFsuite: `label<TAB>attribute<TAB>attribute:value...`, one token a line, a blank line between.

An attribute has the value 1 unless a number follows behind a colon; in a name a backslash stands before a colon or a
backslash. An attribute that a token has twice has the sum of its values. A file in which every label is empty has none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.files import is_number, open_text
from bmrm.data.layout import Alike
from bmrm.data.matrix import Csr
from bmrm.data.readers._core.formats import formats
from bmrm.data.readers._core.raw import Raw
from bmrm.data.readers._core.sentences import BySentences, has_attributes
from bmrm.data.vocabulary import MOST_HASH_BITS, NamedColumns
from bmrm.problem import InputError, Targets, shown
from bmrm.registry import check_parameters, parameter

_ESCAPED = re.compile(r"\\([:\\])")
_VALUE = re.compile(r"(?<!\\)(?:\\\\)*:")


@formats.register("crfsuite")
@dataclass(frozen=True)
class Crfsuite(BySentences):
    """A label and attributes between tabs, one token per line, a blank line between sentences, as CRFsuite has them."""

    min_count: int = parameter(1, least=1, doc="tokens that must have an attribute for it to be kept", example=2)
    hash_bits: int | None = parameter(
        None,
        least=1,
        most=MOST_HASH_BITS,
        doc="hash attributes to `2**hash_bits` columns; null: a dictionary of all",
        example=10,
    )

    suffixes: ClassVar[tuple[str, ...]] = (".crfsuite", ".crf")

    def __post_init__(self) -> None:
        check_parameters(self)

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether the first lines are labels and attributes with a `=` inside, between tabs."""
        return has_attributes(head)

    def scan(self, path: Path, part: int = 0, parts: int = 1, alike: Alike | None = None) -> Raw:
        """The share of the sentences; every part reads the whole file."""
        labels: list[str] = []
        groups: list[int] = []
        ends, columns, values = [0], [], []
        table: dict[str, int] = {}
        for label, sentence, attributes in _tokens(path):
            merged: dict[int, float] = {}
            for name, value in attributes:
                column = table.setdefault(name, len(table))
                merged[column] = merged.get(column, 0.0) + value
            order = sorted(merged)
            columns += order
            values += [merged[column] for column in order]
            ends.append(len(columns))
            labels.append(label)
            groups.append(sentence)
        if not labels:
            raise InputError(f"{path}: the file has no tokens")
        if not table:
            raise InputError(f"{path}: no token has an attribute")
        numbers = np.array(values)
        given = None if (numbers == 1.0).all() else numbers
        X = Csr(np.array(ends, np.int64), np.array(columns, np.int32), given, len(table))
        group, labelled = np.array(groups, np.int64), any(labels)
        y = np.array(labels, np.str_) if labelled else np.zeros(len(labels))
        names = NamedColumns(tuple(table), self.min_count, self.hash_bits, formats.describe(self))
        raw = Raw(Dataset(X, Targets(y, None, group), None, labelled), str(path), names=names)
        return raw.share(part, parts)


def _tokens(path: Path) -> Iterator[tuple[str, int, list[tuple[str, float]]]]:
    """Label, number of the sentence, and attributes of each token."""
    sentence, inside, unlabelled = 0, False, None
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            text = line.rstrip("\r\n")
            if not text.strip():
                sentence, inside = sentence + inside, False
                continue
            label, *attributes = text.split("\t")
            if unlabelled is not None and unlabelled == bool(label.strip()):
                missing = "no label, expected one as before" if unlabelled is False else "a label, but none before"
                raise InputError(f"{path}, line {number}: {missing}")
            unlabelled, inside = not label.strip(), True
            try:
                yield label.strip(), sentence, [_attribute(one) for one in attributes if one]
            except ValueError as error:
                raise InputError(f"{path}, line {number}: {error}") from None


def _attribute(text: str) -> tuple[str, float]:
    match = _VALUE.search(text)
    name, value = (text, 1.0) if match is None else (text[: match.end() - 1], _number(text[match.end() :], text))
    return _ESCAPED.sub(r"\1", name), value


def _number(text: str, attribute: str) -> float:
    value = float(text) if is_number(text) else math.nan
    if not math.isfinite(value):
        raise ValueError(f"attribute {shown(attribute)}, expected name or name:number (a colon in a name is \\:)")
    return value
