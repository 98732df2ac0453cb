"""Feature templates: from columns of text to named features of each token.

A template is a line of text with macros. When each macro is replaced by text of the sentence, the result is the name of
a feature, whose value is 1. A macro refers to column `c` (from 0) of the token at distance `r`, as in CRF++:

    %x[r,c]         the text itself
    %lower[r,c]     in small letters
    %shape[r,c]     capitals X, small letters x, digits d, all else as it is: "McDonald-3" gives "XxXxxxxx-d"
    %short[r,c]     the shape with runs of one sign shortened to one: "XxXx-d"
    %prefix[r,c,n]  the first n characters; no feature where there are fewer
    %suffix[r,c,n]  the last n characters, likewise

So `w[-1]|w[0]=%x[-1,0]|%x[0,0]` is a bigram of words. The text around macros distinguishes templates: `U01:%x[-1,0]`
and `U02:%x[0,0]` give different features, and without `U01:` and `U02:` they would coincide. Positions beyond the ends
of a sentence read `_B-1`, `_B-2`, ... and `_B+1`, ... (`boundary: mark`), or give no feature (`boundary: drop`, as in
CRFsuite's examples).

Empty lines and lines that start with `#` are skipped. A line `B`, by which CRF++ adds transitions between labels, is
accepted and has no effect, since transitions are always part of the model. Other lines that start with `B` are refused:
features of transitions are an option of the loss (`transitions: observed`), not of single templates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import InputError, shown
from bmrm.registry import nearest

Ids = NDArray[np.int64]
FARTHEST = 1000
"""Largest distance of the token that a macro refers to."""


def _chunking() -> Iterator[str]:
    for name, column, spans in (
        ("w", 0, [(-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1)]),
        (
            "pos",
            1,
            [(-2,), (-1,), (0,), (1,), (2,), (-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2)],
        ),
    ):
        for span in spans:
            left = "|".join(f"{name}[{row}]" for row in span)
            yield left + "=" + "|".join(f"%x[{row},{column}]" for row in span)


def _tagging() -> Iterator[str]:
    for row in (-2, -1, 0, 1, 2):
        yield f"w[{row}]=%lower[{row},0]"
    for row in (-1, 0):
        yield f"w[{row}]|w[{row + 1}]=%lower[{row},0]|%lower[{row + 1},0]"
    for row in (-1, 0, 1):
        yield f"shape[{row}]=%short[{row},0]"
    yield "word=%x[0,0]"
    yield "long shape=%shape[0,0]"
    for size in (1, 2, 3, 4):
        yield f"prefix={size}:%prefix[0,0,{size}]"
        yield f"suffix={size}:%suffix[0,0,{size}]"


BUILT_IN: Mapping[str, str] = {"chunking": "\n".join(_chunking()), "tagging": "\n".join(_tagging())}
"""`chunking`: 19 templates, words (column 0) and tags (column 1) in a window of two with their bigrams, and trigrams
of tags; `tagging`: words in a window of two with bigrams, shapes, prefixes and suffixes."""


@dataclass(frozen=True)
class Macro:
    """A reference to one column of one token."""

    function: str
    row: int
    column: int
    size: int = 0


@dataclass(frozen=True)
class Template:
    """Text and macros in turn, text first and last; there is at least one macro."""

    texts: tuple[str, ...]
    macros: tuple[Macro, ...]


_MACRO = re.compile(r"%(\w+)\[\s*([-+]?\d+)\s*,\s*(\d+)\s*(?:,\s*(\d+)\s*)?\]")


def parse(text: str) -> tuple[Template, ...]:
    """The templates of a text, one per line; InputError names an invalid line."""
    templates = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#") or line == "B":
            continue
        place = f"template line {number}, {shown(line)}"
        if line.startswith("B"):
            raise InputError(f"{place}: transitions by template; use the loss's option `transitions: observed`")
        texts, macros, end = [], [], 0
        for match in _MACRO.finditer(line):
            texts.append(line[end : match.start()])
            macros.append(_macro(match, place))
            end = match.end()
        texts.append(line[end:])
        if not macros or any("%" in piece and "[" in piece for piece in texts):
            raise InputError(f"{place}: expected macros such as %x[0,0]")
        templates.append(Template(tuple(texts), tuple(macros)))
    if not templates:
        raise InputError("no feature templates, expected lines such as w[0]=%x[0,0]")
    return tuple(templates)


def _macro(match: re.Match[str], place: str) -> Macro:
    function, row, column, size = match.groups()
    if function not in FUNCTIONS:
        raise InputError(f"{place}: unknown macro %{function}{nearest(function, FUNCTIONS)}")
    sized = function in ("prefix", "suffix")
    if sized != (size is not None) or size == "0":
        wanted = f"%{function}[row,column,characters]" if sized else f"%{function}[row,column]"
        raise InputError(f"{place}: {match.group()}, expected {wanted}")
    numbers = row, column, size or "0"
    if any(len(number) > 6 for number in numbers) or abs(int(row)) > FARTHEST:
        raise InputError(
            f"{place}: {shown(match.group())}, expected rows from -{FARTHEST} to {FARTHEST} and columns of a file"
        )
    return Macro(function, int(row), int(column), int(size or 0))


def _shape(text: str, size: int) -> str:
    return "".join(
        "X" if sign.isupper() else "x" if sign.islower() else "d" if sign.isdigit() else sign for sign in text
    )


def _short(text: str, size: int) -> str:
    return re.sub(r"(.)\1+", r"\1", _shape(text, size))


FUNCTIONS: Mapping[str, Callable[[str, int], str | None]] = {
    "x": lambda text, size: text,
    "lower": lambda text, size: text.lower(),
    "shape": _shape,
    "short": _short,
    "prefix": lambda text, size: text[:size] if len(text) >= size else None,
    "suffix": lambda text, size: text[-size:] if len(text) >= size else None,
}


@dataclass(frozen=True)
class Interned:
    """A text per token: `names[ids[t]]`, none where the id is -1."""

    names: list[str]
    ids: Ids


def intern(texts: Sequence[str]) -> Interned:
    """The distinct texts, in the order of their first appearance."""
    table: dict[str, int] = {}
    ids = np.fromiter((table.setdefault(text, len(table)) for text in texts), np.int64, len(texts))
    return Interned(list(table), ids)


class Sentences:
    """Columns of text, cut into sentences.

    Parameters
    ----------
    columns : one `Interned` per column, of equal lengths.
    starts : (sentences + 1,), where each sentence starts, and the number of tokens.
    mark : whether positions beyond a sentence have a name.
    """

    def __init__(self, columns: Sequence[Interned], starts: Ids, mark: bool) -> None:
        self.columns, self.mark = columns, mark
        lengths = np.diff(starts)
        self.tokens = int(starts[-1])
        self._first = np.repeat(starts[:-1], lengths)
        self._last = np.repeat(starts[1:] - 1, lengths)
        self._seen: dict[Macro, Interned] = {}

    def features(self, templates: Sequence[Template]) -> tuple[list[str], Ids]:
        """The names of all features, and (tokens, templates) the index of each token's feature, -1 for none."""
        names: dict[str, int] = {}
        places = np.empty((self.tokens, len(templates)), np.int64)
        for k, template in enumerate(templates):
            found = self._feature(template)
            new = np.array([names.setdefault(name, len(names)) for name in found.names] + [-1], np.int64)
            places[:, k] = new[found.ids]
        return list(names), places

    def _feature(self, template: Template) -> Interned:
        feature = Interned([template.texts[0]], np.zeros(self.tokens, np.int64))
        for macro, text in zip(template.macros, template.texts[1:], strict=True):
            part = self._look(macro)
            width = max(1, len(part.names))
            key = np.where((feature.ids < 0) | (part.ids < 0), -1, feature.ids * width + part.ids)
            used, ids = np.unique(key, return_inverse=True)
            none = int(used.size and used[0] < 0)
            lefts, rights = np.divmod(used[none:], width)
            names = [feature.names[a] + part.names[b] + text for a, b in zip(lefts.tolist(), rights.tolist())]
            feature = Interned(names, ids.reshape(-1) - none)
        return feature

    def _look(self, macro: Macro) -> Interned:
        if macro not in self._seen:
            self._seen[macro] = self._looked(macro)
        return self._seen[macro]

    def _looked(self, macro: Macro) -> Interned:
        if macro.column >= len(self.columns):
            raise InputError(
                f"a template looks at column {macro.column}, the file has {len(self.columns)} beside the label"
            )
        column = self.columns[macro.column]
        function = FUNCTIONS[macro.function]
        changed = [function(name, macro.size) for name in column.names]
        known = intern([name for name in changed if name is not None])
        new = np.full(len(changed) + 1, -1, np.int64)
        new[[k for k, name in enumerate(changed) if name is not None]] = known.ids
        there = np.arange(self.tokens) + macro.row
        before, behind = self._first - there, there - self._last
        ids = new[column.ids[np.clip(there, 0, self.tokens - 1)]] if self.tokens else known.ids
        names = list(known.names)
        for sign, beyond in (("-", before), ("+", behind)):
            for distance in range(1, abs(macro.row) + 1):
                ids[beyond == distance] = len(names) if self.mark else -1
                names.append(f"_B{sign}{distance}")
        return Interned(names, ids)
