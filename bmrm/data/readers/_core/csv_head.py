"""The beginning of a csv file: lines before its rows, the delimiter, and whether its columns have names."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bmrm.data.files import is_number
from bmrm.data.layout import Alike

LINES = 64
"""Lines from which delimiter, header and the like are recognised."""
FIELDS = 1 << 17
"""Most fields below the first line that are compared with it, in as many lines."""
DELIMITERS = ",;\t|"
_OTHERS = " :^~"
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*$', re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')
_UNNAMED = re.compile(r"(Unnamed: \d+(\.\d+)*)?$")
"""pandas writes no name for an index that has none, and reads it as `Unnamed: 0`."""
_NOTHING_LAST = "each line ends with a delimiter, behind which there is no column"
_WHOLE = re.compile(r"[-+]?\d+$")


@dataclass(frozen=True)
class Head:
    """The beginning of a file.

    Attributes
    ----------
    delimiter : between fields.
    skipped : lines before the first record.
    names : of the columns; None where they have none.
    index : positions of columns that hold row names or numbers.
    empty_last : whether every record ends with a delimiter, behind which there is nothing.
    notes : what was decided that is not certain, for the user.
    """

    delimiter: str
    skipped: int
    names: tuple[str, ...] | None
    index: tuple[int, ...] = ()
    empty_last: bool = False
    notes: tuple[str, ...] = ()


def head_of(lines: Sequence[str], delimiter: str | None, header: bool | None, alike: Alike | None, cut: bool) -> Head:
    """The head of a file.

    Parameters
    ----------
    lines : the first ones, as they are.
    delimiter, header : options of the format; None: to be found.
    alike : how other files were read.
    cut : whether the file goes on behind the lines.
    """
    start = next((k for k, line in enumerate(lines) if line.strip()), len(lines))
    if start < len(lines) and (stated := _SEPARATOR.match(lines[start].strip("\r\n"))):  # a line of Excel
        delimiter = delimiter or stated[1]
        start += 1
    bare = [line.strip() for line in lines]
    begin = next((k for k in range(start, len(lines)) if bare[k] and not bare[k].startswith("#")), len(lines))
    delimiter = delimiter or found_delimiter(lines[begin:])
    notes: tuple[str, ...] = ()
    records = _records(lines[begin:], delimiter, cut)
    comments = sum(map(bool, bare[start:begin]))
    named = _in_comment(bare[begin - 1], delimiter, records) if comments and header is not False else None
    comments -= named is not None
    if named is not None and bare[begin - 1][1:2] not in (" ", "\t"):  # the first name begins with #
        begin, named = begin - 1, None
        records = _records(lines[begin:], delimiter, cut)
    if comments:
        which = "the first line, which begins" if comments == 1 else f"the first {comments} lines, which begin"
        notes += (f"{which} with #, {'is' if comments == 1 else 'are'} left out",)
    if named is not None:
        notes += ("the names of the columns are those behind # in the line before the rows",)
        return _of_columns(delimiter, begin, named, records, notes)
    if not records:
        return Head(delimiter, begin, None, notes=notes)
    first, rows = records[0], records[1:]
    if header is None:
        header, note = decided(first, rows, alike)
        notes += (note,) if note else ()
    if not header:
        empty_last = len(first) > 1 and not any(row[-1].strip() for row in records)
        return Head(delimiter, begin, None, (), empty_last, (*notes, _NOTHING_LAST) if empty_last else notes)
    return _of_columns(delimiter, begin + _lines_of_first(lines[begin:], delimiter), tuple(first), rows, notes)


def found_delimiter(lines: Iterable[str]) -> str:
    """The one of `DELIMITERS` that each line has as often, else that is most frequent in the first line."""
    bare = [_QUOTED.sub("", line) for line in lines if line.strip()]
    if not bare:
        return DELIMITERS[0]

    def fits(mark: str) -> tuple[bool, int]:
        counts = [line.count(mark) for line in bare]
        return counts[0] > 0 and len(set(counts)) == 1, counts[0]

    return max(DELIMITERS, key=fits)


def likely_delimiter(line: str) -> str | None:
    """What else may be between the fields of a line that is one field."""
    return next((mark for mark in (*DELIMITERS, *_OTHERS) if mark in line.strip()), None)


def decided(first: Sequence[str], rows: Sequence[Sequence[str]], alike: Alike | None) -> tuple[bool, str]:
    """Whether the first record holds names, and what to tell the user where it might be otherwise."""
    texts = [field.strip() for field in first]
    if not any(map(is_number, texts)):
        return True, ""
    known = None if alike is None else alike.layout
    if known is not None and known.columns and set(known.columns) <= set(texts):
        return True, ""
    rows = [row for row in rows if len(row) == len(first)][: max(4, FIELDS // len(first))]
    rows = [[field.strip() for field in row] for row in rows]
    found, certain = _looks_like_names(texts, rows)
    if found and known is not None and not known.columns and (known.format or {}).get("name") == "csv":
        found, certain = False, False  # as in the files before
    shown = ", ".join(text or repr(text) for text in texts[:4]) + (", ..." if len(texts) > 4 else "")
    if certain:
        return found, ""
    if found:
        return True, f"the first line ({shown}) is taken for names of columns; data.header: false makes it a row"
    return False, f"the first line ({shown}) is taken for a row; data.header: true makes it names of columns"


def _looks_like_names(texts: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[bool, bool]:
    """Whether fields, some of which are numbers, are names of the columns of the rows, and whether that is certain."""
    if not rows:
        return False, True
    words = [k for k, text in enumerate(texts) if text and not is_number(text)]
    numbers = [float(text) for text in texts if is_number(text)]
    steps = [after - before for before, after in pairwise(numbers)]
    from_zero = numbers == list(map(float, range(len(numbers))))
    even = len(numbers) > 2 and all(math.isclose(step, steps[0], rel_tol=1e-6) for step in steps) and steps[0] != 0.0
    rising = len(numbers) > 2 and (min(steps) > 0.0 or max(steps) < 0.0)
    if not (words or from_zero or rising or len(numbers) == 2):
        return False, True
    if list(texts) in rows:
        return False, not (from_zero and len(numbers) > 1)
    columns = list(zip(*rows, strict=True))
    if any(texts[k] in columns[k] for k in words):  # a label that recurs
        return False, True
    over_numbers = [k for k in words if all(map(is_number, columns[k]))]
    if over_numbers and (from_zero or even or rising or 2 * len(words) > len(texts)):
        return True, True
    if from_zero and (len(numbers) > 1 or not texts[0] or (len(texts) > 1 and not _whole(columns))):
        return True, False
    if not (even or rising or len(numbers) == 2):
        return False, True
    odd = [_unlike(text, column) for text, column in zip(texts, columns, strict=True) if is_number(text)]
    strange = sum(odd) >= max(2, len(odd) - 1)
    if strange and (even or rising or (len(numbers) == 2 and numbers[0] != numbers[1] and all(odd))):
        return True, False
    return False, not even


def _whole(columns: Sequence[Sequence[str]]) -> bool:
    return all(_WHOLE.match(field) for column in columns for field in column)


def _unlike(text: str, column: Sequence[str]) -> bool:
    """Whether a number is none like those below it: far from them, or whole while most of them are not."""
    values = [float(field) for field in column if is_number(field)]
    if not values:
        return False
    low, high = min(values), max(values)
    if len(values) > 1 and not 2 * low - high <= float(text) <= 2 * high - low:
        return True
    if not _WHOLE.match(text):
        return len(values) > 1 and all(map(_WHOLE.match, column))
    return 2 * sum(not _WHOLE.match(field) for field in column) > len(column)


def _of_columns(
    delimiter: str, skipped: int, first: Sequence[str], rows: Sequence[Sequence[str]], notes: tuple[str, ...]
) -> Head:
    """The head of a file whose columns have these names; of row names and numbers, which may have none."""
    names, widths = [name.strip() for name in first], {len(row) for row in rows}
    last_empty = bool(rows) and all(not row[-1].strip() for row in rows)
    if widths == {len(names) + 1}:
        names = [*names, ""] if last_empty else ["", *names]
    empty_last = len(names) > 1 and names[-1] == "" and last_empty
    if empty_last:
        names.pop()
        notes += (_NOTHING_LAST,)
    count = next((k for k, name in enumerate(names) if not _UNNAMED.match(name)), 0)
    return Head(delimiter, skipped, tuple(names), tuple(range(count)), empty_last, notes)


def _in_comment(line: str, delimiter: str, records: Sequence[Sequence[str]]) -> tuple[str, ...] | None:
    """The names in a comment before rows of numbers, as `numpy.savetxt` writes them; None if there are none."""
    fields = next(csv.reader([line.strip().lstrip("#").strip()], delimiter=delimiter), [])
    fits = len(fields) > 1 and bool(records) and len(records[0]) == len(fields)
    if not fits or not any(map(is_number, records[0])) or any(map(is_number, fields)):
        return None
    return tuple(fields)


def _records(lines: Sequence[str], delimiter: str, cut: bool) -> list[list[str]]:
    """The records of some lines that are not blank, as far as they are whole."""
    reader, records = csv.reader(lines, delimiter=delimiter), []
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                records.append(fields)
    except csv.Error:
        return records
    return records[:-1] if cut and len(records) > 1 else records


def _lines_of_first(lines: Sequence[str], delimiter: str) -> int:
    """The lines of the first record, with blank ones before it."""
    reader = csv.reader(lines, delimiter=delimiter)
    for fields in reader:
        if any(field.strip() for field in fields):
            break
    return reader.line_num
