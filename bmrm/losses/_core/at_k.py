"""Measures of the k best rows as losses of the whole sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bmrm.losses._core.multivariate import MeasureLoss, Table, worst_of_size
from bmrm.losses._core.prepared import Array
from bmrm.problem import InputError
from bmrm.registry import parameter


@dataclass(frozen=True)
class AtKLoss(MeasureLoss):
    """max over labellings y' with k positives of 1 - a(y')/n + (1/m) sum_i (y'_i - y_i) f_i / 2; a: true positives.

    Where the true labelling has not k positives, it competes too, with Delta 0: otherwise the loss would have no lower
    bound. Then a large enough shift of all scores makes the loss 0, and a free intercept has no meaning.
    """

    k: int = parameter(10, doc="how many rows are looked at", least=1, example=20)

    no_free_intercept: ClassVar[str] = "a large shift of all scores satisfies it, or changes nothing"

    def most(self, positives: int) -> int:
        """n, the true positives of a perfect labelling by the measure, among so many positive rows."""
        raise TypeError(f"{self.title} does not define most(positives)")

    def check(self, positives: int, negatives: int) -> None:
        """InputError where there are fewer than k rows."""
        if self.k > positives + negatives:
            raise InputError(f"{self.title}: k is {self.k}, expected at most the {positives + negatives} rows")

    def worst(self, positive: Array, negative: Array) -> Table | None:
        """As of `MeasureLoss`."""
        return worst_of_size(positive, negative, self.k, float(self.most(positive.size)))
