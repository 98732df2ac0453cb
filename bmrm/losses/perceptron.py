"""The loss of the perceptron."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.pieces import ZERO_IS_BEST, linear_margin_prox
from bmrm.losses.base import Array, MarginLoss, Pair, Scalar, row


@register("perceptron", task="binary")
@dataclass(frozen=True)
class Perceptron(MarginLoss):
    """max(0, -y f): the objective that the perceptron's updates descend.

    Domain: two classes, y in {-1, 1}. Scale: slope -1 on the wrong side. Kink at f = 0, where the slope is 0. There is
    no margin, so w = 0 has loss 0 and is the minimiser with any regularizer: stop early, or use `hinge`. "Hinge" in
    table 1 of the KDD paper (2007).
    """

    formula = "max(0, -y f)"
    source = "Rosenblatt 1958; Gentile & Littlestone 1999"
    at_zero = "take loss hinge or logistic, which ask for a margin: this one is 0 at w = 0"
    no_free_intercept = ZERO_IS_BEST

    @row
    def value_slope(f: Scalar, y: Scalar) -> Pair:
        wrong = -y * f
        return (0.0, 0.0) if wrong <= 0.0 else (wrong, -y)

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar) -> Pair:
        return linear_margin_prox(z, step, y, 0.0, 1.0)

    def kinks(self, y: Array) -> Array:
        """0."""
        return np.zeros((len(y), 1))
