"""How large the data are, how long their rows, and how much these are alike."""

from __future__ import annotations

from functools import partial

import numpy as np

from bmrm.data.matrix import Features, Matrix, features_of
from bmrm.problem.abilities import ProblemSize
from bmrm.risk.products import Columns, diagonal

SAMPLE, PAIRED = 300, 40
"""Rows from which the mean squared norm is estimated, and rows whose products with one another give the effective
rank."""


def problem_size(matrix: Matrix | Features, columns: Columns, bias: bool, threads: int) -> ProblemSize:
    """Of rows as solvers see them: features shifted and scaled, with the constant one if there is a bias."""
    X = features_of(matrix)
    estimate = partial(_estimate, X, columns, bias)
    return ProblemSize(X.shape[0], X.nnz, estimate, threads=threads, resident=X.resident)


def _estimate(X: Features, columns: Columns, bias: bool) -> tuple[float, float]:
    """Mean squared norm of the rows, and mean squared product of two."""
    few = _some(X, SAMPLE)
    count = int(few.shape[0])
    squares = float(diagonal(few, columns, bias, np.ones(count)).sum())
    return squares / max(1, count), _overlap(_some(few, PAIRED), columns, bias)


def _some(X: Features, count: int) -> Features:
    """Rows at equal distances."""
    rows = int(X.shape[0])
    if rows <= count:
        return X
    chosen = np.arange(count) * (rows - 1) // (count - 1)
    return X.select(chosen)


def _overlap(X: Features, columns: Columns, bias: bool) -> float:
    """Mean squared product of two different rows; that of the row with itself where there is one only."""
    raw, used = X.compact()
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
