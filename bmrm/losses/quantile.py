"""Quantile (pinball) loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.pieces import linear_residual, linear_residual_prox
from bmrm.losses.base import Array, Pair, RegressionLoss, Scalar, row
from bmrm.registry import parameter


@register("quantile", task="regression")
@dataclass(frozen=True)
class Quantile(RegressionLoss):
    """max(tau (y - f), (1 - tau) (f - y)): the tau-quantile is its minimiser.

    The pinball loss of scikit-learn's `QuantileRegressor` with `quantile=tau`. Table 1 of the KDD paper (2007) writes
    max(tau (f - y), (1 - tau) (y - f)): its tau is our 1 - tau. Kink at f = y, where the slope is 0.
    """

    tau: float = parameter(0.5, above=0.0, below=1.0, doc="the quantile, 0.5 for the median", example=0.9)

    formula = "max(tau (y - f), (1 - tau) (f - y))"
    source = "Koenker & Bassett 1978"
    at_zero = "take loss expectile, or other features"
    metrics = ("pinball", "coverage", "mae", "r2")

    @row
    def value_slope(f: Scalar, y: Scalar, tau: Scalar) -> Pair:
        return linear_residual(f, y, 0.0, 1.0 - tau, tau)

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar, tau: Scalar) -> Pair:
        return linear_residual_prox(z, step, y, 0.0, 1.0 - tau, tau)

    def kinks(self, y: Array) -> Array:
        """The target."""
        return np.asarray(y, np.float64)[:, None]
