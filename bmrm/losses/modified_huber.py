"""The squared hinge, linear far on the wrong side: robust and smooth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.families import QuadraticMargin
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import MarginLoss


@register("modified_huber", task="binary")
@dataclass(frozen=True)
class ModifiedHuber(QuadraticMargin, MarginLoss):
    """max(0, 1 - y f)^2 for y f >= -1, -4 y f below: a squared hinge that outliers cannot dominate.

    Domain: two classes, y in {-1, 1}. Scale: as in scikit-learn's `SGDClassifier` and Zhang's paper, curvature 2
    between -1 and 1, twice that of `squared_hinge`. The probability of the positive class is (1 + min(max(f, -1), 1))
    / 2. The second derivative at the joints is the generalised one, that of the outer pieces.
    """

    formula = "max(0, 1 - y f)^2 for y f >= -1, else -4 y f"
    source = "Zhang 2004"
    smooth = True

    @property
    def pieces(self) -> tuple[float, float, float]:
        """Reach, width and scale."""
        return 1.0, 2.0, 2.0

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        z = y * f
        return np.where(z < -1.0, -4.0 * z, np.maximum(0.0, 1.0 - z) ** 2)

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return -2.0 * y * np.clip(1.0 - y * f, 0.0, 2.0)

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        return np.where(np.abs(f) < 1.0, 2.0, 0.0)
