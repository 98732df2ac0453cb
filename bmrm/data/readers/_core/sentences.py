"""What formats of sentences share: a token a line, a blank line between sentences; and how they are told apart."""

from __future__ import annotations

import re
from pathlib import Path

from bmrm.data.files import is_number
from bmrm.data.readers._core.formats import Divisible
from bmrm.problem import InputError

_BLANK_LINE = re.compile(rb"\n[ \t\r]*(?=\n)\n")
LINES = 20
"""Lines that are examined."""


class BySentences(Divisible):
    """What a format of sentences is as a `Divisible` one."""

    def last_border(self, text: bytes) -> int:
        """As of `Divisible`: behind the last blank line."""
        return max((match.end() for match in _BLANK_LINE.finditer(text)), default=0)


def has_attributes(head: bytes) -> bool:
    """Whether the first lines are `label, name=value, name=value, ...` between tabs.

    Every line that is not blank must have two attributes or more, at least half of them with a `=` inside: columns of
    tokens do not.
    """
    lines = whole_lines(head)
    return bool(lines) and all(map(_has_attributes, lines))


def refuse_attributes(head: bytes, path: Path) -> None:
    """Raise InputError for such a file, where columns of tokens are expected."""
    if has_attributes(head):
        raise InputError(
            f"{path}: an attribute file of CRFsuite (in each line a label, then name=value attributes between tabs), "
            "whose format is crfsuite; expected a token a line in columns"
        )


def has_columns(head: bytes) -> bool:
    """Whether the first lines are columns of text, as many in each, with blank lines between sentences."""
    lines = whole_lines(head)
    fields = [line.split() for line in lines]
    if len({len(tokens) for tokens in fields}) > 1:  # tokens with blanks in them
        fields = [line.split(b"\t") for line in lines]
    blank = b"\n\n" in head.replace(b"\r", b"").strip()
    if not blank or has_attributes(head) or len({len(tokens) for tokens in fields}) != 1 or len(fields[0]) < 2:
        return False
    return not any(all(is_number(tokens[column]) for tokens in fields) for column in (0, -1))


def whole_lines(head: bytes) -> list[bytes]:
    """The first lines that are not blank, without one that is cut off."""
    lines = head.split(b"\n")
    return [line for line in (lines[:-1] or lines)[:LINES] if line.strip()]


def _has_attributes(line: bytes) -> bool:
    attributes = line.strip(b"\r").split(b"\t")[1:]
    named = sum(0 < attribute.find(b"=") < len(attribute) - 1 for attribute in attributes)
    return len(attributes) >= 2 and 2 * named >= len(attributes)
