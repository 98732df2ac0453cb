"""Some of the rows, with the loss divided as among all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Csr, Matrix
from bmrm.kernels.csr import active_rows
from bmrm.kernels.vectors import plain
from bmrm.kernels.workers import Workers
from bmrm.problem import LinearMap, RowPart
from bmrm.risk.score_function import BoundLoss, LossPhi

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ChosenParts:
    """The ability `RowParts`.

    Parameters
    ----------
    X, bound : all rows, and the loss with their targets.
    map_of : a map of some rows.
    mass : the divisor of R.
    workers : the threads of the parts.
    """

    X: Matrix
    bound: BoundLoss
    map_of: Callable[[Matrix], LinearMap]
    mass: float
    workers: Workers

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.bound.rows

    def part(self, weights: Array) -> RowPart:
        """The rows of weight other than 0, copied."""
        rows = active_rows(plain(weights if weights.ndim == 1 else np.abs(weights).sum(axis=1)))
        X = self.X.select(rows) if isinstance(self.X, Csr) else self.X[rows]
        phi = LossPhi(self.bound.some(rows), self.mass, self.workers)
        return RowPart(self.map_of(X), phi, lambda scores: scores[rows], int(rows.size))

    def bends(self, z: Array, sigma: float, reach: float) -> Array:
        """Of the loss."""
        whole: Any = self.bound.whole
        found: Array = whole.bends(z, sigma, reach)
        return found
