"""How large the data are, and how long their rows."""

from __future__ import annotations

import numpy as np

from bmrm.data.matrix import Csr, Matrix, nnz_of
from bmrm.problem import Extent
from bmrm.risk.columns import Columns
from bmrm.risk.diagonal import diagonal

SAMPLE = 300
"""Rows whose norms are looked at."""


def extent_of(X: Matrix, columns: Columns, bias: bool, threads: int) -> Extent:
    """Of rows `X` as solvers see them: features shifted and scaled, with the constant one if there is a bias."""
    rows = int(X.shape[0])
    chosen = np.unique(np.linspace(0, rows - 1, min(rows, SAMPLE)).astype(np.int64))
    few = X.select(chosen) if isinstance(X, Csr) else X[chosen]
    squares = diagonal(few, columns, bias, np.ones(chosen.size)).sum()
    return Extent(rows, nnz_of(X), float(squares) / max(1, chosen.size), threads=threads)
