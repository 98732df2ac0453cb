"""Recall among the k best rows as a loss of the whole sample."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses.multivariate import MeasureLoss, Table, worst_of_size
from bmrm.losses.prepared import Array
from bmrm.problem import InputError
from bmrm.registry import parameter


@register("recall_at_k", task="binary")
@dataclass(frozen=True)
class RecallAtK(MeasureLoss):
    """max over labellings y' with k positives of 1 - a(y')/n_pos + (1/m) sum_i (y'_i - y_i) f_i / 2; a: true positives.

    Where the true labelling has not k positives, it competes too, with Delta 0: otherwise the loss would have no lower
    bound. Then a large enough shift of all scores makes the loss 0, and a free intercept has no meaning.

    Domain: two classes; all rows of the sample at once, at least k; weights other than 1 are refused. Costs a sort. The
    order of the scores is trained, not their sign.
    """

    k: int = parameter(10, doc="how many rows are looked at", least=1, example=20)

    formula = "max over y' with k positives of 1 - recall(y') + sum_i (y'_i - y_i) f_i / (2m)"
    source = "Joachims 2005"
    metrics = ("recall_at_k", "auc")
    no_free_intercept = "a large shift of all scores satisfies it, or changes nothing"

    def check(self, positives: int, negatives: int) -> None:
        """InputError where there are fewer than k rows."""
        if self.k > positives + negatives:
            raise InputError(f"{self.title}: k is {self.k}, expected at most the {positives + negatives} rows")

    def worst(self, positive: Array, negative: Array) -> Table | None:
        """As of `MeasureLoss`."""
        return worst_of_size(positive, negative, self.k, float(positive.size))
