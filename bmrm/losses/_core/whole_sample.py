"""What losses of a whole sample of two classes, and prepared losses of whole groups or samples, have in common."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.losses._core import domain
from bmrm.losses._core.prepared import Array, Curve, along_by_slopes
from bmrm.losses.base import Labels, LossBase
from bmrm.problem import PreparedLoss, Summary, Targets


class KinkedSample(PreparedLoss):
    """One score per row, never below 0, with kinks: write `value_and_slope` and set `mass`."""

    scores_per_row = 1
    infimum = 0.0
    smooth = False
    mass: float

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum at scores `f`, and its slope, a new array like `f`."""
        raise TypeError(f"{type(self).__name__} does not define value_and_slope(f)")

    def along(self, f: Array, step: Array) -> Curve:
        """The function t -> (the sum at f + t step, its derivative in t), for a vector of t."""
        return along_by_slopes(self.value_and_slope, f, step)


class WholeSampleLoss(LossBase):
    """Two classes; all rows of the sample at once."""

    task: ClassVar[str] = "binary"
    decomposes: ClassVar[Literal["rows", "groups", "no"]] = "no"

    def summarise(self, targets: Targets) -> Summary:
        """The labels of these rows and how many have each."""
        return domain.summary_of_labels(targets, self.title)

    def predict(self, f: Array, labels: Labels) -> NDArray[Any]:
        """The positive label where f > 0, else the negative one, (rows,)."""
        return np.array(labels)[(f > 0.0).astype(np.intp)]
