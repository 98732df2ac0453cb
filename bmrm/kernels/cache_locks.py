"""Several processes that compile at the same time: each waits with saving until another has saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def lock_saves() -> None:
    """From now on this process saves a kernel only while no other that has called this does.

    The index of a kernel's file is read, extended and written: two at once would lose an entry, or give two one number.
    """
    import fcntl

    from numba.core.caching import IndexDataCacheFile

    save = IndexDataCacheFile.save

    def locked(self: Any, key: Any, data: Any) -> None:
        folder = Path(self._cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            save(self, key, data)

    IndexDataCacheFile.save = locked
