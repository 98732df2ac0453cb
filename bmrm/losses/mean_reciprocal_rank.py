"""The reciprocal rank of the first relevant row as a loss of rankings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import jit
from bmrm.kernels.products.vectors import plain
from bmrm.kernels.rankings.sorting import ascending_within
from bmrm.losses import register
from bmrm.losses._core.grouping import NO_PAIRS, Grouping, RankingLoss, grades_within
from bmrm.losses._core.interleaving import SHARES, joint_score
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.ranking import shared_ranks
from bmrm.losses._core.whole_sample import KinkedSample
from bmrm.problem import Summary, Targets


@jit
def gain_of_a_step(q: int, low: Array, high: Array) -> float:
    """What moving the q-th irrelevant row before the relevant ones adds to the loss, over 1/(q (q + 1)); q from 1."""
    g: float = low[q - 1]
    gain: float = 1.0 + g - high[0]
    for s in range(1, high.size):
        if high[s] <= g:
            break
        gain -= (high[s] - g) * (q * (q + 1.0)) / ((q + s) * (q + s + 1.0))
    return gain


@jit
def worst_rankings(values, relevant, order, starts, active, reference, slope):  # type: ignore[no-untyped-def]
    """Fill the slopes of the worst ranking of each piece, return the sum of the losses; see `MeanReciprocalRank`.

    `values` rise within each piece, `relevant` and `order` belong to them.
    """
    total = 0.0
    for k in range(starts.size - 1):
        a, b = starts[k], starts[k + 1]
        if not active[k]:
            for i in range(a, b):
                slope[order[i]] = 0.0
            continue
        count = 0
        for i in range(a, b):
            count += relevant[i]
        middle = values[(a + b) // 2]
        high, low = np.empty(count), np.empty(b - a - count)
        at_high, at_low = np.empty(count, np.int64), np.empty(b - a - count, np.int64)
        h, l = 0, 0
        for i in range(b - 1, a - 1, -1):
            if relevant[i]:
                high[h], at_high[h] = values[i] - middle, i
                h += 1
            else:
                low[l], at_low[l] = values[i] - middle, i
                l += 1
        # The first step that does not pay; all before it do.
        left, right = 1, low.size + 1
        while left < right:
            q = (left + right) // 2
            if gain_of_a_step(q, low, high) > 0.0:
                left = q + 1
            else:
                right = q
        first = left
        rank, h, l = 1, 0, 0
        while rank <= b - a:
            take_low = rank < first or (rank > first and (h == high.size or (l < low.size and low[l] > high[h])))
            if take_low:
                slope[order[at_low[l]]] = 1.0 / rank
                l += 1
            else:
                slope[order[at_high[h]]] = 1.0 / rank
                h += 1
            rank += 1
        _share(high, at_high, order, slope)
        _share(low, at_low, order, slope)
        value = 1.0 - 1.0 / first
        for i in range(a, b):
            row = order[i]
            slope[row] -= reference[row]
            value += slope[row] * (values[i] - middle)
        total += max(value, 0.0)
    return total


@jit
def _share(scores, places, order, slope):  # type: ignore[no-untyped-def]
    """Rows of one kind and of equal score get the mean of their slopes."""
    start = 0
    for i in range(1, scores.size + 1):
        if i == scores.size or scores[i] != scores[start]:
            if i > start + 1:
                mean = 0.0
                for j in range(start, i):
                    mean += slope[order[places[j]]]
                for j in range(start, i):
                    slope[order[places[j]]] = mean / (i - start)
            start = i


@jit
def worst_of_pairs(values, relevant, order, starts, active, shares, slope):  # type: ignore[no-untyped-def]
    """As `worst_rankings`, for joint scores of pairs, each of which counts the share of its query."""
    total = 0.0
    for k in range(starts.size - 1):
        a, b = starts[k], starts[k + 1]
        for i in range(a, b):
            slope[order[i]] = 0.0
        if not active[k]:
            continue
        share = shares[k]
        # irrelevant rows by falling score: the first q - 1 come before all relevant ones, as long as that pays
        q, paying, at = 1, True, b - 1
        while at >= a:
            if not relevant[at]:
                lost = 0.0
                for i in range(at + 1, b):
                    if relevant[i]:
                        lost += values[i] - values[at]
                paying = paying and 1.0 / (q * (q + 1.0)) > share * lost
                q += paying
                for i in range(a, b):
                    if relevant[i] and (paying or values[i] < values[at]):
                        slope[order[i]] -= share
                        slope[order[at]] += share
                        total += share * (values[at] - values[i])
            at -= 1
        total += 1.0 - 1.0 / q
    return total


@register("mean_reciprocal_rank", task="ranking")
@dataclass(frozen=True)
class MeanReciprocalRank(RankingLoss):
    """mean over queries of max_pi 1 - RR(pi) + 1/n sum over inverted pairs of f_j - f_i: for mean reciprocal rank.

    pi is a ranking. RR(pi) is 1 over the rank of the first relevant row (grade above 0); the pairs are of a relevant
    row i and another one j, in a query of n rows. `joint: pair_mean` divides by the number of such pairs of the query
    instead of n, `pair_sum` by nothing. Convex, and at least 1 - RR of the ranking by f. The worst ranking has the q -
    1 irrelevant rows of highest score before all relevant ones, and the pairs of the others in the order of their
    scores. From q to q + 1 the loss changes by 1/(q (q + 1)) less what the pairs of the q-th irrelevant row lose, which
    falls as q grows: so q is the first that does not pay.

    With `joint: ranks`, the form of the paper, the sum is that of (1/pi(i) - c_i) f_i over the rows, c_i the mean of
    1/rank over the first ranks, as many as there are relevant rows, for these, and over the others for the others. Its
    minimum is at w = 0 on noisy data, as that of `ndcg`. With one relevant row the maximum is a linear assignment,
    `_core.assignment`; with more it is not, because only the first of them counts, but it is still found exactly:

    Let the first relevant row have rank q. An exchange argument shows that it is preceded by the q - 1 irrelevant rows
    of highest score g_1 >= g_2 >= ..., then the best relevant one, p_1, then all others by score. Going from q to q + 1
    puts g_q before p_1 and the relevant rows above it, which changes the loss by 1/(q (q + 1)) times

        1 + g_q - p_1 - sum over s >= 2 with p_s > g_q of  q (q + 1) / ((q + s - 1)(q + s)) (p_s - g_q)

    The bracket falls as q grows, since g_q falls and the fractions rise: the loss first rises and then falls in q, and
    a binary search finds its maximum. With sorting the cost is O(n log n) for n rows; that of pairs is the number of
    pairs.

    Queries without relevant or without irrelevant rows are ignored. Domain: any finite grades; groups; weights other
    than 1 are refused. At ties rows of one kind share their ranks' weights. A shift of the scores of a query does not
    change the loss.
    """

    joint: str = joint_score()

    weighted = False
    formula = "mean over queries of max_pi 1 - RR(pi) + 1/n sum over inverted pairs of f_j - f_i"
    source = "Voorhees 1999; Le & Smola 2007; several relevant rows: this package"
    metrics = ("mrr", "ndcg@10", "ndcg", "map")

    @property
    def at_zero(self) -> str:
        """As of `LossFacts`."""
        return f"take {'joint: pairs or ' if self.joint == 'ranks' else ''}loss rank_hinge"

    def prepare(self, targets: Targets, summary: Summary) -> PreparedReciprocal:
        """Bind to some whole groups; InputError if a grade is not a finite number or there are no groups."""
        y = self.grades(targets)
        return PreparedReciprocal(self.grouping(targets), (y > 0.0).astype(np.float64), self.joint)


class PreparedReciprocal(KinkedSample):
    """The relevant rows of some whole queries."""

    nothing = f"mean_reciprocal_rank: {NO_PAIRS.replace('rows of different grades', 'relevant and irrelevant rows')}"

    def __init__(self, grouping: Grouping, relevant: Array, joint: str) -> None:
        self.grouping = grouping
        self.relevant = grouping.together(relevant)
        grades, levels = grades_within(grouping, self.relevant)
        self.active = levels > 1
        self.mass = float(np.count_nonzero(self.active))
        ranks = np.arange(1, int(grouping.sizes.max(initial=0)) + 1)
        self.reference = shared_ranks(grouping, grades, 1.0 / ranks)
        rows, first = grouping.sizes.astype(np.float64), grouping.sums(self.relevant)
        self.shares = None if joint == "ranks" else SHARES[joint](rows, first * (rows - first))

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum over queries at scores `f`, and its slope, a new array like `f`."""
        starts = self.grouping.starts
        order, values = ascending_within(self.grouping.together(plain(f)), starts)
        slope = np.empty(values.size)
        relevant = self.relevant[order].astype(np.int64)
        if self.shares is None:
            total = worst_rankings(values, relevant, order, starts, self.active, self.reference, slope)
        else:
            total = worst_of_pairs(values, relevant, order, starts, self.active, self.shares, slope)
        return float(total), self.grouping.back(slope)
