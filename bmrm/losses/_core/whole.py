"""What losses of a whole sample of two classes have in common."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.losses._core import domain
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import Labels, LossBase
from bmrm.problem import Summary, Targets


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
