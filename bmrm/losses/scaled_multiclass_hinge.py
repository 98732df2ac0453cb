"""Multiclass hinge loss with the slack rescaled by the cost of the mistake."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses._core.cost_matrix import CostMatrixLoss


@register("scaled_multiclass_hinge", task="multiclass")
@dataclass(frozen=True)
class ScaledMulticlassHinge(CostMatrixLoss):
    """max_k cost(y, k) (1 + f_k - f_y): the multiclass support vector machine, slack rescaled by a cost.

    Domain: at least two classes. `cost` has a row per true class and a column per predicted one, in the order of the
    labels, 0 on the diagonal and never negative; None is cost 1 for every mistake, then it is `multiclass_hinge`.
    All mistakes have the same margin 1, but different costs. Table 2 of the KDD paper (2007) writes Delta^beta (Delta +
    f_k - f_y): beta = 0 is `multiclass_hinge`; with beta = 1 and costs other than 0 and 1 its margin is Delta where
    ours is 1. At ties the slope takes the true class first, then the first of the worst.
    """

    formula = "max_k cost(y, k) (1 + f_k - f_y)"
    source = "Tsochantaridis, Joachims, Hofmann & Altun 2005"
    scaled = True
