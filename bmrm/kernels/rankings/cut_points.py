"""Hinges on the two sides of cut points: where each has its kink, and what all cost at given cuts.

A row of grade g should be above the cuts 0, ..., g - 1 by 1 and below the others: cut k costs it max(0, 1 - f + cut)
with a kink at f - 1 for k < g, and max(0, 1 + f - cut) with a kink at f + 1 for k >= g. `near` leaves only the cuts
g - 1 and g. Kinks are compared as they were rounded, in every function alike.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import fast_jit, jit

BLOCK = 2048
"""Rows whose costs stay in the L1 cache during the pass over the cuts."""


@jit
def kinks_between(f, grades, weights, cut, near, low, high, kinks, masses):  # type: ignore[no-untyped-def]
    """Fill `kinks` with those of one cut within [low, high], `masses` with their weights.

    Returns the weight of the kinks below, and how many lie within. `kinks` has room for one more than there are rows,
    so has `masses`, but where all weights are 1: then `weights` and `masses` are empty.
    """
    below, fewer, count = 0.0, 0, 0
    weighted = weights.size > 0
    for i in range(f.size):
        above = grades[i] > cut
        kink = f[i] - 1.0 if above else f[i] + 1.0
        counts = (not near) | (grades[i] == cut + above)
        # Written always, kept or not: which rows lie within cannot be foreseen, so there is no branch.
        kinks[count] = kink
        if weighted:
            masses[count] = weights[i]
            below += weights[i] if counts & (kink < low) else 0.0
        fewer += counts & (kink < low)
        count += counts & (low <= kink) & (kink <= high)
    return below if weighted else float(fewer), count


@jit
def costs_at_cuts(f, grades, weights, cuts, parts, near, slope):  # type: ignore[no-untyped-def]
    """Fill `slope` with that of all hinges at these cuts, return their sum.

    Of the rows above a cut whose kink lies on it the share `parts[cut]` is active, of those below it the rest.
    """
    costs, total = np.empty(min(BLOCK, f.size)), 0.0
    for a in range(0, f.size, BLOCK):
        b = min(f.size, a + BLOCK)
        costs[:], slope[a:b] = 0.0, 0.0
        for cut in range(cuts.size):
            _add_cut(f[a:b], grades[a:b], cut, near, cuts[cut], parts[cut], costs, slope[a:b])
        if weights.size:
            for i in range(a, b):
                slope[i] *= weights[i]
                costs[i - a] *= weights[i]
        total += _sum(costs[: b - a])
    return total


@jit
def _add_cut(f, grades, cut, near, place, part, costs, slope):  # type: ignore[no-untyped-def]
    for i in range(f.size):
        above = grades[i] > cut
        side = 1.0 if above else -1.0
        away = side * (place - (f[i] - side))
        share = 1.0 if away > 0.0 else ((part if above else 1.0 - part) if away == 0.0 else 0.0)
        if near:
            share = share if grades[i] == cut + above else 0.0
        costs[i] += share * away
        slope[i] -= share * side


@fast_jit
def _sum(values):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(values.size):
        total += values[i]
    return total


@jit
def next_kink(f, grades, weights, cut, near, place):  # type: ignore[no-untyped-def]
    """The lowest kink of one cut above `place`, of a row of positive weight; inf where there is none."""
    following = np.inf
    for i in range(f.size):
        above = grades[i] > cut
        kink = f[i] - 1.0 if above else f[i] + 1.0
        if kink > place and (not near or grades[i] == cut + above) and (weights.size == 0 or weights[i] > 0.0):
            following = min(following, kink)
    return following
