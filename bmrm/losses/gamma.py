"""Gamma loss: regression for positive numbers whose spread grows with their mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.exponentials import HUGE, LogLinkLoss
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.smooth_rows import wright
from bmrm.losses.base import Pair, Scalar, row, strict_row


@register("gamma", task="regression")
@dataclass(frozen=True)
class Gamma(LogLinkLoss):
    """f + y exp(-f): half the gamma deviance for a mean of exp(f), up to a term that depends only on y.

    Domain: y > 0. The prediction is the mean, exp(f). Half the unit deviance, log(mean / y) + y / mean - 1, is this
    minus its lower bound log(y) + 1. Scale: the dispersion is left out, as in scikit-learn's `GammaRegressor`. +inf
    where the formula overflows, f below about -709.
    """

    formula = "f + y exp(-f)"
    source = "Nelder & Wedderburn 1972; McCullagh & Nelder 1989, chapter 8"
    targets_from = "> 0"
    metrics = ("d2_gamma", "gamma_deviance", "mae", "rmse")

    @row
    def exponent(f: Scalar, y: Scalar) -> Scalar:
        return -f

    @row
    def value_slope(f: Scalar, y: Scalar, e: Scalar) -> Pair:
        ratio = y * e
        return f + ratio, (1.0 - ratio if ratio < np.inf else -HUGE)

    @row
    def curvature(f: Scalar, y: Scalar, e: Scalar) -> Scalar:
        return y * e if y * e < HUGE else HUGE

    @strict_row
    def prox(z: Scalar, step: Scalar, y: Scalar) -> Pair:
        """u = step y exp(-f) above z - step."""
        if step <= 0.0:
            return z, 1.0
        base, log_rate = z - step, math.log(step) + math.log(y)
        v, u = wright(log_rate - base)
        return (base + u if u <= 1.0 else log_rate - v), 1.0 / (1.0 + u)

    def floor(self, y: Array) -> Array:
        """log(y) + 1."""
        return np.log(np.where(y > 0.0, y, 1.0)) + 1.0
