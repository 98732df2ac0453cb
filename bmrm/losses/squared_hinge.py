"""Squared hinge loss: the L2-loss support vector machine."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses._core.piecewise_rows import quadratic_margin_points, quadratic_margin_prox
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import MarginLoss


@fast_jit
def squared_hinge_kernel(f, y, weights, slope):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum."""
    total = 0.0
    if weights.size:
        for i in range(f.size):
            short = 1.0 - y[i] * f[i]
            short = 0.0 if short <= 0.0 else short
            total += 0.0 if weights[i] == 0.0 else weights[i] * (short * short)
            slope[i] = -y[i] * (weights[i] * short)
    else:
        for i in range(f.size):
            short = 1.0 - y[i] * f[i]
            short = 0.0 if short <= 0.0 else short
            total += short * short
            slope[i] = -y[i] * short
    return 0.5 * total


@fast_jit
def squared_hinge_along(f, step, y, weights, ts, values, derivatives):  # type: ignore[no-untyped-def]
    """Fill `values` and `derivatives` of the sum at `f + t step`, for each t of `ts`."""
    weighted = weights.size > 0
    for k in range(ts.size):
        t, total, derivative = ts[k], 0.0, 0.0
        if weighted:
            for i in range(f.size):
                short = 1.0 - y[i] * (f[i] + t * step[i])
                short = 0.0 if short <= 0.0 else short
                weighed = weights[i] * short  # weight 0 hides even a square that overflows
                total += weighed * short
                derivative -= weighed * (y[i] * step[i])
        else:
            for i in range(f.size):
                short = 1.0 - y[i] * (f[i] + t * step[i])
                short = 0.0 if short <= 0.0 else short
                total += short * short
                derivative -= short * (y[i] * step[i])
        values[k], derivatives[k] = 0.5 * total, derivative


@fast_jit
def squared_hinge_value(f, y):  # type: ignore[no-untyped-def]
    """The loss of a row."""
    short = 1.0 - y * f
    short = 0.0 if short <= 0.0 else short
    return 0.5 * short * short


@fast_jit
def squared_hinge_prox(z, step, y):  # type: ignore[no-untyped-def]
    """The proximal point of a row, and its derivative in z."""
    return quadratic_margin_prox(z, step, y, 1.0, np.inf, 1.0)


@register("squared_hinge", task="binary")
@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """1/2 max(0, 1 - y f)^2: smooth, with the margin of the hinge.

    Domain: two classes, y in {-1, 1}. Scale: the factor 1/2 gives curvature 1 below margin 1; LIBLINEAR leaves it
    out, so its C is half of ours. The second derivative is the generalised one, 0 at the joint y f = 1.
    """

    formula = "1/2 max(0, 1 - y f)^2"
    source = "Keerthi & DeCoste 2005"
    smooth = True
    most_curvature = 1.0
    kernel = staticmethod(squared_hinge_kernel)
    along_kernel = staticmethod(squared_hinge_along)
    value_row = staticmethod(squared_hinge_value)
    prox_row = staticmethod(squared_hinge_prox)

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return 0.5 * np.maximum(0.0, 1.0 - y * f) ** 2

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return -y * np.maximum(0.0, 1.0 - y * f)

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        return np.where(y * f < 1.0, 1.0, 0.0)

    def prox(self, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
        """The proximal point of each row, and its derivative in z."""
        return quadratic_margin_points(z, step, y, 1.0, math.inf, 1.0)
