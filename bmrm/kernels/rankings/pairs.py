"""Hinge loss over the pairs of rows of different grades, counted without looking at each pair."""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import jit

FEW = 8
"""Grades whose counts fit into one or two vector registers."""


@jit
def two_grades(values, grades, weights, a, b, factor, places, scores, slope):  # type: ignore[no-untyped-def]
    """Fill `slope` on [a, b) for rows of grades 0 and 1, return the sum: two merges of the higher with the lower rows.

    `places` and `scores` have room for b - a rows: first the lower ones, rising, then the higher ones, falling.
    """
    weighted = weights.size > 0
    n = b - a
    lows, highs = 0, 0
    for i in range(a, b):
        # Written at both ends, kept at one: which one cannot be foreseen, so there is no branch.
        places[lows], places[n - 1 - highs] = i, i
        scores[lows], scores[n - 1 - highs] = values[i], values[i]
        highs += grades[i]
        lows += 1 - grades[i]
    middle, count, product = values[(a + b) // 2], 0.0, 0.0
    inside, at = 0.0, n - 1
    for j in range(lows):
        limit = scores[j] + 1.0
        while at >= lows and scores[at] < limit:
            inside += weights[places[at]] if weighted else 1.0
            at -= 1
        here = (weights[places[j]] if weighted else 1.0) * inside
        count += here
        product += here * (scores[j] - middle)
        slope[places[j]] = here * factor
    inside, at = 0.0, lows - 1
    for i in range(lows, n):
        while at >= 0 and scores[at] + 1.0 > scores[i]:
            inside += weights[places[at]] if weighted else 1.0
            at -= 1
        here = (weights[places[i]] if weighted else 1.0) * inside
        product -= here * (scores[i] - middle)
        slope[places[i]] = -here * factor
    return factor * max(count + product, 0.0)


@jit
def few_grades(values, grades, weights, a, b, factor, slope):  # type: ignore[no-untyped-def]
    """As `two_grades` for up to FEW grades: for each the weight of the rows inside a window that it is compared with.

    A row that enters the window adds to those of all grades above its own, or below, in one stroke.
    """
    weighted = weights.size > 0
    middle, count, product = values[(a + b) // 2], 0.0, 0.0
    higher, inside = np.tri(FEW, FEW, -1), np.zeros(FEW)
    lower, at = higher.T.copy(), a
    for j in range(a, b):
        limit = values[j] + 1.0
        while at < b and values[at] < limit:
            weight, share = weights[at] if weighted else 1.0, higher[grades[at]]
            for g in range(FEW):
                inside[g] += weight * share[g]
            at += 1
        here = (weights[j] if weighted else 1.0) * inside[grades[j]]
        count += here
        product += here * (values[j] - middle)
        slope[j] = here * factor
    inside[:] = 0.0
    at = b - 1
    for i in range(b - 1, a - 1, -1):
        while at >= a and values[at] + 1.0 > values[i]:
            weight, share = weights[at] if weighted else 1.0, lower[grades[at]]
            for g in range(FEW):
                inside[g] += weight * share[g]
            at -= 1
        here = (weights[i] if weighted else 1.0) * inside[grades[i]]
        product -= here * (values[i] - middle)
        slope[i] -= here * factor
    return factor * max(count + product, 0.0)


@jit
def many_grades(values, grades, weights, a, b, top, factor, tree, slope):  # type: ignore[no-untyped-def]
    """As `two_grades` for `top` grades; a Fenwick tree over grades holds the weight of the rows inside a window."""
    weighted = weights.size > 0
    middle, count, product = values[(a + b) // 2], 0.0, 0.0
    tree[: top + 1] = 0.0
    inside, at = 0.0, a
    for j in range(a, b):
        limit = values[j] + 1.0
        while at < b and values[at] < limit:
            weight = weights[at] if weighted else 1.0
            inside += weight
            place = grades[at] + 1
            while place <= top:
                tree[place] += weight
                place += place & -place
            at += 1
        below, place = 0.0, grades[j] + 1
        while place > 0:
            below += tree[place]
            place -= place & -place
        here = (weights[j] if weighted else 1.0) * max(inside - below, 0.0)
        count += here
        product += here * (values[j] - middle)
        slope[j] = here * factor
    tree[: top + 1] = 0.0
    at = b - 1
    for i in range(b - 1, a - 1, -1):
        while at >= a and values[at] + 1.0 > values[i]:
            weight = weights[at] if weighted else 1.0
            place = grades[at] + 1
            while place <= top:
                tree[place] += weight
                place += place & -place
            at -= 1
        below, place = 0.0, grades[i]
        while place > 0:
            below += tree[place]
            place -= place & -place
        here = (weights[i] if weighted else 1.0) * below
        product -= here * (values[i] - middle)
        slope[i] -= here * factor
    return factor * max(count + product, 0.0)


@jit
def count_short_pairs(values, grades, weights, starts, levels, factors, slope):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum over pairs (i above j in grade, of one piece) of w_i w_j max(0, 1 - (f_i - f_j)).

    A pair counts where f_i < f_j + 1. Both ends are counted by this same comparison, so that they agree on every pair
    whatever the rounding was; the value follows from the counts.

    Parameters
    ----------
    values : scores f, rising within each piece.
    grades : of the same rows, 0 to levels - 1 of the piece.
    weights : of the same rows, empty where all are 1.
    starts : piece k is the rows starts[k] to starts[k + 1].
    levels, factors : per piece the number of grades, and what its sum is multiplied by.
    """
    most, longest = 1, 0
    for k in range(levels.size):
        most = max(most, levels[k])
        longest = max(longest, starts[k + 1] - starts[k])
    places, scores, tree = np.empty(longest, np.int64), np.empty(longest), np.zeros(most + 1)
    total = 0.0
    for k in range(levels.size):
        a, b, top, factor = starts[k], starts[k + 1], levels[k], factors[k]
        if top < 2 or factor == 0.0:
            slope[a:b] = 0.0
        elif top == 2:
            total += two_grades(values, grades, weights, a, b, factor, places, scores, slope)
        elif top <= FEW:
            total += few_grades(values, grades, weights, a, b, factor, slope)
        else:
            total += many_grades(values, grades, weights, a, b, top, factor, tree, slope)
    return total


@jit
def weigh_pairs(masses, borders, found):  # type: ignore[no-untyped-def]
    """Fill the sum over pairs of different grades of the products of their masses, query by query.

    Parameters
    ----------
    masses : of the grades of each query, one query after the other.
    borders : (queries + 1,), where the grades of each begin, and the last end.
    found : (queries,) to be filled; exactly 0 where one grade alone has a mass.
    """
    for q in range(found.size):
        below = total = 0.0
        for k in range(borders[q], borders[q + 1]):
            total += masses[k] * below
            below += masses[k]
        found[q] = total
