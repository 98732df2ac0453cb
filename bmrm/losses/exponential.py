"""Exponential loss: what AdaBoost descends."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit, jit
from bmrm.losses import register
from bmrm.losses._core.blocks import along_by_blocks
from bmrm.losses._core.exponentials import HUGE, exponential_of, weighed
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.smooth_rows import smooth_points, wright
from bmrm.losses.base import MarginLoss
from bmrm.problem import Vector


@fast_jit
def _finish(y, weights, slope):  # type: ignore[no-untyped-def]
    """With e = exp(-y f) in `slope`: replace it by the slope, return the sum."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(y.size):
        e = slope[i]
        rate = e if e < np.inf else HUGE
        if weighted:
            e, rate = weighed(e, rate, weights[i])
        total += e
        slope[i] = -y[i] * rate
    return total


def exponential_kernel(f: Array, y: Array, weights: Vector, slope: Array) -> float:
    """Fill `slope`, return the sum."""
    np.multiply(f, y, out=slope)
    np.negative(slope, out=slope)
    exponential_of(slope, slope)
    return _finish(y, weights, slope)  # type: ignore[no-any-return]


@jit
def exponential_value(f, y):  # type: ignore[no-untyped-def]
    """The loss of a row."""
    return math.exp(-y * f)


@jit
def exponential_prox(z, step, y):  # type: ignore[no-untyped-def]
    """The proximal point of a row, and its derivative in z: the margin grows by u = step exp(-y f)."""
    if step <= 0.0:
        return z, 1.0
    log_step = math.log(step)
    v, u = wright(log_step - y * z)
    return (z + y * u if u <= 1.0 else y * (log_step - v)), 1.0 / (1.0 + u)


@register("exponential", task="binary")
@dataclass(frozen=True)
class Exponential(MarginLoss):
    """exp(-y f): what AdaBoost descends; half the log odds are its minimiser.

    Domain: two classes, y in {-1, 1}; the probability of the positive one is 1 / (1 + exp(-2 f)). +inf where the
    formula overflows, y f below -709.
    """

    formula = "exp(-y f)"
    source = "Freund & Schapire 1997; Collins, Schapire & Singer 2000"
    smooth = True
    kernel = staticmethod(exponential_kernel)
    along_kernel = staticmethod(along_by_blocks(exponential_kernel))
    value_row = staticmethod(exponential_value)
    prox_row = staticmethod(exponential_prox)

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return exponential_of(-y * f)

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        e = self.value(f, y)
        return -y * np.where(np.isfinite(e), e, HUGE)

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        e = self.value(f, y)
        return np.where(np.isfinite(e), e, HUGE)

    def prox(self, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
        """The proximal point of each row, and its derivative in z."""
        return smooth_points(self, z, step, y)
