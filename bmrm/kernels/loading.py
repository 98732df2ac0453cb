"""The cache of a kernel: it is read when the kernel is called first, and machine code is loaded without the compiler.

numba reads its whole library of typing and lowering before it looks into its cache, which takes three times as long as
`import numba`. Machine code needs none of that, but the symbols of the runtime that it calls.

A file that is damaged, cut off or unreadable is as one that is not there: what it had is compiled again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile, _Cache, _cache_log
from numba.core.runtime import rtsys

from bmrm.kernels.cache_folder import say

_CONFIG = Lock()
"""Lock for the name of numba's cache folder while it is changed."""
CHECKSUM = 32
"""Bytes before the index: the SHA-256 of the rest."""


class CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """The index of a kernel and its machine code, as numba's, where no other bytes are loaded than were saved.

    The index begins with its checksum, and names a file of machine code by the checksum of its content: two processes
    that save at the same time cannot put one's code under the other's name, either.
    """

    def load(self, key: Any) -> Any:
        """What was saved for the key; None where that is not there, or not whole."""
        name = self._load_index().get(key)
        content = b"" if name is None else _content(self._data_path(name))
        return pickle.loads(content) if content and name == self._name_of(content) else None

    def save(self, key: Any, data: Any) -> None:
        """Keep it: first the machine code, then the index, by one process at a time."""
        content = self._dump(data)
        with self._alone():
            found = self._load_index()
            before, found[key] = found.get(key), self._name_of(content)
            with self._open_for_write(self._data_path(found[key])) as file:
                file.write(content)
            self._save_index(found)
            _cache_log("[cache] data saved to %r", self._data_path(found[key]))
            if before is not None and before not in found.values():
                with suppress(OSError):
                    os.unlink(self._data_path(before))

    def _load_index(self) -> dict[Any, str]:
        content = _content(self._index_path)
        checksum, content = content[:CHECKSUM], content[CHECKSUM:]
        if not checksum or checksum != hashlib.sha256(content).digest():
            return {}
        version, stamp, index = pickle.loads(content)
        if (version, stamp) != (self._version, self._source_stamp):
            return {}
        found: dict[Any, str] = pickle.loads(index)  # of this version of numba
        return found

    def _save_index(self, overloads: dict[Any, str]) -> None:
        content = self._dump((self._version, self._source_stamp, self._dump(overloads)))
        with self._open_for_write(self._index_path) as file:
            file.write(hashlib.sha256(content).digest() + content)

    def _name_of(self, content: bytes) -> str:
        name: str = self._data_name_pattern.replace("{number:d}", hashlib.sha256(content).hexdigest()[:CHECKSUM])
        return name

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While no other process saves; where the file system has no locks, without."""
        with open(os.path.join(self._cache_path, ".lock"), "w") as lock:
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _content(path: str) -> bytes:
    """Of a file; nothing where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


class KernelCache(_Cache):  # type: ignore[misc]
    """As numba's cache of a function, in a folder of ours.

    Parameters
    ----------
    function : the Python function.
    folder : where its machine code is kept.
    bare : whether it calls nothing but Python and the helpers that `import numba` provides; what the modules behind the
        compiler provide (hashes of text, say) is not there when it is loaded.
    """

    def __init__(self, function: Callable[..., Any], folder: Path, bare: bool) -> None:
        self._function, self._folder, self._bare = function, folder, bare

    @cached_property
    def _kept(self) -> Any:
        with _CONFIG:
            usual, config.CACHE_DIR = config.CACHE_DIR, str(self._folder)
            try:
                kept = FunctionCache(self._function)
            finally:
                config.CACHE_DIR = usual
        where = kept._impl.locator
        kept._cache_file = CheckedFiles(where.get_cache_path(), kept._impl.filename_base, where.get_source_stamp())
        return kept

    @property
    def cache_path(self) -> Any:
        """Where the files are."""
        return self._kept.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept for the signature; if nothing is, None, and the compiler is ready."""
        if self._bare:
            rtsys.initialize(target_context)
            with self._kept._guard_against_spurious_io_errors():
                found = self._kept._load_overload(sig, target_context)
                if found is not None:
                    return found
        return self._kept.load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; said once where there is no room for it."""
        try:
            self._kept.save_overload(sig, data)
        except OSError as error:
            say(f"compiled kernels cannot be kept in {self._folder} ({error.strerror}); later runs compile them again")

    def enable(self) -> None:
        """Keep and load from now on."""
        self._kept.enable()

    def disable(self) -> None:
        """No more."""
        self._kept.disable()

    def flush(self) -> None:
        """Forget what is kept."""
        self._kept.flush()
