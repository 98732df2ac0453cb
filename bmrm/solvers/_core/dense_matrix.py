"""Whether a dense matrix of the size of the weights may be made."""

from __future__ import annotations

from bmrm.data.memory import free_memory

WIDEST = 8192
"""Rows and columns beyond which it takes more than half a gigabyte."""
EACH = 18
"""Bytes an entry that solvers take at their peak: the matrix, its factor, and parts of another one."""
SMALL = 1 << 25
"""Bytes up to which free memory is not asked for."""


def refused(size: int) -> str:
    """Why there is no matrix of `size` rows and columns, in words; empty where it may be made."""
    if size > WIDEST:
        return f"at most {WIDEST} x {WIDEST} are allowed"
    needed = EACH * size * size
    free = None if needed <= SMALL else free_memory()
    if free is None or needed <= free.bytes:
        return ""
    return f"{needed / 1e9:.2f} GB of memory with its factor, {free.bytes / 1e9:.2f} GB are free ({free.limit})"
