"""What a model says of the rows of a file or a pipe, as lines of text, a piece of the rows at a time."""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.app.measure import scored
from bmrm.app.model import Model
from bmrm.app.profile import text_of
from bmrm.data.dataset import Dataset
from bmrm.data.encoding import Unknown, unknown_in_words
from bmrm.data.files import as_lines as lines_in
from bmrm.data.files import bare_suffix, decompressed, open_bytes
from bmrm.data.joining import join_targets
from bmrm.data.layout import Alike, Layout
from bmrm.data.pieces import PIECE, Piece, pieces
from bmrm.data.readers._core.formats import Batched, Divisible, Format, by_content, by_suffix, formats
from bmrm.data.reading import format_for, from_one, parted, read_offset, scan, with_columns
from bmrm.problem import IncompatibleError, InputError, Targets, facts_of, provides

if TYPE_CHECKING:
    from bmrm.metrics import ScoredRows

STANDARD_INPUT = "-"
NAME = "standard input"
HEAD = 1 << 12
"""Bytes at the start from which a format is recognised."""

Section = str | Mapping[str, Any]
"""As of `data.format`: "auto", a name, or `{name: ..., option: value}`."""


def lines_of(
    model: Model,
    source: str,
    format: Section,
    what: str,
    size: int = PIECE,
    *,
    labelled: Labelled | None = None,
    offset: str | None = None,
    maximize: str | None = None,
    tell: Callable[[str], None] = lambda note: None,
) -> Iterator[str]:
    """A line for each row.

    Parameters
    ----------
    model : that predicts.
    source : a file, several by a glob, `sklearn:NAME`, `synthetic:NAME`, or `-` for standard input; with labels or
        without, compressed or not. Text (svmlight, csv, conll) is read a piece at a time.
    format : of the source; "auto" is that of the training files unless the name implies another.
    what : one of `ANSWERS`, or `ranks`.
    size : bytes of a piece.
    offset : a file with the offset of the rows; None where a column has it, or the model needs none.
    labelled : what keeps the scores and targets of the rows, for measures.
    maximize : the measure whose expectation labels are to maximise on all rows together; None for those of the loss.
    tell : is told each decision of the reader that is not certain, once.

    Raises
    ------
    InputError, IncompatibleError
        The rows cannot be read, or the model does not give what was asked for.
    """
    parts = _telling(datasets(model, source, format, size), tell)
    parts = parts if offset is None else _with_offset(parts, offset)
    parts = parts if labelled is None else labelled.watch(parts)
    if maximize is not None:
        return _maximizing(model, parts, maximize)
    return _ranks(model, parts) if what == "ranks" else _each(model, parts, ANSWERS[what])


def _maximizing(model: Model, parts: Iterator[Dataset], measure: str) -> Iterator[str]:
    """A label for each row, by the probabilities of all of them."""
    found = [model.predict_proba(data) for data in parts if data.rows]
    whole = np.concatenate(found) if found else np.zeros((0, 2))
    return map(text_of, model.predict_maximizing(whole, measure).tolist())


MOST_MEASURED = 1 << 20
"""Most rows whose scores and targets are kept for measures (17 MB with one score each), so that memory is bounded."""


class Labelled:
    """Scores and targets of rows that go by, for measures of all of them."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._scores: list[NDArray[np.float64]] = []
        self._targets: list[Targets] = []
        self._complete = True
        self.rows = 0

    def watch(self, parts: Iterable[Dataset]) -> Iterator[Dataset]:
        """The parts as they come; kept while all of them have labels, and are not too many."""
        sentences = 0
        for data in parts:
            self.rows += data.rows
            self._complete = self._complete and data.labelled and self.rows <= MOST_MEASURED
            if not self._complete:
                self._scores, self._targets = [], []
            if self._complete and data.rows:
                targets = data.targets
                if self.model.reader is not None and targets.groups is not None:  # each piece counts from 0
                    numbers = targets.groups + sentences
                    targets, sentences = replace(targets, groups=numbers), int(numbers[-1]) + 1
                self._scores.append(self.model.decision_function(data))
                self._targets.append(targets)
            yield data

    def scored(self) -> ScoredRows | None:
        """All rows as measures take them; None where some have no labels, or none that the model knows."""
        model = self.model
        if not self._complete or not self._scores or not facts_of(model.loss).needs_targets:
            return None
        try:
            targets = join_targets(self._targets, "data")
            scores, arrays, calibration = np.concatenate(self._scores), model.arrays, model.calibration
            return scored(scores, targets, model.loss, model.label_codes, arrays=arrays, calibration=calibration)
        except InputError:  # such as 0 for each row, where a format must have a label
            return None


def column_names(model: Model, what: str) -> list[str]:
    """The names of what stands in a line of `lines_of`."""
    labels = [text_of(label) for label in model.labels.tolist()]
    names = [f'"{label}"' if " " in label else label for label in labels]
    if what == "probabilities":
        return names
    if what != "scores" or model.weights.ndim == 1:
        return [{"scores": "score", "labels": "label", "ranks": "rank"}[what]]
    count = model.weights.shape[1]
    return names if len(names) == count else [str(k) for k in range(count)]


def _with_offset(parts: Iterator[Dataset], path: str) -> Iterator[Dataset]:
    """The parts, each with its share of the offset in a file."""
    offset, place = read_offset(path), 0
    for data in parts:
        if place + data.rows > len(offset):
            raise InputError(f"{path}: the offset of {len(offset)} rows, there are more rows")
        yield data.with_offset(offset[place : place + data.rows])
        place += data.rows
    if place < len(offset):
        raise InputError(f"{path}: the offset of {len(offset)} rows, there are {place} rows")


def _telling(parts: Iterator[Dataset], tell: Callable[[str], None]) -> Iterator[Dataset]:
    told: set[str] = set()
    unknown: list[Unknown] = []
    for data in parts:
        layout = data.layout or Layout()
        for note in layout.notes:
            if note not in told:
                told.add(note)
                tell(note)
        unknown += layout.unknown
        yield data
    if unknown:
        tell(unknown_in_words(unknown))


def datasets(model: Model, source: str, format: Section, size: int = PIECE) -> Iterator[Dataset]:
    """The rows of a source as the model needs them, in parts that follow one another; sentences are not parted."""
    if source == STANDARD_INPUT:
        with decompressed(sys.stdin.buffer, NAME) as stream:
            yield from _of_stream(model, stream, Path(NAME), "", format, size)
    elif Path(source).is_file():
        with open_bytes(Path(source)) as stream:
            yield from _of_stream(model, stream, Path(source), bare_suffix(Path(source)), format, size)
    else:
        yield model.read(source, format, quiet=True)


def _of_stream(
    model: Model, stream: IO[bytes], origin: Path, suffix: str, format: Section, size: int
) -> Iterator[Dataset]:
    head: bytes = cast("Any", stream).peek(HEAD)[:HEAD]
    chosen, section = _format(model, format, head, origin)
    by_group = facts_of(model.loss).by_group
    if provides(chosen, Divisible) and (chosen.keeps_groups or not by_group):
        alike = model.manner(section, False)[1]
        for piece in pieces(lines_in(stream, str(origin)), str(origin), chosen, alike, suffix, size):
            with piece.explained():
                data, model = _of_piece(model, piece, alike)
            yield data
        return
    with _whole(stream, origin, suffix) as file, file.explained():
        if provides(chosen, Batched) and not by_group:
            alike = model.manner(section, False)[1]
            alike = replace(alike, layout=alike.layout.of_format(formats.describe(chosen)["name"]))
            for raw in chosen.batches(file.path, alike):
                yield raw.like(alike.layout).dataset()
        else:
            yield model.read(file.path, section, quiet=True)


@contextmanager
def _whole(stream: IO[bytes], origin: Path, suffix: str) -> Iterator[Piece]:
    """The whole of a stream as a file: itself, or a copy of standard input."""
    if origin != Path(NAME):
        yield Piece(origin, str(origin), 0)
        return
    with tempfile.TemporaryDirectory(prefix="bmrm-") as folder:
        path = Path(folder) / f"rows{suffix}"
        with open(path, "wb") as file:
            shutil.copyfileobj(stream, file)
        yield Piece(path, NAME, 0)


def _format(model: Model, format: Section, head: bytes, origin: Path) -> tuple[Format, Section]:
    """The format of a stream, and how `Model.read` is to be told of it."""
    layout = model.layout or Layout()
    known = layout.format if layout.text is None else layout.text.format
    named = by_suffix(origin)
    plain, columns = parted(format)
    if plain != "auto":
        return format_for(origin, format), format
    if known is not None and (layout.text is not None or named in (None, known["name"])):
        return format_for(origin, {**known, **columns}), format
    found = by_content(head, origin) if named is None else formats.make(named)
    section = with_columns(formats.describe(found)["name"], **columns)
    return format_for(origin, section), section


def _of_piece(model: Model, piece: Piece, alike: Alike) -> tuple[Dataset, Model]:
    """The rows of a piece, and the model that knows, from now on, whether columns are numbered from 1."""
    layout, format = model.layout or Layout(), piece.format
    assert format is not None
    if layout.text is not None:
        return layout.text.read(piece.path, format), model
    raw = scan(piece.path, format=format, alike=alike)
    if raw.first is None:
        return raw.dataset(), model
    one_based = from_one(raw.extent) if layout.one_based is None else layout.one_based
    return raw.dataset(one_based=one_based), replace(model, layout=replace(layout, one_based=one_based))


ANSWERS: Mapping[str, Callable[[Model, Dataset], Any]] = {
    "scores": Model.decision_function,
    "labels": Model.predict,
    "probabilities": Model.predict_proba,
}
"""Methods that give the output of a row, by its kind; `ranks` are among all rows."""


def _ranks(model: Model, parts: Iterator[Dataset]) -> Iterator[str]:
    """The place of each row within its query by falling score, from 1; without queries among all rows."""
    scores, groups = [], []
    for data in parts:
        scores.append(model.decision_function(data))
        groups.append(data.targets.groups)
        if scores[-1].ndim != 1:
            raise IncompatibleError(f"ranks need one score per row, the model has {scores[-1].shape[1]}")
    queries = [group for group in groups if group is not None]
    yield from map(str, ranks(np.concatenate(scores), np.concatenate(queries) if queries else None).tolist())


def ranks(scores: NDArray[np.float64], groups: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The place of each row in its group by falling score, from 1; of equal scores the first row comes first.

    Parameters
    ----------
    scores : (rows,).
    groups : (rows,); None: all rows are one group.
    """
    group = np.zeros(len(scores), np.int64) if groups is None else groups
    order = np.lexsort((-scores, group))
    firsts = np.flatnonzero(np.diff(group[order], prepend=group[order[:1]] - 1)) if len(scores) else order
    sizes = np.diff(np.append(firsts, len(scores)))
    found = np.empty(len(scores), np.int64)
    found[order] = np.arange(len(scores)) - np.repeat(firsts, sizes) + 1
    return found


def _each(model: Model, parts: Iterator[Dataset], function: Callable[[Model, Dataset], Any]) -> Iterator[str]:
    """The lines of all parts; of text with an empty line between sentences, as in the file that was read."""
    first = True
    for data in parts:
        lines: Iterator[str] = as_lines(function(model, data))
        if model.reader is not None and data.targets.groups is not None:
            lines = _spaced(lines, data.targets.groups.tolist())
            lines = lines if first else itertools.chain([""], lines)
        first = False
        yield from lines


def as_lines(result: Any) -> Iterator[str]:
    """A line for each row: a number, several of them, a label, or a set of labels with commas between."""
    if isinstance(result, list):
        return (",".join(map(text_of, sorted(row))) for row in result)
    if not isinstance(result, np.ndarray):
        result = result.toarray()
    if result.dtype.kind == "M":
        return iter(np.datetime_as_string(result).tolist())
    if result.dtype.kind == "m":
        return (str(value) for value in result)
    rows = result.tolist()
    return (" ".join(map(text_of, row)) if isinstance(row, list) else text_of(row) for row in rows)


def _spaced(lines: Iterator[str], groups: Sequence[int]) -> Iterator[str]:
    before = groups[0] if groups else None
    for line, sentence in zip(lines, groups, strict=True):
        if sentence != before:
            yield ""
        before = sentence
        yield line
