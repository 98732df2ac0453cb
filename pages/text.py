"""Pieces of Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence

CODE = re.compile(r"(^```.*?^```$|^ {4}.*?$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
"""Text of a page that stays as it is: fenced and indented blocks, code in a line."""


def outside_code(change: Callable[[str], str], text: str) -> str:
    """The text with all but its code changed."""
    return "".join(part if k % 2 else change(part) for k, part in enumerate(CODE.split(text)))


def prose(text: str) -> str:
    """A docstring as Markdown: its code as code, all else as it stands."""
    return outside_code(plain, text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; cells are Markdown too."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: str, *, wide: bool = False) -> str:
    """Text that is shown as it stands: no stars are eaten, no pipe ends the cell; `wide` gives it room in a table."""
    opening = '<code class="wide">' if wide else "<code>"
    return f"{opening}{html.escape(text).replace('|', '&#124;').replace('*', '&#42;').replace('_', '&#95;')}</code>"


def plain(text: str) -> str:
    """Prose of the package: stars and underscores in it are no emphasis."""
    return html.escape(text, quote=False).replace("*", "&#42;").replace("_", "&#95;").replace("|", "&#124;")
