"""Recall among the k best rows as a loss of the whole sample."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses._core.multivariate import AtKLoss


@register("recall_at_k", task="binary")
@dataclass(frozen=True)
class RecallAtK(AtKLoss):
    """max over y' with k positives of 1 - a(y')/n_pos + sum_i (y'_i - y_i) f_i / (2m): recall of the k highest scores.

    The maximum is over labelings y' of the sample, a(y') their true positives.
    If the number of positives is not k, the maximum includes the true labeling, with Delta 0: otherwise the loss would
    be unbounded below. A large enough shift of all scores then makes the loss 0, so a free intercept has no meaning.

    Domain: two classes; all rows of the sample at once, at least k; weights other than 1 are refused. Costs a sort. The
    order of the scores is trained, not their sign.
    """

    formula = "max over y' with k positives of 1 - recall(y') + sum_i (y'_i - y_i) f_i / (2m)"
    source = "Joachims 2005"
    at_zero = "take loss roc_area"
    metrics = ("recall_at_k", "auc")

    def most(self, positives: int) -> int:
        """All of them: recall is the share of the positive rows that are among the k."""
        return positives
