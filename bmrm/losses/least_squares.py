"""Least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import RegressionLoss


@fast_jit
def least_squares_kernel(f, y, weights, slope):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum."""
    total = 0.0
    if weights.size:
        for i in range(f.size):
            miss = f[i] - y[i]
            weighed = weights[i] * miss  # weight 0 hides even a square that overflows
            total += weighed * miss
            slope[i] = weighed
    else:
        for i in range(f.size):
            miss = f[i] - y[i]
            total += miss * miss
            slope[i] = miss
    return 0.5 * total


@fast_jit
def least_squares_along(f, step, y, weights, ts, values, derivatives):  # type: ignore[no-untyped-def]
    """Fill `values` and `derivatives` of the sum at `f + t step`, for each t of `ts`."""
    weighted = weights.size > 0
    for k in range(ts.size):
        t, total, derivative = ts[k], 0.0, 0.0
        for i in range(f.size):
            miss = f[i] + t * step[i] - y[i]
            weighed = weights[i] * miss if weighted else miss
            total += weighed * miss
            derivative += weighed * step[i]
        values[k], derivatives[k] = 0.5 * total, derivative


@fast_jit
def least_squares_value(f, y):  # type: ignore[no-untyped-def]
    """The loss of a row."""
    return 0.5 * (f - y) * (f - y)


@fast_jit
def least_squares_prox(z, step, y):  # type: ignore[no-untyped-def]
    """The proximal point of a row, and its derivative in z."""
    rate = 1.0 / (1.0 + step)
    return y + rate * (z - y) if step > 1.0 else z - step * rate * (z - y), rate


@register("least_squares", task="regression")
@dataclass(frozen=True)
class LeastSquares(RegressionLoss):
    """1/2 (f - y)^2: the mean is its minimiser.

    Scale: the factor 1/2 gives curvature 1, as in scikit-learn's Lasso; Ridge leaves out 1/2 and the mean.
    """

    formula = "1/2 (f - y)^2"
    source = "Legendre 1805; Gauss 1809"
    smooth = True
    most_curvature = 1.0
    metrics = ("r2", "mse", "mae")
    kernel = staticmethod(least_squares_kernel)
    along_kernel = staticmethod(least_squares_along)
    value_row = staticmethod(least_squares_value)
    prox_row = staticmethod(least_squares_prox)

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return 0.5 * (f - y) ** 2

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return f - y

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        return np.ones_like(f)

    def prox(self, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
        """Between z and y, nearer to y the longer the step; and its derivative in z."""
        rate = 1.0 / (1.0 + np.asarray(step))
        f: Array = np.where(np.asarray(step) > 1.0, y + rate * (z - y), z - step * rate * (z - y))
        return f, np.broadcast_to(rate, f.shape).copy()
