"""How much memory there is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

GROUPS, MOUNTED = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
NO_LIMIT = 1 << 60
"""Bytes; version 1 says no limit by a number near 2^63."""


class Free(NamedTuple):
    """Memory that this process may still take.

    Attributes
    ----------
    bytes : so many.
    limit : what limits it, in words.
    """

    bytes: int
    limit: str


def free_memory() -> Free | None:
    """The least of what the machine, control groups and `ulimit` leave to this process; None where nothing says.

    Pages of files that the system may drop count as free.
    """
    return min((*_of_machine(), *_of_groups(), *_of_limits()), default=None)


def available_bytes() -> int | None:
    """The bytes of `free_memory`."""
    free = free_memory()
    return None if free is None else free.bytes


def _of_machine() -> Iterator[Free]:
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield Free(1024 * int(line.split()[1]), "the machine")
                return
    with suppress(OSError, ValueError, AttributeError):
        yield Free(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "the machine")


class _Group(NamedTuple):
    """The files of a control group that say how much it may take, takes, and has in pages that may be dropped."""

    most: Path
    taken: Path
    more: Path
    dropped: str


def _of_groups() -> Iterator[Free]:
    for group in _groups():
        with suppress(OSError, ValueError):
            most = int(group.most.read_text())
            if most >= NO_LIMIT:
                continue
            taken = int(group.taken.read_text())
            lines = map(str.split, group.more.read_text().splitlines())
            taken -= sum(int(number) for name, number in lines if name == group.dropped)
            yield Free(max(0, most - taken), "a control group")


@lru_cache(maxsize=1)
def _groups() -> tuple[_Group, ...]:
    """Those of this process and the ones around them, of both versions of Linux' control groups."""
    found: list[_Group] = []
    with suppress(OSError, ValueError):
        for line in GROUPS.read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds and "memory" not in kinds.split(","):
                continue
            top = MOUNTED / "memory" if kinds else MOUNTED
            here = top / path.lstrip("/")
            for folder in (here, *here.parents[: max(0, len(here.parts) - len(top.parts))]):
                found.append(_first(folder) if kinds else _second(folder))
    return tuple(group for group in found if group.most.is_file())


def _first(folder: Path) -> _Group:
    most, taken = folder / "memory.limit_in_bytes", folder / "memory.usage_in_bytes"
    return _Group(most, taken, folder / "memory.stat", dropped="total_inactive_file")


def _second(folder: Path) -> _Group:
    return _Group(folder / "memory.max", folder / "memory.current", folder / "memory.stat", dropped="inactive_file")


def _of_limits() -> Iterator[Free]:
    """Those of `ulimit`."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        limits = {
            "VmData:": (resource.getrlimit(resource.RLIMIT_DATA)[0], "ulimit -d"),
            "VmSize:": (resource.getrlimit(resource.RLIMIT_AS)[0], "ulimit -v"),
        }
        if all(most == resource.RLIM_INFINITY for most, _ in limits.values()):
            return
        for line in Path("/proc/self/status").read_text().splitlines():
            most, words = limits.get(line.partition("\t")[0], (resource.RLIM_INFINITY, ""))
            if most != resource.RLIM_INFINITY:
                yield Free(max(0, most - 1024 * int(line.split()[1])), words)
