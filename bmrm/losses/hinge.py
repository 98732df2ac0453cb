"""Hinge loss, the soft margin of linear support vector machines."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses._core.pieces import linear_margin_prox
from bmrm.losses.base import Array, MarginLoss, Pair, Scalar, row


@register("hinge", task="binary")
@dataclass(frozen=True)
class Hinge(MarginLoss):
    """max(0, 1 - y f): the soft margin of linear support vector machines.

    Domain: two classes, y in {-1, 1}. Scale: slope -1 below margin 1. Kink at y f = 1, where the slope is 0.
    """

    formula = "max(0, 1 - y f)"
    source = "Bennett & Mangasarian 1992; Cortes & Vapnik 1995"
    at_zero = "take loss logistic or squared_hinge, or larger weights for the rarer class"
    multiclass = "multiclass_hinge"

    @row
    def value_slope(f: Scalar, y: Scalar) -> Pair:
        short = 1.0 - y * f
        return (0.0, 0.0) if short <= 0.0 else (short, -y)

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar) -> Pair:
        """z moved towards the margin by `step`, but at most to y itself, where the derivative is 0."""
        return linear_margin_prox(z, step, y, 1.0, 1.0)

    def kinks(self, y: Array) -> Array:
        """The score of margin 1."""
        return (1.0 / y)[:, None]
