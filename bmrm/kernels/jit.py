"""The one decorator for compiled code: cached on disk, free of the GIL, compiled at the first call only."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def _writable(folder: Path) -> bool:
    """Whether a file could be made in `folder`, or in the nearest parent that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK | os.X_OK)


def _choose_cache() -> None:
    """Send numba's cache to a temporary folder when neither the package's nor the user's can be written."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    package = Path(__file__).parent.parent
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if _writable(package / "__pycache__") or _writable(home / "numba"):
        return
    folder = Path(tempfile.gettempdir()) / f"bmrm-numba-{os.getuid()}"
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    print(f"bmrm: no cache folder can be written; compiled kernels are kept in {folder}", file=sys.stderr)


_choose_cache()
import numba  # noqa: E402  (reads NUMBA_CACHE_DIR when it is imported)


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` at its first call; later processes load it from the cache."""
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)  # type: ignore[no-any-return]


def fast_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `jit`, with sums that may be reassociated and contracted (vectorised); nan and inf keep their meaning."""
    flags = {"reassoc", "contract", "nsz", "arcp"}
    return numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=flags)(function)  # type: ignore[no-any-return]


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `jit`, but copied into every compiled caller: for a few lines in the heart of a loop."""
    return numba.njit(nogil=True, error_model="numpy", inline="always")(function)  # type: ignore[no-any-return]
