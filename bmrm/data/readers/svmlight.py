"""Svmlight text: `label [qid:group] index:value ... # comment`, one row a line.

Blanks are space, tab, CR, VT and FF; lines end with LF, or with CR if there is none; a byte-order mark is skipped.
Indices rise strictly within a line and count from 0 or 1.
Numbers are Python's (`float` for labels and values, `int` for indices and groups), to the same bits, but without nan,
infinities and underscores. Except for these, and for files without a row, the same text is accepted and refused as by
scikit-learn's `load_svmlight_file(query_id=True)`. Groups are kept if every row has one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.files import divisible, is_number, open_lines
from bmrm.data.label_types import type_of_numbers
from bmrm.data.labels import LabelSets
from bmrm.data.layout import Alike, Layout
from bmrm.data.matrix import Csr
from bmrm.data.readers._core.formats import Divisible, formats
from bmrm.data.readers._core.raw import Raw
from bmrm.data.readers._core.shares import byte_share, even_share, last_border
from bmrm.data.readers._core.svmlight_line import MOST_INDEX, Row, parse_line
from bmrm.problem import InputError, Targets
from bmrm.registry import check_parameters, parameter

BLOCK = 1 << 20
"""Bytes of text that are held at once."""
_SPARE = 1.05
# The largest float64 that does not become infinite in each type.
_LIMITS = {"float64": sys.float_info.max, "float32": math.nextafter((2 - 2.0**-24) * 2.0**127, 0.0)}


@formats.register("svmlight")
@dataclass(frozen=True)
class Svmlight(Divisible):
    """`label [qid:group] index:value ... # comment`, one row a line (also known as LIBSVM's format)."""

    one_based: bool | None = parameter(None, doc="indices count from 1; null: they do where none is 0", example=True)
    dtype: str = parameter("float64", doc="type of the values", choices=("float64", "float32"), example="float32")
    multilabel: bool = parameter(False, doc="a row has any number of labels, joined by commas", example=True)

    suffixes: ClassVar[tuple[str, ...]] = (".svm", ".svmlight", ".libsvm")

    def __post_init__(self) -> None:
        check_parameters(self)

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether the first line that is not a comment has `label index:value` or a single number."""
        for line in head.split(b"\n"):
            tokens = line.split(b"#", 1)[0].split(None, 6)
            if len(tokens) > 1:
                return all(b":" in token for token in tokens[1:6])
            if tokens:
                return b":" in tokens[0] or all(map(is_number, tokens[0].split(b",")))
        return False

    def last_border(self, text: bytes) -> int:
        """As of `Divisible`: the end of the last line, or of the last but one group."""
        return last_border(text)

    def has_rows(self, text: bytes) -> bool:
        """As of `Divisible`: whether a line is more than a comment."""
        return any(line.split(b"#", 1)[0].strip() for line in text.split(b"\n"))

    def scan(self, path: Path, part: int = 0, parts: int = 1, alike: Alike | None = None) -> Raw:
        """The share of the rows, columns numbered as in the file: by bytes of a plain file, else by rows."""
        if divisible(path):
            return self.scan_bytes(path, *even_share(path.stat().st_size, part, parts), alike)
        return self._scan(path, 0, None, alike).share(part, parts)

    def scan_bytes(self, path: Path, start: int, stop: int, alike: Alike | None = None) -> Raw:
        """As of `ByBytes`."""
        return self._scan(path, *byte_share(path, start, stop), alike)

    def _scan(self, path: Path, start: int, stop: int | None, alike: Alike | None) -> Raw:
        if alike is not None and not alike.labelled and not _starts_with_label(path):
            raw = _without_labels(path, self, start, stop)
        else:
            raw = _scan(path, self, start, stop)
        if raw.data.rows == 0 and not _has_rows(path):
            raise InputError(f"{path}: the file has no rows")
        return raw


def read_svmlight(
    path: str | Path,
    *,
    features: int | None = None,
    part: int = 0,
    parts: int = 1,
    one_based: bool | None = None,
    dtype: DTypeLike = "float64",
    multilabel: bool = False,
) -> Dataset:
    """Read a file, plain or compressed by gzip, bzip2 or xz.

    Parameters
    ----------
    path : the file.
    features : number of columns; None: the largest index.
    part, parts : read the share `part` (from 0) of `parts`. Each part must then be told `features` and `one_based`, or
        use `Svmlight.scan` and agree with the others on `Raw.extent`.
    one_based : indices count from 1; None: they do where none is 0.
    dtype : float64 or float32, the type of the values; sparse rows of only ones have none.
    multilabel : labels are sets of numbers, joined by commas.

    Raises
    ------
    InputError
        Naming the file, the line and what was expected.
    """
    if parts > 1 and (features is None or one_based is None):
        raise InputError("read_svmlight: a part cannot know the features of the others; state features and one_based")
    raw = Svmlight(one_based, np.dtype(dtype).name, multilabel).scan(Path(path), part, parts)
    return raw.dataset(features=features, one_based=one_based)


_Array = NDArray[Any]
_Arrays = tuple[_Array, _Array, _Array, _Array, _Array, _Array]


def _scan(path: Path, options: Svmlight, start: int, stop: int | None) -> Raw:
    """Read whole lines from byte `start` of the decompressed text to `stop` (None: to the end)."""
    from bmrm.kernels.text import svmlight as kernel
    from bmrm.kernels.text.decimal import POWERS

    dtype = np.dtype(options.dtype)
    least = int(bool(options.one_based))
    first = int(options.one_based is not False)  # most files count from 1: these are then right without a copy
    limit = _LIMITS[options.dtype]
    rules = kernel.Rules(options.multilabel, least, first, limit)
    columns = _Columns(dtype)
    state = np.zeros(kernel.STATES, np.int64)
    state[kernel.SMALLEST], state[kernel.LARGEST] = MOST_INDEX + 1, -1
    with open_lines(path) as file:
        for text, length, offset in _blocks(file, start, stop):
            colons, lines, commas = kernel.count_marks(text, length)
            labels = lines + commas * options.multilabel
            if columns.room == (0, 0, 0) and stop is not None:
                whole = _SPARE * (stop - start) / length  # so that the arrays need not grow, if all blocks are alike
                columns.reserve(int(lines * whole), int(colons * whole), int(labels * whole))
            columns.reserve(state[kernel.ROWS] + lines, state[kernel.ENTRIES] + colons, state[kernel.LABELS] + labels)
            state[kernel.PLACE] = 0
            while not kernel.scan(text, length, rules, POWERS, kernel.Outputs(*columns.arrays()), state):
                place = int(state[kernel.PLACE])
                end = int(np.flatnonzero(text[place:length] == 10)[0]) + place
                try:
                    row = parse_line(text[place:end].tobytes(), multilabel=options.multilabel, least=least, limit=limit)
                except ValueError as error:
                    raise InputError(f"{path}, line {_line_at(path, offset + place)}: {error}") from None
                columns.put(row, first, state)
                state[kernel.PLACE] = end + 1
    rows, entries, labels = (int(state[k]) for k in (kernel.ROWS, kernel.ENTRIES, kernel.LABELS))
    columns.trim(rows, entries, labels)
    y: Any
    y, label_type = columns.typed_labels()
    if options.multilabel:
        y = LabelSets.from_ends(columns.label_ends, y, label_type)
    X = Csr(
        columns.indptr,
        columns.indices,
        columns.values if state[kernel.NOT_ONE] else None,
        max(int(state[kernel.LARGEST]) + 1 - first, 0),
    )
    groups = columns.groups if rows and int(state[kernel.GROUPED]) == rows else None
    smallest = int(state[kernel.SMALLEST]) if entries else None
    layout = Layout(formats.describe(options))
    return Raw(Dataset(X, Targets(y, None, groups, label_type), layout), str(path), smallest, first)


def _without_labels(path: Path, options: Svmlight, start: int, stop: int | None) -> Raw:
    """Rows of a file in which no row has labels."""
    raw = _scan(path, replace(options, multilabel=True), start, stop)
    sets: Any = raw.data.targets.y
    ends = sets.indptr
    if ends[-1]:
        line = next(number for number, token in _first_tokens(path) if b":" not in token)
        raise InputError(f"{path}, line {line}: a label, but the first row has none")
    targets = replace(raw.data.targets, y=np.zeros(raw.data.rows), dtype="")
    layout = Layout(formats.describe(options))
    return replace(raw, data=replace(raw.data, targets=targets, layout=layout, labelled=False))


def _starts_with_label(path: Path) -> bool:
    """Whether the first row does not begin with `qid:` or `index:value`."""
    return b":" not in next((token for _, token in _first_tokens(path)), b"")


def _first_tokens(path: Path) -> Iterator[tuple[int, bytes]]:
    """The first token of each row, and the number of its line from 1."""
    with open_lines(path) as file:
        for number, line in enumerate(file, 1):
            tokens = line.split(b"#", 1)[0].split(None, 1)
            if tokens:
                yield number, tokens[0]


class _Columns:
    """Arrays that grow in place."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.exact: dict[int, int] = {}
        """Labels that float64 does not hold, by their places."""
        self._allocate(0, 0, 0)

    def _allocate(self, rows: int, entries: int, labels: int) -> None:
        self.indptr = np.empty(rows + 1, np.int64)
        self.indices = np.empty(entries, np.int32)
        self.values = np.empty(entries, self.dtype)
        self.label_ends = np.empty(rows + 1, np.int64)
        self.labels = np.empty(labels)
        self.groups = np.empty(rows, np.int64)
        self.indptr[0] = self.label_ends[0] = 0

    @property
    def room(self) -> tuple[int, int, int]:
        """Rows, entries and labels for which there is room."""
        return self.groups.shape[0], self.indices.shape[0], self.labels.shape[0]

    def arrays(self) -> _Arrays:
        return self.indptr, self.indices, self.values, self.label_ends, self.labels, self.groups

    def reserve(self, rows: int, entries: int, labels: int) -> None:
        """Give the arrays at least these lengths."""
        # `resize` moves pages rather than bytes where arrays are large, but fills with zeros: a first allocation does
        # not touch the memory. Nothing else refers to the arrays between two calls of the kernel (refcheck).
        if self.room == (0, 0, 0):
            self._allocate(rows, entries, labels)
        for array, length in zip(self.arrays(), (rows + 1, entries, entries, rows + 1, labels, rows), strict=True):
            if array.shape[0] < length:
                array.resize(int(length), refcheck=False)

    def trim(self, rows: int, entries: int, labels: int) -> None:
        """Cut the arrays to these lengths."""
        for array, length in zip(self.arrays(), (rows + 1, entries, entries, rows + 1, labels, rows), strict=True):
            array.resize(length, refcheck=False)

    def typed_labels(self) -> tuple[NDArray[Any], str]:
        """The labels and their type; int64 where one of them is an integer that float64 does not hold."""
        big = list(self.exact)
        others = np.delete(self.labels, big) if big else self.labels
        dtype = type_of_numbers(others) if len(others) else "int64" if big else ""
        if not big or not dtype:
            return self.labels, dtype
        whole = np.zeros(len(self.labels), np.int64)
        whole[np.setdiff1d(np.arange(len(whole)), big)] = others
        whole[big] = [self.exact[place] for place in big]
        return whole, dtype

    def put(self, row: Row | None, first: int, state: NDArray[np.int64]) -> None:
        """Add a line that the kernel has passed to Python."""
        from bmrm.kernels.text import svmlight as kernel

        if row is None:
            return
        at, entry, label = (int(state[k]) for k in (kernel.ROWS, kernel.ENTRIES, kernel.LABELS))
        entries, labels = entry + len(row.indices), label + len(row.labels)
        self.indices[entry:entries] = np.array(row.indices, np.int64) - first
        self.values[entry:entries] = row.values
        self.labels[label:labels] = row.labels
        self.exact |= {label + k: one for k, one in enumerate(row.labels) if isinstance(one, int)}
        self.groups[at] = 0 if row.group is None else row.group
        self.indptr[at + 1], self.label_ends[at + 1] = entries, labels
        state[kernel.ROWS], state[kernel.ENTRIES], state[kernel.LABELS] = at + 1, entries, labels
        state[kernel.GROUPED] += row.group is not None
        if row.indices:
            state[kernel.SMALLEST] = min(int(state[kernel.SMALLEST]), row.indices[0])
            state[kernel.LARGEST] = max(int(state[kernel.LARGEST]), row.indices[-1])
            state[kernel.NOT_ONE] |= any(value != 1.0 for value in row.values)


def _blocks(file: IO[bytes], start: int, stop: int | None) -> Iterator[tuple[NDArray[np.uint8], int, int]]:
    """Blocks of whole lines: bytes, the length in use, which ends with a newline, and the position in the file.

    The file is at its first line: behind a byte-order mark.
    """
    if file.seekable():
        start = file.seek(max(start, file.tell()))
    left = math.inf if stop is None else max(0, stop - start)
    buffer = bytearray(int(min(BLOCK, left)) + 1)
    kept, offset = 0, start
    while True:
        room = int(min(len(buffer) - 1 - kept, left))
        got = file.readinto(memoryview(buffer)[kept : kept + room]) if room else 0  # type: ignore[attr-defined]
        left -= got
        filled = kept + got
        if got == 0 and left and room == 0:
            buffer = buffer + bytearray(len(buffer))
            continue
        if got == 0:
            if kept:
                buffer[kept] = 10
                yield np.frombuffer(buffer, np.uint8), kept + 1, offset
            return
        cut = buffer.rfind(b"\n", 0, filled) + 1
        if cut:
            yield np.frombuffer(buffer, np.uint8), cut, offset
            offset += cut
        kept = filled - cut
        buffer[:kept] = buffer[cut:filled]


def _line_at(path: Path, place: int) -> int:
    """The number, from 1, of the line that starts at byte `place` of the decompressed text; only for messages."""
    lines = 1
    with open_lines(path) as file:
        place -= file.tell() if file.seekable() else 0
        while place > 0 and (piece := file.read(min(place, BLOCK))):
            lines += piece.count(b"\n")
            place -= len(piece)
    return lines


def _has_rows(path: Path) -> bool:
    """Whether any line holds more than blanks and a comment."""
    with open_lines(path) as file:
        return any(line.split(b"#", 1)[0].split() for line in file)
