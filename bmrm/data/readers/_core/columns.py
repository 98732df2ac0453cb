"""Which columns of a table are labels, weights, groups and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmrm.data.layout import Alike, Layout, shown_names
from bmrm.problem import InputError
from bmrm.registry import nearest, parameter

Key = str | int
"""A column by its name, or by its number from 0 (negative: from the end)."""
LABEL_DOC = (
    "the column of labels: its name, or its number from 0 (-1: the last); a list of columns of numbers for several "
    "targets per row; null: none"
)


def weight_parameter() -> Any:
    """The option that names the column of sample weights."""
    return parameter(None, doc="the column of sample weights, as of `label`; null: none", example=0)


def group_parameter() -> Any:
    """The option that names the column of groups."""
    return parameter(None, doc="the column of groups (queries), as of `label`; null: none", example=0)


def columns_there(width: int) -> str:
    """Which numbers columns have, for messages."""
    return f"0 to {width - 1}, or -1 to -{width} from the last" if width else "none, for there are no columns"


@dataclass(frozen=True)
class Wanted:
    """What the options of a format say of the columns."""

    label: Key | tuple[Key, ...] | None
    weight: Key | None = None
    group: Key | None = None

    @property
    def labels(self) -> tuple[Key, ...]:
        """The columns of labels."""
        wanted = self.label if isinstance(self.label, tuple) else (self.label,)
        return tuple(label for label in wanted if label is not None)


@dataclass(frozen=True)
class Roles:
    """The positions of the columns of a file."""

    label: tuple[int, ...]
    weight: int | None
    group: int | None
    features: tuple[int, ...]

    def layout(self, format: Mapping[str, Any], names: Sequence[str] | None) -> Layout:
        """The layout by which other files are read in the same way."""
        features = None if names is None else tuple(names[k] for k in self.features)
        labels = None if names is None else tuple(names[k] for k in self.label)
        return Layout(format, len(self.features), features, labels, self.label)


class Table:
    """The columns of a file.

    Parameters
    ----------
    path : of the file, for messages.
    names : of the columns; their numbers where they have none.
    headed : whether they have names.
    """

    def __init__(self, path: Path, names: Sequence[str], headed: bool) -> None:
        self.path, self.names, self.headed = path, list(names), headed
        self.width = len(self.names)

    def roles(self, wanted: Wanted, alike: Alike | None = None) -> Roles:
        """What each column is; of a file that is to be read as others were, labels, weights and groups may be absent.

        Raises
        ------
        InputError
            A column that does not exist, or is named twice, or no column is left for features.
        """
        weight, group = (self._extra(key, wanted, alike) for key in (wanted.weight, wanted.group))
        extra = {column for column in (weight, group) if column is not None}
        known = None if alike is None else self._labels_alike(alike, extra)
        label = [self.column(key) for key in wanted.labels] if known is None else known
        taken = [*label, *extra]
        if len(set(taken)) < len(label) + (weight is not None) + (group is not None):
            raise InputError(f"{self.path}: a column is named twice among label, weight and group: {wanted.label}")
        features = tuple(k for k in range(self.width) if k not in taken)
        if not features:
            raise InputError(f"{self.path}: no columns beside the labels, expected at least one feature")
        return Roles(tuple(label), weight, group, features)

    def column(self, key: Key) -> int:
        """The position of a column."""
        if isinstance(key, str):
            if not self.headed:
                raise InputError(f"{self.path}: column {key!r}, but the file has no header")
            if self.names.count(key) != 1:
                close = nearest(key, self.names)
                raise InputError(f"{self.path}: {self.names.count(key)} columns are named {key!r}, expected one{close}")
            return self.names.index(key)
        if not -self.width <= key < self.width:
            raise InputError(f"{self.path}: column {key}, expected {columns_there(self.width)}")
        return key % self.width

    def _extra(self, key: Key | None, wanted: Wanted, alike: Alike | None) -> int | None:
        """Of weights or groups; absent where other files had the column and this one has fewer."""
        if key is None:
            return None
        if alike is not None and (
            (isinstance(key, str) and key not in self.names)
            or (isinstance(key, int) and self.width == alike.layout.features)
        ):
            return None
        return self.column(key)

    def _labels_alike(self, alike: Alike, extra: set[int]) -> list[int] | None:
        """The columns of labels according to other files; None if names and positions do not determine them."""
        layout, there = alike.layout, set(self.names) if self.headed else set()
        if self.headed and layout.labels is not None:
            missing = [label for label in layout.labels if label not in there]
            if missing and (alike.labelled or len(missing) < len(layout.labels)):
                close = nearest(missing[0], [name for name in self.names if name not in (layout.names or ())])
                raise InputError(f"{self.path}: no {shown_names(missing, 'column')} with the labels{close}")
            return [] if missing else [self.column(label) for label in layout.labels]
        if self.headed and layout.names is not None and there.issuperset(layout.names):
            others = [k for k, name in enumerate(self.names) if name not in layout.names and k not in extra]
            if len(others) == 1 or (not others and not alike.labelled):
                return others
        if self.width - len(extra) == layout.features and not alike.labelled:
            return []
        return None if layout.places is None else [self.column(place) for place in layout.places]
