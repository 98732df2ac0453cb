"""Which columns of a table are labels, weights, groups, features, and which are left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmrm.data.layout import Alike, Layout, order_of, shown, shown_names
from bmrm.data.raw_columns import NUMBER, REFUSE, Coding, Key
from bmrm.problem import InputError
from bmrm.registry import nearest, parameter

LABEL_DOC = (
    "the column of labels: its name, or its number from 0 (-1: the last); a list of columns of numbers for several "
    "targets per row; null: none"
)
WEIGHT_DOC = "the column of sample weights, as of `label`; null: none"
GROUP_DOC = "the column of groups (queries), as of `label`; null: none"
IGNORE_DOC = (
    "columns that are left out, by names or numbers as of `label`; null: none but the index of a data frame, which "
    "`[]` keeps"
)


def columns_there(width: int) -> str:
    """Which numbers columns have, for messages."""
    return f"0 to {width - 1}, or -1 to -{width} from the last" if width else "none, for there are no columns"


_EMPTY = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None")
MISSING = frozenset((*_EMPTY, "#NA", "#N/A", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"))
"""Texts of a missing value: those of `pandas.read_csv`."""


_NUMBER = re.compile(r"-?\d{1,9}")


@dataclass(frozen=True)
class Wanted:
    """The options of a format of columns that say what each of these is."""

    label: str | int | tuple[str | int, ...] | None = parameter(-1, doc=LABEL_DOC, example=0)
    weight: str | int | None = parameter(None, doc=WEIGHT_DOC, example=0)
    group: str | int | None = parameter(None, doc=GROUP_DOC, example=0)
    ignore: tuple[str | int, ...] | None = parameter(None, doc=IGNORE_DOC, example=(0,))

    @property
    def labels(self) -> tuple[Key, ...]:
        """The columns of labels."""
        wanted = self.label if isinstance(self.label, tuple) else (self.label,)
        return tuple(label for label in wanted if label is not None)

    @property
    def stated(self) -> tuple[Key, ...]:
        """All columns that have a part of their own."""
        return (*self.labels, *(key for key in (self.weight, self.group) if key is not None))


def must_be_encoded(coding: Coding | None, alike: Alike | None) -> bool:
    """Whether columns become features by an encoding even if all hold numbers."""
    return bool(coding is not None and coding.stated) or (alike is not None and alike.layout.encoding is not None)


@dataclass(frozen=True)
class Roles:
    """The positions of the columns of a file; `ignored` are the names of those left out, `notes` what to tell of it."""

    label: tuple[int, ...]
    weight: int | None
    group: int | None
    features: tuple[int, ...]
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def layout(self, format: Mapping[str, Any], names: Sequence[str] | None) -> Layout:
        """The layout by which other files are read in the same way."""
        features = None if names is None else tuple(names[k] for k in self.features)
        labels = None if names is None else tuple(names[k] for k in self.label)
        return Layout(format, len(self.features), features, labels, self.label, ignored=self.ignored, notes=self.notes)


class Table:
    """The columns of a file.

    Parameters
    ----------
    path : of the file, for messages.
    names : of the columns; their numbers where they have none.
    headed : whether they have names.
    index : positions of the columns that are the index of a data frame, left out unless they are asked for.
    """

    def __init__(self, path: Path, names: Sequence[str], headed: bool, index: Sequence[int] = ()) -> None:
        self.path, self.names, self.headed = path, list(names), headed
        self.width = len(self.names)
        self.index = tuple(index)
        self.kept = list(range(self.width))
        """Positions of the columns that are not left out, nor of an index that has a part."""

    def roles(self, wanted: Wanted, alike: Alike | None = None) -> Roles:
        """What each column is; of a file that is to be read as others were, labels, weights and groups may be absent.

        Raises
        ------
        InputError
            A column that does not exist, is named twice, or has a part though it is left out, or no column is left for
            features.
        """
        ignored = self._ignored(wanted, alike)
        index = [column for column in self._index(wanted, alike) if column not in ignored]
        apart = {*ignored, *index, *self._stated_index(wanted)}
        self.kept = [k for k in range(self.width) if k not in apart]
        weight, group = (self._extra(key, wanted, alike) for key in (wanted.weight, wanted.group))
        extra = {column for column in (weight, group) if column is not None}
        known = None if alike is None else self._labels_alike(alike, extra)
        label = [self.column(key) for key in wanted.labels] if known is None else known
        taken = [*label, *extra]
        if len(set(taken)) < len(label) + (weight is not None) + (group is not None):
            raise InputError(f"{self.path}: a column is named twice among label, weight and group: {wanted.label}")
        both = next((k for k in taken if k in ignored), None)
        if both is not None:
            what = "label" if both in label else "weight" if both == weight else "group"
            raise InputError(f"{self.path}: column {shown(self.names[both])} is the {what} and in data.ignore, too")
        index = [k for k in index if k not in taken]
        features = tuple(k for k in self.kept if k not in taken)
        if not features:
            raise InputError(f"{self.path}: no columns beside the labels, expected at least one feature")
        names = [self.names[k] for k in (*sorted(ignored), *index)] if self.headed else []
        return Roles(tuple(label), weight, group, features, tuple(filter(None, names)), self._notes(index))

    def kinds(self, roles: Roles, coding: Coding | None, alike: Alike | None) -> tuple[bool, dict[int, str | None]]:
        """Whether all values must be there, and the kind of each feature's column; None where what it holds decides.

        Without `coding`, they are those of the files that this one is read like, else numbers.

        Raises
        ------
        InputError
            For a column that `coding` names and that does not exist, or is none of the features.
        """
        known = None if alike is None else alike.layout.encoding
        if known is not None:
            if self.headed and known.headed:
                order_of([self.names[k] for k in roles.features], known.sources, str(self.path))
            kinds = {k: known.kind_of(self.names[k], place) for place, k in enumerate(roles.features)}
            return known.missing == REFUSE, kinds
        if coding is None:
            return True, dict.fromkeys(roles.features, NUMBER)
        found: dict[int, str | None] = dict.fromkeys(roles.features)
        for key, kind in coding.wanted.items():
            of_command_line = isinstance(key, str) and key not in self.names and _NUMBER.fullmatch(key)
            column = self.column(int(key) if of_command_line else key)
            if column not in found:
                raise InputError(
                    f"{self.path}: column {shown(self.names[column])} is to become features ({kind}), but is a label, "
                    "weight or group, or left out"
                )
            found[column] = kind
        return coding.missing == REFUSE, found

    def column(self, key: Key) -> int:
        """The position of a column; negative numbers count from the end, without columns that are left out."""
        if isinstance(key, str):
            if not self.headed:
                raise InputError(f"{self.path}: column {key!r}, but the file has no header")
            places = [k for k, name in enumerate(self.names) if name == key]
            if not places:
                close = nearest(key, self.names)
                raise InputError(f"{self.path}: 0 columns are named {key!r}, expected one{close}")
            if len(places) > 1:
                raise InputError(
                    f"{self.path}: {len(places)} columns are named {key!r}, those with the numbers "
                    f"{', '.join(map(str, places))}; state the number of one (label: {places[0]})"
                )
            return places[0]
        if key >= self.width and self.headed and self.names.count(str(key)) == 1:
            return self.names.index(str(key))  # a year
        count = self.width if key >= 0 else len(self.kept)
        if not -count <= key < count:
            raise InputError(f"{self.path}: column {key}, expected {columns_there(count)}")
        if key < 0:
            return self.kept[key]
        if self.headed and str(key) in self.names and self.names[key] != str(key):
            raise InputError(
                f"{self.path}: column {key} may be that of this number, {shown(self.names[key])}, or that of this "
                f"name; state the name in quotes ({self.names[key]!r} or '{key}')"
            )
        return key

    def _ignored(self, wanted: Wanted, alike: Alike | None) -> set[int]:
        """The columns that are left out by name or number; files that are read as others were may lack them."""
        found: set[int] = set()
        for key in wanted.ignore or ():
            named = [k for k, name in enumerate(self.names) if name == key] if self.headed else []
            if named:
                found.update(named)
            elif isinstance(key, int) or _NUMBER.fullmatch(key):  # of a command line, where all is text
                found.add(self.column(int(key)))
            elif alike is None:
                found.add(self.column(key))
        if alike is None:
            return found
        if not self.headed and self.width - len(found) < (alike.layout.width or 0):
            return set()
        known = set(alike.layout.ignored).difference(alike.layout.columns or ())
        return found | {k for k, name in enumerate(self.names) if self.headed and name in known}

    def _index(self, wanted: Wanted, alike: Alike | None) -> list[int]:
        """The columns of the index that are to be left out: all, unless they have a part or `ignore` is empty."""
        if wanted.ignore is not None and not wanted.ignore:
            return []
        known = () if alike is None else (*(alike.layout.columns or ()), *(alike.layout.labels or ()))
        stated = (*wanted.stated, *filter(None, known))
        return [k for k in self.index if self.names[k] not in stated and k not in stated]

    def _stated_index(self, wanted: Wanted) -> list[int]:
        """The columns of the index that have a part: the last column is that of the frame."""
        kept = wanted.ignore is not None and not wanted.ignore
        return [] if kept else [k for k in self.index if self.names[k] in wanted.stated or k in wanted.stated]

    def _notes(self, index: Sequence[int]) -> tuple[str, ...]:
        if not index:
            return ()
        one = len(index) == 1
        if all(self.names[k] for k in index):
            what = shown_names([self.names[k] for k in index], "column")
        else:
            what = "the first column, which has no name," if one else f"the first {len(index)} columns"
        return (f"{what} {'is' if one else 'are'} left out: the index of a data frame (data.ignore: [] would keep it)",)

    def _extra(self, key: Key | None, wanted: Wanted, alike: Alike | None) -> int | None:
        """Of weights or groups; absent where other files had the column and this one has fewer."""
        if key is None:
            return None
        if alike is not None and (
            (isinstance(key, str) and key not in self.names)
            or (isinstance(key, int) and len(self.kept) == alike.layout.width)
        ):
            return None
        return self.column(key)

    def _labels_alike(self, alike: Alike, extra: set[int]) -> list[int] | None:
        """The columns of labels according to other files; None if names and positions do not determine them."""
        layout, there = alike.layout, {self.names[k] for k in self.kept} if self.headed else set()
        if self.headed and layout.labels is not None:
            missing = [label for label in layout.labels if label not in there]
            if missing and (alike.labelled or len(missing) < len(layout.labels)):
                close = nearest(missing[0], [name for name in self.names if name not in (layout.columns or ())])
                raise InputError(f"{self.path}: no {shown_names(missing, 'column')} with the labels{close}")
            return [] if missing else [self.column(label) for label in layout.labels]
        if self.headed and layout.columns is not None and there.issuperset(layout.columns):
            others = [k for k in self.kept if self.names[k] not in layout.columns and k not in extra]
            if len(others) == 1 or (not others and not alike.labelled):
                return others
        if len(set(self.kept) - extra) == layout.width and not alike.labelled:
            return []
        if layout.places is not None and any(place not in range(-self.width, self.width) for place in layout.places):
            raise InputError(
                f"{self.path}: {self.width} columns, but the labels are in column {max(layout.places)} from 0"
            )
        return None if layout.places is None else list(layout.places)
