"""Rankings where the joint score does not weigh ranks as the measure does.

Rows of one gain stand in the order of their scores in a best ranking (rearrangement), so only the interleaving of the
sorted grades is sought: a dynamic program over how many rows of each grade have been ranked, prod_g (n_g + 1) states
for n_g rows of each. Where that is more than the n^3 of a general assignment (many grades), the rows are assigned to
ranks by `scipy.optimize.linear_sum_assignment`.

The joint score of pairs has weights of ranks too: s (n - 1 - 2 r) / 2 for rank r from 0, half of the number of rows
below less that of rows above, times the share s of a pair. Taken from it is not the mean weight in a best ranking but
the weight in the best ranking with pi's own order within the grades; the difference is s times the sum over inverted
pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from bmrm.kernels.products.vectors import plain
from bmrm.kernels.rankings.interleave import Lists, slopes_of_ranks, worst_interleavings
from bmrm.kernels.rankings.sorting import ascending_within
from bmrm.losses._core.grouping import Grouping, Rows
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.ranking import PreparedRanking, shared_ranks
from bmrm.problem import Vector
from bmrm.registry import parameter

SHARES: dict[str, Callable[[Vector, Vector], Vector]] = {
    "pairs": lambda rows, pairs: 1.0 / np.maximum(rows, 1.0),
    "pair_mean": lambda rows, pairs: 1.0 / np.maximum(pairs, 1.0),
    "pair_sum": lambda rows, pairs: np.ones_like(rows),
}
"""By the name of the joint score: the weight of a pair, (queries,), from the numbers of rows and pairs of each
query."""


def joint_score() -> Any:
    """The parameter `joint` of a loss of rankings."""
    return parameter(
        "pairs",
        doc="the joint score: pairs of rows of different grade, their sum over the rows of the query, their mean, "
        "their sum; or weights of ranks, the form of the paper, faster, but its minimum is at w = 0 on noisy data",
        choices=("ranks", "pairs", "pair_mean", "pair_sum"),
        example="ranks",
    )


MOST_STATES = 2_000_000
"""Most states of a dynamic program, which fit in memory easily."""


class PreparedInterleaving(PreparedRanking):
    """Queries whose rows are kept in lists of equal gain.

    Parameters
    ----------
    title, gains, discounts : as of `PreparedRanking`.
    joint : the name of the joint score.
    scoring : (ranks,) the weights of the joint score; None for the joint scores of pairs.
    """

    def __init__(
        self, title: str, grouping: Grouping, gains: Array, discounts: Vector, joint: str, scoring: Vector | None
    ) -> None:
        super().__init__(title, grouping, gains, discounts)
        group = grouping.per_row(np.arange(grouping.groups))
        self.rows: Rows = np.lexsort((-self.grades, group))
        grades, group = self.grades[self.rows], group[self.rows]
        new = np.flatnonzero((np.diff(grades) != 0) | (np.diff(group) != 0)) + 1
        first = np.concatenate((np.zeros(min(1, grades.size), np.int64), new))
        self.lists: Rows = np.append(first, grades.size)
        self.queries: Rows = np.searchsorted(first, grouping.starts)
        self.list_gains = self.gains[self.rows][first]
        self.weights = np.zeros(len(self.discounts)) if scoring is None else scoring
        self.own_reference = shared_ranks(grouping, self.grades, self.weights)[self.rows]
        sizes = np.diff(self.lists)
        self.shares = np.zeros(grouping.groups)
        if scoring is None:
            rows = grouping.sizes.astype(np.float64)
            equal = np.array([np.sum(sizes[a:b] ** 2.0) for a, b in pairwise(self.queries)])
            self.shares = SHARES[joint](rows, (rows**2 - equal) / 2.0)
        states = np.array([np.prod(sizes[a:b] + 1.0) for a, b in pairwise(self.queries)])
        few = (states * np.diff(self.queries) <= grouping.sizes**3.0 + 1000.0) & (states <= MOST_STATES)
        self.by_states = self.active & few
        self.by_assignment = np.flatnonzero(self.active & ~few)

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum over queries at scores `f`, and its slope, a new array like `f`."""
        f = self.grouping.together(plain(f))
        order, scores = ascending_within(-f[self.rows], self.lists)
        scores = -scores
        slope = np.zeros(f.size)
        grades, ranks = Lists(self.lists, self.queries, self.list_gains), (self.discounts, self.weights)
        total = float(
            worst_interleavings(scores, grades, *ranks, self.shares, self.own_reference, self.by_states, slope)
        )
        for query in self.by_assignment:
            total += self._assigned(int(query), scores, slope)
        out = np.empty_like(slope)
        out[self.rows[order]] = slope
        return total, self.grouping.back(out)

    def _assigned(self, query: int, scores: Array, slope: Array) -> float:
        """Fill the slope of one query by an assignment, return its loss."""
        from scipy.optimize import linear_sum_assignment

        lists = self.lists[self.queries[query] : self.queries[query + 1] + 1]
        rows, starts = slice(lists[0], lists[-1]), lists - lists[0]
        gains = self.list_gains[self.queries[query] : self.queries[query + 1]]
        centred = scores[rows] - np.median(scores[rows])
        size, share = centred.size, self.shares[query]
        weights = share * (size - 1.0 - 2.0 * np.arange(size)) / 2.0 if share else self.weights[:size]
        keys = np.outer(centred, weights) - np.outer(np.repeat(gains, np.diff(starts)), self.discounts[:size])
        if not np.isfinite(keys).all():  # differences of scores beyond float64
            return math.inf
        ranks: Rows = linear_sum_assignment(keys, maximize=True)[1].astype(np.int64)
        for a, b in pairwise(starts):
            ranks[a:b].sort()
        reference = self.own_reference[rows]
        return float(
            slopes_of_ranks(centred, starts, gains, self.discounts, weights, share > 0.0, reference, ranks, slope[rows])
        )
