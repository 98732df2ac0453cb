"""Squared epsilon-insensitive loss: support vector regression, smooth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.pieces import quadratic_residual, quadratic_residual_prox
from bmrm.losses.base import Pair, RegressionLoss, Scalar, row
from bmrm.registry import parameter


@register("squared_epsilon_insensitive", task="regression")
@dataclass(frozen=True)
class SquaredEpsilonInsensitive(RegressionLoss):
    """1/2 max(0, |f - y| - epsilon)^2: least squares with a free tube.

    Scale: the factor 1/2 gives curvature 1 outside the tube, and `least_squares` for epsilon 0; LIBLINEAR (-s 11)
    leaves it out, so its C is half of ours. The second derivative at the joints is the generalised one, 0.
    """

    epsilon: float = parameter(0.1, least=0.0, doc="half width of the free tube, in the units of y", example=0.5)

    formula = "1/2 max(0, |f - y| - epsilon)^2"
    source = "Vapnik 1995; Ho & Lin 2012"
    smooth = True
    hessian_bound = 1.0

    @row
    def value_slope(f: Scalar, y: Scalar, epsilon: Scalar) -> Pair:
        return quadratic_residual(f, y, epsilon, np.inf, 1.0, 1.0)

    @row
    def curvature(f: Scalar, y: Scalar, epsilon: Scalar) -> Scalar:
        return 1.0 if abs(f - y) > epsilon else 0.0

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar, epsilon: Scalar) -> Pair:
        return quadratic_residual_prox(z, step, y, epsilon, np.inf, 1.0, 1.0)

    @property
    def quadratic(self) -> bool:
        """Without a tube."""
        return self.epsilon == 0.0
