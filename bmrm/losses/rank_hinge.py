"""Hinge loss over the pairs of a query: the ranking support vector machine."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses._core import domain
from bmrm.losses._core.grouping import NO_PAIRS, RankingLoss, grades_within
from bmrm.losses._core.pairs import PreparedPairs
from bmrm.problem import Summary, Targets
from bmrm.registry import parameter


@register("rank_hinge", task="ranking")
@dataclass(frozen=True)
class RankHinge(RankingLoss):
    """mean over pairs i, j of one query with y_i > y_j of max(0, 1 - (f_i - f_j)): the ranking SVM.

    With `average: queries` the mean is taken within each query and then over the queries, so that all queries have the
    same weight. Queries whose rows all have the same grade have no pairs and are ignored.

    Domain: any finite grades; groups. A weight is a number of copies: a pair weighs s_i s_j. Costs one sort within
    each query, O(n log n), and O(n log r) for r grades. Kinks at f_i = f_j + 1, where a pair counts as satisfied. A
    shift of the scores of a query does not change the loss. SVMrank divides by the number of queries instead of pairs:
    its C is ours times queries / pairs.
    """

    average: str = parameter(
        "pairs",
        doc="what counts alike: all pairs, or all queries",
        choices=("pairs", "queries"),
        example="queries",
    )

    formula = "mean over pairs of a query, y_i > y_j, of max(0, 1 - (f_i - f_j))"
    source = "Herbrich, Graepel & Obermayer 2000; Joachims 2002"

    def prepare(self, targets: Targets, summary: Summary) -> PreparedPairs:
        """Bind to some whole groups; InputError if a grade is not a finite number or there are no groups."""
        y = self.grades(targets)
        weights = domain.checked_weights(targets, self.title)
        grouping = self.grouping(targets)
        grades, levels = grades_within(grouping, grouping.together(y))
        together = None if weights is None else grouping.together(weights)
        by_group = self.average == "queries"
        return PreparedPairs(grouping, grades, levels, together, by_group, f"{self.title}: {NO_PAIRS}")
