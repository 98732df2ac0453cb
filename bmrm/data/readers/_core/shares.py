"""The parts of a source: contiguous shares of files, rows and bytes, in the order of the parts.

The shares, joined in the order of the parts, are the whole. Consecutive rows of one group (`qid`) are never split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bmrm.data.files import named_compressed, open_bytes


def even_share(count: int, part: int, parts: int) -> tuple[int, int]:
    """The share [start, stop) of `count` items, sizes differing by at most one."""
    return count * part // parts, count * (part + 1) // parts


SORTING = 0.1
"""Cost of a sorting step for a row, relative to its share of a pass over the data."""


def row_share(rows: int, part: int, parts: int, groups: NDArray[np.int64] | None = None) -> tuple[int, int]:
    """The share of the rows; with groups, whole groups of about the same cost, n (1 + SORTING log2 n) for n rows."""
    if groups is None or not rows:
        return even_share(rows, part, parts)
    edges = np.concatenate(([0], np.flatnonzero(np.diff(groups)) + 1, [rows]))
    sizes = np.diff(edges)
    before = np.concatenate(([0.0], np.cumsum(sizes * (1.0 + SORTING * np.log2(sizes)))))

    def border(k: int) -> int:
        """The edge of a group nearest to k shares of the cost."""
        return int(edges[np.argmin(np.abs(before - before[-1] * k / parts))])

    return border(part), border(part + 1)


def byte_share(path: Path, start: int, stop: int) -> tuple[int, int]:
    """Bytes [start, stop) of a plain text file, moved to where the next line (or group of lines) starts, or the end."""
    size = path.stat().st_size
    with open_bytes(path) as file:

        def border(place: int) -> int:
            """The first line that starts at or behind `place` and, where it has a group, starts a new one."""
            if place in (0, size):
                return place
            file.seek(place - 1)
            place += len(file.readline()) - 1
            first = None
            at = place
            while line := file.readline():
                group = _group_of(line)
                first = group if first is None else first
                if first == b"":
                    return place
                if group is not None and group != first:
                    return at
                at += len(line)
            return at if first else place

        return border(start), border(stop)


EXPANSION = 4
"""Typical ratio of text to its compressed size."""


def file_share(
    files: Sequence[Path], part: int, parts: int, divisible: Callable[[Path], bool]
) -> list[tuple[Path, tuple[int, int] | None]]:
    """The share of some files by their sizes: whole files, or (path, (start, stop)) for bytes of one that is divisible.

    A border inside a file that is not divisible moves to the nearer of its ends.
    """
    ends = np.cumsum([0.0, *(_text_size(path) for path in files)])

    def border(k: int) -> tuple[int, int]:
        """A file, and a place in it."""
        if k in (0, parts):
            return (0 if k == 0 else len(files)), 0
        place = ends[-1] * k / parts
        file = min(int(np.searchsorted(ends, place, side="right")) - 1, len(files) - 1)
        inside, size = place - ends[file], ends[file + 1] - ends[file]
        if inside > 0 and divisible(files[file]):
            return file, int(inside)
        return file + int(2.0 * inside > size), 0

    (first, start), (last, stop) = border(part), border(part + 1)
    share: list[tuple[Path, tuple[int, int] | None]] = []
    for file in range(first, last + (stop > 0)):
        begins, ends_inside = file == first and start > 0, file == last and stop > 0
        if not (begins or ends_inside):
            share.append((files[file], None))
            continue
        span = (start if begins else 0, stop if ends_inside else files[file].stat().st_size)
        if span[0] < span[1]:
            share.append((files[file], span))
    return share


def _text_size(path: Path) -> int:
    """Bytes of a file, of a compressed one about those of its text; 0 where there is none: whoever reads it says so."""
    try:
        return path.stat().st_size * (EXPANSION if named_compressed(path) else 1)
    except (OSError, ValueError):
        return 0


def last_border(text: bytes) -> int:
    """The end of the last whole line; where lines have groups, of the last line before the last group. 0 if nowhere."""
    end = text.rfind(b"\n") + 1
    last: bytes | None = None
    stop = end
    while stop > 0:
        start = text.rfind(b"\n", 0, stop - 1) + 1
        group = _group_of(text[start:stop])
        if group == b"" and last is None:
            return end
        if group is not None and last is not None and group != last:
            return stop
        last = last if group is None else group
        stop = start
    return end if last is None else 0


def _group_of(line: bytes) -> bytes | None:
    """The `qid:` token of a line of svmlight text, b"" where it has none, None for a line that is not a row."""
    tokens = line.split(b"#", 1)[0].split(None, 2)
    if not tokens:
        return None
    return next((token for token in tokens[:2] if token.startswith(b"qid:")), b"")
