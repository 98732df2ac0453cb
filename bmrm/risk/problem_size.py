"""How large the data are, how long their rows, and how much these are alike."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Csr, Matrix, nnz_of, rows_of
from bmrm.problem import ProblemSize
from bmrm.risk.products.columns import Columns
from bmrm.risk.products.diagonal import diagonal

SAMPLE, PAIRED = 300, 40
"""Rows whose norms are looked at, and rows whose products with one another are."""


def problem_size(X: Matrix, columns: Columns, bias: bool, threads: int) -> ProblemSize:
    """Of rows `X` as solvers see them: features shifted and scaled, with the constant one if there is a bias."""
    return ProblemSize(int(X.shape[0]), nnz_of(X), partial(_estimate, X, columns, bias), threads=threads)


def _estimate(X: Matrix, columns: Columns, bias: bool) -> tuple[float, float]:
    """Mean squared norm of the rows, and mean squared product of two."""
    few = _some(X, SAMPLE)
    count = int(few.shape[0])
    squares = float(diagonal(few, columns, bias, np.ones(count)).sum())
    return squares / max(1, count), _overlap(_some(few, PAIRED), columns, bias)


def _some(X: Matrix, count: int) -> Matrix:
    """Rows at equal distances."""
    rows = int(X.shape[0])
    if rows <= count:
        return X
    chosen = np.arange(count) * (rows - 1) // (count - 1)
    return rows_of(X, chosen)


def _overlap(X: Matrix, columns: Columns, bias: bool) -> float:
    """Mean squared product of two different rows; that of the row with itself where there is one only."""
    raw, used = _full(X)
    count = int(raw.shape[0])
    scale = np.ones(1) if columns.scale is None else columns.scale
    if columns.scale is not None:
        raw = raw * scale[used]
    products = raw @ raw.T
    if columns.shift is not None:
        shift = columns.shift * scale
        ahead = raw @ shift[used]
        products = products - ahead[:, None] - ahead + shift @ shift
    products = products + float(bias)
    if count > 1:
        np.fill_diagonal(products, 0.0)
    return float((products**2).sum()) / max(1, count * (count - 1))


def _full(X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.integer[Any]] | slice]:
    """Few rows in full, without the columns that are empty in all of them, and which columns these are."""
    if not isinstance(X, Csr):
        return np.asarray(X, np.float64), slice(None)
    first, last = int(X.indptr[0]), int(X.indptr[-1])
    indices, marked, place = X.indices[first:last], np.zeros(X.columns, bool), np.empty(X.columns, np.intp)
    marked[indices] = True
    used = np.flatnonzero(marked)
    place[used] = np.arange(used.size)
    raw = np.zeros((X.rows, used.size))
    values = 1.0 if X.values is None else X.values[first:last]
    raw[np.repeat(np.arange(X.rows), np.diff(X.indptr)), place[indices]] = values
    return raw, used
