"""Expectile loss: least squares with unequal sides."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.families import QuadraticResidual
from bmrm.losses._core.prepared import Array
from bmrm.registry import parameter


@register("expectile", task="regression")
@dataclass(frozen=True)
class Expectile(QuadraticResidual):
    """tau (f - y)^2 for f < y, (1 - tau) (f - y)^2 above: the tau-expectile is its minimiser.

    Scale: with tau 1/2 it is `least_squares`. The second derivative at f = y is the generalised one, 2 tau.
    """

    tau: float = parameter(0.5, above=0.0, below=1.0, doc="the expectile, 0.5 for the mean", example=0.9)

    formula = "|tau - [f > y]| (f - y)^2"
    source = "Aigner, Amemiya & Poirier 1976; Newey & Powell 1987"
    smooth = True
    metrics = ("asymmetric_mse", "r2", "mae")

    @property
    def pieces(self) -> tuple[float, float, float, float]:
        """Tube, width of the parabola and a factor for each side."""
        return 0.0, math.inf, 2.0 * (1.0 - self.tau), 2.0 * self.tau

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return self._sides(f, y) * (f - y) ** 2

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return 2.0 * self._sides(f, y) * (f - y)

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        return 2.0 * self._sides(f, y)

    def _sides(self, f: Array, y: Array) -> Array:
        return np.where(f > y, 1.0 - self.tau, self.tau)
