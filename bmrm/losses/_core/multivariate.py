"""The multivariate hinge of Joachims 2005: measures of a whole labeling, made convex.

For a measure with a loss Delta in [0, 1] of a labeling y' of all m rows against the true one y,

    R(f) = max over y' of  Delta(y', y) + (1/m) sum_i (y'_i - y_i) f_i / 2

y, y' in {-1, 1}^m. With the error rate as Delta this is the mean hinge, exactly. The labeling by the signs of f has a
loss of at most R(f).

The measures here depend on y' through its numbers a of true and b of false positives only. For given a and b the best
y' makes positive the a positive rows of highest score and the b negative rows of highest score, so that

    R(f) = max over (a, b) of  Delta(a, b) - (1/m) (sum of the n_pos - a lowest scores of positive rows)
                                           + (1/m) (sum of the b highest scores of negative rows)

and a measure has only to find (a, b) among sorted scores. Rows of equal score at a border share the change of label:
the mean of several maximisers' slopes is a subgradient, and the order of the rows does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import dot, plain
from bmrm.kernels.rankings.sorting import ascending
from bmrm.losses._core import domain
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.whole_sample import KinkedSample, WholeSampleLoss
from bmrm.losses.base import signs
from bmrm.problem import InputError, Summary, Targets
from bmrm.registry import parameter

Table = tuple[int, int, float]
"""True positives a, false positives b, Delta."""


class MeasureLoss(WholeSampleLoss):
    """A loss that is given by the worst labeling: write `worst`, and the rest follows."""

    weighted = False

    def worst(self, positive: Array, negative: Array) -> Table | None:
        """The numbers a and b of the worst labeling, and its Delta; None for the true one, with Delta 0.

        Parameters
        ----------
        positive : rising scores of the positive rows.
        negative : rising scores of the negative rows.
        """
        raise TypeError(f"{self.title} does not define worst(positive, negative)")

    def check(self, positives: int, negatives: int) -> None:
        """InputError where a sample with so many rows of each class cannot be measured."""

    def summarise(self, targets: Targets) -> Summary:
        """The labels of these rows and how many have each; InputError for weights other than 1."""
        domain.refuse_weights(targets, self.title)
        return super().summarise(targets)

    def prepare(self, targets: Targets, summary: Summary) -> PreparedMeasure:
        """Bind to all rows; InputError unless there are exactly two labels and no weights."""
        domain.refuse_weights(targets, self.title)
        y = signs(targets, summary, self.title)
        positives = int(np.count_nonzero(y > 0.0))
        if not 0 < positives < y.size:
            raise InputError(f"{self.title}: expected rows of both classes")
        self.check(positives, y.size - positives)
        return PreparedMeasure(self, y > 0.0)


class PreparedMeasure(KinkedSample):
    """A measure with the labels of a whole sample; `positive` is (rows,)."""

    mass = 1.0
    structured_max = True

    def __init__(self, loss: MeasureLoss, positive: NDArray[np.bool_]) -> None:
        self.loss = loss
        self.positive = np.flatnonzero(positive)
        self.negative = np.flatnonzero(~positive)
        self.rows = positive.size

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """R at scores `f`, and its slope, a new array like `f`."""
        f = plain(f)
        high, low = f[self.positive], f[self.negative]
        rising_high, rising_low = ascending(high)[1], ascending(low)[1]
        table = self.loss.worst(rising_high, rising_low)
        slope = np.zeros_like(f)
        if table is None:
            return 0.0, slope
        a, b, delta = table
        slope[self.positive] = -lowest(high, rising_high, high.size - a)
        slope[self.negative] = lowest(-low, -rising_low[::-1], b)
        slope /= self.rows
        return max(delta + dot(slope, f), 0.0), slope


def lowest(f: Array, rising: Array, count: int) -> Array:
    """1.0 for the `count` rows of lowest score and 0.0 for others, (rows,); rows of equal score at the border share."""
    if count == 0:
        return np.zeros(f.size)
    border = rising[count - 1]
    chosen: Array = (f < border).astype(np.float64)
    first, behind = np.searchsorted(rising, border, side="left"), np.searchsorted(rising, border, side="right")
    if count == behind:
        chosen[f == border] = 1.0
    else:
        chosen[f == border] = (count - first) / (behind - first)
    return chosen


def worst_of_size(positive: Array, negative: Array, k: int, divisor: float) -> Table | None:
    """The worst labeling with k positives for Delta = 1 - a / divisor; None where the true one costs more than any.

    O(m) on sorted scores: b = k - a. The true labeling competes too; where it has k positives it is one of them.
    """
    a = np.arange(max(0, k - negative.size), min(k, positive.size) + 1)
    rows = positive.size + negative.size
    lost = np.concatenate(([0.0], np.cumsum(positive)))[positive.size - a]
    won = np.concatenate(([0.0], np.cumsum(negative[negative.size - int(k - a[0]) :][::-1])))[k - a]
    margins = 1.0 - a / divisor + (won - lost) / rows
    best = int(np.argmax(margins))
    if k != positive.size and margins[best] <= 0.0:
        return None
    return int(a[best]), int(k - a[best]), float(1.0 - a[best] / divisor)


@dataclass(frozen=True)
class AtKLoss(MeasureLoss):
    """max over labelings y' with k positives of 1 - a(y')/n + (1/m) sum_i (y'_i - y_i) f_i / 2; a: true positives.

    Where the true labeling has not k positives, it competes too, with Delta 0: otherwise the loss would have no lower
    bound. Then a large enough shift of all scores makes the loss 0, and a free intercept has no meaning.
    """

    k: int = parameter(10, doc="how many rows are looked at", least=1, example=20)

    no_free_intercept: ClassVar[str] = "a large shift of all scores satisfies it, or changes nothing"

    def most(self, positives: int) -> int:
        """n, the true positives of a perfect labeling by the measure, among so many positive rows."""
        raise TypeError(f"{self.title} does not define most(positives)")

    def check(self, positives: int, negatives: int) -> None:
        """InputError where there are fewer than k rows."""
        if self.k > positives + negatives:
            raise InputError(f"{self.title}: k is {self.k}, expected at most the {positives + negatives} rows")

    def worst(self, positive: Array, negative: Array) -> Table | None:
        """As of `MeasureLoss`."""
        return worst_of_size(positive, negative, self.k, float(self.most(positive.size)))
