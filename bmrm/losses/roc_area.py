"""Hinge loss over pairs: one minus the area under the ROC curve, made convex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import jit
from bmrm.kernels.vectors import plain
from bmrm.losses import domain, register
from bmrm.losses.base import Labels, LossBase, signs
from bmrm.losses.prepared import Array, Curve, along_by_slopes
from bmrm.problem import Summary, Targets


@jit
def count_short_pairs(positive, negative, of_positive, of_negative):  # type: ignore[no-untyped-def]
    """Count for each score the pairs with `positive < negative` it is in; both arrays rise; returns the sum of misses.

    Ties are no pairs. One merge serves both counts, so that they agree on every pair whatever the rounding was.
    """
    total = 0.0
    below, sum_below = 0, 0.0
    for j in range(negative.size):
        while below < positive.size and positive[below] < negative[j]:
            sum_below += positive[below]
            below += 1
        of_negative[j] = below
        total += below * negative[j] - sum_below
    above = negative.size
    for i in range(positive.size - 1, -1, -1):
        while above > 0 and positive[i] < negative[above - 1]:
            above -= 1
        of_positive[i] = negative.size - above
    return max(total, 0.0)


class PreparedPairs:
    """The positive and the negative rows of a whole sample."""

    scores_per_row = 1
    extra_dim = 0
    infimum = 0.0
    smooth = False

    def __init__(self, y: Array) -> None:
        self.positive = np.flatnonzero(y > 0.0)
        self.negative = np.flatnonzero(y < 0.0)
        self.mass = float(self.positive.size) * float(self.negative.size)

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum over pairs at scores `f`, and its slope, a new array like `f`."""
        f = plain(f)
        # The loss ignores a common shift; the middle of the scores as origin keeps the sums small.
        high, low = f[self.positive] - f.mean(), f[self.negative] + (1.0 - f.mean())
        order_high, order_low = np.argsort(high), np.argsort(low)
        of_high, of_low = np.empty(high.size), np.empty(low.size)
        total = count_short_pairs(high[order_high], low[order_low], of_high, of_low)
        slope = np.empty_like(f)
        slope[self.positive[order_high]] = -of_high
        slope[self.negative[order_low]] = of_low
        return float(total), slope

    def along(self, f: Array, step: Array) -> Curve:
        """The function t -> (sum over pairs at f + t step, its derivative in t), for a vector of t."""
        return along_by_slopes(self.value_and_slope, f, step)


@register("roc_area", task="binary")
@dataclass(frozen=True)
class RocArea(LossBase):
    """mean over pairs of a positive p and a negative n of max(0, 1 - (f_p - f_n)): bounds 1 - AUC.

    Domain: two classes; all rows of the sample at once; weights other than 1 are refused. Costs one sort,
    O(m log m). Kinks at f_p = f_n + 1, where a pair counts as satisfied. A common shift of the scores changes
    nothing, so a free intercept has no meaning. Joachims divides by pairs too; Herbrich et al. do not.
    """

    task: ClassVar[str] = "binary"
    decomposes: ClassVar[Literal["rows", "groups", "no"]] = "no"
    formula = "mean over pairs p, n of max(0, 1 - (f_p - f_n))"
    source = "Herbrich, Graepel & Obermayer 2000; Joachims 2005"
    metrics = ("auc",)

    def summarise(self, targets: Targets) -> Summary:
        """The labels of these rows and how many have each."""
        domain.refuse_weights(targets, self.title)
        return domain.summary_of_labels(targets, self.title)

    def prepare(self, targets: Targets, summary: Summary) -> PreparedPairs:
        """Bind to all rows; InputError unless there are exactly two labels and no weights."""
        domain.refuse_weights(targets, self.title)
        return PreparedPairs(signs(targets, summary, self.title))

    def predict(self, f: Array, labels: Labels) -> NDArray[Any]:
        """The positive label where f > 0, else the negative one; only the order of the scores is trained."""
        return np.array(labels)[(f > 0.0).astype(np.intp)]
