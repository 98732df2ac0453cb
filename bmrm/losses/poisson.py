"""Poisson loss: regression for counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.exponentials import HUGE, LogLinkLoss
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.smooth_rows import wright
from bmrm.losses.base import Pair, Scalar, row, strict_row


@register("poisson", task="regression")
@dataclass(frozen=True)
class Poisson(LogLinkLoss):
    """exp(f) - y f: the negative log likelihood of counts y with mean exp(f), up to log(y!).

    Domain: y >= 0, whole or not. The prediction is the mean, exp(f). Half the unit deviance is exp(f) - y f - (y - y
    log y), so the lower bound of the loss is y - y log y, which may be negative. +inf where the formula overflows, f
    above 709.
    """

    formula = "exp(f) - y f"
    source = "Nelder & Wedderburn 1972; Cressie 1993"
    metrics = ("d2_poisson", "poisson_deviance", "mae", "rmse")

    @row
    def exponent(f: Scalar, y: Scalar) -> Scalar:
        return f

    @row
    def value_slope(f: Scalar, y: Scalar, e: Scalar) -> Pair:
        return e - y * f, (e - y if e < np.inf else HUGE)

    @row
    def curvature(f: Scalar, y: Scalar, e: Scalar) -> Scalar:
        return e if e < HUGE else HUGE

    @strict_row
    def prox(z: Scalar, step: Scalar, y: Scalar) -> Pair:
        """u = step exp(f) below z + step y."""
        if step <= 0.0:
            return z, 1.0
        base, log_step = z + step * y, math.log(step)
        v, u = wright(log_step + base)
        return (base - u if u <= 1.0 else v - log_step), 1.0 / (1.0 + u)

    def floor(self, y: Array) -> Array:
        """y - y log y."""
        return y - y * np.log(np.where(y > 0.0, y, 1.0))
