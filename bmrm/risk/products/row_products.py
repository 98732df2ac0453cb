"""A A' of a few rows: their inner products, for Newton's systems of fewer rows than dimensions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Csr, Matrix
from bmrm.problem import Check, unchecked
from bmrm.risk.products.columns import Columns

Array = NDArray[np.float64]
PRODUCTS = 4e9
"""Of two numbers between two calls of `check`: some tenths of a second."""
OPEN = 0.07
"""Share of the columns in a row from which BLAS on full rows beats a product of sparse matrices: measured."""


def row_products(X: Matrix, columns: Columns, bias: bool, check: Check = unchecked) -> Array:
    """The inner products of the rows' inputs, scaled features and the bias, (rows, rows); `check` now and then."""
    if isinstance(X, Csr) and X.nnz <= OPEN * X.rows * X.columns:
        found = _of_sparse(X, columns)
    else:
        table = np.array(X.to_dense() if isinstance(X, Csr) else X, np.float64)
        if columns.shift is not None:
            table -= columns.shift
        if columns.scale is not None:
            table *= columns.scale
        found = _of_full(table, check)
    return found + 1.0 if bias else found


def _of_full(table: Array, check: Check) -> Array:
    """Half of them at once where that is quick, else block by block."""
    rows, width = table.shape
    size = max(1, int(PRODUCTS / max(1, rows * width)))
    if size >= rows:
        check()
        at_once: Array = table @ table.T
        return at_once
    found = np.empty((rows, rows))
    for first in range(0, rows, size):
        check()
        block = slice(first, first + size)
        found[first:, block] = table[first:] @ table[block].T
        found[block, first:] = found[first:, block].T
    return found


def _of_sparse(X: Csr, columns: Columns) -> Array:
    """With (x - s)(y - s) = xy - xs - ys + ss, the shift being scaled, too."""
    scaled = X.to_scipy().astype(np.float64)
    scale = np.ones(X.columns) if columns.scale is None else columns.scale
    if columns.scale is not None:
        scaled = scaled.multiply(scale[None, :]).tocsr()
    found: Array = (scaled @ scaled.T).toarray()
    if columns.shift is not None:
        shift = columns.shift * scale
        along = scaled @ shift
        found += float(shift @ shift) - along[:, None] - along[None, :]
    return found
