"""Files and pipes that are read a piece at a time: rows never need to be in memory together."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bmrm.data.layout import Alike
from bmrm.data.readers._core.formats import Divisible, Format
from bmrm.problem import InputError

PIECE = 1 << 23
"""Bytes of text in a piece, approximately."""


@dataclass(frozen=True)
class Piece:
    """Some rows of a file as a file of their own.

    Attributes
    ----------
    path : of the piece, which exists until the next one is asked for.
    origin : the name of the whole.
    lines : what to add to the number of a line of the piece.
    format : in which it is read; None: of no piece, but the whole.
    """

    path: Path
    origin: str
    lines: int
    format: Format | None = None

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Errors name the whole and its lines."""
        try:
            yield
        except InputError as error:
            place = re.escape(str(self.path)) + r"(?:, line (\d+))?"
            raise InputError(re.sub(place, self._in_whole, str(error))) from error

    def _in_whole(self, match: re.Match[str]) -> str:
        return self.origin if match[1] is None else f"{self.origin}, line {int(match[1]) + self.lines}"


def pieces(
    stream: IO[bytes], origin: str, format: Divisible, alike: Alike | None, suffix: str = "", size: int = PIECE
) -> Iterator[Piece]:
    """The pieces of a decompressed stream.

    Parameters
    ----------
    stream : lines as of `as_lines`, from its start.
    origin : its name in messages.
    format : says where a piece may end.
    alike : how other files were read; None where there are none.
    suffix : of the names of the pieces, by which their format is recognised.
    size : bytes of a piece; more where it cannot end before.

    Raises
    ------
    InputError
        The stream has no rows.
    """
    with tempfile.TemporaryDirectory(prefix="bmrm-") as folder:
        path = Path(folder) / f"rows{suffix}"
        heading, line, found = b"", 0, False
        settled: Any = format
        for number, text in enumerate(_texts(stream, format, size)):
            if number == 0:
                settled = format.settled(text, alike)
                heading = text[: settled.heading(text)]
                line, text = heading.count(b"\n"), text[len(heading) :]
            if format.has_rows(text):
                found = True
                path.write_bytes(heading + text)
                yield Piece(path, origin, line - heading.count(b"\n"), settled)
            line += text.count(b"\n")
    if not found:
        raise InputError(f"{origin}: the file has no rows")


def _texts(stream: IO[bytes], format: Divisible, size: int) -> Iterator[bytes]:
    """The stream, cut where pieces may end."""
    rest = b""
    while block := stream.read(max(size, len(rest))):
        rest += block
        border = format.last_border(rest)
        if border:
            yield rest[:border]
            rest = rest[border:]
    if rest:
        yield rest
