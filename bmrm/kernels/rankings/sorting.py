"""Sorting of scores, several times faster than a comparison sort where there are many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit, jit

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

FEW = 2_000
"""Scores up to which numpy's sort is as fast."""
SAMPLE = 500
"""Scores from which their distribution is estimated."""
RUN = 128
"""Scores that are sorted by comparing all pairs, which takes a bounded number of steps each."""
FEWEST = 24
"""Scores that are sorted by insertion."""
EFFORT = 12
"""Moves per score in the last step above which numpy's sort is used instead."""


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
    """Fill `order` and `values` piece by piece: short runs by counting, then merging."""
    longest = 0
    for k in range(starts.size - 1):
        longest = max(longest, starts[k + 1] - starts[k])
    spare, rows, ranks = np.empty(longest), np.empty(longest, np.int64), np.empty(RUN)
    for k in range(starts.size - 1):
        start, stop = starts[k], starts[k + 1]
        for a in range(start, stop, RUN):
            b = min(stop, a + RUN)
            if _rank(f[a:b], ranks):
                for i in range(a, b):
                    place = a + np.int64(ranks[i - a])
                    values[place] = f[i]
                    order[place] = i
                continue
            for i in range(a, b):
                values[i] = f[i]
                order[i] = i
            for i in range(a, b, FEWEST):
                insert(values, order, i, min(b, i + FEWEST), FEWEST * FEWEST)
            _merge_runs(values, order, a, b, np.int64(FEWEST), spare, rows)
        _merge_runs(values, order, start, stop, np.int64(RUN), spare, rows)


@fast_jit
def _rank(f, ranks):  # type: ignore[no-untyped-def]
    """Fill the numbers of lower scores; False where they are no ranks, because scores are equal or nan.

    Every pair is compared, which is faster than sorting as long as the processor compares several at once.
    """
    last, total = f.size - 1, 0.0
    for i in range(0, f.size, 4):
        # Four rows at a time, so that each score is loaded for all of them; at the end the last row again.
        j, k, l = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        a, b, c, d = f[i], f[j], f[k], f[l]
        below_a = below_b = below_c = below_d = 0.0
        for at in range(f.size):
            other = f[at]
            below_a += 1.0 if other < a else 0.0
            below_b += 1.0 if other < b else 0.0
            below_c += 1.0 if other < c else 0.0
            below_d += 1.0 if other < d else 0.0
        ranks[i], ranks[j], ranks[k], ranks[l] = below_a, below_b, below_c, below_d
    for i in range(f.size):
        total += ranks[i]
    return total == 0.5 * f.size * last


@jit
def _merge_runs(values, order, start, stop, width, spare, rows):  # type: ignore[no-untyped-def]
    """Sort [start, stop), in which runs of `width` are sorted; `spare` and `rows` have room for as many."""
    while width < stop - start:
        for left in range(start, stop, 2 * width):
            middle, right = min(stop, left + width), min(stop, left + 2 * width)
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
