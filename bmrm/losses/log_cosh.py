"""Log-cosh loss: least squares near the target, absolute deviation far from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses._core.prepared import Array, along_by_blocks
from bmrm.losses._core.smooth_rows import CLOSE, householder
from bmrm.losses.base import Pair, RegressionLoss, Scalar, strict_row
from bmrm.problem import Vector

ROUNDING = 1e-15
"""Relative error of the residual at which a root is accepted, the limit of rounding."""
RUN = 512
"""Rows whose factors 1 + |t|, each at most 2, are multiplied before one logarithm is computed."""
LARGE = 0.5
"""Mean residual above which |r| - log(1 + |t|) loses at most two bits by cancellation."""
NEAR = 0.5
"""Largest |t| for which the loss is computed as -1/2 log(1 - t^2)."""


@fast_jit
def _loss(size: float, t: float) -> float:
    """Of a residual's size |r| and its |tanh|."""
    return -0.5 * math.log1p(-t * t) if t <= NEAR else size - math.log1p(t)


@fast_jit
def _finish(f, y, weights, slope):  # type: ignore[no-untyped-def]
    """With t = tanh(r) in `slope`, r = f - y: replace it by the slope, return the sum of losses."""
    total = 0.0
    if weights.size:
        for i in range(f.size):
            total += weights[i] * _loss(abs(f[i] - y[i]), abs(slope[i]))
            slope[i] *= weights[i]
        return total
    for start in range(0, f.size, RUN):
        stop = min(start + RUN, f.size)
        product, misses = 1.0, 0.0
        for i in range(start, stop):
            product *= 1.0 + abs(slope[i])
            misses += abs(f[i] - y[i])
        if misses >= LARGE * (stop - start):
            total += misses - math.log(product)
        else:
            for i in range(start, stop):
                total += _loss(abs(f[i] - y[i]), abs(slope[i]))
    return total


def log_cosh_kernel(f: Array, y: Array, weights: Vector, slope: Array) -> float:
    """Fill `slope`, return the sum."""
    np.subtract(f, y, out=slope)
    np.tanh(slope, out=slope)
    return float(_finish(f, y, weights, slope))


@register("log_cosh", task="regression")
@dataclass(frozen=True)
class LogCosh(RegressionLoss):
    """log(cosh(f - y)): 1/2 r^2 for small residuals r, |r| - log 2 for large ones.

    Computed as |r| - log(1 + tanh |r|), or -1/2 log(1 - tanh^2 r) where that would cancel: finite for every finite f,
    with the relative accuracy of r. Curvature at most 1. The transition from parabola to lines is at residual 1, so
    scale y to its noise.
    """

    formula = "log(cosh(f - y))"
    source = "Green 1990; Saleh & Saleh 2022"
    smooth = True
    hessian_bound = 1.0
    metrics = ("mae", "r2")
    kernel = staticmethod(log_cosh_kernel)
    along_kernel = staticmethod(along_by_blocks(log_cosh_kernel))

    @strict_row
    def value_slope(f: Scalar, y: Scalar) -> Pair:
        t = math.tanh(f - y)
        return _loss(abs(f - y), abs(t)), t

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f, 1 / cosh^2."""
        e = np.exp(-2.0 * np.abs(f - y))
        curvature: Array = 4.0 * e / (1.0 + e) ** 2
        return curvature

    @strict_row
    def prox(z: Scalar, step: Scalar, y: Scalar) -> Pair:
        """The residual's size r is the root of r + step tanh r - |z - y|, which is concave.

        Newton's steps from below, for instance from the bounds tanh r <= 1 and tanh r <= r, never overshoot.
        """
        miss = abs(z - y)
        lower, upper = max(miss - step, miss / (1.0 + step)), miss
        r = lower
        while True:
            e = -math.expm1(-2.0 * r)
            t, s = e / (2.0 - e), 4.0 * (1.0 - e) / ((2.0 - e) * (2.0 - e))
            second, third = -2.0 * t * s, -2.0 * s * (1.0 - 3.0 * t * t)
            at = r - miss + step * t
            if at > 0.0:
                upper = r
            else:
                lower = r
            back = householder(at, 1.0 + step * s, step * second, step * third)
            if not lower <= r - back <= upper:
                back = r - 0.5 * (lower + upper)
            r -= back
            if abs(back) <= max(CLOSE, ROUNDING * miss) or lower == upper:
                rate = 1.0 / (1.0 + step * (s - back * (second - 0.5 * back * third)))
                towards = step * (t - back * (s - 0.5 * back * (second - back * third / 3.0))) if step <= 1.0 else -r
                return (z if step <= 1.0 else y) - (towards if z > y else -towards), rate
