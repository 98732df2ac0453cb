"""How much memory there is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_LIMITS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)


def available_bytes() -> int | None:
    """Memory that this process may still take, by Linux and its control groups; None where nothing says."""
    free: list[int] = []
    with suppress(OSError, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    if not free:
        with suppress(OSError, ValueError, AttributeError):
            free.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit, used in _LIMITS:
        with suppress(OSError, ValueError):
            free.append(int(limit.read_text()) - int(used.read_text()))
    return min(free, default=None)
