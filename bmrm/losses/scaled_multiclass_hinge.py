"""Multiclass hinge loss with the slack rescaled by the cost of the mistake."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses.cost_matrix import CostMatrixLoss
from bmrm.losses.prepared import Array, Positions


@fast_jit
def scaled_multiclass_hinge_kernel(f, y, weights, slope, cost):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.shape[0]):
        own = y[i]
        worst, best = own, 0.0
        for k in range(f.shape[1]):
            slope[i, k] = 0.0
            violation = cost[own, k] * (1.0 + f[i, k] - f[i, own])
            if violation > best:
                worst, best = k, violation
        rate = cost[own, worst]
        if weighted:
            best *= weights[i]
            rate *= weights[i]
        total += best
        slope[i, worst] += rate
        slope[i, own] -= rate
    return total


@register("scaled_multiclass_hinge", task="multiclass")
@dataclass(frozen=True)
class ScaledMulticlassHinge(CostMatrixLoss):
    """max_k cost(y, k) (1 + f_k - f_y): the multiclass support vector machine, slack rescaled by a cost.

    Domain: at least two classes. `cost` has a row per true class and a column per predicted one, in the order of the
    labels, 0 on the diagonal and never negative; None is cost 1 for every mistake, then it is `multiclass_hinge`.
    Every mistake has to be avoided by the same margin 1, dear ones cost more. Table 2 of the KDD paper (2007) writes
    Delta^beta (Delta + f_k - f_y): beta = 0 is `multiclass_hinge`; with beta = 1 and costs other than 0 and 1 its
    margin is Delta where ours is 1. At ties the slope takes the true class first, then the first of the worst.
    """

    formula = "max_k cost(y, k) (1 + f_k - f_y)"
    source = "Tsochantaridis, Joachims, Hofmann & Altun 2005"
    kernel = staticmethod(scaled_multiclass_hinge_kernel)

    def value(self, f: Array, y: Positions) -> Array:
        """The loss of each row."""
        loss: Array = np.maximum(0.0, self._violations(f, y).max(axis=1))
        return loss

    def slope(self, f: Array, y: Positions) -> Array:
        """Its slope: the cost at the worst class, minus it at the true one."""
        rows = np.arange(len(y))
        reach = self._violations(f, y)
        worst = np.where(reach.max(axis=1) > 0.0, reach.argmax(axis=1), y)
        rates = self._table(f.shape[1])[y, worst]
        slope = np.zeros_like(f)
        slope[rows, worst] += rates
        slope[rows, y] -= rates
        return slope

    def _violations(self, f: Array, y: Positions) -> Array:
        reach: Array = self._table(f.shape[1])[y] * (1.0 + f - f[np.arange(len(y)), y][:, None])
        return reach
