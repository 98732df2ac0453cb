"""Multiclass hinge loss of Weston and Watkins: the sum of the margin violations of all classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses._core.cost_matrix import above_own
from bmrm.losses._core.prepared import Array, Positions, along_by_blocks
from bmrm.losses.base import MulticlassLoss


@fast_jit
def weston_watkins_kernel(f, y, weights, slope):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.shape[0]):
        own = y[i]
        weight = weights[i] if weighted else 1.0
        loss, wrong = 0.0, 0.0
        for k in range(f.shape[1]):
            short = 1.0 + f[i, k] - f[i, own]
            active = 0.0 if short <= 0.0 or k == own else 1.0
            loss += active * (0.0 if short <= 0.0 else short)
            wrong += active
            slope[i, k] = active * weight
        slope[i, own] = -wrong * weight
        total += weight * loss
    return total


@register("weston_watkins", task="multiclass")
@dataclass(frozen=True)
class WestonWatkins(MulticlassLoss):
    """sum over k != y of max(0, 1 + f_k - f_y): the multiclass support vector machine with a sum over classes.

    Domain: at least two classes. Scale: margin 1; Weston and Watkins ask for 2, which is twice this loss at half the
    scores. With two classes it is `multiclass_hinge`. Kinks at f_y = 1 + f_k, where the pair's slope is 0.
    """

    formula = "sum over k != y of max(0, 1 + f_k - f_y)"
    source = "Weston & Watkins 1999"
    at_zero = "take loss softmax, or larger weights for rarer classes"
    kernel = staticmethod(weston_watkins_kernel)
    along_kernel = staticmethod(along_by_blocks(weston_watkins_kernel))

    def value(self, f: Array, y: Positions) -> Array:
        """The loss of each row."""
        loss: Array = np.maximum(0.0, self._shortfalls(f, y)).sum(axis=1)
        return loss

    def slope(self, f: Array, y: Positions) -> Array:
        """Its slope: 1 at every class that violates the margin, minus their number at the true one."""
        slope = np.where(self._shortfalls(f, y) > 0.0, 1.0, 0.0)
        slope[np.arange(len(y)), y] = -slope.sum(axis=1)
        return slope

    def _shortfalls(self, f: Array, y: Positions) -> Array:
        short = 1.0 + above_own(f, y)
        short[np.arange(len(y)), y] = 0.0
        return short
