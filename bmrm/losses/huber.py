"""Huber's robust loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.families import QuadraticResidual
from bmrm.losses._core.prepared import Array
from bmrm.registry import parameter


@register("huber", task="regression")
@dataclass(frozen=True)
class Huber(QuadraticResidual):
    """1/2 r^2 for |r| <= delta, delta (|r| - delta / 2) beyond, r = f - y: least squares that outliers cannot dominate.

    Scale: curvature 1 near y, as `least_squares`; table 1 of the KDD paper (2007) has delta = 1. scikit-learn's
    `HuberRegressor` learns a scale sigma too: at its sigma, epsilon and alpha are our delta = epsilon sigma and
    lambda = alpha sigma / m. The second derivative at |r| = delta is the generalised one, 0.
    """

    delta: float = parameter(1.0, above=0.0, doc="residual at which the parabola turns into lines", example=0.5)

    formula = "1/2 r^2 for |r| <= delta, else delta (|r| - delta / 2); r = f - y"
    source = "Huber 1964"
    smooth = True

    @property
    def pieces(self) -> tuple[float, float, float, float]:
        """Tube, width of the parabola and a factor for each side."""
        return 0.0, float(self.delta), 1.0, 1.0

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        size = np.abs(f - y)
        return np.where(size <= self.delta, 0.5 * size**2, self.delta * (size - 0.5 * self.delta))

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return np.clip(f - y, -self.delta, self.delta)

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        return np.where(np.abs(f - y) < self.delta, 1.0, 0.0)
