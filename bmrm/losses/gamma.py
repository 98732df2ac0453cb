"""Gamma loss: regression for positive numbers whose spread grows with their mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit, jit
from bmrm.losses import register
from bmrm.losses._core.blocks import along_by_blocks
from bmrm.losses._core.exponentials import HUGE, LogLinkLoss, exponential_of, weighed
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.smooth_rows import smooth_points, wright
from bmrm.problem import Vector


@fast_jit
def _finish(f, y, weights, slope):  # type: ignore[no-untyped-def]
    """With e = exp(-f) in `slope`: replace it by the slope, return the sum."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.size):
        ratio = y[i] * slope[i]
        loss = f[i] + ratio
        rate = 1.0 - ratio if ratio < np.inf else -HUGE
        if weighted:
            loss, rate = weighed(loss, rate, weights[i])
        total += loss
        slope[i] = rate
    return total


def gamma_kernel(f: Array, y: Array, weights: Vector, slope: Array) -> float:
    """Fill `slope`, return the sum."""
    np.negative(f, out=slope)
    exponential_of(slope, slope)
    return _finish(f, y, weights, slope)  # type: ignore[no-any-return]


@jit
def gamma_value(f, y):  # type: ignore[no-untyped-def]
    """The loss of a row."""
    return f + y * math.exp(-f)


@jit
def gamma_prox(z, step, y):  # type: ignore[no-untyped-def]
    """The proximal point of a row, and its derivative in z: u = step y exp(-f) above z - step."""
    if step <= 0.0:
        return z, 1.0
    base, log_rate = z - step, math.log(step) + math.log(y)
    v, u = wright(log_rate - base)
    return (base + u if u <= 1.0 else log_rate - v), 1.0 / (1.0 + u)


@register("gamma", task="regression")
@dataclass(frozen=True)
class Gamma(LogLinkLoss):
    """f + y exp(-f): half the gamma deviance for a mean of exp(f), up to what depends on y alone.

    Domain: y > 0. The prediction is the mean, exp(f). Half the unit deviance, log(mean / y) + y / mean - 1, is this
    minus log(y) + 1, below which it never goes. Scale: the dispersion is left out, as in scikit-learn's
    `GammaRegressor`. +inf where the formula overflows, f below about -709.
    """

    formula = "f + y exp(-f)"
    source = "Nelder & Wedderburn 1972; McCullagh & Nelder 1989, chapter 8"
    targets_from = "> 0"
    metrics = ("d2_gamma", "gamma_deviance", "mae", "rmse")
    kernel = staticmethod(gamma_kernel)
    along_kernel = staticmethod(along_by_blocks(gamma_kernel))
    value_row = staticmethod(gamma_value)
    prox_row = staticmethod(gamma_prox)

    def floor(self, y: Array) -> Array:
        """log(y) + 1."""
        return np.log(np.where(y > 0.0, y, 1.0)) + 1.0

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return f + self._ratio(f, y)

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        ratio = self._ratio(f, y)
        return np.where(np.isfinite(ratio), 1.0 - ratio, -HUGE)

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        return np.minimum(self._ratio(f, y), HUGE)

    def prox(self, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
        """The proximal point of each row, and its derivative in z."""
        return smooth_points(self, z, step, y)

    def _ratio(self, f: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):
            return y * exponential_of(-f)
