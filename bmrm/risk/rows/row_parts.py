"""Some of the rows, with the loss divided as among all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Matrix, rows_of
from bmrm.kernels.products.csr import active_rows
from bmrm.kernels.products.vectors import plain
from bmrm.kernels.workers import Workers
from bmrm.problem import Check, RowPart, unchecked
from bmrm.risk.linear_map import DataMap
from bmrm.risk.products.row_products import row_products
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
    map_of: Callable[[Matrix], DataMap]
    mass: float
    workers: Workers
    check: Check = unchecked

    def interruptible(self, check: Check) -> ChosenParts:
        """The same, whose copies and products look up now and then."""
        return replace(self, check=check)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.bound.rows

    def part(self, weights: Array) -> RowPart:
        """The rows of weight other than 0, copied."""
        rows = active_rows(plain(weights if weights.ndim == 1 else np.abs(weights).sum(axis=1)))
        X = rows_of(self.X, rows, self.check)
        part = ChosenParts(X, self.bound.some(rows), self.map_of, self.mass, self.workers, self.check)
        phi = LossPhi(part.bound, self.mass, self.workers)
        return RowPart(self.map_of(X), phi, lambda scores: scores[rows], int(rows.size), part)

    def curved_rows(self, z: Array, sigma: float, reach: float) -> Array:
        """Of the loss."""
        whole: Any = self.bound.whole
        found: Array = whole.curved_rows(z, sigma, reach)
        return found

    def products(self) -> Array:
        """Of the inputs."""
        map = self.map_of(self.X)
        return row_products(self.X, map.columns, map.bias, self.check)
