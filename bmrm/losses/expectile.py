"""Expectile loss: asymmetric least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.pieces import quadratic_residual, quadratic_residual_prox
from bmrm.losses.base import Pair, RegressionLoss, Scalar, row
from bmrm.registry import parameter


@register("expectile", task="regression")
@dataclass(frozen=True)
class Expectile(RegressionLoss):
    """tau (f - y)^2 for f < y, (1 - tau) (f - y)^2 above: the tau-expectile is its minimiser.

    Scale: with tau 1/2 it is `least_squares`. The second derivative at f = y is the generalised one, 2 tau.
    """

    tau: float = parameter(0.5, above=0.0, below=1.0, doc="the expectile, 0.5 for the mean", example=0.9)

    formula = "|tau - [f > y]| (f - y)^2"
    source = "Aigner, Amemiya & Poirier 1976; Newey & Powell 1987"
    smooth = True
    metrics = ("asymmetric_mse", "r2", "mae")

    @row
    def value_slope(f: Scalar, y: Scalar, tau: Scalar) -> Pair:
        return quadratic_residual(f, y, 0.0, np.inf, 2.0 * (1.0 - tau), 2.0 * tau)

    @row
    def curvature(f: Scalar, y: Scalar, tau: Scalar) -> Scalar:
        return 2.0 * (1.0 - tau if f > y else tau)

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar, tau: Scalar) -> Pair:
        return quadratic_residual_prox(z, step, y, 0.0, np.inf, 2.0 * (1.0 - tau), 2.0 * tau)

    @property
    def hessian_bound(self) -> float:
        """That of the steeper side."""
        return 2.0 * max(self.tau, 1.0 - self.tau)

    @property
    def quadratic(self) -> bool:
        """Where both sides are equally steep."""
        return self.tau == 0.5
