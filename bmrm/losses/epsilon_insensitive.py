"""Epsilon-insensitive loss: support vector regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.pieces import linear_residual, linear_residual_prox
from bmrm.losses.base import Array, Pair, RegressionLoss, Scalar, row
from bmrm.registry import parameter


@register("epsilon_insensitive", task="regression")
@dataclass(frozen=True)
class EpsilonInsensitive(RegressionLoss):
    """max(0, |f - y| - epsilon): support vector regression; errors up to epsilon cost nothing.

    With epsilon 0 it is the least absolute deviation. Kinks at |f - y| = epsilon, where the slope is 0.
    """

    epsilon: float = parameter(0.1, least=0.0, doc="half width of the free tube, in the units of y", example=0.5)

    formula = "max(0, |f - y| - epsilon)"
    source = "Vapnik, Golowich & Smola 1997"
    at_zero = "take loss huber or least_squares"

    @row
    def value_slope(f: Scalar, y: Scalar, epsilon: Scalar) -> Pair:
        return linear_residual(f, y, epsilon, 1.0, 1.0)

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar, epsilon: Scalar) -> Pair:
        return linear_residual_prox(z, step, y, epsilon, 1.0, 1.0)

    def kinks(self, y: Array) -> Array:
        """The ends of the tube."""
        return np.column_stack((y - self.epsilon, y + self.epsilon))
