"""What compiled code is made from: one hash over the sources, by which the cache of kernels goes.

numba looks at the file of a function itself only, but the code has constants and functions of other files in it.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
OURS = ("kernels", "losses")
"""Subpackages with compiled functions."""


@cache
def home_of(file: str) -> Path | None:
    """The outermost package that a file belongs to, or its folder; None where it is no file, as in a notebook."""
    return _outermost(os.path.dirname(file)) if os.path.isfile(file) else None


@cache
def _outermost(folder: str) -> Path:
    home = Path(folder).resolve()
    while (home / "__init__.py").exists() and (home.parent / "__init__.py").exists():
        home = home.parent
    return home


def digest_of(homes: frozenset[Path]) -> str:
    """Of the sources in these folders, and always of ours."""
    digest = hashlib.sha256()
    for home in sorted(homes | {PACKAGE}):
        digest.update(_digest(home))
    return digest.hexdigest()[:16]


@cache
def _digest(home: Path) -> bytes:
    digest = hashlib.sha256()
    deep = (home / "__init__.py").exists()
    folders = [home / each for each in OURS] if home == PACKAGE else [home]
    for file in sorted(file for folder in folders for file in (folder.rglob if deep else folder.glob)("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(home)} {len(content)}\n".encode())
        digest.update(content)
    return digest.digest()
