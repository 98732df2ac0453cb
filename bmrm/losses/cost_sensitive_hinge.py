"""Hinge loss with a price for each kind of mistake."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.families import LinearMargin
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import MarginLoss
from bmrm.registry import parameter


@register("cost_sensitive_hinge", task="binary")
@dataclass(frozen=True)
class CostSensitiveHinge(LinearMargin, MarginLoss):
    """cost(y) max(0, 1 - y f): missing a positive costs `cost_positive`, a false alarm `cost_negative`.

    Domain: two classes, y in {-1, 1}; the last label in sort order is the positive one. The mean is over all rows, not
    over the sum of costs: with costs c the loss of c copies of a row, divided by the rows there are without copies.
    Kink at y f = 1, where the slope is 0.
    """

    cost_positive: float = parameter(1.0, above=0.0, doc="price of a positive row on the wrong side", example=3.0)
    cost_negative: float = parameter(1.0, above=0.0, doc="price of a negative row on the wrong side", example=0.5)

    formula = "cost(y) max(0, 1 - y f)"
    source = "Veropoulos, Campbell & Cristianini 1999; Musicant, Kumar & Ozgur 2003"
    metrics = ("accuracy", "auc", "precision", "recall", "f1")

    @property
    def pieces(self) -> tuple[float, float, float]:
        """Reach and costs."""
        return 1.0, float(self.cost_positive), float(self.cost_negative)

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return self._costs(y) * np.maximum(0.0, 1.0 - y * f)

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return np.where(y * f < 1.0, -y * self._costs(y), 0.0)

    def _costs(self, y: Array) -> Array:
        return np.where(y > 0.0, self.cost_positive, self.cost_negative)
