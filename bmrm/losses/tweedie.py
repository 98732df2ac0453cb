"""Tweedie loss: regression for amounts that are often exactly 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit, jit
from bmrm.losses import register
from bmrm.losses._core.exponentials import HUGE, LogLinkLoss, exponential_of, weighed
from bmrm.losses._core.prepared import Array, along_by_blocks
from bmrm.losses._core.smooth_rows import CLOSE, householder, wright
from bmrm.losses.base import Pair, Scalar, strict_row
from bmrm.problem import Vector
from bmrm.registry import parameter


@fast_jit
def _finish(y, weights, up, slope, power):  # type: ignore[no-untyped-def]
    """With exp((2 - power) f) in `up` and exp((1 - power) f) in `slope`: fill `slope`, return the sum."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(y.size):
        rise = up[i]
        fall = 0.0 if y[i] == 0.0 else y[i] * slope[i]
        loss = rise / (2.0 - power) + fall / (power - 1.0)
        rate = -HUGE if fall == np.inf else (HUGE if rise == np.inf else rise - fall)
        if weighted:
            loss, rate = weighed(loss, rate, weights[i])
        total += loss
        slope[i] = rate
    return total


def tweedie_kernel(f: Array, y: Array, weights: Vector, slope: Array, power: float) -> float:
    """Fill `slope`, return the sum."""
    up = exponential_of((2.0 - power) * f)
    np.multiply(f, 1.0 - power, out=slope)
    exponential_of(slope, slope)
    return float(_finish(y, weights, up, slope, power))


@jit
def _falling(z: float, step: float, power: float) -> float:
    """The root f of f - z + step exp(power f)."""
    scale = math.log(power * step)
    v, u = wright(scale + power * z)
    f: float = z - u / power if u <= 1.0 else (v - scale) / power
    return f


@register("tweedie", task="regression")
@dataclass(frozen=True)
class Tweedie(LogLinkLoss):
    """exp((2 - p) f) / (2 - p) + y exp((1 - p) f) / (p - 1), p = power: half the Tweedie deviance for a mean of exp(f).

    Domain: y >= 0. The prediction is the mean, exp(f); the variance is proportional to mean^power. Half the unit
    deviance is this minus its lower bound y^(2 - p) / ((2 - p) (p - 1)). The limits power 1 and 2 are `poisson` and
    `gamma` (up to constants); other powers are not convex with a logarithmic link. +inf where the formula overflows.
    """

    power: float = parameter(1.5, above=1.0, below=2.0, doc="variance is proportional to mean^power", example=1.2)

    formula = "exp((2 - p) f) / (2 - p) + y exp((1 - p) f) / (p - 1)"
    source = "Tweedie 1984; Jorgensen 1987"
    metrics = ("d2_tweedie", "tweedie_deviance", "mae", "rmse")
    kernel = staticmethod(tweedie_kernel)
    along_kernel = staticmethod(along_by_blocks(tweedie_kernel))

    def floor(self, y: Array) -> Array:
        """y^(2 - p) / ((2 - p) (p - 1))."""
        floor: Array = np.maximum(y, 0.0) ** (2.0 - self.power) / ((2.0 - self.power) * (self.power - 1.0))
        return floor

    @strict_row
    def value_slope(f: Scalar, y: Scalar, power: Scalar) -> Pair:
        rise, fall = math.exp((2.0 - power) * f), 0.0 if y == 0.0 else y * math.exp((1.0 - power) * f)
        rate = -HUGE if fall == np.inf else (HUGE if rise == np.inf else rise - fall)
        return rise / (2.0 - power) + fall / (power - 1.0), rate

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        rise, fall = exponential_of((2.0 - self.power) * f), exponential_of((1.0 - self.power) * f)
        with np.errstate(over="ignore"):
            fall = np.multiply(y, fall, where=y != 0.0, out=np.zeros_like(fall))
            return np.minimum((2.0 - self.power) * rise + (self.power - 1.0) * fall, HUGE)

    @strict_row
    def prox(z: Scalar, step: Scalar, y: Scalar, power: Scalar) -> Pair:
        """Newton's method between z and log y, the minimum of the loss.

        It starts where the larger exponential alone would move z, if that is between them.
        """
        if step <= 0.0:
            return z, 1.0
        a, b = 2.0 - power, power - 1.0
        least = math.log(y)
        if z > least:
            upper = z
            lower = f = max(least, _falling(z, step, a))
        else:
            lower = z
            upper = f = min(least, -_falling(-z, step * y, b))
        while True:
            rise = step * math.exp(a * f)
            fall = 0.0 if y == 0.0 else step * y * math.exp(-b * f)
            at, first = f - z + (rise - fall), 1.0 + (a * rise + b * fall)
            if at > 0.0:
                upper = f
            else:
                lower = f
            back = householder(at, first, a * a * rise - b * b * fall, a * a * a * rise + b * b * b * fall)
            if not lower <= f - back <= upper:
                back = f - 0.5 * (lower + upper)
            f -= back
            if abs(back) <= CLOSE or lower == upper:
                # The curvature at the new f, by Taylor's series.
                return f, 1.0 / (
                    1.0
                    + a * rise * (1.0 - a * back * (1.0 - 0.5 * a * back))
                    + b * fall * (1.0 + b * back * (1.0 + 0.5 * b * back))
                )
