"""Exponential loss: the objective of AdaBoost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.exponentials import HUGE
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.smooth_rows import wright
from bmrm.losses.base import MarginLoss, Pair, Scalar, row, strict_row
from bmrm.losses.logistic import odds


@register("exponential", task="binary")
@dataclass(frozen=True)
class Exponential(MarginLoss):
    """exp(-y f): the objective of AdaBoost; its minimiser is half the log odds.

    Domain: two classes, y in {-1, 1}; the probability of the positive one is 1 / (1 + exp(-2 f)). +inf where the
    formula overflows, y f below -709.
    """

    formula = "exp(-y f)"
    source = "Freund & Schapire 1997; Collins, Schapire & Singer 2000"
    smooth = True

    @row
    def exponent(f: Scalar, y: Scalar) -> Scalar:
        return -y * f

    @row
    def value_slope(f: Scalar, y: Scalar, e: Scalar) -> Pair:
        return e, -y * (e if e < np.inf else HUGE)

    @row
    def curvature(f: Scalar, y: Scalar, e: Scalar) -> Scalar:
        return e if e < np.inf else HUGE

    @strict_row
    def prox(z: Scalar, step: Scalar, y: Scalar) -> Pair:
        """The margin grows by u = step exp(-y f)."""
        if step <= 0.0:
            return z, 1.0
        log_step = math.log(step)
        v, u = wright(log_step - y * z)
        return (z + y * u if u <= 1.0 else y * (log_step - v)), 1.0 / (1.0 + u)

    def probabilities(self, f: Array) -> Array:
        """Of the two labels, (rows, 2): 1 / (1 + exp(2 f)) and 1 / (1 + exp(-2 f))."""
        return odds(2.0 * f)
