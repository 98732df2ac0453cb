"""Columns of a table as they were read, numbers or text, and what is wanted of them; an `Encoding` makes features."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.files import is_number
from bmrm.data.label_types import is_na
from bmrm.data.layout import order_of, shown
from bmrm.problem import InputError
from bmrm.problem import shown as shown_value
from bmrm.registry import Range, checked_value, nearest

Key = str | int
"""A column by its name, or by its number from 0 (negative: from the end)."""
NUMBER, CATEGORY = "number", "category"
"""Kinds of columns that have no words; `FORMS` of text are the others."""
FORMS = ("hashed", "counted")
"""How the words of a text become features."""
REFUSE = "refuse"
MISSING = (REFUSE, "mean", "indicator", "zero")
"""What may stand in place of missing values."""
REMEDY = "missing: mean, indicator or zero would take it"
DATES = (
    "dates and times are no features; compute numbers of them (days since one, month, weekday), or leave the column out"
)
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}([ T].*)?|\d{1,2}:\d{2}(:\d{2}.*)?"
)
_FIGURES = re.compile(r"[-+(]?[$€£]?[ ]?[-+]?\d[\d.,_' \u00a0]*(e[-+]?\d+)?[ ]?[%$€£)]?", re.IGNORECASE)


@dataclass(frozen=True)
class Coding:
    """What is wanted of columns that are not numbers, or lack values: fields of the section `data`.

    Attributes
    ----------
    categorical : columns that are one-hot encoded whatever they hold; those of text and categories are in any case.
    text : of columns of text, `hashed` or `counted`.
    missing : what stands in place of missing values: "refuse", "mean", "indicator" or "zero".
    drop_first : whether the first level of each category has no feature.
    rare : levels with fewer rows are one level, `(rare)`; None for none.
    """

    categorical: tuple[Key, ...] = ()
    text: Mapping[Key, str] = field(default_factory=dict)
    missing: str = REFUSE
    drop_first: bool = False
    rare: int | None = None

    @classmethod
    def checked(
        cls, categorical: Any = None, text: Any = None, missing: Any = REFUSE, drop_first: Any = False, rare: Any = None
    ) -> Coding:
        """What was given, checked; InputError names the argument."""
        if categorical is None and text is None and missing is REFUSE and drop_first is False and rare is None:
            return PLAIN
        if isinstance(categorical, (str, int)) and not isinstance(categorical, bool):
            categorical = (categorical,)
        named = () if categorical is None else categorical
        if isinstance(named, Mapping) or not isinstance(named, Iterable):
            raise InputError(f"categorical is {shown_value(categorical)}, expected a list of columns")
        keys = tuple(one.item() if isinstance(one, np.generic) else one for one in named)
        words = {} if text is None else text
        if not isinstance(words, Mapping) or not all(form in FORMS for form in words.values()):
            raise InputError(f"text is {shown_value(text)}, expected a dict of columns, each 'hashed' or 'counted'")
        for name, given in (("categorical", keys), ("text", tuple(words))):
            strange = next((key for key in given if type(key) not in (str, int)), None)
            if strange is not None:
                raise InputError(f"{name}: column {shown_value(strange)}, expected a name or a number from 0")
        both = next((key for key in keys if key in words), None)
        if both is not None:
            raise InputError(f"column {both!r} is in categorical and in text, expected one of them")
        return cls(
            keys,
            dict(words),
            checked_value("missing", missing, (str,), Range(choices=MISSING)),
            checked_value("drop_first", drop_first, (bool,)),
            checked_value("rare", rare, (int, type(None)), Range(least=1)),
        )

    @property
    def stated(self) -> tuple[str, ...]:
        """The names of what is not as it is by default."""
        if self == PLAIN:
            return ()
        return tuple(one.name for one in fields(self) if getattr(self, one.name) != getattr(PLAIN, one.name))

    @property
    def wanted(self) -> dict[Key, str]:
        """The kinds of the columns that are named."""
        return {**dict.fromkeys(self.categorical, CATEGORY), **self.text}

    def kinds(self, names: Sequence[str], name: str) -> dict[int, str]:
        """The kinds of the columns that are named, by position.

        Raises
        ------
        InputError
            For a column that is not there, or not once; `name` is that of the table.
        """
        return {place_of(key, names, name): kind for key, kind in self.wanted.items()}


PLAIN = Coding()
"""Of columns of which nothing is wanted."""


def place_of(key: Key, names: Sequence[str], name: str) -> int:
    """The position of a column by its name or number."""
    if isinstance(key, int):
        if not -len(names) <= key < len(names):
            raise InputError(f"{name}: column {key}, expected 0 to {len(names) - 1}, or -1 to -{len(names)}")
        return key % len(names)
    count = list(names).count(key)
    if count != 1:
        close = nearest(key, names) if not count else ""
        raise InputError(f"{name}: {count} columns are named {shown(key)}, expected one{close}")
    return list(names).index(key)


@dataclass(frozen=True, eq=False)
class Codes:
    """A column of text: the number of each row's text among the different ones, -1 where the value is missing."""

    levels: tuple[str, ...]
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, texts: Iterable[str | None], rows: int) -> Codes:
        """Those of some texts, None where one is missing."""
        known: dict[str, int] = {}
        numbers = (-1 if text is None else known.setdefault(text, len(known)) for text in texts)
        codes = np.fromiter(numbers, np.int32, rows)
        return cls(tuple(known), codes)

    @classmethod
    def of_values(cls, values: Sequence[Any]) -> Codes:
        """Those of the texts of some values, as of `level_of`; TypeError for values without a hash."""
        place = {value: k for k, value in enumerate(dict.fromkeys(values))}
        merged = cls.of(map(level_of, place), len(place))
        found = np.fromiter(map(place.__getitem__, values), np.int64, len(values))
        return cls(merged.levels, merged.codes[found] if len(values) else merged.codes)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def counts(self) -> list[int]:
        """The rows of each level."""
        found: list[int] = np.bincount(self.codes[self.codes >= 0], minlength=len(self.levels)).tolist()
        return found

    def first_of(self, level: str) -> int:
        """The first row of a level."""
        return int(np.argmax(self.codes == self.levels.index(level)))


Column = Codes | NDArray[Any]
"""A column: text, or numbers, nan where one is missing."""


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns of one length.

    Attributes
    ----------
    names : of the columns; their numbers where they have none, as `x0`.
    kinds : of each: NUMBER, CATEGORY, or a form of text.
    columns : their values.
    rows : how many.
    headed : whether the names are those of the user.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: int
    headed: bool = True

    @classmethod
    def of_numbers(cls, X: NDArray[Any], names: Sequence[str] | None) -> RawTable:
        """That of a dense matrix."""
        known = numbered(X.shape[1]) if names is None else tuple(names)
        return cls(known, (NUMBER,) * len(known), tuple(X.T), X.shape[0], names is not None)

    def part(self, start: int, stop: int) -> RawTable:
        """A copy of the rows [start, stop)."""
        kept = (
            Codes(one.levels, one.codes[start:stop].copy()) if isinstance(one, Codes) else one[start:stop].copy()
            for one in self.columns
        )
        return replace(self, columns=tuple(kept), rows=stop - start)

    def aligned(self, wanted: Sequence[str], origin: str) -> RawTable:
        """The columns in the order of these names.

        Raises
        ------
        InputError
            If names are missing or unknown (some are listed), or are not distinct.
        """
        if tuple(wanted) == self.names:
            return self
        order = order_of(self.names, wanted, origin)
        return replace(
            self,
            names=tuple(wanted),
            kinds=tuple(self.kinds[k] for k in order),
            columns=tuple(self.columns[k] for k in order),
        )


def numbered(count: int) -> tuple[str, ...]:
    """The names of so many columns that have none."""
    return tuple(f"x{k}" for k in range(count))


def joined(tables: Sequence[RawTable], origin: str) -> RawTable:
    """The rows of several tables, whose columns are in one order.

    Raises
    ------
    InputError
        Where a column holds numbers in one of them and text in another.
    """
    first = tables[0]
    if any(len(one.names) != len(first.names) for one in tables):
        widths = sorted(len(one.names) for one in tables)
        raise InputError(f"{origin}: the files have {widths[0]} to {widths[-1]} columns, expected the same number")
    found = [[(one.kinds[k], _empty(one.columns[k])) for one in tables] for k in range(len(first.names))]
    kinds = [common_kind(kinds, name, origin) for kinds, name in zip(found, first.names)]
    columns = [_joined([one.columns[k] for one in tables], kind) for k, kind in enumerate(kinds)]
    return replace(first, kinds=tuple(kinds), columns=tuple(columns), rows=sum(one.rows for one in tables))


def common_kind(found: Sequence[tuple[str, bool]], name: str, origin: str) -> str:
    """The kind of a column of several tables, given its kind in each, and whether all is missing there."""
    kinds = {kind for kind, empty in found if not empty} or {found[0][0]}
    if len(kinds) > 1:
        raise InputError(
            f"{origin}: column {shown(name)} holds numbers in some rows and text in others, expected one of them; "
            "data.categorical takes both for categories"
        )
    return kinds.pop()


def _empty(column: Column) -> bool:
    return not column.levels if isinstance(column, Codes) else bool(np.isnan(column).all())


def _joined(columns: Sequence[Column], kind: str) -> Column:
    if kind == NUMBER:
        return np.concatenate([np.full(len(one), np.nan) if isinstance(one, Codes) else one for one in columns])
    known: dict[str, int] = {}
    codes = []
    for one in columns:
        if isinstance(one, Codes):
            new = np.array([known.setdefault(level, len(known)) for level in one.levels] + [-1], np.int32)
            codes.append(new[one.codes])
        else:  # all is missing
            codes.append(np.full(len(one), -1, np.int32))
    return Codes(tuple(known), np.concatenate(codes))


def level_of(value: Any) -> str | None:
    """The text of a level; whole numbers without a point, None for a value that is missing."""
    if value is None or is_na(value) or value != value:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def no_levels(levels: Sequence[str]) -> tuple[str, str] | None:
    """Of the levels of a column that nobody called categorical: one that speaks against it, and what it looks like.

    Numbers among text, numbers in another notation, dates; None where they are levels.
    """
    if not levels:
        return None
    text = next((one for one in levels if not is_number(one)), None)
    if text is None:
        return levels[0], "numbers"
    if any(map(is_number, levels)):
        return text, "numbers and text"
    if all(map(_DATE.fullmatch, levels)):
        return levels[0], "dates"
    return (levels[0], "figures") if all(map(_FIGURES.fullmatch, levels)) else None
