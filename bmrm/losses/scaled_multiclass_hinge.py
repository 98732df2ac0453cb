"""Multiclass hinge loss with the slack rescaled by the cost of the mistake, or a power of it, and the margin too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.cost_matrix import CostMatrixLoss
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.rescaling import COST, beta_option, margin_option, rescaled

BESIDE = {"cost": COST}


@register("scaled_multiclass_hinge", task="multiclass")
@dataclass(frozen=True)
class ScaledMulticlassHinge(CostMatrixLoss):
    """max_k cost(y, k)^beta (margin + f_k - f_y): the multiclass support vector machine, slack rescaled by a cost.

    Domain: at least two classes. `cost` has a row per true class and a column per predicted one, in the order of the
    labels, 0 on the diagonal and never negative; None is cost 1 for every mistake, then it is `multiclass_hinge`
    whatever the other options.

    The margin is 1 for all mistakes (`margin: one`) or their cost (`margin: cost`); the true class has margin 0. By
    default, `margin: one` and `beta: 1`, it is the slack rescaling of Tsochantaridis and others: all mistakes have the
    same margin, but different costs. `margin: cost` is table 2 of the KDD paper (2007) as printed, Delta^beta (Delta +
    f_k - f_y), its scaled soft margin with `beta: 1` and its soft margin, `multiclass_hinge`, with `beta: 0`; the power
    0 of a cost of 0 is 1. `margin: one` and `beta: 0` is `multiclass_hinge` without costs.

    At ties the slope takes the true class first, then the first of the worst.
    """

    margin: str = margin_option("one", example="cost", beside=BESIDE)
    beta: float = beta_option(1.0, beside=BESIDE)

    formula = "max_k cost(y, k)^beta (margin + f_k - f_y), margin = 1 or cost(y, k)"
    source = (
        "Tsochantaridis, Joachims, Hofmann & Altun 2005; with margin cost Teo, Le, Smola & Vishwanathan 2007, table 2"
    )
    at_zero = "take loss softmax, or larger weights for rarer classes"
    scaled = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._tables(2 if self.cost is None else len(self.cost))

    def _tables(self, classes: int) -> tuple[Array, Array]:
        cost = self._table(classes)
        return rescaled(cost, np.eye(classes, dtype=bool), self.margin, self.beta, self.title)
