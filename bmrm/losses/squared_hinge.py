"""Squared hinge loss: the L2-loss support vector machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.pieces import quadratic_margin_prox
from bmrm.losses.base import MarginLoss, Pair, Scalar, row


@register("squared_hinge", task="binary")
@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """1/2 max(0, 1 - y f)^2: smooth, with the margin of the hinge.

    Domain: two classes, y in {-1, 1}. Scale: the factor 1/2 gives curvature 1 below margin 1; LIBLINEAR leaves it
    out, so its C is half of ours. The second derivative is the generalised one, 0 at the joint y f = 1.
    """

    formula = "1/2 max(0, 1 - y f)^2"
    source = "Keerthi & DeCoste 2005"
    smooth = True
    hessian_bound = 1.0

    @row
    def value_slope(f: Scalar, y: Scalar) -> Pair:
        short = 1.0 - y * f
        short = 0.0 if short <= 0.0 else short
        return 0.5 * short * short, -y * short

    @row
    def curvature(f: Scalar, y: Scalar) -> Scalar:
        return 1.0 if y * f < 1.0 else 0.0

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar) -> Pair:
        return quadratic_margin_prox(z, step, y, 1.0, np.inf, 1.0)
