"""The best way to interleave sorted lists: rankings that keep rows of one grade in the order of their scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import jit


class Lists(NamedTuple):
    """Rows of one gain each: list l is the rows lists[l] to lists[l + 1].

    Query q is the lists queries[q] to queries[q + 1], gains falling; `gains` has one per list.
    """

    lists: NDArray[np.int64]
    queries: NDArray[np.int64]
    gains: NDArray[np.float64]


@jit
def best_ranks(scores, starts, gains, discounts, weights, ranks):  # type: ignore[no-untyped-def]
    """Fill `ranks` (from 0) with those that maximise sum of weights[rank] score - gain discounts[rank].

    List g is the rows starts[g] to starts[g + 1], of one gain, their scores falling; each list keeps its order. A state
    of the dynamic program is how many rows of each list have been ranked; their sum is the next rank.
    """
    lists = gains.size
    strides = np.empty(lists, np.int64)
    states = 1
    for g in range(lists):
        strides[g] = states
        states *= starts[g + 1] - starts[g] + 1
    best, choice = np.empty(states), np.empty(states, np.int8)
    taken = np.zeros(lists, np.int64)
    best[0], choice[0] = 0.0, -1
    rank = 0
    for state in range(1, states):
        g = 0
        while taken[g] == starts[g + 1] - starts[g]:
            rank -= taken[g]
            taken[g] = 0
            g += 1
        taken[g] += 1
        rank += 1
        top, which = -np.inf, -1
        weight, discount = weights[rank - 1], discounts[rank - 1]
        for g in range(lists):
            if taken[g] > 0:
                value = best[state - strides[g]] + weight * scores[starts[g] + taken[g] - 1] - gains[g] * discount
                if which < 0 or value > top:  # of values that are nan the first: a list with a row left
                    top, which = value, g
        best[state], choice[state] = top, which
    state = states - 1
    for g in range(lists):
        taken[g] = starts[g + 1] - starts[g]
    while state > 0:
        g = choice[state]
        rank = -1
        for h in range(lists):
            rank += taken[h]
        taken[g] -= 1
        ranks[starts[g] + taken[g]] = rank
        state -= strides[g]


@jit
def share_equals(scores, starts, values):  # type: ignore[no-untyped-def]
    """Average `values` over rows of equal score within each list, their scores sorted."""
    for g in range(starts.size - 1):
        first = starts[g]
        for i in range(starts[g] + 1, starts[g + 1] + 1):
            if i == starts[g + 1] or scores[i] != scores[first]:
                if i > first + 1:
                    mean = 0.0
                    for j in range(first, i):
                        mean += values[j]
                    values[first:i] = mean / (i - first)
                first = i


@jit
def slopes_of_ranks(scores, starts, gains, discounts, weights, own_order, reference, ranks, slope):  # type: ignore[no-untyped-def]
    """Fill the slope of one query whose rows have these ranks, return its loss, +inf beyond float64.

    From the weight of a row's rank goes that of its place in a best ranking: with `own_order` the ranking that keeps
    the lists' order, else `reference`.
    """
    value = 0.0
    for g in range(gains.size):
        for i in range(starts[g], starts[g + 1]):
            value += gains[g] * (discounts[i] - discounts[ranks[i]])
            slope[i] = weights[ranks[i]] - (weights[i] if own_order else reference[i])
    share_equals(scores, starts, slope)
    for i in range(scores.size):
        value += slope[i] * scores[i]
    return max(value, 0.0) if np.isfinite(value) else np.inf


@jit
def worst_interleavings(scores, grades, discounts, weights, shares, reference, chosen, slope):  # type: ignore[no-untyped-def]
    """Fill `slope` for the chosen queries, return the sum of their losses.

    Parameters
    ----------
    scores : rows in the order of the lists, falling within each.
    grades : the lists.
    discounts, weights : by rank.
    shares : per query, s: its weights are s (n - 1 - 2 r) / 2 instead, n rows, r from 0; 0: those by rank.
    reference : (rows,) the mean weights of a best ranking; not used where the share is above 0.
    """
    lists, queries, gains = grades
    total, longest = 0.0, 0
    for q in range(queries.size - 1):
        longest = max(longest, lists[queries[q + 1]] - lists[queries[q]])
    ranks, linear = np.empty(longest, np.int64), np.empty(longest)
    for q in range(queries.size - 1):
        if not chosen[q]:
            continue
        a, b = lists[queries[q]], lists[queries[q + 1]]
        n = b - a
        starts, own = lists[queries[q] : queries[q + 1] + 1] - a, gains[queries[q] : queries[q + 1]]
        centred = scores[a:b] - scores[a + n // 2]
        pairs = shares[q] > 0.0
        if pairs:
            for r in range(n):
                linear[r] = shares[q] * 0.5 * (n - 1 - 2 * r)
        here = linear if pairs else weights
        best_ranks(centred, starts, own, discounts, here, ranks)
        total += slopes_of_ranks(centred, starts, own, discounts, here, pairs, reference[a:b], ranks, slope[a:b])
    return total
