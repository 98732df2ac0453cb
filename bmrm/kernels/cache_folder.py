"""Where compiled kernels are kept. Whoever can write there runs code in our name: numba unpickles what it finds."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path


def choose_folder(package: Path) -> bool:
    """Set NUMBA_CACHE_DIR where numba's own choice will not do; False where no folder is safe: then keep nothing.

    numba takes the package's folder, else the user's. Where neither can be written, or others can write to the user's
    too, it is one of ours in the temporary directory. A NUMBA_CACHE_DIR that is set is the user's word.

    Parameters
    ----------
    package : of whose kernels are kept.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if os.environ.get("NUMBA_CACHE_DIR") or _writable(package / "__pycache__"):
        return True
    if _writable(home / "numba") and _guarded(_nearest(home / "numba")):
        return True
    folder = Path(tempfile.gettempdir()) / f"bmrm-numba-{os.getuid()}"
    wrong = refusal(folder)
    if wrong:
        print(f"bmrm: {wrong}; compiled kernels are not kept, set NUMBA_CACHE_DIR to keep them", file=sys.stderr)
        return False
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    print(f"bmrm: no cache folder can be written; compiled kernels are kept in {folder}", file=sys.stderr)
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
