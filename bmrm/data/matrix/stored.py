"""Rows in memory-mapped arrays, of which the system keeps in memory what it likes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix.csr import Csr
from bmrm.data.matrix.dense import Dense
from bmrm.data.matrix.features import Features
from bmrm.problem import Check, InputError, unchecked

Ahead = Callable[[int, int], None]
"""Has the system read rows [start, stop) that are about to be asked for."""


class Stored(Features):
    """The rows of a store that is larger than memory: solvers read them from the first to the last, part by part.

    Parameters
    ----------
    rows : views of the mapped arrays.
    ahead : called with the rows after those that are read.
    """

    def __init__(self, rows: Csr | Dense, ahead: Ahead) -> None:
        self._rows, self._ahead = rows, ahead

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

    def entries_before(self, row: int) -> int:
        """Entries of the rows before."""
        return self._rows.entries_before(row)

    def fits(self, columns: int) -> bool:
        """As of the rows."""
        return self._rows.fits(columns)

    def part(self, start: int, stop: int) -> Features:
        """The rows [start, stop), views."""
        self._ahead(stop, min(2 * stop - start, self.shape[0]))
        return self._rows.part(start, stop)

    def select(self, rows: NDArray[np.integer[Any]], check: Check = unchecked) -> Features:
        """A copy of the chosen rows."""
        return self._rows.select(rows, check)

    def with_columns(self, columns: int) -> Stored:
        """Sparse rows of at least as many columns; fewer, and full rows of another number, are an InputError."""
        rows = self._rows
        if isinstance(rows, Csr):
            return Stored(rows.with_columns(columns), self._ahead)
        if columns != rows.shape[1]:
            raise InputError(f"the data have {rows.shape[1]} features, expected {columns}")
        return self
