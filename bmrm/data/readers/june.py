"""`june` of Komarek's thesis (2004, B.3): indices of the features that a row has in one file, outputs in another.

The file of the inputs has bare indices, as `spardat`, without targets. That of the outputs is a table with commas: a
line of names, an empty one, then a line for each row. Columns of nothing but `ACT` and `NOT_ACT` are outputs.
"""

from __future__ import annotations

import csv
from array import array
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.files import open_text
from bmrm.data.layout import Alike, Layout
from bmrm.data.matrix import Csr
from bmrm.data.readers._core.formats import formats
from bmrm.data.readers._core.raw import Raw
from bmrm.data.readers.spardat import COMMENT, indices_of, table_of
from bmrm.problem import InputError, Targets, shown
from bmrm.registry import nearest, parameter

ACT, NOT_ACT = "ACT", "NOT_ACT"
INPUTS, OUTPUTS = ".factors.ssv", ".activations.ssv"
"""Ends of the names of the two files."""


@formats.register("june")
@dataclass(frozen=True)
class June:
    """Two files: bare indices, from 0, of the features that are 1, and a table of outputs, `ACT` or `NOT_ACT`."""

    outputs: str | None = parameter(
        None, doc="the file of the outputs; null: NAME.activations.ssv for NAME.factors.ssv", example="b.csv"
    )
    label: str | int | tuple[str | int, ...] | None = parameter(
        None, doc="the output: its name, its number from 0, or a list of these; null: all of them", example="active"
    )

    suffixes: ClassVar[tuple[str, ...]] = (".ssv",)

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Never: two files belong together by their names."""
        return False

    def scan(self, path: Path, part: int = 0, parts: int = 1, alike: Alike | None = None) -> Raw:
        """The share of the rows; every part reads both files."""
        X = _inputs(path)
        beside = None if self.outputs is None else Path(self.outputs)
        if beside is None and path.name.endswith(INPUTS):
            beside = path.with_name(path.name.removesuffix(INPUTS) + OUTPUTS)
        if self.outputs is None and alike is not None and not alike.labelled:
            beside = beside if beside is not None and beside.is_file() else None
        elif beside is None:
            raise InputError(f"{path}: expected data.format: {{name: june, outputs: FILE}}, or a name in {INPUTS}")
        y, names = np.zeros(X.shape[0]), cast("tuple[str, ...]", ())
        if beside is not None:
            y, names = self._labels(beside)
            if len(y) != X.shape[0]:
                raise InputError(f"{beside}: outputs of {len(y)} rows, {path} has {X.shape[0]} rows")
        label = self.label if beside is None else names[0] if len(names) == 1 else names
        layout = Layout(formats.describe(replace(self, outputs=None, label=label)))
        data = Dataset(X, Targets(y, dtype="int64" if y.ndim == 1 and names else ""), layout, beside is not None)
        return Raw(data, str(path), 0, 0).share(part, parts)

    def _labels(self, path: Path) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        """1 for `ACT`, 0 for `NOT_ACT`, (rows,) or (rows, outputs), and the names of the outputs."""
        head, rows = _table(path)
        fit = {k: column for k, column in enumerate(zip(*rows)) if {ACT, NOT_ACT}.issuperset(column)}
        if not fit:
            raise InputError(f"{path}: no column of nothing but {ACT} and {NOT_ACT}, expected one")
        wanted = tuple(fit) if self.label is None else self.label
        places = [_place(key, head, path) for key in (wanted if isinstance(wanted, tuple) else (wanted,))]
        for k in places:
            if k not in fit:
                raise InputError(
                    f"{path}: column {shown(head[k])} has others than {ACT} and {NOT_ACT}, expected one of "
                    f"{', '.join(head[k] for k in fit)}"
                )
        table = np.array([[value == ACT for value in fit[k]] for k in places], np.float64).T
        names = tuple(head[k] for k in places)
        return (table[:, 0] if len(places) == 1 else np.ascontiguousarray(table)), names


def _place(key: str | int, head: list[str], path: Path) -> int:
    if key in head:
        return head.index(str(key))
    if isinstance(key, int) and 0 <= key < len(head):
        return key
    raise InputError(f"{path}: no column {key!r}{nearest(str(key), head)}")


def _inputs(path: Path) -> Csr:
    indices, ends = array("q"), array("q", [0])
    with open_text(path) as file:
        lines: list[Any] = file.read().splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    for number, line in enumerate(lines, 1):
        if not line.startswith(COMMENT):  # an empty line is a row without features
            indices.extend(indices_of(line.split(), path, number))
            ends.append(len(indices))
    if len(ends) == 1:
        raise InputError(f"{path}: the file has no rows")
    return table_of(indices, ends)


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    with open_text(path) as file:
        lines = [[field.strip() for field in line] for line in csv.reader(file)]
    lines = [line for line in lines if any(line)]
    if len(lines) < 2:
        raise InputError(f"{path}: expected a line of names, an empty line, and a line for each row")
    head, rows = lines[0], lines[1:]
    for number, row in enumerate(rows, 1):
        if len(row) != len(head):
            raise InputError(f"{path}: row {number} has {len(row)} fields, the names are {len(head)}")
    return head, rows
