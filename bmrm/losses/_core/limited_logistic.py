"""Logistic loss within limits: the stability options of Komarek's thesis (2004, sections 5.2.1 and 5.3.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmrm.losses._core.prepared import Array
from bmrm.losses.base import MarginLoss


@dataclass(frozen=True)
class LimitedLogistic(MarginLoss):
    """-(o log mu + (1 - o) log(1 - mu)), with mu = clip(1 / (1 + exp(-f)), modelmin, modelmax).

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
