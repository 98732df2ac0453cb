"""Least absolute deviation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.pieces import linear_residual, linear_residual_prox
from bmrm.losses.base import Array, Pair, RegressionLoss, Scalar, row


@register("least_absolute_deviation", task="regression")
@dataclass(frozen=True)
class LeastAbsoluteDeviation(RegressionLoss):
    """|f - y|: the median is its minimiser.

    Scale: twice `quantile` with tau 1/2; `epsilon_insensitive` with epsilon 0. Kink at f = y, where the slope is 0.
    """

    formula = "|f - y|"
    source = "Boscovich 1757; Laplace 1789"
    at_zero = "take loss huber or least_squares"
    metrics = ("mae", "r2")

    @row
    def value_slope(f: Scalar, y: Scalar) -> Pair:
        return linear_residual(f, y, 0.0, 1.0, 1.0)

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar) -> Pair:
        return linear_residual_prox(z, step, y, 0.0, 1.0, 1.0)

    def kinks(self, y: Array) -> Array:
        """The target."""
        return np.asarray(y, np.float64)[:, None]
