"""The matrix of features, a class for each way to store rows: sparse, with or without values, or full."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix.csr import MOST_COLUMNS, Csr
from bmrm.data.matrix.dense import Dense
from bmrm.data.matrix.features import Entries, Features, pieces
from bmrm.data.matrix.stored import Stored
from bmrm.problem import Check, InputError, unchecked

Matrix = Csr | NDArray[Any]
"""Storage of rows as users give and get it: `Csr`, or a C-contiguous float32 or float64 array of shape (rows,
columns)."""


def features_of(matrix: Matrix | Features) -> Features:
    """The rows as solvers see them."""
    return Dense(matrix) if isinstance(matrix, np.ndarray) else matrix


def plain_matrix(rows: Features) -> Matrix:
    """The inverse."""
    return rows.array if isinstance(rows, Dense) else rows  # type: ignore[return-value]


def nnz_of(matrix: Matrix) -> int:
    """Number of stored entries; rows times columns of a dense array."""
    return features_of(matrix).nnz


def part_of(matrix: Matrix, start: int, stop: int) -> Matrix:
    """The rows [start, stop), as views."""
    return plain_matrix(features_of(matrix).part(start, stop))


def rows_of(matrix: Matrix, rows: NDArray[np.integer[Any]], check: Check = unchecked) -> Matrix:
    """A copy of the chosen rows, in the order given; `check` is called from time to time."""
    return plain_matrix(features_of(matrix).select(rows, check))


def with_columns(matrix: Matrix, columns: int) -> Matrix:
    """The matrix padded with empty columns; fewer than it has is an InputError."""
    if isinstance(matrix, Csr | Stored):
        return matrix.with_columns(columns)  # type: ignore[return-value]
    missing = columns - matrix.shape[1]
    if missing < 0:
        raise InputError(f"the data have {matrix.shape[1]} features, expected at most {columns}")
    return np.pad(matrix, ((0, 0), (0, missing))) if missing else matrix


__all__ = [
    "MOST_COLUMNS",
    "Csr",
    "Dense",
    "Entries",
    "Features",
    "Matrix",
    "Stored",
    "features_of",
    "nnz_of",
    "part_of",
    "pieces",
    "plain_matrix",
    "rows_of",
    "with_columns",
]
