"""Epsilon-insensitive loss: support vector regression."""

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
def epsilon_insensitive_kernel(f, y, weights, slope, epsilon):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.size):
        miss = f[i] - y[i]
        over = abs(miss) - epsilon
        rate = 0.0 if over <= 0.0 else (1.0 if miss > 0.0 else -1.0)
        loss = 0.0 if over <= 0.0 else over
        if weighted:
            rate *= weights[i]
            loss *= weights[i]
        total += loss
        slope[i] = rate
    return total


@fast_jit
def epsilon_insensitive_along(f, step, y, weights, ts, values, derivatives, epsilon):  # type: ignore[no-untyped-def]
    """Fill `values` and `derivatives` of the sum at `f + t step`, for each t of `ts`."""
    weighted = weights.size > 0
    for k in range(ts.size):
        t, total, derivative = ts[k], 0.0, 0.0
        for i in range(f.size):
            miss = f[i] + t * step[i] - y[i]
            over = abs(miss) - epsilon
            rate = 0.0 if over <= 0.0 else (step[i] if miss > 0.0 else -step[i])
            loss = 0.0 if over <= 0.0 else over
            if weighted:
                rate *= weights[i]
                loss *= weights[i]
            total += loss
            derivative += rate
        values[k], derivatives[k] = total, derivative


@fast_jit
def epsilon_insensitive_value(f, y, epsilon):  # type: ignore[no-untyped-def]
    """The loss of a row."""
    return linear_residual_value(f, y, epsilon, 1.0, 1.0)


@fast_jit
def epsilon_insensitive_prox(z, step, y, epsilon):  # type: ignore[no-untyped-def]
    """The proximal point of a row, and its derivative in z."""
    return linear_residual_prox(z, step, y, epsilon, 1.0, 1.0)


@register("epsilon_insensitive", task="regression")
@dataclass(frozen=True)
class EpsilonInsensitive(RegressionLoss):
    """max(0, |f - y| - epsilon): support vector regression; misses up to epsilon are free.

    With epsilon 0 it is the least absolute deviation. Kinks at |f - y| = epsilon, where the slope is 0.
    """

    epsilon: float = parameter(0.1, least=0.0, doc="half width of the free tube, in the units of y", example=0.5)

    formula = "max(0, |f - y| - epsilon)"
    source = "Vapnik, Golowich & Smola 1997"
    kernel = staticmethod(epsilon_insensitive_kernel)
    along_kernel = staticmethod(epsilon_insensitive_along)
    value_row = staticmethod(epsilon_insensitive_value)
    prox_row = staticmethod(epsilon_insensitive_prox)

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return np.maximum(0.0, np.abs(f - y) - self.epsilon)

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return np.where(np.abs(f - y) > self.epsilon, np.sign(f - y), 0.0)

    def prox(self, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
        """z moved towards the tube by `step`, to its border where that is less far; its derivative is 0 there."""
        return linear_residual_points(z, step, y, self.epsilon, 1.0, 1.0)
