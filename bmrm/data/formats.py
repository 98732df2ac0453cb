"""The register of file formats. A format is one file of this folder with a registered dataclass of its options."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Protocol

from bmrm.data.files import bare_suffix, open_bytes
from bmrm.data.raw import Raw
from bmrm.problem import InputError
from bmrm.registry import Registry

_HEAD = 4096


class Format(Protocol):
    """A frozen dataclass of options."""

    suffixes: ClassVar[tuple[str, ...]]
    """Of file names, without that of a compression."""

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether a file whose first bytes are `head` looks like this format."""
        ...

    def scan(self, path: Path, part: int, parts: int) -> Raw:
        """The share `part` of `parts` of the rows of a file."""
        ...


formats: Registry[Format] = Registry("data format", "bmrm.data")


def recognised(path: Path) -> Format:
    """A format with its default options, chosen by the suffix of the name, else by the content."""
    known = [entry.cls for entry in formats.all()]
    suffix = bare_suffix(path)
    for cls in known:
        if suffix in cls.suffixes:
            return cls()
    with open_bytes(path) as file:
        head = file.read(_HEAD)
    for cls in known:
        if cls.recognises(head):
            return cls()
    names = ", ".join(entry.name for entry in formats.all())
    raise InputError(f"{path}: the format is not recognised; state one of {names}")
