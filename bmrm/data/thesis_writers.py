"""Writing of data sets in the formats of Komarek's thesis: spardat, june and Harwell-Boeing."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from itertools import pairwise
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.files import compressed_like_its_name, named_compressed
from bmrm.data.label_types import restored_rows
from bmrm.data.labels import LabelSets
from bmrm.data.matrix import Csr
from bmrm.data.readers.june import ACT, INPUTS, NOT_ACT, OUTPUTS
from bmrm.problem import InputError

ROWS_AT_A_TIME = 4096
INTEGERS, NUMBERS = "(6I12)", "(3E25.16)"
"""Fields of a line of a Harwell-Boeing file: numbers with 17 digits, which read back to the same bits."""


def write_spardat(path: str | PathLike[str], data: Dataset) -> None:
    """Write the target of each row and the bare indices, from 0, of its features, which are 0 or 1.

    Raises
    ------
    InputError
        For another number in the features; labels that are no numbers, or several; weights, groups or an offset.
    """
    _refuse_beside(path, data)
    y: Any = data.targets.y
    if isinstance(y, LabelSets) or y.ndim != 1 or y.dtype.kind == "U":
        raise InputError(f"{fspath(path)}: spardat holds one number per row, not text, vectors or sets of labels")
    with compressed_like_its_name(path) as file:
        for first, indices in _rows_of_ones(path, data):
            targets = restored_rows(y[first : first + len(indices)], data.targets.dtype).tolist()
            lines = [
                " ".join([repr(float(target)).removesuffix(".0"), *map(str, row)])
                for target, row in zip(targets, indices)
            ]
            file.write("".join(f"{line}\n" for line in lines).encode())


def write_june(path: str | PathLike[str], data: Dataset) -> None:
    """Write two files for `NAME.ssv`: `NAME.factors.ssv` of bare indices, and `NAME.activations.ssv`.

    Of two labels the last in sort order is `ACT`; of more, and of sets of labels, each has a column; columns of numbers
    are `ACT` where they are above 0.

    Raises
    ------
    InputError
        For features that are not 0 or 1; rows without labels; more than 1000 labels; weights, groups or an offset.
    """
    target = Path(path)
    if named_compressed(target):
        raise InputError(f"{target}: two files, which are not compressed; expected NAME.ssv")
    _refuse_beside(path, data)
    names, table = _outputs(path, data)
    stem = target.name.removesuffix(".ssv").removesuffix(INPUTS.removesuffix(".ssv"))
    with compressed_like_its_name(target.with_name(stem + INPUTS)) as file:
        for _, indices in _rows_of_ones(path, data):
            file.write("".join(" ".join(map(str, row)) + "\n" for row in indices).encode())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    text.write("\n")
    writer.writerows(np.where(table, ACT, NOT_ACT).tolist())
    with compressed_like_its_name(target.with_name(stem + OUTPUTS)) as file:
        file.write(text.getvalue().encode())


MOST_OUTPUTS = 1000


def _outputs(path: str | PathLike[str], data: Dataset) -> tuple[list[str], NDArray[np.bool_]]:
    y: Any = data.targets.y
    if not data.labelled:
        raise InputError(f"{fspath(path)}: rows without labels, but june has outputs")
    if isinstance(y, LabelSets):
        labels = y.classes()
        _refuse_many(path, len(labels))
        return [str(one) for one in restored_rows(labels, y.dtype).tolist()], y.indicator(labels)
    if y.ndim == 2:
        return [f"target{k}" for k in range(y.shape[1])], y > 0
    labels = np.unique(y)
    _refuse_many(path, len(labels))
    known = None if data.layout is None else data.layout.labels
    if len(labels) <= 2:
        return [known[0] if known else "target"], (y == labels[-1])[:, None]
    return [str(one) for one in restored_rows(labels, data.targets.dtype).tolist()], y[:, None] == labels


def _refuse_many(path: str | PathLike[str], labels: int) -> None:
    if labels > MOST_OUTPUTS:
        raise InputError(
            f"{fspath(path)}: {labels} different labels, june has an output for each; at most {MOST_OUTPUTS}"
        )


def write_harwell_boeing(path: str | PathLike[str], data: Dataset) -> None:
    """Write the features as a matrix of type RRA, and the targets as its right-hand sides.

    scipy's `hb_write` chooses the width of numbers by the largest, in which the smallest has no room.

    Raises
    ------
    InputError
        For labels that are text or sets; weights, groups or an offset; features without any entry.
    """
    from scipy.sparse import csc_matrix

    _refuse_beside(path, data)
    y: Any = data.targets.y
    if isinstance(y, LabelSets) or y.dtype.kind == "U":
        raise InputError(f"{fspath(path)}: right-hand sides are numbers, not text or sets of labels")
    matrix = csc_matrix(data.X.to_scipy() if isinstance(data.X, Csr) else data.X).astype(np.float64)
    if not matrix.nnz:
        raise InputError(f"{fspath(path)}: no feature has an entry, expected one at least")
    matrix.sort_indices()
    parts = [_integers(matrix.indptr + 1), _integers(matrix.indices + 1), _numbers(matrix.data), []]
    forms = f"{INTEGERS:<16}{INTEGERS:<16}{NUMBERS:<20}"
    if data.labelled:
        table = restored_rows(y, data.targets.dtype).astype(np.float64).reshape(data.rows, -1)
        parts[-1] = _numbers(table.T.reshape(-1))
        forms += f"{NUMBERS:<20}\n{'F':<14}{table.shape[1]:14d}{0:14d}"
    counts = [len(part) for part in parts]
    second = "".join(f"{count:14d}" for count in (sum(counts), *counts))
    third = f"{'RRA':<14}" + "".join(f"{count:14d}" for count in (*matrix.shape, matrix.nnz, 0))
    head = [f"{'bmrm':<72}{'bmrm':<8}", second, third, forms]
    with compressed_like_its_name(path) as file:
        for line in itertools.chain(head, *parts):
            file.write(f"{line}\n".encode())


def _integers(array: NDArray[Any]) -> list[str]:
    return _lines([f"{number:12d}" for number in array.tolist()], 6)


def _numbers(array: NDArray[np.float64]) -> list[str]:
    return _lines([f"{number:25.16E}" for number in array.tolist()], 3)


def _lines(fields: list[str], width: int) -> list[str]:
    return ["".join(fields[k : k + width]) for k in range(0, len(fields), width)]


def _refuse_beside(path: str | PathLike[str], data: Dataset) -> None:
    for name in ("weights", "groups", "offset"):
        if getattr(data.targets, name) is not None:
            raise InputError(f"{fspath(path)}: the format holds no {name}; expected npz, csv or Parquet")


def _rows_of_ones(path: str | PathLike[str], data: Dataset) -> Iterator[tuple[int, list[list[int]]]]:
    """The number of a first row, and the indices of it and those that follow; InputError for a number but 0 and 1."""
    for first in range(0, data.rows, ROWS_AT_A_TIME):
        X: Any = data.part(first, min(first + ROWS_AT_A_TIME, data.rows)).X
        table = X.to_scipy().tocsr() if isinstance(X, Csr) else None
        values = table.data if table is not None else X
        if not np.isin(values, (0.0, 1.0)).all():
            strange = values[~np.isin(values, (0.0, 1.0))].flat[0]
            raise InputError(
                f"{fspath(path)}: a feature is {strange:g}, but the format holds features of 0 and 1 alone"
            )
        if table is not None:
            table = table.copy()
            table.eliminate_zeros()
            ends, indices = table.indptr.tolist(), table.indices.tolist()
            yield first, [indices[a:b] for a, b in pairwise(ends)]
        else:
            yield first, [np.flatnonzero(row).tolist() for row in X]
