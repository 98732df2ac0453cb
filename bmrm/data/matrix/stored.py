"""Rows in memory-mapped arrays, of which the system keeps in memory what it likes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix.csr import Csr
from bmrm.data.matrix.dense import Dense
from bmrm.data.matrix.features import ROWS, Features
from bmrm.problem import Check, InputError, unchecked

WINDOW = 1 << 24
"""Bytes of rows that are asked for ahead of those that are read, at a time: measured."""
AT_ONCE = 1 << 25
"""Bytes of rows that are copied and changed at once."""


class Pages(Protocol):
    """The pages of the files that rows lie in."""

    def ahead(self, start: int, stop: int) -> None:
        """Have the system read rows [start, stop), which are about to be asked for."""
        ...

    def behind(self, start: int, stop: int) -> None:
        """Rows [start, stop) have been read: their pages need no longer count as memory of this process."""
        ...


class Stored(Features):
    """The rows of a store that is larger than memory: solvers read them from the first to the last, part by part.

    Parameters
    ----------
    rows : views of the mapped arrays.
    pages : of these arrays.
    """

    def __init__(self, rows: Csr | Dense, pages: Pages) -> None:
        self._rows, self._pages = rows, pages
        each = max(1.0, rows.nnz * rows.bytes_per_entry / max(1, rows.shape[0]))
        self._window = max(1, int(WINDOW / each))
        self.rows_at_once = max(1, min(ROWS, int(AT_ONCE / each)))

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self._rows.shape

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return self._rows.nnz

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self._rows.dtype

    @property
    def bytes_per_entry(self) -> int:
        """Bytes that are read for an entry."""
        return self._rows.bytes_per_entry

    @property
    def described(self) -> str:
        """As of the rows."""
        return f"{self._rows.described}, on disk"

    @property
    def longest_row(self) -> int:
        """As of the rows."""
        return max((self._rows.part(*span).longest_row for span in self.ranges()), default=0)

    def entries_before(self, row: int) -> int:
        """Entries of the rows before."""
        return self._rows.entries_before(row)

    def fits(self, columns: int) -> bool:
        """As of the rows."""
        return self._rows.fits(columns)

    def part(self, start: int, stop: int) -> Features:
        """The rows [start, stop), views.

        Where they reach into another window of rows, that after it is asked for, and that before it is given up.
        """
        window = max(self._window, stop - start)
        before, here = start // window, stop // window
        if here > before or start == 0:
            first = stop if start == 0 else (here + 1) * window
            self._pages.ahead(min(first, self.shape[0]), min((here + 2) * window, self.shape[0]))
            self._pages.behind(max(0, before - 1) * window, before * window)
        return self._rows.part(start, stop)

    def select(self, rows: NDArray[np.integer[Any]], check: Check = unchecked) -> Features:
        """A copy of the chosen rows."""
        return self._rows.select(rows, check)

    def with_columns(self, columns: int) -> Stored:
        """Sparse rows of at least as many columns; fewer, and full rows of another number, are an InputError."""
        rows = self._rows
        if isinstance(rows, Csr):
            return Stored(rows.with_columns(columns), self._pages)
        if columns != rows.shape[1]:
            raise InputError(f"the data have {rows.shape[1]} features, expected {columns}")
        return self
