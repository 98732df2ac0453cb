"""Hinge loss over pairs: a convex bound of one minus the area under the ROC curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core import domain
from bmrm.losses._core.grouping import Grouping
from bmrm.losses._core.over_ranks import ManyRanks, PairsOverRanks
from bmrm.losses._core.pairs import PreparedPairs
from bmrm.losses._core.whole_sample import WholeSampleLoss
from bmrm.losses.base import signs
from bmrm.problem import Summary, Targets


@register("roc_area", task="binary")
@dataclass(frozen=True)
class RocArea(WholeSampleLoss):
    """mean over pairs of a positive p and a negative n of max(0, 1 - (f_p - f_n)): for the area under the ROC curve.

    Domain: two classes; all rows of the sample at once. A weight is a number of copies: a pair weighs s_p s_n. Costs
    one sort, O(m log m). Kinks at f_p = f_n + 1, where a pair counts as satisfied. A common shift of the scores does
    not change the loss, so a free intercept has no meaning; only the order of the scores is trained. Joachims divides
    by pairs too; Herbrich et al. do not.
    """

    formula = "mean over pairs p, n of max(0, 1 - (f_p - f_n))"
    source = "Herbrich, Graepel & Obermayer 2000; Joachims 2005"
    metrics = ("auc",)
    no_free_intercept = "a common shift of the scores changes nothing"

    def prepare(self, targets: Targets, summary: Summary) -> PreparedPairs:
        """Bind to all rows; InputError unless there are exactly two labels."""
        y = signs(targets, summary, self.title)
        weights = domain.checked_weights(targets, self.title)
        grouping = Grouping.one(targets.rows)
        levels = np.full(grouping.groups, 2)
        return PreparedPairs(grouping, (y > 0.0).astype(np.int64), levels, weights, False, NO_PAIRS)

    def prepare_over_ranks(self, targets: Targets, summary: Summary, ranks: ManyRanks) -> PairsOverRanks:
        """Bind to the rows of this rank, see `bmrm.losses._core.over_ranks`."""
        y = signs(targets, summary, self.title)
        return PairsOverRanks(ranks, y > 0.0, domain.checked_weights(targets, self.title), NO_PAIRS)


NO_PAIRS = "roc_area: expected rows of positive weight in both classes"
