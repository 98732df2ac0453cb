"""Quantile (pinball) loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses._core.piecewise_rows import linear_residual_points, linear_residual_prox, linear_residual_value
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import RegressionLoss
from bmrm.registry import parameter


@fast_jit
def quantile_kernel(f, y, weights, slope, tau):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.size):
        above = f[i] - y[i]
        rate = 0.0 if above == 0.0 else (1.0 - tau if above > 0.0 else -tau)
        if weighted:
            rate *= weights[i]
        total += rate * above
        slope[i] = rate
    return total


@fast_jit
def quantile_along(f, step, y, weights, ts, values, derivatives, tau):  # type: ignore[no-untyped-def]
    """Fill `values` and `derivatives` of the sum at `f + t step`, for each t of `ts`."""
    weighted = weights.size > 0
    for k in range(ts.size):
        t, total, derivative = ts[k], 0.0, 0.0
        for i in range(f.size):
            above = f[i] + t * step[i] - y[i]
            rate = 0.0 if above == 0.0 else (1.0 - tau if above > 0.0 else -tau)
            if weighted:
                rate *= weights[i]
            total += rate * above
            derivative += rate * step[i]
        values[k], derivatives[k] = total, derivative


@fast_jit
def quantile_value(f, y, tau):  # type: ignore[no-untyped-def]
    """The loss of a row."""
    return linear_residual_value(f, y, 0.0, 1.0 - tau, tau)


@fast_jit
def quantile_prox(z, step, y, tau):  # type: ignore[no-untyped-def]
    """The proximal point of a row, and its derivative in z."""
    return linear_residual_prox(z, step, y, 0.0, 1.0 - tau, tau)


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
    metrics = ("pinball", "coverage", "mae", "r2")
    kernel = staticmethod(quantile_kernel)
    along_kernel = staticmethod(quantile_along)
    value_row = staticmethod(quantile_value)
    prox_row = staticmethod(quantile_prox)

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return np.maximum(self.tau * (y - f), (1.0 - self.tau) * (f - y))

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return np.where(f > y, 1.0 - self.tau, np.where(f < y, -self.tau, 0.0))

    def prox(self, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
        """z moved towards y by step times the slope, to y itself where that is less far; its derivative is 0 there."""
        return linear_residual_points(z, step, y, 0.0, 1.0 - self.tau, self.tau)
