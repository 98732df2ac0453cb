"""Huber's robust loss."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses._core.pieces import quadratic_residual, quadratic_residual_prox
from bmrm.losses.base import Pair, RegressionLoss, Scalar, row
from bmrm.registry import parameter


@register("huber", task="regression")
@dataclass(frozen=True)
class Huber(RegressionLoss):
    """1/2 r^2 for |r| <= delta, delta (|r| - delta / 2) beyond, r = f - y: least squares that outliers cannot dominate.

    Scale: curvature 1 near y, as `least_squares`; table 1 of the KDD paper (2007) has delta = 1. scikit-learn's
    `HuberRegressor` learns a scale sigma too: at its sigma, epsilon and alpha are our delta = epsilon sigma and
    lambda = alpha sigma / m. The second derivative at |r| = delta is the generalised one, 0.
    """

    delta: float = parameter(1.0, above=0.0, doc="residual at which the parabola turns into lines", example=0.5)

    formula = "1/2 r^2 for |r| <= delta, else delta (|r| - delta / 2); r = f - y"
    source = "Huber 1964"
    smooth = True
    hessian_bound = 1.0

    @row
    def value_slope(f: Scalar, y: Scalar, delta: Scalar) -> Pair:
        return quadratic_residual(f, y, 0.0, delta, 1.0, 1.0)

    @row
    def curvature(f: Scalar, y: Scalar, delta: Scalar) -> Scalar:
        return 1.0 if abs(f - y) < delta else 0.0

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar, delta: Scalar) -> Pair:
        return quadratic_residual_prox(z, step, y, 0.0, delta, 1.0, 1.0)
