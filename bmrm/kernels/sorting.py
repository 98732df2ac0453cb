"""Sorting of scores, several times faster than a comparison sort where there are many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import jit

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

FEW = 2_000
"""Scores below which numpy's sort is as fast."""
SAMPLE = 500
"""Scores that tell where most of them lie."""
EFFORT = 12
"""Moves per score that the last step may take before numpy's sort is the better choice."""


def ascending(f: Array) -> tuple[Rows, Array]:
    """The rows in the order of rising scores, and the scores in that order; equal scores keep the order of the rows.

    Scores go first, in two passes, to the cells of a grid that is fine where most of them lie, and are then sorted
    by insertion. Where that would take long (many different scores in one cell) numpy's sort is called.
    """
    if f.size >= FEW:
        sample = f[:: f.size // SAMPLE]
        middle = float(np.median(sample))
        spread = float(np.mean(np.abs(sample - middle)))
        if 0.0 < spread < np.inf:
            order, values = np.empty(f.size, np.int64), np.empty(f.size)
            if sort_by_cells(f, middle, spread, order, values, EFFORT * f.size):
                return order, values
    order = np.argsort(f, kind="stable")
    return order, f[order]


def ascending_within(f: Array, starts: Rows) -> tuple[Rows, Array]:
    """As `ascending` within each piece `starts[k]` to `starts[k + 1]` of the rows, which stays in its place."""
    pieces = len(starts) - 1
    if pieces == 1 and starts[0] == 0 and starts[1] == f.size:
        return ascending(f)
    order, values = np.empty(f.size, np.int64), np.empty(f.size)
    sort_pieces(f, starts, order, values)
    return order, values


@jit
def insert(values, order, start, stop, moves):  # type: ignore[no-untyped-def]
    """Sort [start, stop) of `values` by insertion, `order` along; False where it takes more than `moves`."""
    for k in range(start + 1, stop):
        value = values[k]
        if values[k - 1] > value:
            row, place = order[k], k
            while place > start and values[place - 1] > value:
                values[place] = values[place - 1]
                order[place] = order[place - 1]
                place -= 1
            values[place] = value
            order[place] = row
            moves -= k - place
            if moves < 0:
                return False
    return True


@jit
def sort_by_cells(f, middle, spread, order, values, moves):  # type: ignore[no-untyped-def]
    """Fill `order` and `values`; False where the insertion takes more than `moves`, or a score is nan."""
    n = f.size
    first, second = np.zeros(2049, np.int64), np.zeros(2049, np.int64)
    cells = np.empty(n, np.uint32)
    for i in range(n):
        # Rises with f from -1 to 1, but for rounding, which the insertion puts right.
        away = f[i] - middle
        place = away / (abs(away) + spread)
        if not abs(place) <= 1.0:
            return False
        cell = np.uint32((place + 1.0) * 2097151.0)
        cells[i] = cell
        first[(cell & np.uint32(2047)) + 1] += 1
        second[(cell >> np.uint32(11)) + 1] += 1
    for k in range(2048):
        first[k + 1] += first[k]
        second[k + 1] += second[k]
    rows, digits = np.empty(n, np.uint32), np.empty(n, np.uint32)
    for i in range(n):
        digit = cells[i] & np.uint32(2047)
        at = first[digit]
        first[digit] = at + 1
        rows[at] = i
        digits[at] = cells[i] >> np.uint32(11)
    for k in range(n):
        at = second[digits[k]]
        second[digits[k]] = at + 1
        order[at] = rows[k]
    for k in range(n):
        values[k] = f[order[k]]
    return insert(values, order, 0, n, moves)


@jit
def sort_pieces(f, starts, order, values):  # type: ignore[no-untyped-def]
    """Fill `order` and `values` piece by piece: insertion in short runs, then merging."""
    longest = 0
    for k in range(starts.size - 1):
        longest = max(longest, starts[k + 1] - starts[k])
    spare, rows = np.empty(longest), np.empty(longest, np.int64)
    for k in range(starts.size - 1):
        a, b = starts[k], starts[k + 1]
        for i in range(a, b):
            values[i] = f[i]
            order[i] = i
        for i in range(a, b, 24):
            insert(values, order, i, min(b, i + 24), 1000)
        width = 24
        while width < b - a:
            for left in range(a, b, 2 * width):
                middle, right = min(b, left + width), min(b, left + 2 * width)
                if middle == right or values[middle - 1] <= values[middle]:
                    continue
                for i in range(left, middle):
                    spare[i - left] = values[i]
                    rows[i - left] = order[i]
                i, j, at = 0, middle, left
                while i < middle - left:
                    if j < right and values[j] < spare[i]:
                        values[at] = values[j]
                        order[at] = order[j]
                        j += 1
                    else:
                        values[at] = spare[i]
                        order[at] = rows[i]
                        i += 1
                    at += 1
            width *= 2
