"""Log-cosh loss: least squares near the target, absolute deviation far from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses.base import RegressionLoss
from bmrm.losses.exponentials import along_by_blocks
from bmrm.losses.prepared import Array
from bmrm.problem import Vector

RUN = 512
"""Rows whose factors 1 + |t|, each at most 2, are multiplied before one logarithm is taken."""
FEW = 0.01
"""Where the |t| of a run add up to less, the product would forget them: each gets its own log1p."""


@fast_jit
def _finish(f, y, weights, slope):  # type: ignore[no-untyped-def]
    """With t = tanh(r) in `slope`, r = f - y: replace it by the slope, return the sum of |r| - log(1 + |t|)."""
    total = 0.0
    if weights.size:
        for i in range(f.size):
            loss = abs(f[i] - y[i]) - math.log1p(abs(slope[i]))
            total += weights[i] * (0.0 if loss < 0.0 else loss)
            slope[i] *= weights[i]
        return total
    for start in range(0, f.size, RUN):
        stop = min(start + RUN, f.size)
        product, size, misses = 1.0, 0.0, 0.0
        for i in range(start, stop):
            product *= 1.0 + abs(slope[i])
            size += abs(slope[i])
            misses += abs(f[i] - y[i])
        if size >= FEW:
            misses -= math.log(product)
        else:
            for i in range(start, stop):
                misses -= math.log1p(abs(slope[i]))
        total += 0.0 if misses < 0.0 else misses
    return total


def log_cosh_kernel(f: Array, y: Array, weights: Vector, slope: Array) -> float:
    """Fill `slope`, return the sum."""
    np.subtract(f, y, out=slope)
    np.tanh(slope, out=slope)
    return _finish(f, y, weights, slope)  # type: ignore[no-any-return]


@register("log_cosh", task="regression")
@dataclass(frozen=True)
class LogCosh(RegressionLoss):
    """log(cosh(f - y)): 1/2 r^2 for small residuals r, |r| - log 2 for large ones.

    Computed as |r| - log(1 + tanh |r|), finite for every finite f. Curvature at most 1; the residual at which the
    parabola turns into lines is 1, so scale y to its noise.
    """

    formula = "log(cosh(f - y))"
    source = "Green 1990; Saleh & Saleh 2022"
    smooth = True
    metrics = ("mae", "r2")
    kernel = staticmethod(log_cosh_kernel)
    along_kernel = staticmethod(along_by_blocks(log_cosh_kernel))

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        size = np.abs(f - y)
        loss: Array = np.maximum(0.0, size - np.log1p(np.tanh(size)))
        return loss

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return np.tanh(f - y)

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f, 1 / cosh^2."""
        e = np.exp(-2.0 * np.abs(f - y))
        curvature: Array = 4.0 * e / (1.0 + e) ** 2
        return curvature
