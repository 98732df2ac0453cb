"""Squared epsilon-insensitive loss: support vector regression, smooth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.families import QuadraticResidual
from bmrm.losses._core.prepared import Array
from bmrm.registry import parameter


@register("squared_epsilon_insensitive", task="regression")
@dataclass(frozen=True)
class SquaredEpsilonInsensitive(QuadraticResidual):
    """1/2 max(0, |f - y| - epsilon)^2: least squares with a free tube.

    Scale: the factor 1/2 gives curvature 1 outside the tube, and `least_squares` for epsilon 0; LIBLINEAR (-s 11)
    leaves it out, so its C is half of ours. The second derivative at the joints is the generalised one, 0.
    """

    epsilon: float = parameter(0.1, least=0.0, doc="half width of the free tube, in the units of y", example=0.5)

    formula = "1/2 max(0, |f - y| - epsilon)^2"
    source = "Vapnik 1995; Ho & Lin 2012"
    smooth = True

    @property
    def pieces(self) -> tuple[float, float, float, float]:
        """Tube, width of the parabola and a factor for each side."""
        return float(self.epsilon), math.inf, 1.0, 1.0

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return 0.5 * np.maximum(0.0, np.abs(f - y) - self.epsilon) ** 2

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return np.sign(f - y) * np.maximum(0.0, np.abs(f - y) - self.epsilon)

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        return np.where(np.abs(f - y) > self.epsilon, 1.0, 0.0)
