"""The scan of svmlight text: bytes to columns, one line at a time, without an object per token.

The scan reads the lines that are as usual. At any other line (signs on indices, exotic or bad numbers, errors) it
stops in front of it, and the caller reads that line by `bmrm.data.readers.svmlight.parse_line`, the plain Python twin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import inlined, jit
from bmrm.kernels.text.decimal import number, short_number

# Places in the text are cast to unsigned, which spares numba's look for negative indices.

# What `state` (int64) holds: places and counts before the next line.
PLACE, ROWS, ENTRIES, LABELS, GROUPED, SMALLEST, LARGEST, NOT_ONE, STATES = range(9)
_NEWLINE, _HASH, _COLON, _COMMA, _Q, _I, _D, _MINUS = b"\n#:,qid-"
_MOST_INDEX = 2**31 - 1
_MOST_DIGITS = 18
_EXACT = 2.0**53


@jit
def count_marks(text: Any, stop: Any) -> Any:
    """How often ':', newline and ',' occur in text[:stop]: bounds of entries, rows and further labels."""
    colons, lines, commas = 0, 0, 0
    for at in range(stop):
        colons += text[np.uint64(at)] == _COLON
        lines += text[np.uint64(at)] == _NEWLINE
        commas += text[np.uint64(at)] == _COMMA
    return colons, lines, commas


@inlined
def _blank(byte: Any) -> Any:
    """Whether `byte` separates tokens within a line."""
    return byte == 32 or (9 <= byte <= 13 and byte != _NEWLINE)


@inlined
def _ends(byte: Any) -> Any:
    """Whether a token ends before `byte`."""
    return byte <= _HASH and (_blank(byte) or byte in (_NEWLINE, _HASH))


class Rules(NamedTuple):
    """What a line may have.

    Attributes
    ----------
    multilabel : whether a row has any number of labels, joined by commas.
    least : the smallest index allowed.
    first : subtracted from every index.
    limit : the largest absolute value allowed.
    """

    multilabel: bool
    least: int
    first: int
    limit: float


class Outputs(NamedTuple):
    """Rows, long enough for all marks of the text.

    `indptr[r]` and `label_ends[r]` count the entries and labels of rows 0 to r - 1; `groups` has a number per row.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[Any]
    label_ends: NDArray[np.int64]
    labels: NDArray[np.float64]
    groups: NDArray[np.int64]


@jit
def scan(text: Any, stop: Any, rules: Rules, powers: Any, outputs: Outputs, state: Any) -> bool:
    """Read whole lines from text[state[PLACE]:stop] until the end or an unusual line.

    Parameters
    ----------
    text : uint8; text[stop - 1] is a newline.
    powers : the table of `bmrm.kernels.text.decimal`.
    state : (STATES,) int64, in and out.

    Returns
    -------
    bool : False where it stopped at a line for the caller, which starts at state[PLACE].
    """
    multilabel, least, first, limit = rules
    indptr, indices, values, label_ends, labels, groups = outputs
    bits = np.empty(1, np.uint64)
    cell = bits.view(np.float64)
    at, row, entry, label = state[PLACE], state[ROWS], state[ENTRIES], state[LABELS]
    grouped, smallest, largest, not_one = state[GROUPED], state[SMALLEST], state[LARGEST], state[NOT_ONE]
    while at < stop:
        line, line_entry, line_label = at, entry, label
        usual = True
        while _blank(text[np.uint64(at)]):
            at += 1
        if text[np.uint64(at)] == _HASH:
            while text[np.uint64(at)] != _NEWLINE:
                at += 1
        if text[np.uint64(at)] == _NEWLINE:
            at += 1
            continue
        if not (multilabel and text[np.uint64(at)] == _Q):
            token = at
            while True:
                target, at, usual = number(text, at, powers, bits, cell)
                usual = usual and abs(target) < _EXACT  # what is this much may be rounded
                labels[label] = target
                label += 1
                if not (multilabel and usual and text[np.uint64(at)] == _COMMA):
                    break
                at += 1
            if multilabel and usual and text[np.uint64(at)] == _COLON and label == line_label + 1:
                label = line_label  # the row has no labels, this is its first entry
                at = token
            else:
                usual = usual and _ends(text[np.uint64(at)])
            while usual and _blank(text[np.uint64(at)]):
                at += 1
        group = 0
        has_group = usual and text[np.uint64(at)] == _Q
        if has_group:
            usual = (
                text[np.uint64(at + 1)] == _I and text[np.uint64(at + 2)] == _D and text[np.uint64(at + 3)] == _COLON
            )
            at += 4 if usual else 0
            negative = usual and text[np.uint64(at)] == _MINUS
            at += 1 if negative else 0
            begin = at
            while usual and 48 <= text[np.uint64(at)] <= 57:
                group = group * 10 + np.int64(text[np.uint64(at)] - 48)
                at += 1
            usual = usual and 0 < at - begin <= _MOST_DIGITS and _ends(text[np.uint64(at)])
            group = -group if negative else group
            while usual and _blank(text[np.uint64(at)]):
                at += 1
        before = least - 1
        line_not_one = False
        line_smallest = smallest
        while usual and text[np.uint64(at)] != _NEWLINE:
            if text[np.uint64(at)] == _HASH:
                while text[np.uint64(at)] != _NEWLINE:
                    at += 1
                break
            begin = at
            index = 0
            while 48 <= text[np.uint64(at)] <= 57:
                index = index * 10 + np.int64(text[np.uint64(at)] - 48)
                at += 1
            if text[np.uint64(at)] != _COLON or not 0 < at - begin <= _MOST_DIGITS or not before < index <= _MOST_INDEX:
                usual = False
                break
            at += 1
            start = at
            value, at, usual = short_number(text, start)
            if not usual or not (text[np.uint64(at)] == 32 or text[np.uint64(at)] == _NEWLINE):
                value, at, usual = number(text, start, powers, bits, cell)
                if not usual or not _ends(text[np.uint64(at)]):
                    usual = False
                    break
            if not abs(value) <= limit:
                usual = False
                break
            indices[entry] = index - first
            values[entry] = value
            entry += 1
            line_not_one = line_not_one or value != 1.0
            if before < least:
                line_smallest = min(smallest, index)
            before = index
            while _blank(text[np.uint64(at)]):
                at += 1
        if not usual:
            state[PLACE], state[ROWS], state[ENTRIES], state[LABELS] = line, row, line_entry, line_label
            state[GROUPED], state[SMALLEST], state[LARGEST], state[NOT_ONE] = grouped, smallest, largest, not_one
            return False
        at += 1
        groups[row] = group
        grouped += 1 if has_group else 0
        if entry > line_entry:
            smallest = line_smallest
            largest = max(largest, before)
            not_one = 1 if line_not_one else not_one
        row += 1
        indptr[row] = entry
        label_ends[row] = label
    state[PLACE], state[ROWS], state[ENTRIES], state[LABELS] = at, row, entry, label
    state[GROUPED], state[SMALLEST], state[LARGEST], state[NOT_ONE] = grouped, smallest, largest, not_one
    return True
