"""Where compiled kernels are kept. Whoever can write there runs code in our name: numba unpickles what it finds."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from functools import cache
from multiprocessing import parent_process
from pathlib import Path

PREFIX = "kernels-"
"""Prefix of the names of cache folders, before the hash of the sources."""
KEPT = 8
"""Cache folders of other sources that are kept, the last used ones."""


def choose_folder(package: Path, digest: str) -> Path | None:
    """A folder that can be written: in NUMBA_CACHE_DIR, the package's folder, the user's, or one of our own.

    The last is in the temporary directory, where none of the others can be written, or others can write to the user's,
    too. None where that is not safe either: then nothing is kept. A NUMBA_CACHE_DIR is the user's word.

    Parameters
    ----------
    package : of whose kernels are kept.
    digest : of the sources that they are compiled from; each has its own folder.
    """
    name = f"{PREFIX}{digest}"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bmrm"
    named = os.environ.get("NUMBA_CACHE_DIR")
    roots = [package / "__pycache__", home]
    for root in [Path(named), *roots] if named else roots:
        if _writable(root / name) and (root != home or _guarded(_nearest(home))) and _made(root / name):
            return root / name
    root = Path(tempfile.gettempdir()) / f"bmrm-numba-{os.getuid()}"
    wrong = refusal(root)
    if not wrong and _made(root / name):
        say(f"no cache folder can be written; compiled kernels are kept in {root}")
        return root / name
    wrong = wrong or f"{root} cannot be written"
    say(f"{wrong}; compiled kernels are not kept, set NUMBA_CACHE_DIR to keep them")
    return None


def _made(folder: Path) -> bool:
    """Make the folder, or note that it is used; of those beside it, for other sources, the last ones stay.

    A process that still uses one that goes loses nothing but time: it compiles again.
    """
    try:
        new = not folder.exists()
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o770, exist_ok=True)
        os.utime(folder)
    except OSError:
        return False
    if new:
        others = [each for each in folder.parent.glob(f"{PREFIX}*") if each != folder and not each.is_symlink()]
        for old in sorted(others, key=_age)[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
    return True


def refusal(folder: Path) -> str:
    """Make a folder that only we can write and read; why it cannot be had, or the empty string."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        return f"{folder} cannot be made ({error.strerror})"
    try:
        found = folder.lstat()
    except OSError as error:
        return f"{folder} cannot be read ({error.strerror})"
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is no folder"
    if found.st_uid != os.getuid():
        return f"{folder} belongs to another user (number {found.st_uid})"
    if found.st_mode & 0o077:
        return f"{folder} is open to other users (mode {stat.S_IMODE(found.st_mode):o}, expected 700)"
    if not _guarded(folder.parent, sticky=True):
        return f"other users can replace what is in {folder.parent}"
    return ""


@cache
def say(text: str) -> None:
    """To the user, once: not from processes that one of ours has started."""
    if parent_process() is None:
        print(f"bmrm: {text}", file=sys.stderr)


def _age(folder: Path) -> float:
    """Smaller the later it was used."""
    try:
        return -folder.stat().st_mtime
    except FileNotFoundError:  # removed meanwhile
        return 0.0


def _guarded(folder: Path, sticky: bool = False) -> bool:
    """Whether a folder is ours or root's and nobody but us and our group can add to it; with `sticky`, take from it."""
    found = folder.stat()
    open_ = found.st_mode & stat.S_IWOTH and not (sticky and found.st_mode & stat.S_ISVTX)
    return found.st_uid in (0, os.getuid()) and not open_


def _nearest(folder: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _writable(folder: Path) -> bool:
    """Whether a file could be made in `folder`, or in the nearest parent that exists."""
    return os.access(_nearest(folder), os.W_OK | os.X_OK)
