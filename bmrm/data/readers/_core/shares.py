"""The parts of a source: contiguous shares of files, rows and bytes, in the order of the parts.

The shares, joined in the order of the parts, are the whole. Consecutive rows of one group (`qid`) are never split.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bmrm.data.files import open_bytes

_BLANK_LINE = re.compile(rb"\n[ \t\r]*(?=\n)\n")


def even_share(count: int, part: int, parts: int) -> tuple[int, int]:
    """The share [start, stop) of `count` items, sizes differing by at most one."""
    return count * part // parts, count * (part + 1) // parts


SORTING = 0.1
"""Cost of a sorting step per row, relative to the row's share of a pass over the data."""


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


def byte_share(path: Path, part: int, parts: int) -> tuple[int, int]:
    """The share of a plain text file, from the start of a line to the start of another (or the end)."""
    size = path.stat().st_size
    start, stop = even_share(size, part, parts)
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


def sentence_border(text: bytes) -> int:
    """Behind the last blank line; 0 if there is none."""
    return max((match.end() for match in _BLANK_LINE.finditer(text)), default=0)


def _group_of(line: bytes) -> bytes | None:
    """The `qid:` token of a line of svmlight text, b"" where it has none, None for a line that is not a row."""
    tokens = line.split(b"#", 1)[0].split(None, 2)
    if not tokens:
        return None
    return next((token for token in tokens[:2] if token.startswith(b"qid:")), b"")
