"""Hinge loss, the soft margin of linear support vector machines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses._core.piecewise_rows import linear_margin_points
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import MarginLoss


@fast_jit
def hinge_kernel(f, y, weights, slope):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum."""
    total = 0.0
    if weights.size:
        for i in range(f.size):
            short = 1.0 - y[i] * f[i]
            active = 0.0 if short <= 0.0 else weights[i]
            total += active * (0.0 if short <= 0.0 else short)
            slope[i] = -y[i] * active
    else:
        for i in range(f.size):
            short = 1.0 - y[i] * f[i]
            active = 0.0 if short <= 0.0 else 1.0
            total += active * (0.0 if short <= 0.0 else short)
            slope[i] = -y[i] * active
    return total


@fast_jit
def hinge_along(f, step, y, weights, ts, values, derivatives):  # type: ignore[no-untyped-def]
    """Fill `values` and `derivatives` of the sum at `f + t step`, for each t of `ts`."""
    weighted = weights.size > 0
    for k in range(ts.size):
        t, total, derivative = ts[k], 0.0, 0.0
        if weighted:
            for i in range(f.size):
                short = 1.0 - y[i] * (f[i] + t * step[i])
                active = 0.0 if short <= 0.0 else weights[i]
                total += active * (0.0 if short <= 0.0 else short)
                derivative -= active * (y[i] * step[i])
        else:
            for i in range(f.size):
                short = 1.0 - y[i] * (f[i] + t * step[i])
                active = 0.0 if short <= 0.0 else 1.0
                total += active * (0.0 if short <= 0.0 else short)
                derivative -= active * (y[i] * step[i])
        values[k], derivatives[k] = total, derivative


@fast_jit
def hinge_value(f, y):  # type: ignore[no-untyped-def]
    """The loss of a row."""
    short = 1.0 - y * f
    return 0.0 if short <= 0.0 else short


@fast_jit
def hinge_prox(z, step, y):  # type: ignore[no-untyped-def]
    """The proximal point of a row, and its derivative in z; selections, so that a loop over rows is vectorised."""
    short = 1.0 - y * z
    inside = (short > 0.0) & (short < step)
    moved = z + y * (0.0 if short <= 0.0 else step)
    beyond = (short > 0.0) & (y * moved > 1.0)  # by rounding of a long step
    return y if inside | beyond else moved, 0.0 if inside else 1.0


@register("hinge", task="binary")
@dataclass(frozen=True)
class Hinge(MarginLoss):
    """max(0, 1 - y f): the soft margin of linear support vector machines.

    Domain: two classes, y in {-1, 1}. Scale: slope -1 below margin 1. Kink at y f = 1, where the slope is 0.
    """

    formula = "max(0, 1 - y f)"
    source = "Bennett & Mangasarian 1992; Cortes & Vapnik 1995"
    kernel = staticmethod(hinge_kernel)
    along_kernel = staticmethod(hinge_along)
    value_row = staticmethod(hinge_value)
    prox_row = staticmethod(hinge_prox)

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return np.maximum(0.0, 1.0 - y * f)

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        return np.where(y * f < 1.0, -y, 0.0)

    def prox(self, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
        """z moved towards the margin by `step`, to y itself where that is less far; its derivative is 0 there."""
        return linear_margin_points(z, step, y, 1.0, 1.0, 1.0)
