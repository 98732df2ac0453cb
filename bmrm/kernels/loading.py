"""The cache of a kernel: it is read when the kernel is called first, and machine code is loaded without the compiler.

numba reads its whole library of typing and lowering before it looks into its cache, which takes three times as long as
`import numba`. Machine code needs none of that, but the symbols of the runtime that it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from numba.core import config
from numba.core.caching import FunctionCache, _Cache
from numba.core.runtime import rtsys

_CONFIG = Lock()
"""Of numba's name for its cache folder, while that is ours."""


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
                return FunctionCache(self._function)
            finally:
                config.CACHE_DIR = usual

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
        """Keep what was compiled."""
        self._kept.save_overload(sig, data)

    def enable(self) -> None:
        """Keep and load from now on."""
        self._kept.enable()

    def disable(self) -> None:
        """No more."""
        self._kept.disable()

    def flush(self) -> None:
        """Forget what is kept."""
        self._kept.flush()
