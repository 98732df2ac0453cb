"""What is in a data set: sizes, storage, targets, groups, weights."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.label_types import restored_rows
from bmrm.data.labels import LabelSets
from bmrm.data.matrix import features_of
from bmrm.data.raw_columns import Coding
from bmrm.data.reading import read_offset, scan
from bmrm.problem import InputError, shown
from bmrm.registry import nearest

MOST_LISTED = 20
"""Most labels that are listed with their counts; of more a summary is given."""


@dataclass(frozen=True)
class Profile:
    """Of a data set.

    Attributes
    ----------
    format : the name of the file's format; None for data without a file.
    rows, features, nnz : how many.
    storage : dense or sparse, and the type of the values.
    kind : of the targets: "none", "labels", "numbers", "sets", "vectors".
    distinct : different labels or numbers; the numbers of a vector.
    counts : rows by label, for few labels; else None.
    span : the least and the largest; None where there are no targets.
    whole : whether the targets are text or whole numbers.
    groups : how many; None without.
    weights : the least, the largest and the sum; None without.
    offset : the least and the largest; None without.
    """

    format: str | None
    rows: int
    features: int
    nnz: int
    storage: str
    kind: str
    distinct: int
    counts: dict[str, int] | None
    span: tuple[str, str] | None
    whole: bool
    groups: int | None
    weights: tuple[float, float, float] | None
    offset: tuple[float, float] | None = None

    @property
    def density(self) -> float:
        """Features entries as a share of the matrix."""
        return self.nnz / max(1, self.rows * self.features)

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self)

    def targets_in_words(self) -> str:
        """A line on the targets."""
        if self.kind == "none":
            return "none"
        if self.kind == "sets":
            return f"label sets, {self.distinct} different labels"
        if self.kind == "vectors":
            return f"{self.distinct} numbers per row"
        if self.counts is not None:
            return ", ".join(f"{label}: {count}" for label, count in self.counts.items())
        least, largest = self.span or ("", "")
        return f"{self.distinct} different values from {least} to {largest}"


def look(source: str, format: Any, columns: Mapping[str, Any]) -> tuple[Dataset, bool]:
    """The rows of a source, and whether their features are made of text by templates.

    Parameters
    ----------
    source : one file, glob, `sklearn:NAME` or `synthetic:NAME`.
    format : as of `data.format`.
    columns : those of the fields `categorical`, `text`, `missing`, `drop_first`, `rare`, `offset` of the section `data`
        that are given.

    Raises
    ------
    InputError
        The source cannot be read, or has no such columns; an offset that is neither a column nor a file.
    """
    offset = columns.get("offset")
    coding = Coding.checked(**{name: value for name, value in columns.items() if name != "offset"})
    raw = scan(source, format=format, coding=coding)
    data = raw.dataset()
    if offset is None:
        return data, raw.names is not None
    names = data.feature_names or ()
    if offset in names or not Path(offset).is_file():
        if offset not in names:
            raise InputError(f"{source}: no column {shown(offset)}{nearest(offset, names)}, and no file, for an offset")
        return data.with_offset(offset), raw.names is not None
    numbers = read_offset(offset)
    if len(numbers) != data.rows:
        raise InputError(f"{offset}: the offset of {len(numbers)} rows, {source} has {data.rows} rows")
    return data.with_offset(numbers), raw.names is not None


def profile_of(data: Dataset, origin: str) -> Profile:
    """The profile of a data set; InputError, which names the origin, where it has no rows."""
    if data.rows == 0:
        raise InputError(f"{origin}: no rows")
    described = None if data.layout is None else data.layout.format
    groups, weights, offset = data.targets.groups, data.targets.weights, data.targets.offset
    with np.errstate(over="ignore"):
        span = None if weights is None else (float(weights.min()), float(weights.max()), float(weights.sum()))
    return Profile(
        None if described is None else str(described["name"]),
        data.rows,
        data.features,
        data.nnz,
        features_of(data.X).described,
        *_targets(data),
        None if groups is None else len(np.unique(groups)),
        span,
        None if offset is None else (float(offset.min()), float(offset.max())),
    )


def target_lines(data: Dataset, origin: str, as_json: bool) -> Iterator[str]:
    """The target of each row: a label or number, numbers with blanks, labels with commas; or each as JSON.

    Raises
    ------
    InputError
        Where rows have no targets.
    """
    if not data.labelled:
        raise InputError(f"{origin}: the rows have no targets")
    y: Any = data.targets.y
    if isinstance(y, LabelSets):
        rows: Iterable[Any] = (restored_rows(labels, y.dtype).tolist() for labels in y)
        between = ","
    else:
        rows, between = restored_rows(y, data.targets.dtype).tolist(), " "
    for row in rows:
        if as_json:
            yield json.dumps(row, default=str)
        else:
            yield between.join(map(text_of, row)) if isinstance(row, list) else text_of(row)


def _targets(data: Dataset) -> tuple[str, int, dict[str, int] | None, tuple[str, str] | None, bool]:
    """kind, distinct, counts, span and whole of a `Profile`."""
    y: Any = data.targets.y
    if not data.labelled:
        return "none", 0, None, None, False
    if isinstance(y, LabelSets):
        return "sets", len(y.classes()), None, None, True
    if y.ndim == 2:
        return "vectors", int(y.shape[1]), None, None, False
    labels, counts = np.unique(y, return_counts=True)
    whole = labels.dtype.kind != "f" or bool((labels == np.round(labels)).all())
    shown = [text_of(label) for label in restored_rows(labels, data.targets.dtype).tolist()]
    listed = dict(zip(shown, counts.tolist())) if len(shown) <= MOST_LISTED else None
    kind = "labels" if labels.dtype.kind == "U" or (whole and listed is not None) else "numbers"
    return kind, len(shown), listed, (shown[0], shown[-1]), whole


def text_of(value: Any) -> str:
    """Numbers so that reading them again gives the same bits; whole ones without a point."""
    return repr(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else str(value)
