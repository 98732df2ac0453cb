"""The point where precision and recall are equal, as a loss of the whole sample."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses._core.multivariate import MeasureLoss, Table, worst_of_size
from bmrm.losses._core.prepared import Array


@register("break_even", task="binary")
@dataclass(frozen=True)
class BreakEven(MeasureLoss):
    """max over y' with n_pos positives of 1 - a(y')/n_pos + sum_i (y'_i - y_i) f_i / (2m): precision = recall.

    The maximum is over labelings y' of the sample, a(y') their true positives. If as many rows are labeled positive as
    there are positive rows, precision and recall are both a/n_pos: the precision-recall break-even point. It is
    `precision_at_k` with k the number of positive rows.

    Domain: two classes; all rows of the sample at once; weights other than 1 are refused. Costs a sort. A common shift
    of the scores does not change the loss, so a free intercept has no meaning; only the order of the scores is trained.
    """

    formula = "max over y' with n_pos positives of 1 - prec(y') + sum_i (y'_i - y_i) f_i / (2m)"
    source = "Joachims 2005 (PRBEP)"
    at_zero = "take loss logistic and the best threshold, as fit_f_measure does"
    metrics = ("break_even", "auc")
    no_free_intercept = "a common shift of the scores changes nothing"

    def worst(self, positive: Array, negative: Array) -> Table | None:
        """As of `MeasureLoss`."""
        return worst_of_size(positive, negative, positive.size, float(positive.size))
