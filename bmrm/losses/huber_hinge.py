"""The hinge with its kink rounded off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.families import QuadraticMargin
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import MarginLoss
from bmrm.registry import parameter


@register("huber_hinge", task="binary")
@dataclass(frozen=True)
class HuberHinge(QuadraticMargin, MarginLoss):
    """0 for y f > 1 + h, (1 + h - y f)^2 / (4 h) for |1 - y f| <= h, 1 - y f below: a hinge with a round kink.

    Domain: two classes, y in {-1, 1}. At most h / 4 above `hinge`, which is its limit for h -> 0. Curvature 1 / (2 h)
    within h of the kink; the second derivative at the joints is the generalised one, that of the outer pieces.
    """

    h: float = parameter(0.5, above=0.0, doc="half width of the quadratic piece around y f = 1", example=0.25)

    formula = "0, (1 + h - y f)^2 / (4 h) or 1 - y f for y f above, within or below 1 +- h"
    source = "Chapelle 2007"
    smooth = True

    @property
    def pieces(self) -> tuple[float, float, float]:
        """Reach, width and scale."""
        return 1.0 + self.h, 2.0 * self.h, 0.5 / self.h

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        z, h = y * f, self.h
        inner = np.maximum(0.0, 1.0 + h - z) ** 2 / (4.0 * h)
        return np.where(z < 1.0 - h, 1.0 - z, inner)

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return -y * np.clip((1.0 + self.h - y * f) / (2.0 * self.h), 0.0, 1.0)

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        return np.where(np.abs(1.0 - y * f) < self.h, 0.5 / self.h, 0.0)
