"""Precision among the k best rows as a loss of the whole sample."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses._core.multivariate import AtKLoss


@register("precision_at_k", task="binary")
@dataclass(frozen=True)
class PrecisionAtK(AtKLoss):
    """max over y' with k positives of 1 - a(y')/k + sum_i (y'_i - y_i) f_i / (2m): precision of the k highest scores.

    The maximum is over labelings y' of the sample, a(y') their true positives.
    If the number of positives is not k, the maximum includes the true labeling, with Delta 0: otherwise the loss would
    be unbounded below. A large enough shift of all scores then makes the loss 0, so a free intercept has no meaning.

    Domain: two classes; all rows of the sample at once, at least k; weights other than 1 are refused. Costs a sort. The
    order of the scores is trained, not their sign.
    """

    formula = "max over y' with k positives of 1 - prec(y') + sum_i (y'_i - y_i) f_i / (2m)"
    source = "Joachims 2005"
    at_zero = "take loss roc_area"
    metrics = ("precision_at_k", "auc")

    def most(self, positives: int) -> int:
        """k: precision is the share of the k rows that are positive."""
        return self.k
