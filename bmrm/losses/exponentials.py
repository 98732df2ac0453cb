"""What losses with an exponential share: values that may overflow, sweeps by blocks, counts and rates.

NumPy's exponential is vectorised where a compiled loop's is not, so a sweep is NumPy's ufuncs on whole arrays and one
compiled loop to finish. A row whose loss is beyond float64 costs +inf and has the slope `HUGE`, of the right sign:
finite, so that sums of slopes are no nan. No subgradient exists there; solvers turn back by the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.vectors import dot
from bmrm.losses.base import Labels, RegressionLoss
from bmrm.losses.prepared import Array, PreparedRows
from bmrm.problem import InputError, Summary, Targets, Vector

HUGE = 1e200
BLOCK = 8192
"""Rows whose intermediate arrays stay in the cache."""


def exponential_of(x: Array, out: Array | None = None) -> Array:
    """exp(x), +inf without a warning where it overflows."""
    with np.errstate(over="ignore", under="ignore"):
        result: Array = np.exp(x, out=out)
    return result


def along_by_blocks(kernel: Callable[..., float]) -> Callable[..., None]:
    """The `along_kernel` of a `kernel` for one score per row: block by block, so that a block is read once."""

    def along(
        f: Array,
        step: Array,
        y: Array,
        weights: Vector,
        ts: Vector,
        values: Vector,
        derivatives: Vector,
        *arguments: float,
    ) -> None:
        values[:] = derivatives[:] = 0.0
        point, slope = np.empty((2, min(BLOCK, f.size)))
        for start in range(0, f.size, BLOCK):
            rows = slice(start, start + BLOCK)
            here, along, targets, masses = f[rows], step[rows], y[rows], weights[rows]
            at, slopes = point[: here.size], slope[: here.size]
            for k, t in enumerate(ts):
                np.multiply(along, t, out=at)
                at += here
                values[k] += kernel(at, targets, masses, slopes, *arguments)
                derivatives[k] += dot(slopes, along)

    return along


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
