"""Least absolute deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.piecewise_rows import linear_residual_points
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import RegressionLoss
from bmrm.losses.epsilon_insensitive import (
    epsilon_insensitive_along,
    epsilon_insensitive_kernel,
    epsilon_insensitive_prox,
    epsilon_insensitive_value,
)
from bmrm.problem import Summary


@register("least_absolute_deviation", task="regression")
@dataclass(frozen=True)
class LeastAbsoluteDeviation(RegressionLoss):
    """|f - y|: the median is its minimiser.

    Scale: twice `quantile` with tau 1/2; `epsilon_insensitive` with epsilon 0. Kink at f = y, where the slope is 0.
    """

    formula = "|f - y|"
    source = "Boscovich 1757; Laplace 1789"
    metrics = ("mae", "r2")
    kernel = staticmethod(epsilon_insensitive_kernel)
    along_kernel = staticmethod(epsilon_insensitive_along)
    value_row = staticmethod(epsilon_insensitive_value)
    prox_row = staticmethod(epsilon_insensitive_prox)

    def arguments(self, summary: Summary) -> tuple[Any, ...]:
        """No tube."""
        return (0.0,)

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return np.abs(f - y)

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return np.sign(f - y)

    def prox(self, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
        """z moved towards y by `step`, to y itself where that is less far; its derivative is 0 there."""
        return linear_residual_points(z, step, y, 0.0, 1.0, 1.0)
