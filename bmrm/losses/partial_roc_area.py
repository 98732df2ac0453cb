"""Hinge loss over the pairs that make up the left part of the ROC curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.products.vectors import plain
from bmrm.kernels.rankings.pairs import count_short_pairs
from bmrm.kernels.rankings.sorting import ascending
from bmrm.losses import register
from bmrm.losses._core import domain
from bmrm.losses._core.over_ranks import Flags, ManyRanks, PairsOverRanks
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.whole_sample import KinkedSample, WholeSampleLoss
from bmrm.losses.base import signs
from bmrm.problem import Summary, Targets, Vector
from bmrm.registry import parameter


@register("partial_roc_area", task="binary")
@dataclass(frozen=True)
class PartialRocArea(WholeSampleLoss):
    """mean over pairs p, n of max(0, 1 - (f_p - f_n)), n of the highest negatives: AUC at few false positives.

    p is a positive row. The negatives n are the share `max_fpr` with the highest scores, the last of them in part
    if this is not a whole number of rows; so the loss bounds 1 - A / max_fpr, with A the area under the ROC curve
    left of max_fpr. It is the maximum over all such sets of negatives of a convex function, and since the loss of a
    negative rises with its score, the worst set is found exactly by sorting. Negatives of equal score at the border
    share the remainder.

    Domain: two classes; all rows of the sample at once. A weight is a number of copies. Costs one sort, O(m log m).
    With max_fpr 1 it is `roc_area`. A common shift of the scores does not change the loss, so a free intercept has no
    meaning.
    """

    max_fpr: float = parameter(
        0.1, doc="the false positive rate up to which the curve counts", above=0.0, most=1.0, example=0.5
    )

    formula = "mean over pairs p, n (n of the max_fpr highest negatives) of max(0, 1 - (f_p - f_n))"
    source = "Narasimhan & Agarwal 2013"
    at_zero = "take loss roc_area"
    metrics = ("partial_auc", "auc")
    no_free_intercept = "a common shift of the scores changes nothing"

    def prepare(self, targets: Targets, summary: Summary) -> PreparedTopPairs:
        """Bind to all rows; InputError unless there are exactly two labels."""
        y = signs(targets, summary, self.title)
        weights = domain.checked_weights(targets, self.title)
        return PreparedTopPairs(y > 0.0, np.ones(y.size) if weights is None else weights, self.max_fpr)

    def prepare_over_ranks(self, targets: Targets, summary: Summary, ranks: ManyRanks) -> TopPairsOverRanks:
        """Bind to the rows of this rank, see `bmrm.losses._core.over_ranks`."""
        y = signs(targets, summary, self.title)
        return TopPairsOverRanks(ranks, y > 0.0, domain.checked_weights(targets, self.title), self.max_fpr)


NO_PAIRS = "partial_roc_area: expected rows of positive weight in both classes"


class PreparedTopPairs(KinkedSample):
    """The positive rows against the highest scoring negative ones, `share` of them by weight."""

    nothing = NO_PAIRS

    def __init__(self, positive: Flags, weights: Vector, share: float) -> None:
        self.positive, self.weights = positive, weights
        self.room = share * float(weights[~positive].sum())
        self.mass = float(weights[positive].sum()) * self.room

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum over pairs at scores `f`, and its slope, a new array like `f`."""
        order, values = ascending(plain(f))
        positive, weights = self.positive[order], self.weights[order]
        weights = np.where(positive, weights, taken_from_the_top(values, np.where(positive, 0.0, weights), self.room))
        slope, out = np.empty(values.size), np.empty(values.size)
        starts, levels = np.array([0, values.size]), np.array([2])
        total = count_short_pairs(values, positive.astype(np.int64), weights, starts, levels, np.ones(1), slope)
        out[order] = slope
        return float(total), out


def taken_from_the_top(values: Array, weights: Array, room: float) -> Array:
    """The part of each weight that is taken, from the highest value down, until their sum is `room`.

    Rows of equal value at the border give the same share of their weights.
    """
    above = np.cumsum(weights[::-1])[::-1]
    full = np.flatnonzero(above >= room)
    if not full.size:
        return weights
    border = values[full[-1]]
    first, behind = np.searchsorted(values, border, side="left"), np.searchsorted(values, border, side="right")
    left = room - (above[behind] if behind < values.size else 0.0)
    here = weights[first:behind].sum()
    taken = np.where(values > border, weights, 0.0)
    taken[first:behind] = weights[first:behind] * min(1.0, max(0.0, left / here)) if here > 0.0 else 0.0
    return taken


class TopPairsOverRanks(PairsOverRanks):
    """The same of rows on many ranks, which first find the lowest score of a negative row that is taken."""

    def __init__(self, ranks: ManyRanks, positive: Flags, weights: Vector | None, share: float) -> None:
        super().__init__(ranks, positive, weights, NO_PAIRS)
        self.share = share

    def meet(self) -> None:
        """As of `OverRanks`."""
        super().meet()
        self.room = self.share * self.lows
        self.mass = self.highs * self.room

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """As of `PreparedTopPairs`, see `OverRanks`."""
        f = plain(f)
        taken = self.weights.copy()
        taken[~self.positive] = self._taken(f[~self.positive], self.weights[~self.positive])
        return self.short_pairs(f, taken)

    def _taken(self, values: Array, weights: Array) -> Array:
        """As `taken_from_the_top`: the border is the lowest value with less than `room` above it."""
        order = self.ranks.sort(-values, weights)
        count = int(np.count_nonzero(order.below(order.beside) < self.room))
        lowest = self.ranks.table(np.array([count > 0, -order.keys[count - 1] if count else 0.0]))
        border = lowest[lowest[:, 0] > 0.0, 1].min(initial=np.inf)
        above, here = values > border, values == border
        inside, tied = self.ranks.sum(np.array([weights[above].sum(), weights[here].sum()]))
        share = min(1.0, max(0.0, (self.room - inside) / tied)) if tied > 0.0 else 0.0
        return np.where(above, weights, np.where(here, share * weights, 0.0))
