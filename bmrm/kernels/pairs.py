"""Hinge loss over the pairs of rows of different grades, counted without looking at each pair."""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import jit


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
    most = 1
    for k in range(levels.size):
        most = max(most, levels[k])
    tree = np.zeros(most + 1)
    weighted = weights.size > 0
    total = 0.0
    for k in range(levels.size):
        a, b, top, factor = starts[k], starts[k + 1], levels[k], factors[k]
        if top < 2 or factor == 0.0:
            slope[a:b] = 0.0
            continue
        middle = values[(a + b) // 2]
        count, product = 0.0, 0.0
        if top == 2:
            inside, at = 0.0, a
            for j in range(a, b):
                limit = values[j] + 1.0
                while at < b and values[at] < limit:
                    inside += grades[at] * (weights[at] if weighted else 1.0)
                    at += 1
                here = (1 - grades[j]) * (weights[j] if weighted else 1.0) * inside
                count += here
                product += here * (values[j] - middle)
                slope[j] = here * factor
            inside, at = 0.0, b - 1
            for i in range(b - 1, a - 1, -1):
                while at >= a and values[at] + 1.0 > values[i]:
                    inside += (1 - grades[at]) * (weights[at] if weighted else 1.0)
                    at -= 1
                here = grades[i] * (weights[i] if weighted else 1.0) * inside
                product -= here * (values[i] - middle)
                slope[i] -= here * factor
        else:
            # A Fenwick tree over grades holds the weight of the rows inside the window.
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
        total += factor * max(count + product, 0.0)
    return total
