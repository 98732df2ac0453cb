"""Whether the first row of a ranking has the best grade, as a loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.products.vectors import plain
from bmrm.losses import register
from bmrm.losses._core.grouping import NO_PAIRS, Grouping, RankingLoss
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.whole_sample import KinkedSample
from bmrm.problem import Summary, Targets
from bmrm.registry import parameter


@register("winner_takes_all", task="ranking")
@dataclass(frozen=True)
class WinnerTakesAll(RankingLoss):
    """mean over queries of sum_j max(0, 1 + f_j - mean of f over best rows), j not best: a best row should come first.

    Best are the rows of the highest grade of a query. Only the first rank counts: the loss bounds the share of queries
    whose row of highest score is not best. Queries whose rows all have the same grade are ignored.

    With `joint: ranks`, the form of the paper, only the worst row counts: max_j ([y_j not best] + f_j) - mean of f over
    best rows, the assignment of `_core.assignment` with D = c = (1, 0, 0, ...). The highest of many rows has to be
    below the mean of the best, so on noisy data its minimum is at w = 0.

    Domain: any finite grades; groups; weights other than 1 are refused. O(m), without sorting. Kinks where a term is 0,
    or two rows are the worst: these share the slope. A shift of the scores of a query does not change the loss.
    """

    joint: str = parameter(
        "pairs",
        doc="which rows count: each that is not best (pairs), or the worst one (ranks, the form of the paper, whose "
        "minimum is at w = 0 on noisy data)",
        choices=("pairs", "ranks"),
        example="ranks",
    )

    weighted = False
    formula = "mean over queries of sum_j max(0, 1 + f_j - mean of f over best rows), j not best"
    source = "Le & Smola 2007; Weston & Watkins 1999"
    metrics = ("winner_found", "mrr", "ndcg@10", "ndcg")

    @property
    def at_zero(self) -> str:
        """As of `LossFacts`."""
        return f"take {'joint: pairs or ' if self.joint == 'ranks' else ''}loss rank_hinge"

    def prepare(self, targets: Targets, summary: Summary) -> PreparedWinners:
        """Bind to some whole groups; InputError if a grade is not a finite number or there are no groups."""
        y = self.grades(targets)
        grouping = self.grouping(targets)
        return PreparedWinners(grouping, grouping.together(y), self.joint == "pairs")


class PreparedWinners(KinkedSample):
    """The rows of the best grade of some whole queries."""

    nothing = f"winner_takes_all: {NO_PAIRS}"

    def __init__(self, grouping: Grouping, y: Array, pairs: bool) -> None:
        self.grouping, self.pairs = grouping, pairs
        best = y == grouping.per_row(self._most(y))
        winners = grouping.sums(best.astype(np.float64))
        counts = winners < grouping.sizes
        self.active = grouping.per_row(counts.astype(np.float64))
        self.mass = float(np.count_nonzero(counts))
        self.missed = np.where(best, 0.0, 1.0)
        self.reference = best / grouping.per_row(winners)

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum over queries at scores `f`, and its slope, a new array like `f`."""
        grouping = self.grouping
        f = grouping.together(plain(f))
        if self.pairs:
            return self._each(f)
        key = f + self.missed
        top = grouping.per_row(self._most(key))
        first = (key == top).astype(np.float64)
        slope = (first / grouping.per_row(grouping.sums(first)) - self.reference) * self.active
        # Slopes of a query add up to 0, so its largest key may be the origin.
        value = float(np.sum(slope * (key - top)))
        return max(value, 0.0), grouping.back(slope)

    def _each(self, f: Array) -> tuple[float, Array]:
        """The sum of a term for each row that is not best."""
        grouping = self.grouping
        f = f - grouping.per_row(self._most(f))  # a difference of scores keeps more digits
        over = self.active * self.missed * (1.0 + f - grouping.per_row(grouping.sums(self.reference * f)))
        slope = (over > 0.0).astype(np.float64)
        slope -= grouping.per_row(grouping.sums(slope)) * self.reference
        return float(np.maximum(over, 0.0).sum()), grouping.back(slope)

    def _most(self, array: Array) -> Array:
        return np.maximum.reduceat(array, self.grouping.starts[:-1]) if self.grouping.groups else np.zeros(0)
