"""A hinge over pairs of rows, bound to some rows."""

from __future__ import annotations

import numpy as np

from bmrm.kernels.pairs import count_short_pairs
from bmrm.kernels.sorting import ascending_within
from bmrm.kernels.vectors import plain
from bmrm.losses.grouping import Grouping, Rows
from bmrm.losses.prepared import NO_WEIGHTS, Array, Curve, along_by_slopes
from bmrm.problem import Vector


class PreparedPairs:
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

    scores_per_row = 1
    extra_dim = 0
    infimum = 0.0
    smooth = False

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
        self.factors = np.divide(1.0, self.pairs, where=present, out=np.zeros(len(ones))) if by_group else ones

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum at scores `f`, and its slope, a new array like `f`."""
        grouping = self.grouping
        order, values = ascending_within(grouping.together(plain(f)), grouping.starts)
        weights = NO_WEIGHTS if self.weights is None else self.weights[order]
        slope = np.empty(values.size)
        total = count_short_pairs(
            values, self.grades[order], weights, grouping.starts, self.levels, self.factors, slope
        )
        out = np.empty_like(slope)
        out[order] = slope
        return float(total), grouping.back(out)

    def along(self, f: Array, step: Array) -> Curve:
        """The function t -> (the sum at f + t step, its derivative in t), for a vector of t."""
        return along_by_slopes(self.value_and_slope, f, step)


def _pairs(grouping: Grouping, grades: Rows, levels: Rows, weights: Vector | None) -> Vector:
    """(groups,) the sum of w_i w_j over pairs of different grades."""
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(levels)])
    cell = grades + grouping.per_row(first[:-1])
    in_cell = np.bincount(cell, weights, minlength=int(first[-1])).astype(np.float64)
    if not levels.size:
        return np.zeros(0)
    below = np.cumsum(in_cell) - in_cell
    below -= np.repeat(below[first[:-1]], levels)
    return np.asarray(np.add.reduceat(in_cell * below, first[:-1]))
