"""What parts of a run have found, in files that a run which was killed leaves for the next one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from bmrm.app.pipeline.run_folder import write_file
from bmrm.data.archives import read_arrays

Found = TypeVar("Found")
Arrays = Mapping[str, NDArray[Any]]
UNREADABLE = OSError, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError
"""What is raised where a file is missing, damaged, or made by another hand: the part is done again."""


@dataclass(frozen=True)
class KeptFiles:
    """A file for each part, written whole or not at all, named by a digest of all that the part depends on.

    Attributes
    ----------
    folder : of the files.
    resume : whether files that are there are taken; else they are removed at the start.
    """

    folder: Path
    resume: bool

    def begin(self) -> None:
        """Remove what earlier runs have left, unless it is to be taken."""
        if not self.resume:
            self.clear()

    def clear(self) -> None:
        """Remove all files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self, digest: str, of_arrays: Callable[[Arrays], Found]) -> Found | None:
        """What is made of the arrays of a file; None where there is none that can be read."""
        if not self.resume:
            return None
        try:
            with open(self.folder / f"{digest}.npz", "rb") as stream:
                return of_arrays(read_arrays(stream))
        except UNREADABLE:
            return None

    def write(self, digest: str, content: bytes) -> None:
        """A file, in place of another of its name."""
        write_file(self.folder, f"{digest}.npz", lambda out: out.write(content))
