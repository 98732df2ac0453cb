"""Euclidean norms of rows, as they are scaled."""

from __future__ import annotations

import numpy as np

from bmrm.data.matrix import Matrix, part_of
from bmrm.problem import Vector
from bmrm.risk.products.blocks import products_of
from bmrm.risk.products.columns import Columns
from bmrm.risk.products.diagonal import ROWS, squared


def row_norms(X: Matrix, columns: Columns) -> Vector:
    """(rows,): the root of the sum over features of ((x - shift) scale)^2, sparse data staying sparse."""
    features = X.shape[1]
    factor = np.ones(features) if columns.scale is None else columns.scale**2
    shift = np.zeros(features) if columns.shift is None else columns.shift
    norms = np.empty(X.shape[0])
    for start in range(0, X.shape[0], ROWS):
        stop = min(start + ROWS, X.shape[0])
        part, out, cross = part_of(X, start, stop), norms[start:stop], np.zeros(stop - start)
        products_of(squared(part), 1).scores(0, stop - start, factor, float(shift @ (factor * shift)), out)
        if columns.shift is not None:
            products_of(part, 1).scores(0, stop - start, factor * shift, 0.0, cross)
            out -= 2.0 * cross
    return np.sqrt(np.maximum(norms, 0.0))
