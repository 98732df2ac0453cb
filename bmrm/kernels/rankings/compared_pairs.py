"""Hinge loss over the pairs of rows of different grades, looking at each pair: for queries of few rows.

The processor compares several scores at once and no sorting is needed, so that up to some hundred pairs a row this is
faster than counting among sorted scores (`bmrm.kernels.rankings.pairs`).
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import fast_jit, jit


@jit
def compare_pairs(f, weights, lists, pieces, factors, slope):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum over pairs (i above j in grade, of one piece) of w_i w_j max(0, 1 - (f_i - f_j)).

    A pair counts where f_i < f_j + 1.

    Parameters
    ----------
    f : scores, by piece and within it by rising grade.
    weights : of the same rows, empty where all are 1.
    lists : list l is the rows lists[l] to lists[l + 1], of one grade.
    pieces : piece k is the lists pieces[k] to pieces[k + 1].
    factors : per piece, what its sum is multiplied by.
    """
    longest = 0
    for k in range(factors.size):
        longest = max(longest, lists[pieces[k + 1]] - lists[pieces[k]])
    limits, ones = np.empty(longest), np.ones(longest)
    total = 0.0
    for k in range(factors.size):
        start, stop = lists[pieces[k]], lists[pieces[k + 1]]
        own = slope[start:stop]
        own[:] = 0.0
        masses = weights[start:stop] if weights.size else ones[: stop - start]
        for i in range(stop - start):
            limits[i] = f[start + i] + 1.0
        count = 0.0
        for l in range(pieces[k] + 1, pieces[k + 1]):
            count += _above_lower(f[start:stop], masses, lists[l] - start, lists[l + 1] - start, limits, own)
        total += factors[k] * max(count + _product(f[start:stop], masses, factors[k], own), 0.0)
    return total


@jit
def _above_lower(f, masses, first, behind, limits, slope):  # type: ignore[no-untyped-def]
    """Add the pairs of the rows [first, behind) with those before to `slope`, weights of the other row only.

    Returns the weight of the pairs.
    """
    count, last = 0.0, behind - 1
    for i in range(first, behind, 4):
        # Four rows at a time; at the end the last one again, with weight 0.
        j, k, l = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        w_j, w_k, w_l = masses[j] * (j > i), masses[k] * (k > j), masses[l] * (l > k)
        scores, weights = (f[i], f[j], f[k], f[l]), (masses[i], w_j, w_k, w_l)
        a, b, c, d = _four_rows(limits[:first], masses[:first], scores, weights, slope[:first])
        count += masses[i] * a + w_j * b + w_k * c + w_l * d
        slope[i], slope[j], slope[k], slope[l] = -a, -b, -c, -d
    return count


@fast_jit
def _four_rows(limits, masses, scores, weights, slope):  # type: ignore[no-untyped-def]
    """Add the weights of those of four scores that are below a limit to its slope; return the weight of the limits."""
    a, b, c, d = scores
    w_a, w_b, w_c, w_d = weights
    under_a = under_b = under_c = under_d = 0.0
    for j in range(limits.size):
        limit, mass = limits[j], masses[j]
        under_a += mass if a < limit else 0.0
        under_b += mass if b < limit else 0.0
        under_c += mass if c < limit else 0.0
        under_d += mass if d < limit else 0.0
        first = (w_a if a < limit else 0.0) + (w_b if b < limit else 0.0)
        slope[j] += first + ((w_c if c < limit else 0.0) + (w_d if d < limit else 0.0))
    return under_a, under_b, under_c, under_d


@fast_jit
def _product(f, masses, factor, slope):  # type: ignore[no-untyped-def]
    """Finish the slope of a piece; return its product with the scores, over `factor`.

    Slopes add up to 0, so the mean of the scores that have one may be the origin.
    """
    size, middle, product = 0.0, 0.0, 0.0
    for i in range(f.size):
        slope[i] *= masses[i]
        size += abs(slope[i])
        middle += abs(slope[i]) * f[i]
    if size > 0.0:
        middle /= size
    for i in range(f.size):
        product += slope[i] * (f[i] - middle)
        slope[i] *= factor
    return product
