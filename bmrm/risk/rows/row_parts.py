"""Some of the rows, with the loss divided as among all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Features
from bmrm.kernels.products.csr import active_rows
from bmrm.kernels.products.vectors import plain
from bmrm.kernels.workers import Workers
from bmrm.problem import UNMETERED, Meter, RowPart, half_pass, timed
from bmrm.problem.meter import FULL_SPEED
from bmrm.risk.linear_map import DataMap
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
    meter, share : what is charged, and the share of these rows in a pass.
    """

    X: Features
    bound: BoundLoss
    map_of: Callable[[Features], DataMap]
    mass: float
    workers: Workers
    meter: Meter = UNMETERED
    share: float = 1.0

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.bound.rows

    @timed
    def part(self, weights: Array) -> RowPart:
        """The rows of weight other than 0, copied."""
        rows = active_rows(plain(weights if weights.ndim == 1 else np.abs(weights).sum(axis=1)))
        X = self.X.select(rows, self.meter.check)
        share = self.share * rows.size / max(1, self.rows)
        part = replace(self, X=X, bound=self.bound.some(rows), share=share)
        phi = LossPhi(part.bound, self.mass, self.workers).metered(self.meter)
        return RowPart(self.map_of(X), phi, lambda scores: scores[rows], int(rows.size), part)

    @timed
    def curved_rows(self, z: Array, sigma: float, reach: float) -> Array:
        """Of the loss."""
        whole: Any = self.bound.whole
        found: Array = whole.curved_rows(z, sigma, reach)
        return found

    @half_pass
    def products(self) -> Array:
        """Of the inputs; charged as Gram matrices are."""
        map = self.map_of(self.X)
        speed = FULL_SPEED if self.X.full else 1.0
        self.meter.charge(0.0, self.share * (self.rows + 1.0) / (4.0 * map.scores_per_row * speed))
        found = self.X.row_products(map.columns.scale, map.columns.shift, self.meter.check)
        return found + 1.0 if map.bias else found
