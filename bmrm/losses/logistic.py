"""Logistic loss: the negative log likelihood of logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.kernels.vectors import dot
from bmrm.losses import register
from bmrm.losses.base import MarginLoss
from bmrm.losses.limited_logistic import LimitedLogistic
from bmrm.losses.prepared import Array
from bmrm.problem import Vector

BLOCK = 8192
"""Rows whose intermediate arrays stay in the cache."""
RUN = 512
"""Rows whose factors 1 + e, each at most 2, are multiplied before one logarithm is taken."""
FEW = 0.01
"""Where the e of a run add up to less, the product would forget them: each gets its own log1p."""


@fast_jit
def _finish(f, y, slope):  # type: ignore[no-untyped-def]
    """With e = exp(-|f|) in `slope`: replace it by the slope, return the sum."""
    total = 0.0
    for start in range(0, f.size, RUN):
        run = slope[start : start + RUN]
        product, size = 1.0, 0.0
        for i in range(run.size):
            product *= 1.0 + run[i]
            size += run[i]
        if size >= FEW:
            total += np.log(product)
        else:
            for i in range(run.size):
                total += np.log1p(run[i])
    for i in range(f.size):
        e, margin = slope[i], y[i] * f[i]
        wrong = 0.0 if margin >= 0.0 else 1.0
        total -= wrong * margin
        slope[i] = -y[i] * (wrong + (1.0 - wrong) * e) / (1.0 + e)
    return total


@fast_jit
def _finish_weighted(f, y, weights, logs, slope):  # type: ignore[no-untyped-def]
    """As `_finish`, with weights; `logs` holds log(1 + exp(-|f|))."""
    total = 0.0
    for i in range(f.size):
        e, margin = slope[i], y[i] * f[i]
        wrong = 0.0 if margin >= 0.0 else 1.0
        total += weights[i] * (logs[i] - wrong * margin)
        slope[i] = -y[i] * weights[i] * (wrong + (1.0 - wrong) * e) / (1.0 + e)
    return total


def logistic_kernel(f: Array, y: Array, weights: Vector, slope: Array) -> float:
    """Fill `slope`, return the sum; NumPy's exponential is vectorised where a compiled loop's is not."""
    np.copysign(f, -1.0, out=slope)
    np.exp(slope, out=slope)
    if weights.size:
        return _finish_weighted(f, y, weights, np.log1p(slope), slope)  # type: ignore[no-any-return]
    return _finish(f, y, slope)  # type: ignore[no-any-return]


def logistic_along(
    f: Array, step: Array, y: Array, weights: Vector, ts: Vector, values: Vector, derivatives: Vector
) -> None:
    """Fill `values` and `derivatives` of the sum at `f + t step`, for each t of `ts`."""
    values[:] = derivatives[:] = 0.0
    point, slope = np.empty((2, min(BLOCK, f.size)))
    for start in range(0, f.size, BLOCK):
        rows = slice(start, start + BLOCK)
        here, along, labels, masses = f[rows], step[rows], y[rows], weights[rows]
        at, slopes = point[: here.size], slope[: here.size]
        for k, t in enumerate(ts):
            np.multiply(along, t, out=at)
            at += here
            values[k] += logistic_kernel(at, labels, masses, slopes)
            derivatives[k] += dot(slopes, along)


@register("logistic", task="binary")
@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(-y f)): the negative log likelihood of logistic regression.

    Domain: two classes, y in {-1, 1}; the probability of the positive one is 1 / (1 + exp(-f)). Finite for every
    finite f. Curvature at most 1/4.
    """

    formula = "log(1 + exp(-y f))"
    source = "Cox 1958; Collins, Schapire & Singer 2000"
    smooth = True
    metrics = ("accuracy", "auc", "log_loss")
    kernel = staticmethod(logistic_kernel)
    along_kernel = staticmethod(logistic_along)

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        return np.logaddexp(0.0, -y * f)

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope in f."""
        e = np.exp(-np.abs(f))
        return -y * np.where(y * f >= 0.0, e, 1.0) / (1.0 + e)

    def curvature(self, f: Array, y: Array) -> Array:
        """Its second derivative in f."""
        e = np.exp(-np.abs(f))
        return e / (1.0 + e) ** 2

    def variant(self, margin: float, modelmin: float, modelmax: float, wmargin: float) -> LimitedLogistic:
        """The same within limits."""
        return LimitedLogistic(margin, modelmin, modelmax, wmargin)
