"""Rows of a source a part at a time, so that memory is needed for a part: for what goes through them more than once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from bmrm.data.files import bare_suffix, divisible, open_lines
from bmrm.data.layout import Alike
from bmrm.data.pieces import pieces
from bmrm.data.raw_columns import Coding
from bmrm.data.readers._core.formats import Batched, ByBytes, Divisible, Format, Tabular
from bmrm.data.readers._core.raw import Raw
from bmrm.data.readers._core.shares import file_share
from bmrm.data.reading import Source, files_of, format_for, scan

AT_A_TIME = 64 << 20
"""Bytes of text that are read at a time."""


@dataclass(frozen=True)
class Parts:
    """The share of the rows of a source, as readers return them, in parts that follow one another.

    Plain svmlight text, and csv, compressed or not, come in parts of `at_a_time` bytes, Parquet files by row groups,
    Arrow files by record batches; other files, and bundled or generated rows, at once. Of a single file over several
    parts plain svmlight text is divided by bytes and a table of Arrow by its batches; csv, in which a field may hold a
    newline, goes to the first.

    Parameters
    ----------
    source, format : those of `bmrm.data.reading.scan`.
    at_a_time : bytes of text in a part, about.
    part, parts : the number of this share, from 0, and of all shares.
    """

    source: Source
    format: str | Mapping[str, Any] | Format = "auto"
    at_a_time: int = AT_A_TIME
    part: int = 0
    parts: int = 1

    def __iter__(self) -> Iterator[Raw]:
        files = files_of(self.source)
        if not files or not all(path.is_file() for path in files):
            yield scan(self.source, format=self.format, part=self.part, parts=self.parts)
            return
        formats = [format_for(path, self.format) for path in files]
        if all(isinstance(one, ByBytes) and divisible(path) for path, one in zip(files, formats, strict=True)):
            yield from self._by_bytes(files)
            return
        alike: Alike | None = None
        for path, part, parts in self._share(files):
            for raw in self._of_file(path, format_for(path, self.format), part, parts, alike):
                if alike is None and raw.layout is not None:
                    alike = Alike(raw.layout)
                yield raw

    @property
    def origin(self) -> str:
        """The names of the source."""
        return ", ".join([fspath(self.source)] if isinstance(self.source, (str, PathLike)) else map(str, self.source))

    def _by_bytes(self, files: Sequence[Path]) -> Iterator[Raw]:
        each = 1 + sum(path.stat().st_size for path in files) // (self.at_a_time * self.parts)
        for part in range(self.part * each, (self.part + 1) * each):
            yield scan(self.source, format=self.format, part=part, parts=self.parts * each)

    def _share(self, files: Sequence[Path]) -> Iterator[tuple[Path, int, int]]:
        """The files of this share, and the share of each."""
        if len(files) == 1:
            yield files[0], self.part, self.parts
            return
        for path, _ in file_share(files, self.part, self.parts, lambda path: False):
            yield path, 0, 1

    def _of_file(self, path: Path, format: Format, part: int, parts: int, alike: Alike | None) -> Iterator[Raw]:
        coding = Coding()
        if isinstance(format, Batched):
            yield from format.batches(path, alike, coding, part, parts)
        elif isinstance(format, Divisible) and isinstance(format, (Tabular, ByBytes)):
            if part == 0:
                yield from self._of_text(path, format, alike)
        else:
            wanted = coding if isinstance(format, Tabular) else None
            yield scan(path, format=format, part=part, parts=parts, alike=alike, coding=wanted)

    def _of_text(self, path: Path, format: Divisible, alike: Alike | None) -> Iterator[Raw]:
        with open_lines(path) as lines:
            for piece in pieces(lines, str(path), format, alike, bare_suffix(path), self.at_a_time):
                wanted = Coding() if isinstance(piece.format, Tabular) else None
                chosen = "auto" if piece.format is None else piece.format
                with piece.explained():
                    raw = scan(piece.path, format=chosen, alike=alike, coding=wanted)
                yield replace(raw, origin=str(path))
