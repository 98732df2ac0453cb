"""Least squares."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses.base import Pair, RegressionLoss, Scalar, row


@register("least_squares", task="regression")
@dataclass(frozen=True)
class LeastSquares(RegressionLoss):
    """1/2 (f - y)^2: the mean is its minimiser.

    Scale: the factor 1/2 gives curvature 1, as in scikit-learn's Lasso; Ridge leaves out 1/2 and the mean.
    """

    formula = "1/2 (f - y)^2"
    source = "Legendre 1805; Gauss 1809"
    smooth = True
    hessian_bound = 1.0
    quadratic = True
    metrics = ("r2", "mse", "mae")

    @row
    def value_slope(f: Scalar, y: Scalar) -> Pair:
        miss = f - y
        return 0.5 * miss * miss, miss

    @row
    def curvature(f: Scalar, y: Scalar) -> Scalar:
        return 1.0

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar) -> Pair:
        rate = 1.0 / (1.0 + step)
        return y + rate * (z - y) if step > 1.0 else z - step * rate * (z - y), rate
