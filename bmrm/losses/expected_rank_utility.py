"""The expected utility of a ranked list as a loss of rankings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.assignment import AssignmentLoss
from bmrm.losses._core.prepared import Array
from bmrm.problem import Targets
from bmrm.registry import parameter


@register("expected_rank_utility", task="ranking")
@dataclass(frozen=True)
class ExpectedRankUtility(AssignmentLoss):
    """mean over queries of max_pi 1 - ERU(pi) + 1/n sum over inverted pairs of f_j - f_i: for expected rank utility.

    pi is a ranking. ERU(pi) = sum_i D(pi(i)) max(0, y_i - neutral) / (its largest value), D(r) = 2^(-(r - 1) /
    (half_life - 1)): at rank half_life a user still looks with probability one half. Convex, and at least 1 - ERU of
    the ranking by f: see `bmrm.losses._core.assignment`. Queries whose rows all have the same gain are ignored.

    Other `joint`, such as `ranks`, the form of the paper: see `ndcg`. Domain: any finite grades; groups; weights other
    than 1 are refused. Costs a dynamic program, at most an assignment, O(n^3) for n rows; with `joint: ranks` and no
    `decay` one sort within each query. Kinks where rankings are equally bad. A shift of the scores of a query does not
    change the loss.
    """

    half_life: float = parameter(5.0, doc="the rank that every other user still sees", above=1.0, example=2.5)
    neutral: float = parameter(0.0, doc="a grade up to this one is worth nothing", example=1.0)

    formula = "mean over queries of max_pi 1 - ERU(pi) + 1/n sum over inverted pairs of f_j - f_i"
    source = "Breese, Heckerman & Kadie 1998; Le & Smola 2007"
    metrics = ("expected_rank_utility", "ndcg@10", "ndcg", "mrr", "kendall_tau")

    def gains(self, targets: Targets) -> Array:
        """max(0, y - neutral)."""
        return np.maximum(0.0, self.grades(targets) - self.neutral)

    def discounts(self, ranks: int) -> Array:
        """2^(-(r - 1) / (half_life - 1))."""
        return np.exp2(-np.arange(ranks) / (self.half_life - 1.0))
