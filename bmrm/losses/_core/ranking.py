"""Ranks shared by rows of equal gain, and the loss of rankings whose joint score weighs ranks as the measure does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import jit
from bmrm.kernels.products.vectors import plain
from bmrm.kernels.rankings.sorting import ascending_within
from bmrm.losses._core.grouping import NO_PAIRS, Grouping, Rows, grades_within
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.whole_sample import KinkedSample
from bmrm.problem import Vector


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


class PreparedRanking(KinkedSample):
    """Gains and reference weights of some whole queries, and what ranks weigh.

    Queries without rows of different gain do not count.

    Parameters
    ----------
    title : of the loss.
    gains, discounts : (rows,) as of `AssignmentLoss.gains`; (ranks,) for as many ranks as the longest query has.
    """

    def __init__(self, title: str, grouping: Grouping, gains: Array, discounts: Vector) -> None:
        self.nothing = f"{title}: {NO_PAIRS}"
        self.grouping = grouping
        gains = grouping.together(gains)
        grades, levels = grades_within(grouping, gains)
        self.discounts = discounts
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
