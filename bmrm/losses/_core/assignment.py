"""Ranking measures as losses of permutations: the linear assignment of Le & Smola (KDD 2007, section 3.1).

A ranking pi gives row i of a query the rank pi(i), from 1. A measure is the sum of gain b_i times discount D(pi(i)),
at most 1. With the joint score sum_i c(pi(i)) f_i, c falling, and a reference ranking,

    R(f) = max over pi of  1 - sum_i D(pi(i)) b_i + sum_i (c(pi(i)) - c_i) f_i

where c_i is the mean of c over the ranks that the rows of i's gain take in a best ranking, so that the order of rows of
equal gain does not matter. R is convex, never below 0, and at least 1 minus the measure of the ranking by f.

The maximum is a linear assignment of rows to ranks. With c = D it is a product of two sequences,
sum_i D(pi(i)) (f_i - b_i), which is largest where both fall together: sorting by f - b is exact. For other c see
`bmrm.losses._core.interleaving`.

On noisy data R may have its minimum at f = 0: the joint score asks every row for its place in a best ranking, so it
pays for the spread of scores among rows of equal gain too. The joint score of pairs does not:

    R(f) = max over pi of  1 - sum_i D(pi(i)) b_i + s sum over the pairs, b_i > b_j, that pi inverts, of f_j - f_i

with s = 1/n for `joint: pairs`, n the number of rows of the query, 1 over the number of its pairs for `pair_mean`, and
1 for `pair_sum`. That is convex, never below 0 and bounds the measure alike. Which s is a matter of how much long
queries ask for beside short ones: a factor common to all queries is one of the scores, thus of lambda.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import jit
from bmrm.kernels.products.vectors import plain
from bmrm.kernels.rankings.sorting import ascending_within
from bmrm.losses._core.grouping import NO_PAIRS, Grouping, RankingLoss, Rows, grades_within
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.whole_sample import KinkedSample
from bmrm.problem import InputError, Summary, Targets, Vector
from bmrm.registry import parameter


@jit
def fill_by_rank(keys, order, starts, active, weights, sums, reference, slope):  # type: ignore[no-untyped-def]
    """Fill the slopes (weight of the rank minus reference) of rows ranked by falling keys; return the sum of products.

    `keys` rise within each piece, `order` are their rows; `weights[r]` is that of rank r + 1 and `sums[r]` the sum of
    the first r. Rows of equal key share their ranks' weights.
    """
    total = 0.0
    for k in range(starts.size - 1):
        a, b = starts[k], starts[k + 1]
        if not active[k]:
            for i in range(a, b):
                slope[order[i]] = 0.0
            continue
        middle, product, last = keys[(a + b) // 2], 0.0, b
        while last > a:
            first = last - 1
            while first > a and keys[first - 1] == keys[last - 1]:
                first -= 1
            weight = weights[b - last]
            if first < last - 1:
                weight = (sums[b - first] - sums[b - last]) / (last - first)
            for i in range(first, last):
                row = order[i]
                slope[row] = weight - reference[row]
                product += slope[row] * (keys[i] - middle)
            last = first
        total += max(product, 0.0)
    return total


@dataclass(frozen=True, kw_only=True)
class AssignmentLoss(RankingLoss):
    """A measure of rankings: write `gains` and `discounts`, and the rest follows."""

    weighted = False

    joint: str = parameter(
        "ranks",
        doc="the joint score: weights of ranks; or pairs of rows of different grade, better on noisy data but slower: "
        "their sum over the rows of the query, their mean, their sum",
        choices=("ranks", "pairs", "pair_mean", "pair_sum"),
    )
    decay: float | None = parameter(
        None,
        doc="ranks weigh rank^-decay in the joint score; null: as in the measure, which is fastest (sorting)",
        above=0.0,
        example=0.25,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.joint != "ranks" and self.decay is not None:
            raise InputError(f"{self.title}: decay belongs to `joint: ranks`, pairs have no ranks to weigh")

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
        scoring = self.scoring(longest)
        if scoring is None and self.joint == "ranks":
            return PreparedRanking(self, grouping, gains)
        from bmrm.losses._core.interleaving import PreparedInterleaving

        return PreparedInterleaving(self, grouping, gains, scoring)


class PreparedRanking(KinkedSample):
    """Gains and reference weights of some whole queries, and what ranks weigh.

    Queries without rows of different gain do not count.
    """

    def __init__(self, loss: AssignmentLoss, grouping: Grouping, gains: Array) -> None:
        self.nothing = f"{loss.title}: {NO_PAIRS}"
        self.grouping = grouping
        gains = grouping.together(gains)
        grades, levels = grades_within(grouping, gains)
        longest = int(grouping.sizes.max(initial=0))
        self.discounts = loss.discounts(longest)
        self.active = levels > 1
        self.mass = float(np.count_nonzero(self.active))
        reference = shared_ranks(grouping, grades, self.discounts)
        best = grouping.per_row(grouping.sums(reference * gains))
        self.gains = np.divide(gains, best, where=best > 0.0, out=np.zeros_like(gains))
        self.grades, self.reference = grades, reference

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum over queries at scores `f`, and its slope, a new array like `f`."""
        f = self.grouping.together(plain(f))
        order, keys = ascending_within(f - self.gains, self.grouping.starts)
        slope = np.empty(f.size)
        sums = np.concatenate((np.zeros(1), np.cumsum(self.discounts)))
        total = fill_by_rank(
            keys, order, self.grouping.starts, self.active, self.discounts, sums, self.reference, slope
        )
        return float(total), self.grouping.back(slope)


def shared_ranks(grouping: Grouping, grades: Rows, weights: Vector) -> Array:
    """(rows,) the mean of `weights` over the ranks that the row's grade takes in a best ranking of its group.

    Rows of a group together, `grades` as of `grades_within`.
    """
    group = grouping.per_row(np.arange(grouping.groups))
    order = np.lexsort((-grades, group))
    rank = np.arange(grades.size) - grouping.per_row(grouping.starts[:-1])
    ordered, group = grades[order], group[order]
    new = (np.diff(ordered) != 0) | (np.diff(group) != 0)
    shared = np.empty(grades.size)
    shared[order] = mean_of_equals(weights[rank], new)
    return shared


def mean_of_equals(values: Array, new: NDArray[np.bool_]) -> Array:
    """(n,) `values` averaged over runs; `new` (n - 1,) tells where a run ends and the next begins."""
    if not values.size:
        return values
    starts = np.concatenate((np.zeros(1, np.int64), np.flatnonzero(new) + 1))
    lengths = np.diff(np.append(starts, values.size))
    means = np.add.reduceat(values, starts) / lengths
    return np.asarray(np.repeat(means, lengths))
