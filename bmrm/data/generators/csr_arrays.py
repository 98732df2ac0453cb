"""Sparse rows from the rows in which each column is 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Csr


def rows_of_columns(columns: Sequence[NDArray[np.int64]], rows: int) -> Csr:
    """A matrix of 0 and 1 without values; `columns` lists for each column the rows with a 1, ascending."""
    counts = np.fromiter((column.size for column in columns), np.int64, len(columns))
    row = np.concatenate(columns) if len(columns) else np.empty(0, np.int64)
    column = np.repeat(np.arange(len(columns), dtype=np.int32), counts)
    indptr = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=rows), out=indptr[1:])
    return Csr(indptr, column[np.argsort(row, kind="stable")], None, len(columns))
