"""Multiclass hinge loss of Crammer and Singer, for any cost matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses.cost_matrix import CostMatrixLoss
from bmrm.losses.prepared import Array, Positions


@fast_jit
def multiclass_hinge_kernel(f, y, weights, slope, cost):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.shape[0]):
        own = y[i]
        worst, best = own, cost[own, own] + f[i, own]
        for k in range(f.shape[1]):
            slope[i, k] = 0.0
            if cost[own, k] + f[i, k] > best:
                worst, best = k, cost[own, k] + f[i, k]
        weight = weights[i] if weighted else 1.0
        total += weight * ((cost[own, worst] + f[i, worst]) - f[i, own])
        slope[i, worst] += weight
        slope[i, own] -= weight
    return total


@register("multiclass_hinge", task="multiclass")
@dataclass(frozen=True)
class MulticlassHinge(CostMatrixLoss):
    """max_k (cost(y, k) + f_k - f_y): the multiclass support vector machine, margin rescaled by a cost.

    Domain: at least two classes. `cost` has a row per true class and a column per predicted one, in the order of the
    labels, 0 on the diagonal and never negative; None is cost 1 for every mistake. At ties the slope takes the true
    class first, then the first of the worst.
    """

    formula = "max_k (cost(y, k) + f_k - f_y)"
    source = "Crammer & Singer 2001; Taskar, Guestrin & Koller 2003"
    kernel = staticmethod(multiclass_hinge_kernel)

    def value(self, f: Array, y: Positions) -> Array:
        """The loss of each row."""
        loss: Array = self._violations(f, y).max(axis=1)
        return loss

    def slope(self, f: Array, y: Positions) -> Array:
        """Its slope: 1 at the worst class, -1 at the true one, 0 where they are the same."""
        rows = np.arange(len(y))
        reach = self._violations(f, y)
        worst = np.where(reach.max(axis=1) > 0.0, reach.argmax(axis=1), y)
        slope = np.zeros_like(f)
        slope[rows, worst] += 1.0
        slope[rows, y] -= 1.0
        return slope

    def _violations(self, f: Array, y: Positions) -> Array:
        reach: Array = self._table(f.shape[1])[y] + f - f[np.arange(len(y)), y][:, None]
        return reach
