"""Attribute files of CRFsuite are not supported; they are recognised because they resemble columns of tokens."""

from __future__ import annotations

from pathlib import Path

from bmrm.problem import InputError

LINES = 20
"""Number of lines that are examined."""


def refuse_attributes(head: bytes, path: Path) -> None:
    """Raise InputError where the first lines are `label, name=value, name=value, ...` between tabs.

    Every line that is not blank must have two attributes or more, at least half of them with a `=` inside: columns of
    tokens do not.
    """
    lines = head.split(b"\n")
    lines = [line for line in (lines[:-1] or lines)[:LINES] if line.strip()]
    if lines and all(map(_has_attributes, lines)):
        raise InputError(
            f"{path}: an attribute file of CRFsuite (in each line a label, then name=value attributes between tabs), "
            "which is not read yet; expected a token a line in columns, from which templates make the attributes"
        )


def _has_attributes(line: bytes) -> bool:
    attributes = line.strip(b"\r").split(b"\t")[1:]
    named = sum(0 < attribute.find(b"=") < len(attribute) - 1 for attribute in attributes)
    return len(attributes) >= 2 and 2 * named >= len(attributes)
