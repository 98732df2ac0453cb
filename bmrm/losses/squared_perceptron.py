"""The loss of the perceptron, squared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.pieces import ZERO_IS_BEST, quadratic_margin, quadratic_margin_prox
from bmrm.losses.base import MarginLoss, Pair, Scalar, row


@register("squared_perceptron", task="binary")
@dataclass(frozen=True)
class SquaredPerceptron(MarginLoss):
    """1/2 max(0, -y f)^2: the perceptron's loss made smooth.

    Domain: two classes, y in {-1, 1}. Scale: the factor 1/2 gives curvature 1 on the wrong side. The second derivative
    is the generalised one, 0 at f = 0. As for `perceptron`, w = 0 costs nothing. "Squared hinge" in table 1 of the KDD
    paper (2007).
    """

    formula = "1/2 max(0, -y f)^2"
    source = "Keerthi & DeCoste 2005, without the margin"
    at_zero = "take loss hinge or logistic, which ask for a margin: this one is 0 at w = 0"
    smooth = True
    hessian_bound = 1.0
    no_free_intercept = ZERO_IS_BEST

    @row
    def value_slope(f: Scalar, y: Scalar) -> Pair:
        return quadratic_margin(f, y, 0.0, np.inf, 1.0)

    @row
    def curvature(f: Scalar, y: Scalar) -> Scalar:
        return 1.0 if y * f < 0.0 else 0.0

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar) -> Pair:
        return quadratic_margin_prox(z, step, y, 0.0, np.inf, 1.0)
