"""Logistic loss: the negative log likelihood of logistic regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmrm.kernels.jit import fast_jit, jit
from bmrm.kernels.rows.exponential import exponentials
from bmrm.losses import register
from bmrm.losses._core.prepared import Array, along_by_blocks
from bmrm.losses._core.smooth_rows import CLOSE, STEPS
from bmrm.losses.base import MarginLoss, Pair, Scalar, row, strict_row
from bmrm.problem import Vector

RUN = 512
"""Rows whose factors 1 + e, each at most 2, are multiplied before one logarithm is computed."""
FEW = 0.01
"""Sum of e in a block below which each row gets its own log1p: the product would lose them to rounding."""


@jit
def _fill(f, e, spare):  # type: ignore[no-untyped-def]
    """e = exp(-|f|); `spare` is overwritten."""
    for i in range(f.size):
        e[i] = -abs(f[i])
    exponentials(e, spare[: e.size])


@fast_jit
def _sweep(f, y, slope):  # type: ignore[no-untyped-def]
    """Fill the slopes, return the sum; for rows of weight 1 one logarithm of a product serves many rows."""
    total, spare = 0.0, np.empty(RUN)
    for start in range(0, f.size, RUN):
        run = slope[start : start + RUN]
        _fill(f[start : start + RUN], run, spare)
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


def logistic_kernel(f: Array, y: Array, weights: Vector, slope: Array) -> float:
    """Fill `slope`, return the sum."""
    if weights.size:
        return Logistic.generated_kernel(f, y, weights, slope)  # type: ignore[misc]
    return float(_sweep(f, y, slope))


@jit
def _halved(z: float, step: float, y: float) -> tuple[float, float]:
    """As `prox`, by bisection, for steps whose powers overflow."""
    near, far = y * z, y * z + step
    lower, upper, g = near, far, 0.5 * (near + far)
    while lower < g < upper:
        e = math.exp(-abs(g))
        if (g - near) * (1.0 + e) > step * (e if g >= 0.0 else 1.0):
            upper = g
        else:
            lower = g
        g = 0.5 * (lower + upper)
    e = math.exp(-abs(g))
    return y * g, 1.0 / (1.0 + step * e / (1.0 + e) ** 2)


def odds(f: Array) -> Array:
    """1 / (1 + exp(f)) and 1 / (1 + exp(-f)), (rows, 2)."""
    e = np.exp(-np.abs(f))
    likely, other = 1.0 / (1.0 + e), e / (1.0 + e)
    return np.where((f < 0.0)[:, None], np.stack((likely, other), 1), np.stack((other, likely), 1))


@register("logistic", task="binary")
@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(-y f)): the negative log likelihood of logistic regression.

    Domain: two classes, y in {-1, 1}; the probability of the positive one is 1 / (1 + exp(-f)). Finite for every
    finite f. Curvature at most 1/4. Targets may be shares of the positive class, or successes and trials.
    """

    formula = "log(1 + exp(-y f))"
    source = "Cox 1958; Collins, Schapire & Singer 2000"
    multiclass = "softmax"
    takes_shares = True
    smooth = True
    hessian_bound = 0.25
    metrics = ("accuracy", "auc", "log_loss")
    kernel = staticmethod(logistic_kernel)
    along_kernel = staticmethod(along_by_blocks(logistic_kernel))

    @row
    def exponent(f: Scalar, y: Scalar) -> Scalar:
        return -abs(f)

    @strict_row
    def value_slope(f: Scalar, y: Scalar, e: Scalar) -> Pair:
        margin = y * f
        wrong = 0.0 if margin >= 0.0 else 1.0
        return math.log1p(e) - wrong * margin, -y * (wrong + (1.0 - wrong) * e) / (1.0 + e)

    @strict_row
    def curvature(f: Scalar, y: Scalar, e: Scalar) -> Scalar:
        return e / ((1.0 + e) * (1.0 + e))

    @strict_row
    def prox(z: Scalar, step: Scalar, y: Scalar) -> Pair:
        """The proximal map; mostly two exponentials.

        In margins g = y f it is the root of g - near - step p(g), near = y z, p = 1 / (1 + exp(g)), which is convex
        below 0 and concave above, so the tangent at 0 does not overshoot. Steps are as `smooth_rows.householder`, with
        the denominators of p taken out.
        """
        near, far = y * z, y * z + step
        g = (near + 0.5 * step) / (1.0 + 0.25 * step)
        for _ in range(STEPS):
            g = near if g < near else (far if g > far else g)
            e = math.exp(-abs(g))
            total, part, curvature = 1.0 + e, e if g >= 0.0 else 1.0, step * e
            square = total * total
            at, first = (g - near) * total - step * part, square + curvature
            second, third = curvature * (2.0 * part - total), curvature * (square - 6.0 * e)
            over = at * (6.0 * first * first - 3.0 * at * second)
            back = total * over / (6.0 * first * (first * first - at * second) + at * at * third)
            if abs(back) <= CLOSE:
                # The derivative at the new g, by Taylor's series.
                curvature += back * (-second / total + 0.5 * back * third / square)
                return (y * (g - back) if step > 0.0 else z), square / (square + curvature)
            g -= back
        return _halved(z, step, y)

    def probabilities(self, f: Array) -> Array:
        """Of the two labels, (rows, 2): 1 / (1 + exp(f)) and 1 / (1 + exp(-f))."""
        return odds(f)

    def variant(self, margin: float, modelmin: float, modelmax: float, wmargin: float) -> LimitedLogistic:
        """The loss with the modifications of `ModifiedLoss`."""
        return LimitedLogistic(margin, modelmin, modelmax, wmargin)


@dataclass(frozen=True)
class LimitedLogistic(MarginLoss):
    """-(o log mu + (1 - o) log(1 - mu)), with mu = clip(1 / (1 + exp(-f)), modelmin, modelmax).

    The stability options of Komarek's thesis (2004, sections 5.2.1 and 5.3.1).
    The target `o` is `margin` for y = -1 and `1 - margin` for y = 1. The slope is mu - o, the second derivative
    mu (1 - mu) within [wmargin, 1 - wmargin]: where a limit is met they are not those of the value, which is then not
    convex. So this is no registered loss; `irls` and `nonlinear_cg` fit it when they are asked to.
    """

    smooth: ClassVar[bool] = True
    margin: float = 0.0
    modelmin: float = 0.0
    modelmax: float = 1.0
    wmargin: float = 0.0

    def value(self, f: Array, y: Array) -> Array:
        """The deviance of a row, halved."""
        o = self.target01(y)
        positive = np.clip(np.logaddexp(0.0, -f), _minus_log(self.modelmax), _minus_log(self.modelmin))
        negative = np.clip(np.logaddexp(0.0, f), _minus_log(1.0 - self.modelmin), _minus_log(1.0 - self.modelmax))
        return np.asarray(_times(o, positive) + _times(1.0 - o, negative))

    def slope(self, f: Array, y: Array) -> Array:
        """The predicted mean less the target."""
        return self.mean(f) - self.target01(y)

    def curvature(self, f: Array, y: Array) -> Array:
        """The weight of the row in the weighted least squares."""
        mean = self.mean(f)
        return np.clip(mean * (1.0 - mean), self.wmargin, 1.0 - self.wmargin)

    def mean(self, f: Array) -> Array:
        """The predicted mean mu within its limits."""
        e = np.exp(-np.abs(f))
        return np.clip(np.where(f >= 0.0, 1.0, e) / (1.0 + e), self.modelmin, self.modelmax)

    def target01(self, y: Array) -> Array:
        """The shrunken target of each row."""
        return np.where(y > 0.0, 1.0 - self.margin, self.margin)


def _minus_log(x: float) -> float:
    return -math.log(x) if x > 0.0 else math.inf


def _times(share: Array, value: Array) -> Array:
    """Their product, 0 where the share is 0 even if the value is infinite."""
    return np.where(share > 0.0, share * np.where(share > 0.0, value, 0.0), 0.0)
