"""The loss of the perceptron, squared."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.families import ZERO_IS_BEST, QuadraticMargin
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import MarginLoss


@register("squared_perceptron", task="binary")
@dataclass(frozen=True)
class SquaredPerceptron(QuadraticMargin, MarginLoss):
    """1/2 max(0, -y f)^2: the perceptron's loss made smooth.

    Domain: two classes, y in {-1, 1}. Scale: the factor 1/2 gives curvature 1 on the wrong side. The second derivative
    is the generalised one, 0 at f = 0. As for `perceptron`, w = 0 costs nothing. "Squared hinge" in table 1 of the KDD
    paper (2007).
    """

    formula = "1/2 max(0, -y f)^2"
    source = "Keerthi & DeCoste 2005, without the margin"
    smooth = True
    no_free_intercept = ZERO_IS_BEST

    @property
    def pieces(self) -> tuple[float, float, float]:
        """Reach, width and scale."""
        return 0.0, math.inf, 1.0

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return 0.5 * np.maximum(0.0, -y * f) ** 2

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return -y * np.maximum(0.0, -y * f)

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        return np.where(y * f < 0.0, 1.0, 0.0)
