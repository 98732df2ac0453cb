"""Hinge loss over all pairs of rows of different grades."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from numpy.typing import NDArray

from bmrm.losses import register
from bmrm.losses._core import domain
from bmrm.losses._core.grouping import Grouping, grades_within
from bmrm.losses._core.pairs import PreparedPairs
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import Labels, LossBase
from bmrm.problem import Summary, Targets


@register("ordinal", task="ordinal")
@dataclass(frozen=True)
class Ordinal(LossBase):
    """mean over all pairs i, j with y_i > y_j of max(0, 1 - (f_i - f_j)): `roc_area` for any number of grades.

    Domain: any finite grades; all rows of the sample at once. A weight is a number of copies: a pair weighs s_i s_j.
    Costs one sort and O(m log r) for r grades. Kinks at f_i = f_j + 1, where a pair counts as satisfied. A common shift
    of the scores does not change the loss, so a free intercept has no meaning. Herbrich et al. sum over pairs.
    """

    task: ClassVar[str] = "ordinal"
    decomposes: ClassVar[Literal["rows", "groups", "no"]] = "no"
    formula = "mean over pairs, y_i > y_j, of max(0, 1 - (f_i - f_j))"
    source = "Herbrich, Graepel & Obermayer 2000; Joachims 2006"
    metrics = ("kendall_tau",)
    only_ranks = True
    no_free_intercept = "a common shift of the scores changes nothing"

    def summarise(self, targets: Targets) -> Summary:
        """Number of rows and their weight."""
        return domain.summary_of_rows(targets, self.title)

    def prepare(self, targets: Targets, summary: Summary) -> PreparedPairs:
        """Bind to all rows; InputError if a grade is not a finite number."""
        y = domain.grades(targets, self.title)
        weights = domain.checked_weights(targets, self.title)
        grouping = Grouping.one(targets.rows)
        grades, levels = grades_within(grouping, y)
        nothing = f"{self.title}: all rows have one grade, expected at least two grades of positive weight"
        return PreparedPairs(grouping, grades, levels, weights, False, nothing)

    def predict(self, f: Array, labels: Labels) -> NDArray[Any]:
        """The scores themselves, (rows,): the higher, the higher the grade."""
        return f
