"""A hinge over pairs of rows, bound to some rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import plain
from bmrm.kernels.rankings.compared_pairs import compare_pairs
from bmrm.kernels.rankings.pairs import count_short_pairs, weigh_pairs
from bmrm.kernels.rankings.sorting import ascending_within
from bmrm.losses._core.grouping import Grouping, Rows
from bmrm.losses._core.prepared import NO_WEIGHTS, Array
from bmrm.losses._core.whole_sample import KinkedSample
from bmrm.problem import Vector

COMPARED = 300
"""Pairs per row of a query up to which comparing all of them is faster than sorting."""


class PreparedPairs(KinkedSample):
    """The sum over groups of factor times the sum over pairs of w_i w_j max(0, 1 - (f_i - f_j)), i of higher grade.

    Attributes
    ----------
    pairs : (groups,) the sum of w_i w_j over the pairs of each group.

    Parameters
    ----------
    grouping : of the rows.
    grades, levels : of `grades_within`, rows of a group together.
    weights : (rows,), rows of a group together, or None.
    by_group : whether each group with pairs counts one, instead of each pair.
    nothing : the message where there are no pairs at all.
    """

    def __init__(
        self, grouping: Grouping, grades: Rows, levels: Rows, weights: Vector | None, by_group: bool, nothing: str
    ) -> None:
        self.grouping, self.grades, self.levels = grouping, grades, levels
        self.weights = weights
        self.nothing = nothing
        self.pairs = _pairs(grouping, grades, levels, weights)
        present = self.pairs > 0.0
        ones = present.astype(np.float64)
        self.mass = float(ones.sum() if by_group else self.pairs.sum())
        factors = np.divide(1.0, self.pairs, where=present, out=np.zeros(len(ones))) if by_group else ones
        few = present & (_pairs(grouping, grades, levels, None) <= COMPARED * grouping.sizes)
        parts = (ComparedQueries, few), (SortedQueries, present & ~few)
        self.parts = [kind(self, chosen, factors[chosen]) for kind, chosen in parts if chosen.any()]

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum at scores `f`, and its slope, a new array like `f`."""
        f = self.grouping.together(plain(f))
        slope = np.zeros_like(f)
        return float(sum(part.fill(f, slope) for part in self.parts)), self.grouping.back(slope)


class ComparedQueries:
    """Queries whose pairs are looked at one by one, their rows by grade."""

    def __init__(self, whole: PreparedPairs, chosen: NDArray[np.bool_], factors: Vector) -> None:
        rows = np.flatnonzero(whole.grouping.per_row(chosen))
        grades, levels = whole.grades[rows], whole.levels[chosen]
        self.pieces: Rows = np.append(0, np.cumsum(levels))
        cell = grades + np.repeat(self.pieces[:-1], whole.grouping.sizes[chosen])
        self.lists: Rows = np.append(0, np.cumsum(np.bincount(cell, minlength=self.pieces[-1])))
        self.rows = rows[np.argsort(cell, kind="stable")]
        self.weights = NO_WEIGHTS if whole.weights is None else whole.weights[self.rows]
        self.factors = factors

    def fill(self, f: Array, slope: Array) -> float:
        """Fill the slope of these rows at scores `f`, return their sum."""
        own = np.empty(self.rows.size)
        total = compare_pairs(f[self.rows], self.weights, self.lists, self.pieces, self.factors, own)
        slope[self.rows] = own
        return float(total)


class SortedQueries:
    """Queries whose pairs are counted among sorted scores."""

    def __init__(self, whole: PreparedPairs, chosen: NDArray[np.bool_], factors: Vector) -> None:
        self.rows = np.flatnonzero(whole.grouping.per_row(chosen))
        self.grades, self.levels = whole.grades[self.rows], whole.levels[chosen]
        self.weights = None if whole.weights is None else whole.weights[self.rows]
        self.starts: Rows = np.append(0, np.cumsum(whole.grouping.sizes[chosen]))
        self.factors = factors

    def fill(self, f: Array, slope: Array) -> float:
        """Fill the slope of these rows at scores `f`, return their sum."""
        order, values = ascending_within(f if self.rows.size == f.size else f[self.rows], self.starts)
        grades = self.grades[order]
        weights = NO_WEIGHTS if self.weights is None else self.weights[order]
        own = np.empty(values.size)
        total = count_short_pairs(values, grades, weights, self.starts, self.levels, self.factors, own)
        slope[order if self.rows.size == f.size else self.rows[order]] = own
        return float(total)


def _pairs(grouping: Grouping, grades: Rows, levels: Rows, weights: Vector | None) -> Vector:
    """(groups,) the sum of w_i w_j over pairs of different grades."""
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(levels)])
    cell = grades + grouping.per_row(first[:-1])
    in_cell = np.bincount(cell, weights, minlength=int(first[-1])).astype(np.float64)
    found = np.empty(levels.size)
    weigh_pairs(in_cell, first, found)
    return found
