"""A' diag(weights) A, for second-order methods in few dimensions or on few columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Features
from bmrm.kernels.products.vectors import plain
from bmrm.problem import Check, Vector, unchecked
from bmrm.risk.products.columns import Columns

Array = NDArray[np.float64]
Places = NDArray[np.int64]


def gram_of(
    X: Features, columns: Columns, bias: bool, weights: Vector, chosen: Places | None = None, check: Check = unchecked
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
    raw, sums = X.gram(weights, kept, check)
    if sums is None:
        sums = np.zeros(features)
        if with_bias or columns.shift is not None:
            X.products(1).add_rmatvec(0, X.shape[0], weights, sums)
    return _scaled(raw, sums if kept is None else sums[kept], weights, columns, kept, with_bias)


def _scaled(raw: Array, sums: Vector, weights: Vector, columns: Columns, kept: Places | None, with_bias: bool) -> Array:
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
