"""Normalised discounted cumulative gain as a loss of rankings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.assignment import AssignmentLoss
from bmrm.losses._core.prepared import Array
from bmrm.problem import Targets
from bmrm.registry import parameter

MOST_GRADE = 50.0
"""Largest grade: with a larger one, 2^y would dominate all others."""


@register("ndcg", task="ranking")
@dataclass(frozen=True)
class Ndcg(AssignmentLoss):
    """mean over queries of max_pi 1 - NDCG(pi) + 1/n sum over inverted pairs of f_j - f_i: for NDCG.

    pi is a ranking. NDCG(pi) = sum_i D(pi(i)) (2^y_i - 1) / (its largest value), D(r) = 1 / log2(1 + r) up to rank
    `truncation` and 0 beyond; the pairs are those with y_i > y_j, in a query of n rows. `joint: pair_mean` divides by
    the number of such pairs of the query instead of n, `pair_sum` by nothing. Convex, and at least 1 - NDCG of the
    ranking by f: see `_core.assignment`. Queries whose rows all have the same grade are ignored.

    With `joint: ranks`, the form of the paper, the sum is that of (c(pi(i)) - c_i) f_i over the rows, c = D, or c(r) =
    r^-decay, c_i the mean of c over the ranks that rows of the grade of i take in a best ranking. It compares every row
    with its place in one best ranking, so the spread of scores within a grade costs more than errors do: on noisy data
    its minimum is at w = 0.

    Domain: grades from 0 to 50; groups; weights other than 1 are refused. Costs a dynamic program over the grades of
    each query, at most an assignment, O(n^3) for n rows; with `joint: ranks` and no `decay` one sort. Kinks where
    rankings are equally bad. A shift of the scores of a query does not change the loss.
    """

    truncation: int | None = parameter(10, doc="ranks beyond count nothing; null: all count", least=1, example=3)

    formula = "mean over queries of max_pi 1 - NDCG(pi) + 1/n sum over inverted pairs of f_j - f_i"
    source = "Jarvelin & Kekalainen 2002; Le & Smola 2007"

    def gains(self, targets: Targets) -> Array:
        """2^y - 1."""
        return np.exp2(self.grades(targets, 0.0, MOST_GRADE)) - 1.0

    def discounts(self, ranks: int) -> Array:
        """1 / log2(1 + r), 0 beyond the truncation."""
        r = np.arange(1, ranks + 1)
        return np.where(r <= (ranks if self.truncation is None else self.truncation), 1.0 / np.log2(1.0 + r), 0.0)
