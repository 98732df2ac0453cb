"""The loss of the perceptron."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.families import ZERO_IS_BEST, LinearMargin
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import MarginLoss


@register("perceptron", task="binary")
@dataclass(frozen=True)
class Perceptron(LinearMargin, MarginLoss):
    """max(0, -y f): what the perceptron's updates descend.

    Domain: two classes, y in {-1, 1}. Scale: slope -1 on the wrong side. Kink at f = 0, where the slope is 0. Without
    a margin w = 0 costs nothing: any regularizer makes it the minimiser, so stop early, or take `hinge`. "Hinge" in
    table 1 of the KDD paper (2007).
    """

    formula = "max(0, -y f)"
    source = "Rosenblatt 1958; Gentile & Littlestone 1999"
    no_free_intercept = ZERO_IS_BEST

    @property
    def pieces(self) -> tuple[float, float, float]:
        """Reach and costs."""
        return 0.0, 1.0, 1.0

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return np.maximum(0.0, -y * f)

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return np.where(y * f < 0.0, -y, 0.0)
