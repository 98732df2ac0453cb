"""Hinge loss with a cost for each kind of mistake."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses._core.pieces import linear_margin_prox
from bmrm.losses.base import Array, MarginLoss, Pair, Scalar, row
from bmrm.registry import parameter


@register("cost_sensitive_hinge", task="binary")
@dataclass(frozen=True)
class CostSensitiveHinge(MarginLoss):
    """cost(y) max(0, 1 - y f): missing a positive costs `cost_positive`, a false alarm `cost_negative`.

    Domain: two classes, y in {-1, 1}; the last label in sort order is the positive one. The mean is over all rows, not
    over the sum of costs: a cost c acts like c copies of the row, but the sum is divided by the number of rows without
    copies. Kink at y f = 1, where the slope is 0.
    """

    cost_positive: float = parameter(1.0, above=0.0, doc="price of a positive row on the wrong side", example=3.0)
    cost_negative: float = parameter(1.0, above=0.0, doc="price of a negative row on the wrong side", example=0.5)

    formula = "cost(y) max(0, 1 - y f)"
    source = "Veropoulos, Campbell & Cristianini 1999; Musicant, Kumar & Ozgur 2003"
    at_zero = "take loss logistic or squared_hinge, or larger weights for the rarer class"
    metrics = ("accuracy", "auc", "precision", "recall", "f1")

    @row
    def value_slope(f: Scalar, y: Scalar, cost_positive: Scalar, cost_negative: Scalar) -> Pair:
        short = 1.0 - y * f
        rate = 0.0 if short <= 0.0 else (cost_positive if y > 0.0 else cost_negative)
        return rate * (0.0 if short <= 0.0 else short), -y * rate

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar, cost_positive: Scalar, cost_negative: Scalar) -> Pair:
        return linear_margin_prox(z, step, y, 1.0, cost_positive if y > 0.0 else cost_negative)

    def kinks(self, y: Array) -> Array:
        """The score of margin 1."""
        return (1.0 / y)[:, None]
