"""The registry of file formats. A format is one file in `readers/` with a registered dataclass of its options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from bmrm.data.files import HEAD, bare_suffix, begin_of_text, ends_lines_by_cr, is_binary, open_bytes
from bmrm.data.layout import Alike
from bmrm.data.raw_columns import Coding
from bmrm.data.readers._core.raw import Raw
from bmrm.problem import InputError
from bmrm.registry import Registry
from bmrm.vocabulary import CONFIGS

USUAL = "svmlight"
"""Format whose suffixes are tried first, so that the files of others are imported only if needed."""


class Format(Protocol):
    """A frozen dataclass of options."""

    suffixes: ClassVar[tuple[str, ...]]
    """Of file names, without that of a compression."""

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether a file whose first bytes are `head` looks like this format."""
        ...

    def scan(self, path: Path, part: int, parts: int, alike: Alike | None = None) -> Raw:
        """The share `part` of `parts` of the rows of a file; `alike` if it is to be read as others were."""
        ...


@runtime_checkable
class Tabular(Protocol):
    """A format of columns that may hold text, or lack values."""

    def scan_columns(
        self, path: Path, part: int, parts: int, alike: Alike | None = None, coding: Coding | None = None
    ) -> Raw:
        """As `scan`; what is wanted of columns that are to become features, None where `alike` says all."""
        ...


@runtime_checkable
class Divisible(Protocol):
    """A format of text whose rows can be read a piece at a time; what follows is of one whose lines say all."""

    def settled(self, text: bytes, alike: Alike | None) -> Any:
        """The format with what it takes from the beginning of a file, which pieces after the first do not show."""
        return self

    @property
    def keeps_groups(self) -> bool:
        """Whether a piece ends with a group, so that no group is in two."""
        return True

    def heading(self, text: bytes) -> int:
        """How many bytes at the start of the file belong to every piece, such as the names of columns."""
        return 0

    def last_border(self, text: bytes) -> int:
        """Where in the text the last piece can end that needs nothing of what follows; 0 if nowhere."""
        ...

    def has_rows(self, text: bytes) -> bool:
        """Whether there is a row among these lines."""
        return bool(text.strip())


@runtime_checkable
class ByBytes(Protocol):
    """A format of text of which any part of a plain file can be read without what is before it."""

    def scan_bytes(self, path: Path, start: int, stop: int, alike: Alike | None = None) -> Raw:
        """The rows, or whole groups, that begin in bytes [start, stop)."""
        ...


@runtime_checkable
class Batched(Protocol):
    """A format that is stored in batches of rows, each of which can be read by itself."""

    def batches(
        self, path: Path, alike: Alike | None, coding: Coding | None = None, part: int = 0, parts: int = 1
    ) -> Iterator[Raw]:
        """The share of the rows in parts that follow one another; groups may be parted.

        Read as others were (`alike`), or with what is wanted of columns that are to become features (`coding`).
        """
        ...


formats: Registry[Format] = Registry("data format", "bmrm.data.readers")


def by_suffix(path: Path) -> str | None:
    """The name of the format that the suffix of a file belongs to; InputError for a config."""
    suffix = bare_suffix(path)
    if suffix in CONFIGS and path.is_file():
        raise InputError(f"{path}: a config by its name, expected rows of data; if it has them, state their format")
    if suffix in formats.get(USUAL).cls.suffixes:
        return USUAL
    return next((entry.name for entry in formats.all() if suffix in entry.cls.suffixes), None)


def recognised(path: Path) -> Format:
    """The format, with default options, chosen by the suffix of the name, else by the content."""
    named = by_suffix(path)
    if named is not None:
        return formats.make(named)
    with open_bytes(path) as file:
        return by_content(file.read(HEAD), path)


def by_content(head: bytes, path: Path) -> Format:
    """The format, with default options, of a file that begins like this."""
    if not is_binary(head):
        head = head[begin_of_text(head, str(path)) :]
        head = head.replace(b"\r", b"\n") if ends_lines_by_cr(head) else head
    for cls in (entry.cls for entry in formats.all()):
        if cls.recognises(head):
            return cls()
    names = ", ".join(entry.name for entry in formats.all())
    raise InputError(f"{path}: the format is not recognised; state one of {names}")
