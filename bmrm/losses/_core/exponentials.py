"""What losses with an exponential share: values that may overflow, counts and rates.

A row whose loss is beyond float64 costs +inf and has the slope `HUGE`, of the right sign: finite, so that sums of
slopes are no nan. No subgradient exists there; solvers turn back by the value.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit
from bmrm.kernels.rows.exponential import exponentiate
from bmrm.losses._core.prepared import Array, PreparedRows
from bmrm.losses.base import Labels, RegressionLoss
from bmrm.problem import InputError, Summary, Targets

HUGE = 1e200


@fast_jit
def weighed(loss: float, rate: float, weight: float) -> tuple[float, float]:
    """A row's loss and slope times its weight; weight 0 hides even an infinite loss."""
    return (weight * loss if weight > 0.0 else 0.0), rate * weight


def exponential_of(x: Array, out: Array | None = None) -> Array:
    """exp(x), +inf without a warning where it overflows; `out`, if given, is contiguous."""
    result = np.empty(np.shape(x)) if out is None else out
    result[...] = x
    exponentiate(result.reshape(-1))
    return result


class LogLinkLoss(RegressionLoss):
    """Regression for the logarithm of a mean: the score is log(mean), predictions are exp(score)."""

    smooth: ClassVar[bool] = True
    targets_from: ClassVar[str] = ">= 0"
    """What targets must be."""
    shown_target = 2.0

    def prepare(self, targets: Targets, summary: Summary) -> PreparedRows:
        """Bind to some rows; InputError where a target is no finite number of the domain."""
        prepared = super().prepare(targets, summary)
        y, weights = prepared.y, prepared.weights
        wrong = (y < 0.0) | ((y == 0.0) & (self.targets_from == "> 0"))
        if weights is not None:
            wrong &= weights != 0.0
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"{self.title}: the target of row {row} is {y[row]:g}, expected a number {self.targets_from}"
            )
        return prepared

    def predict(self, f: Array, labels: Labels) -> NDArray[Any]:
        """The mean, exp(f); (rows,)."""
        return exponential_of(f)
