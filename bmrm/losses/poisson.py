"""Poisson loss: regression for counts."""

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
    """With e = exp(f) in `slope`: replace it by the slope, return the sum."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.size):
        e = slope[i]
        loss = e - y[i] * f[i]
        rate = e - y[i] if e < np.inf else HUGE
        if weighted:
            loss, rate = weighed(loss, rate, weights[i])
        total += loss
        slope[i] = rate
    return total


def poisson_kernel(f: Array, y: Array, weights: Vector, slope: Array) -> float:
    """Fill `slope`, return the sum."""
    exponential_of(f, slope)
    return _finish(f, y, weights, slope)  # type: ignore[no-any-return]


@jit
def poisson_value(f, y):  # type: ignore[no-untyped-def]
    """The loss of a row."""
    return math.exp(f) - y * f


@jit
def poisson_prox(z, step, y):  # type: ignore[no-untyped-def]
    """The proximal point of a row, and its derivative in z: u = step exp(f) below z + step y."""
    if step <= 0.0:
        return z, 1.0
    base, log_step = z + step * y, math.log(step)
    v, u = wright(log_step + base)
    return (base - u if u <= 1.0 else v - log_step), 1.0 / (1.0 + u)


@register("poisson", task="regression")
@dataclass(frozen=True)
class Poisson(LogLinkLoss):
    """exp(f) - y f: the negative log likelihood of counts y with mean exp(f), up to log(y!).

    Domain: y >= 0, whole or not. The prediction is the mean, exp(f). Half the unit deviance is exp(f) - y f - (y - y
    log y), so the loss never goes below y - y log y, which may be negative. +inf where the formula overflows, f above
    709.
    """

    formula = "exp(f) - y f"
    source = "Nelder & Wedderburn 1972; Cressie 1993"
    metrics = ("d2_poisson", "poisson_deviance", "mae", "rmse")
    kernel = staticmethod(poisson_kernel)
    along_kernel = staticmethod(along_by_blocks(poisson_kernel))
    value_row = staticmethod(poisson_value)
    prox_row = staticmethod(poisson_prox)

    def floor(self, y: Array) -> Array:
        """y - y log y."""
        return y - y * np.log(np.where(y > 0.0, y, 1.0))

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return exponential_of(f) - y * f

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        e = exponential_of(f)
        return np.where(np.isfinite(e), e - y, HUGE)

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        return np.minimum(exponential_of(f), HUGE)

    def prox(self, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
        """The proximal point of each row, and its derivative in z."""
        return smooth_points(self, z, step, y)
