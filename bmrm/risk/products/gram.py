"""A' diag(weights) A, for second-order methods in few dimensions or on few columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Csr, Matrix
from bmrm.kernels.products import csr, gram, gram_dense
from bmrm.kernels.products.vectors import plain
from bmrm.problem import Check, Vector, unchecked
from bmrm.problem.meter import FULL, FULL_SPEED
from bmrm.risk.products.blocks import products_of
from bmrm.risk.products.columns import Columns

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
ONE, NO_ROWS = np.ones(1), np.empty(0, np.int64)
ENTRIES = 1 << 17
"""Entries of a dense block, which is held twice, once with weights."""
LONGEST, PRODUCTS = 1_000_000, 1e8
"""Narrow rows, and products of two entries of sparse ones, between two calls of `check`: about a tenth of a second."""
NARROW = 24
"""Dense features up to which our kernel beats BLAS: measured."""


def gram_of(
    X: Matrix, columns: Columns, bias: bool, weights: Vector, chosen: Rows | None = None, check: Check = unchecked
) -> Array:
    """For each two inputs the sum over rows of weight times both; inputs are scaled features, then the bias.

    Parameters
    ----------
    X : (rows, features).
    columns : scale and shift of the features.
    bias : whether a constant feature 1 follows.
    weights : (rows,), of any sign; rows of weight 0 are skipped.
    chosen : increasing inputs to which the result is restricted; None for all.
    check : called now and then, some ten times a second.
    """
    features = X.shape[1]
    weights = plain(weights)
    with_bias = bias and (chosen is None or bool(chosen.size and chosen[-1] == features))
    kept = None if chosen is None else chosen[: chosen.size - int(with_bias)]
    size = features if kept is None else kept.size
    raw = np.zeros((size, size))
    sums = np.zeros(features)
    narrow = not isinstance(X, Csr) and kept is None and features <= NARROW
    if narrow:
        active = csr.active_rows(weights)
        for first in range(0, active.size, LONGEST):
            check()
            gram_dense.add_gram(X, weights, active[first : first + LONGEST], raw, sums)
    elif not isinstance(X, Csr):
        _add_dense(X, weights, kept, raw, check)
    elif kept is None and is_full(X):
        _add_nearly_full(X, weights, raw, check)
    else:
        _add_sparse(X, weights, kept, raw, check)
    gram.mirror(raw)
    if not narrow and (with_bias or columns.shift is not None):
        products_of(X, 1).add_rmatvec(0, X.shape[0], weights, sums)
    return _scaled(raw, sums if kept is None else sums[kept], weights, columns, kept, with_bias)


def gram_work(X: Matrix, weights: Vector, share: float = 1.0) -> float:
    """Products of two entries that `gram_of` takes, in the time of those of a pass, with a `share` of each row."""
    if isinstance(X, Csr):
        entries, squares = gram.lengths(X.indptr, weights)
        products = share * float(share * squares + entries) / 2.0
    else:
        width = share * float(X.shape[1])
        products = float(np.count_nonzero(weights)) * width * (width + 1.0) / 2.0
    return products / (FULL_SPEED if is_full(X) else 1.0)


def is_full(X: Matrix) -> bool:
    """Whether rows are multiplied as full ones."""
    return not isinstance(X, Csr) or X.nnz > FULL * X.rows * max(1, X.columns)


# Each of these fills the lower triangle; what is above it is of no account.


def _add_sparse(X: Csr, weights: Vector, kept: Rows | None, out: Array, check: Check) -> None:
    indices, position = X.indices.view(np.uint32), NO_ROWS
    if kept is not None:
        position = np.full(X.columns, -1, np.int64)
        position[kept] = np.arange(kept.size)
    each = X.nnz / max(1, X.rows)
    size = max(1, int(PRODUCTS / max(1.0, each * each)))
    for first in range(0, X.rows, size):
        check()
        # row starts count from the first entry of all, so that some of them do
        indptr, some = X.indptr[first : first + size + 1], weights[first : first + size]
        if kept is not None:
            values = ONE if X.values is None else X.values
            gram.add_gram_of_columns(indptr, indices, values, X.values is None, some, position, out)
        elif X.values is None:
            gram.add_gram_valueless(indptr, indices, some, out)
        else:
            gram.add_gram(indptr, indices, X.values, some, out)


def _add_nearly_full(X: Csr, weights: Vector, out: Array, check: Check) -> None:
    indices, values = X.indices.view(np.uint32), ONE if X.values is None else X.values
    for rows in _blocks(weights, X.columns):
        check()
        block = np.empty((rows.size, X.columns))
        gram.densify(X.indptr, indices, values, X.values is None, rows, block)
        out += _weighted(block, weights[rows])


def _add_dense(X: NDArray[np.float64], weights: Vector, kept: Rows | None, out: Array, check: Check) -> None:
    for rows in _blocks(weights, X.shape[1]):
        check()
        # A slice of the rows is a view, a list of them a copy.
        near = slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] + 1 == rows.size else rows
        chosen = X[near] if kept is None else X[near][:, kept]
        block = np.asarray(chosen, np.float64)
        out += _weighted(block, weights[near])


def _weighted(block: Array, weights: Vector) -> Array:
    """block' diag(weights) block; a product of a matrix with itself is half the work for BLAS."""
    least, most = float(weights.min()), float(weights.max())
    if least < 0.0:
        product: Array = (block * weights[:, None]).T @ block
    elif least == most:
        product = most * (block.T @ block)
    else:
        scaled = block * np.sqrt(weights)[:, None]
        product = scaled.T @ scaled
    return product


def _blocks(weights: Vector, width: int) -> list[Rows]:
    """The rows that count, in blocks."""
    active = csr.active_rows(weights)
    size = max(64, ENTRIES // max(1, width))
    return [active[first : first + size] for first in range(0, active.size, size)]


def _scaled(raw: Array, sums: Vector, weights: Vector, columns: Columns, kept: Rows | None, with_bias: bool) -> Array:
    """The Gram matrix of the inputs, from that of raw features and their weighted sums."""
    part = slice(None) if kept is None else kept
    total = float(weights.sum()) if with_bias or columns.shift is not None else 0.0
    if columns.shift is not None:
        shift = columns.shift[part]
        raw -= np.outer(shift, sums)
        sums = sums - total * shift
        raw -= np.outer(sums, shift)
    if columns.scale is not None:
        scale = columns.scale[part]
        raw *= scale[:, None]
        raw *= scale
        sums = sums * scale
    if not with_bias:
        return raw
    bordered = np.empty((raw.shape[0] + 1, raw.shape[0] + 1))
    bordered[:-1, :-1] = raw
    bordered[-1, :-1] = bordered[:-1, -1] = sums
    bordered[-1, -1] = total
    return bordered
