"""Ranking measures as losses of permutations: the linear assignment of Le & Smola (KDD 2007, section 3.1).

A ranking pi gives row i of a query the rank pi(i), from 1. A measure is the sum of gain b_i times discount D(pi(i)),
at most 1. With the joint score sum_i c(pi(i)) f_i, c falling, and a reference ranking,

    R(f) = max over pi of  1 - sum_i D(pi(i)) b_i + sum_i (c(pi(i)) - c_i) f_i

where c_i is the mean of c over the ranks that the rows of i's gain take in a best ranking, so that the order of rows of
equal gain does not matter. R is convex, never below 0, and at least 1 minus the measure of the ranking by f.

The maximum is a linear assignment of rows to ranks. With c = D it is a product of two sequences,
sum_i D(pi(i)) (f_i - b_i), which is largest where both fall together: sorting by f - b is exact. For other c see
`bmrm.losses._core.interleaving`.

That is `joint: ranks`, the form of the paper. On noisy data R has its minimum at f = 0: the joint score asks every row
for its place in a best ranking, so it pays for the spread of scores among rows of equal gain too. The joint score of
pairs, the default, does not:

    R(f) = max over pi of  1 - sum_i D(pi(i)) b_i + s sum over the pairs, b_i > b_j, that pi inverts, of f_j - f_i

with s = 1/n for `joint: pairs`, n the number of rows of the query, 1 over the number of its pairs for `pair_mean`, and
1 for `pair_sum`. That is convex, never below 0 and bounds the measure alike. Which s is a matter of how much long
queries ask for beside short ones: a factor common to all queries is one of the scores, thus of lambda.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses._core.grouping import RankingLoss
from bmrm.losses._core.interleaving import PreparedInterleaving, joint_score
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.ranking import PreparedRanking
from bmrm.problem import InputError, Summary, Targets
from bmrm.registry import parameter


@dataclass(frozen=True, kw_only=True)
class AssignmentLoss(RankingLoss):
    """A measure of rankings: write `gains` and `discounts`, and the rest follows."""

    weighted = False

    joint: str = joint_score()
    decay: float | None = parameter(
        None,
        doc="ranks weigh rank^-decay in `joint: ranks`; null: as in the measure, which is fastest (sorting)",
        above=0.0,
        example=0.25,
        beside={"joint": "ranks"},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.joint != "ranks" and self.decay is not None:
            raise InputError(f"{self.title}: decay belongs to `joint: ranks`, pairs have no ranks to weigh")

    @property
    def at_zero(self) -> str:
        """As of `LossFacts`."""
        return f"take {'joint: pairs or ' if self.joint == 'ranks' else ''}loss rank_hinge"

    def gains(self, targets: Targets) -> Array:
        """(rows,) at least 0, before they are divided by the largest sum that a ranking of the query can have."""
        raise TypeError(f"{self.title} does not define gains(targets)")

    def discounts(self, ranks: int) -> Array:
        """(ranks,) falling, for ranks 1, 2, ..."""
        raise TypeError(f"{self.title} does not define discounts(ranks)")

    def scoring(self, ranks: int) -> Array | None:
        """(ranks,) the weights c of the joint score, falling; None where they are the discounts."""
        return None if self.decay is None else np.arange(1, ranks + 1, dtype=np.float64) ** -self.decay

    def prepare(self, targets: Targets, summary: Summary) -> PreparedRanking:
        """Bind to some whole groups; InputError for a grade out of range, or where there are no groups."""
        grouping, gains = self.grouping(targets), self.gains(targets)
        longest = int(grouping.sizes.max(initial=0))
        scoring, discounts = self.scoring(longest), self.discounts(longest)
        if scoring is None and self.joint == "ranks":
            return PreparedRanking(self.title, grouping, gains, discounts)
        return PreparedInterleaving(self.title, grouping, gains, discounts, self.joint, scoring)
