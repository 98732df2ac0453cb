"""Features from the columns of a table: numbers as they are, categories as 0 and 1, text as its words.

An `Encoding` is made from summaries of the columns, which can be merged over files and ranks (`summaries`, `merged`,
`Encoding.fitted`). Each kind of column is a class below, which says what is summarised, kept and computed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.files import is_number
from bmrm.data.layout import shown
from bmrm.data.matrix import Csr, Matrix
from bmrm.data.raw_columns import (
    CATEGORY,
    MISSING,
    NUMBER,
    REFUSE,
    Codes,
    Coding,
    Column,
    RawTable,
    common_kind,
)
from bmrm.data.vocabulary import packed, unpacked
from bmrm.problem import InputError

Summary = dict[str, Any]
"""What is kept of a column of some rows, as plain JSON."""
Ints = NDArray[np.int64]
SPARSE = 4
"""Features for each entry of a row from which rows are sparse: products with an entry take about four times as long as
with a number of a dense row."""
HASHED = 1 << 20
"""Features of a hashed column: the default of scikit-learn's `HashingVectorizer`."""
MANY, MOST_ALIKE = 100, 0.5
"""Levels, and levels for each row, from which a column is said to have many."""
ARRAYS = ("encoding_bytes", "encoding_ends", "encoding_places", "encoding_means")
"""Arrays of a model file: texts of levels and words, where each ends, the feature of each level, means of numbers."""
NONE, SILENT, _STRANGE = -1, -2, -3
"""In place of a feature: none; none, which is not said; none of a level that is not known."""
DAMAGED = "the description of its columns is damaged"


@dataclass(frozen=True)
class Unknown:
    """Rows with a level that the training rows had not.

    Attributes
    ----------
    column, rows : its name, and how many they are.
    level : the first one; None for missing values where training had none.
    """

    column: str
    rows: int
    level: str | None

    def in_words(self) -> str:
        """For a message."""
        what = "a missing value" if self.level is None else shown(self.level)
        return f"column {shown(self.column)}: {self.rows} rows, the first with {what}"


def unknown_in_words(found: Iterable[Unknown]) -> str:
    """One message for all; "" where there are none. Those of one column are added up, the first stays the first."""
    total: dict[str, Unknown] = {}
    for one in found:
        before = total.get(one.column)
        total[one.column] = one if before is None else Unknown(one.column, before.rows + one.rows, before.level)
    if not total:
        return ""
    said = "; ".join(one.in_words() for one in total.values())
    return f"levels that the training rows had not, all features of which are 0: {said}"


def warn_of_unknown(found: Sequence[Unknown], stacklevel: int = 3) -> None:
    """One warning of Python for all."""
    if found:
        warnings.warn(unknown_in_words(found), UserWarning, stacklevel=stacklevel + 1)


def _sum(values: NDArray[Any]) -> tuple[float, float]:
    """A sum and what rounding has left of it, so that the sum of all ranks does not depend on which has what."""
    rounded = float(values.sum(dtype=np.float64))
    try:
        exact = math.fsum(values.tolist())
        return exact, math.fsum([*values.tolist(), -exact])
    except (OverflowError, ValueError):  # as is said where it is used
        return rounded, 0.0


@dataclass(frozen=True)
class Number:
    """A number is a feature; with `indicator` another one is 1 where it is missing.

    Attributes
    ----------
    name : of the column.
    fill : what stands in place of a missing value.
    indicator : whether there is a feature for it.
    """

    name: str
    fill: float = 0.0
    indicator: bool = False
    kind: ClassVar[str] = NUMBER

    @staticmethod
    def summary(column: Column) -> Summary:
        """Of a column of some rows."""
        values = np.full(len(column), np.nan) if isinstance(column, Codes) else column
        there = values[~np.isnan(values)]
        return {"rows": len(there), "missing": len(values) - len(there), "sum": _sum(there)}

    @staticmethod
    def merged(found: Sequence[Summary]) -> Summary:
        """Of all rows."""
        return {key: sum(one[key] for one in found) for key in ("rows", "missing")} | {
            "sum": _sum(np.array([part for one in found for part in one["sum"]]))
        }

    @classmethod
    def fitted(cls, name: str, summary: Summary, coding: Coding) -> Number:
        """For such rows."""
        if coding.missing in (REFUSE, "zero"):
            return cls(name)
        mean = summary["sum"][0] / summary["rows"]
        if not math.isfinite(mean):
            raise InputError(f"column {shown(name)}: its mean is {mean}, expected numbers whose mean is finite")
        return cls(name, mean, coding.missing == "indicator" and summary["missing"] > 0)

    @property
    def features(self) -> tuple[str, ...]:
        """Their names."""
        return (self.name, f"{self.name} (missing)") if self.indicator else (self.name,)

    @property
    def entries(self) -> int:
        """The most of a row that are not 0."""
        return len(self.features)

    def of(self, column: Column, origin: str) -> tuple[Ints, NDArray[Any], Unknown | None]:
        """The feature of each entry of the rows, from 0, and its value, (rows, entries); what is unknown."""
        if isinstance(column, Codes):
            if column.levels:
                raise InputError(
                    f"{origin}: column {shown(self.name)} holds text ({shown(column.levels[0])}), expected numbers"
                )
            column = np.full(len(column), np.nan)
        gone = np.isnan(column)
        values = np.where(gone, column.dtype.type(self.fill), column)[:, None]
        if self.indicator:
            values = np.hstack([values, gone[:, None]])
        places = np.where(values != 0.0, np.arange(self.entries), -1)
        return places, values, None

    def header(self) -> dict[str, Any]:
        """For a model file, beside the arrays."""
        return {"indicator": self.indicator}

    def arrays(self) -> tuple[Sequence[str], Sequence[int], Sequence[float]]:
        """Texts, places and means."""
        return (), (), (self.fill,)

    @classmethod
    def read(cls, name: str, header: Mapping[str, Any], texts: Any, places: Any, means: Any) -> Number:
        """The inverse of both; these give the next of theirs."""
        if type(header.get("indicator")) is not bool:
            raise InputError(DAMAGED)
        return cls(name, means(1)[0], header["indicator"])

    def described(self) -> dict[str, Any]:
        """For people, and programs."""
        return {"missing_as": self.fill} if self.fill or self.indicator else {}


@dataclass(frozen=True, eq=False)
class Category:
    """Each level has a feature that is 1 where a row has it, and 0 elsewhere.

    Attributes
    ----------
    name : of the column.
    levels : all that are known: as numbers where all are, else as text, sorted.
    places : the feature of each level, from 0; -1 for none (of `drop_first`).
    rare : the feature of rare levels; -1 for none.
    gone : that of missing values; NONE where these are as other unknown ones, SILENT where they are said to be 0.
    """

    name: str
    levels: tuple[str, ...]
    places: tuple[int, ...]
    rare: int = -1
    gone: int = NONE
    kind: ClassVar[str] = CATEGORY

    @staticmethod
    def summary(column: Column) -> Summary:
        """Of a column of some rows."""
        codes = as_codes(column)
        return {
            "rows": int((codes.codes >= 0).sum()),
            "missing": int((codes.codes < 0).sum()),
            "levels": {level: count for level, count in zip(codes.levels, codes.counts) if count},
        }

    @staticmethod
    def merged(found: Sequence[Summary]) -> Summary:
        """Of all rows."""
        levels: dict[str, int] = {}
        for one in found:
            for level, count in one["levels"].items():
                levels[level] = levels.get(level, 0) + count
        return {key: sum(one[key] for one in found) for key in ("rows", "missing")} | {"levels": levels}

    @classmethod
    def fitted(cls, name: str, summary: Summary, coding: Coding) -> Category:
        """For such rows."""
        counts, least = summary["levels"], coding.rare or 0
        levels = in_order(counts)
        often = [level for level in levels if counts[level] >= least]
        first = int(coding.drop_first)
        place = {level: k for k, level in enumerate(often[first:])}
        rare = NONE if len(often) == len(levels) or first > len(often) else len(place)
        count = len(place) + (rare >= 0)
        gone = SILENT if coding.missing == "zero" else count if summary["missing"] else NONE
        places = [place.get(level, -1) if counts[level] >= least else rare for level in levels]
        return cls(name, tuple(levels), tuple(places), rare, gone)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Their names."""
        own = {place: level for level, place in zip(self.levels, self.places) if place >= 0}
        own |= {place: _apart(text, self.levels) for place, text in ((self.rare, "(rare)"), (self.gone, "missing"))}
        return tuple(f"{self.name}={own[place]}" for place in sorted(own) if place >= 0)

    @property
    def entries(self) -> int:
        """The most of a row that are not 0."""
        return 1

    def of(self, column: Column, origin: str) -> tuple[Ints, NDArray[Any], Unknown | None]:
        """As of `Number`."""
        codes = as_codes(column)
        known = dict(zip(self.levels, self.places))
        place = np.array([known.get(level, _STRANGE) for level in codes.levels] + [self.gone], np.int64)
        found = place[codes.codes]
        wrong = found == _STRANGE
        if self.gone == NONE:
            wrong |= codes.codes < 0
        unknown = None
        if wrong.any():
            code = int(codes.codes[np.argmax(wrong)])
            unknown = Unknown(self.name, int(wrong.sum()), None if code < 0 else codes.levels[code])
        return np.maximum(found, -1)[:, None], np.ones((len(codes), 1)), unknown

    def header(self) -> dict[str, Any]:
        """As of `Number`."""
        return {"levels": len(self.levels), "rare": self.rare, "gone": self.gone}

    def arrays(self) -> tuple[Sequence[str], Sequence[int], Sequence[float]]:
        """As of `Number`."""
        return self.levels, self.places, ()

    @classmethod
    def read(cls, name: str, header: Mapping[str, Any], texts: Any, places: Any, means: Any) -> Category:
        """As of `Number`."""
        count, special = header.get("levels"), [header.get("rare"), header.get("gone")]
        if type(count) is not int or any(type(one) is not int for one in special):
            raise InputError(DAMAGED)
        levels, own = texts(count), places(count)
        features = sorted({one for one in (*own, *special) if one >= 0})
        if len(set(levels)) < count or features != list(range(len(features))):
            raise InputError(DAMAGED)
        return cls(name, levels, tuple(own), special[0], special[1])  # type: ignore[arg-type]

    def described(self) -> dict[str, Any]:
        """As of `Number`."""
        rare = sum(place == self.rare for place in self.places) if self.rare >= 0 else 0
        return {"levels": len(self.levels)} | ({"rare": rare} if rare else {})


@dataclass(frozen=True, eq=False)
class Hashed:
    """The words of a text, each a feature by its hash: scikit-learn's `HashingVectorizer` with its defaults."""

    name: str
    kind: ClassVar[str] = "hashed"

    @staticmethod
    def summary(column: Column) -> Summary:
        """As of `Number`."""
        codes = as_codes(column)
        return {"rows": int((codes.codes >= 0).sum()), "missing": int((codes.codes < 0).sum())}

    @staticmethod
    def merged(found: Sequence[Summary]) -> Summary:
        """As of `Number`."""
        return {key: sum(one[key] for one in found) for key in ("rows", "missing")}

    @classmethod
    def fitted(cls, name: str, summary: Summary, coding: Coding) -> Hashed:
        """As of `Number`."""
        return cls(name)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """As of `Number`."""
        return tuple(f"{self.name}#{k}" for k in range(HASHED))

    def rows(self, column: Column) -> Any:
        """A scipy matrix, (rows, features)."""
        from sklearn.feature_extraction.text import HashingVectorizer

        return _by_row(HashingVectorizer(n_features=HASHED), as_codes(column))

    def header(self) -> dict[str, Any]:
        """As of `Number`."""
        return {}

    def arrays(self) -> tuple[Sequence[str], Sequence[int], Sequence[float]]:
        """As of `Number`."""
        return (), (), ()

    @classmethod
    def read(cls, name: str, header: Mapping[str, Any], texts: Any, places: Any, means: Any) -> Hashed:
        """As of `Number`."""
        return cls(name)

    def described(self) -> dict[str, Any]:
        """As of `Number`."""
        return {}


@dataclass(frozen=True, eq=False)
class Counted:
    """How often a text has each word of the training rows: scikit-learn's `CountVectorizer` with its defaults."""

    name: str
    words: tuple[str, ...]
    kind: ClassVar[str] = "counted"

    @staticmethod
    def summary(column: Column) -> Summary:
        """As of `Number`."""
        from sklearn.feature_extraction.text import CountVectorizer

        codes, split = as_codes(column), CountVectorizer().build_analyzer()
        words = sorted({word for text in codes.levels for word in split(text)})
        return {**Hashed.summary(codes), "words": words}

    @staticmethod
    def merged(found: Sequence[Summary]) -> Summary:
        """As of `Number`."""
        return {**Hashed.merged(found), "words": sorted({word for one in found for word in one["words"]})}

    @classmethod
    def fitted(cls, name: str, summary: Summary, coding: Coding) -> Counted:
        """As of `Number`."""
        if not summary["words"]:
            raise InputError(f"column {shown(name)}: no words of two characters or more, expected text")
        return cls(name, tuple(summary["words"]))

    @cached_property
    def features(self) -> tuple[str, ...]:
        """As of `Number`."""
        return tuple(f"{self.name}={word}" for word in self.words)

    def rows(self, column: Column) -> Any:
        """As of `Hashed`."""
        from sklearn.feature_extraction.text import CountVectorizer

        return _by_row(CountVectorizer(vocabulary=list(self.words)), as_codes(column))

    def header(self) -> dict[str, Any]:
        """As of `Number`."""
        return {"words": len(self.words)}

    def arrays(self) -> tuple[Sequence[str], Sequence[int], Sequence[float]]:
        """As of `Number`."""
        return self.words, (), ()

    @classmethod
    def read(cls, name: str, header: Mapping[str, Any], texts: Any, places: Any, means: Any) -> Counted:
        """As of `Number`."""
        count = header.get("words")
        words = texts(count) if type(count) is int and count > 0 else ()
        if not words or len(set(words)) < len(words):
            raise InputError(DAMAGED)
        return cls(name, words)

    def described(self) -> dict[str, Any]:
        """As of `Number`."""
        return {"words": len(self.words)}


def _by_row(vectorizer: Any, codes: Codes) -> Any:
    """The rows of the texts, each computed once; a missing text has no words."""
    from scipy.sparse import csr_array

    texts = csr_array(vectorizer.transform([*codes.levels, ""]))
    return texts[codes.codes]


Encoder = Number | Category | Hashed | Counted
KINDS: Mapping[str, Any] = {cls.kind: cls for cls in (Number, Category, Hashed, Counted)}
"""The class of each kind of columns."""


def as_codes(column: Column) -> Codes:
    """A column of numbers as text."""
    return column if isinstance(column, Codes) else Codes.of_values(column.tolist())


def in_order(levels: Iterable[str]) -> list[str]:
    """Levels as numbers where all are, else as text; the same on all ranks."""
    some = list(levels)
    if all(map(is_number, some)):
        return sorted(some, key=lambda level: (float(level), level))
    return sorted(some)


def _apart(text: str, levels: Sequence[str]) -> str:
    """A name that no level has."""
    while text in levels:
        text = f"({text})"
    return text


def summaries(table: RawTable) -> list[Summary]:
    """A summary of each column, as plain JSON."""
    found = []
    for kind, column in zip(table.kinds, table.columns):
        found.append({"kind": kind, **KINDS[kind].summary(column)})
    return found


def merged(found: Sequence[Sequence[Summary]], names: Sequence[str], origin: str) -> list[Summary]:
    """The summaries of all rows, given those of the rows of each file or rank, of the same columns.

    Raises
    ------
    InputError
        Where a column holds numbers in some and text in others, or no value at all.
    """
    total = []
    for k, name in enumerate(names):
        mine = [one[k] for one in found]
        kind = common_kind([(one["kind"], not one["rows"]) for one in mine], name, origin)
        same = [one for one in mine if one["kind"] == kind]
        one = {"kind": kind, **KINDS[kind].merged(same)}
        one["missing"] += sum(other["missing"] for other in mine if other["kind"] != kind)
        if not one["rows"]:
            raise InputError(
                f"{origin}: column {shown(name)}: all values are missing, expected some; data.ignore leaves it out"
            )
        total.append(one)
    return total


def notes_of(found: Sequence[Summary], names: Sequence[str]) -> tuple[str, ...]:
    """What to tell the user of the columns: which are one-hot encoded, and which of these perhaps should not be."""
    said, notes = [], []
    for name, one in zip(names, found):
        if one["kind"] != CATEGORY:
            continue
        count = len(one["levels"])
        said.append(f"{shown(name)} ({count} level{'s' if count != 1 else ''})")
        if count > MANY and count > MOST_ALIKE * one["rows"]:
            notes.append(
                f"column {shown(name)} has {count} levels in {one['rows']} rows; data.ignore leaves it out, data.rare "
                "joins rare levels, data.text takes its words"
            )
    if said:
        notes.insert(0, f"one-hot encoded: {', '.join(said)}")
    return tuple(notes)


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the columns of tables become features.

    Attributes
    ----------
    columns : an encoder of each, in the order of the features.
    missing : what stands in place of missing values, as of `Coding`.
    headed : whether columns are found by name; else by place.
    """

    columns: tuple[Encoder, ...]
    missing: str = REFUSE
    headed: bool = True

    @classmethod
    def fitted(
        cls, found: Sequence[Summary], names: Sequence[str], headed: bool, coding: Coding, origin: str
    ) -> Encoding:
        """For rows with these summaries, which are the same on all ranks.

        Raises
        ------
        InputError
            Two features would have one name; no feature is left.
        """
        columns = tuple(KINDS[one["kind"]].fitted(name, one, coding) for name, one in zip(names, found, strict=True))
        made = cls(columns, coding.missing, headed)
        if not made.width:
            raise InputError(f"{origin}: no feature is left, expected a column with more than one level")
        coded = [column for column in columns if column.features != (column.name,)]
        if coded and len(set(made.names)) < made.width:
            twice = next(name for column in coded for name in column.features if made.names.count(name) > 1)
            raise InputError(f"{origin}: two features would be named {shown(twice)}, expected other names of columns")
        return made

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the columns of tables."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def width(self) -> int:
        """The number of features."""
        return sum(len(column.features) for column in self.columns)

    @cached_property
    def sparse(self) -> bool:
        """Whether rows are sparse; it is the same for all tables."""
        if any(isinstance(column, (Hashed, Counted)) for column in self.columns):
            return True
        entries = sum(column.entries for column in self.columns if isinstance(column, (Number, Category)))
        return self.width > SPARSE * entries

    def kind_of(self, name: str, place: int) -> str | None:
        """The kind of a column; None for one that is not known."""
        if self.headed:
            return self._kinds.get(name)
        return self.columns[place].kind if place < len(self.columns) else None

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return {column.name: column.kind for column in self.columns}

    def encoded(self, table: RawTable, origin: str) -> tuple[Matrix, tuple[Unknown, ...]]:
        """The features of the rows, and what of them is not known.

        Raises
        ------
        InputError
            For missing or unknown columns, some of which are listed; for text where numbers are expected.
        """
        if self.headed and table.headed:
            table = table.aligned(self.sources, origin)
        elif len(table.columns) != len(self.columns):
            raise InputError(f"{origin}: {len(table.columns)} columns, the model has {len(self.columns)}")
        places, values, words, unknown, start = [], [], [], [], 0
        for column, held in zip(self.columns, table.columns):
            if isinstance(column, (Hashed, Counted)):
                words.append((start, column.rows(held)))
            else:
                place, value, strange = column.of(held, origin)
                places.append(np.where(place >= 0, place + start, -1))
                values.append(value)
                unknown += [] if strange is None else [strange]
            start += len(column.features)
        kinds = {one.dtype for one in table.columns if not isinstance(one, Codes)}
        kind = np.float32 if kinds == {np.dtype(np.float32)} else np.float64
        place = np.hstack(places) if places else np.empty((table.rows, 0), np.int64)
        value = np.hstack(values).astype(kind, copy=False) if values else np.empty((table.rows, 0), kind)
        X = self._sparse(place, value, words) if self.sparse else self._dense(place, value)
        return X, tuple(unknown)

    def _dense(self, place: Ints, value: NDArray[Any]) -> NDArray[Any]:
        X = np.zeros((place.shape[0], self.width), value.dtype)
        rows, entries = np.nonzero(place >= 0)
        X[rows, place[rows, entries]] = value[rows, entries]
        return X

    def _sparse(self, place: Ints, value: NDArray[Any], words: Sequence[tuple[int, Any]]) -> Csr:
        from scipy.sparse import csr_array

        there = place >= 0
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(there.sum(axis=1))])
        shape = (place.shape[0], self.width)
        X = csr_array((value[there], place[there].astype(np.int32), indptr), shape=shape)
        for start, one in words:
            X = X + csr_array((one.data, one.indices + start, one.indptr), shape=shape)
        return Csr.from_scipy(X).without_unit_values()

    def no_rows(self) -> Matrix:
        """The features of no rows."""
        none = np.empty((0, self.width))
        return Csr(np.zeros(1, np.int64), np.zeros(0, np.int32), None, self.width) if self.sparse else none

    def header(self) -> dict[str, Any]:
        """Its description in a model file, besides `arrays`; for JSON."""
        columns = [{"name": one.name, "kind": one.kind, **one.header()} for one in self.columns]
        return {"missing": self.missing, "headed": self.headed, "columns": columns}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Levels, words and means as plain arrays."""
        kept = [column.arrays() for column in self.columns]
        texts, places, means = ([one for each in kept for one in each[k]] for k in range(3))  # type: ignore[misc]
        content, ends = packed(texts)  # type: ignore[arg-type]
        return dict(zip(ARRAYS, (content, ends, np.array(places, np.int64), np.array(means, np.float64)), strict=True))

    @classmethod
    def from_file(cls, header: Any, arrays: Mapping[str, NDArray[Any]]) -> Encoding:
        """The inverse of `header` and `arrays`; InputError where they are damaged."""
        if not isinstance(header, Mapping) or any(name not in arrays for name in ARRAYS):
            raise InputError(DAMAGED)
        columns, missing, headed = (header.get(key) for key in ("columns", "missing", "headed"))
        texts, places, means = unpacked(arrays[ARRAYS[0]], arrays[ARRAYS[1]]), arrays[ARRAYS[2]], arrays[ARRAYS[3]]
        fits = places.dtype == np.int64 and means.dtype == np.float64 and places.ndim == means.ndim == 1
        if not fits or missing not in MISSING or type(headed) is not bool or not isinstance(columns, list):
            raise InputError(DAMAGED)
        taken = [_Taken(texts), _Taken(tuple(places.tolist())), _Taken(tuple(means.tolist()))]
        made = []
        for one in columns:
            if not isinstance(one, Mapping) or one.get("kind") not in KINDS or not isinstance(one.get("name"), str):
                raise InputError(DAMAGED)
            made.append(KINDS[one["kind"]].read(one["name"], one, *taken))
        if any(one.left for one in taken) or not made or not np.isfinite(means).all():
            raise InputError(DAMAGED)
        return cls(tuple(made), missing, headed)

    def plain(self) -> list[dict[str, Any]]:
        """All of it, for programs that read JSON: of each column its texts, the feature of each, and the mean."""
        found = []
        for one in self.columns:
            texts, places, means = one.arrays()
            kept = {"texts": list(texts), "places": list(places), "mean": next(iter(means), None)}
            found.append({"name": one.name, "kind": one.kind, "features": len(one.features), **one.header(), **kept})
        return found

    def described(self) -> list[dict[str, Any]]:
        """Its columns for people and programs: name, kind, features, levels."""
        return [
            {"name": one.name, "kind": one.kind, "features": len(one.features), **one.described()}
            for one in self.columns
        ]


class _Taken:
    """The next of some values."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self._values, self._at = values, 0

    def __call__(self, count: int) -> tuple[Any, ...]:
        found = self._values[self._at : self._at + count] if count >= 0 else ()
        if len(found) != count:
            raise InputError(DAMAGED)
        self._at += count
        return found

    @property
    def left(self) -> bool:
        return self._at < len(self._values)
