"""Multiclass hinge loss of Crammer and Singer, for any cost matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import jit
from bmrm.losses import register
from bmrm.losses._core.cost_matrix import CostMatrixLoss
from bmrm.losses._core.prepared import Array, Positions

ALL = 1.0 - 1e-12
"""Share of the step above which it counts as the whole step, up to rounding."""


@jit
def multiclass_hinge_value(f, y, cost, *rest):  # type: ignore[no-untyped-def]
    """The loss of a row."""
    worst = 0.0
    for k in range(f.size):
        worst = max(worst, cost[y, k] + (f[k] - f[y]))
    return worst


@jit
def multiclass_hinge_prox(z, step, y, moves, work, cost, *rest):  # type: ignore[no-untyped-def]
    """Fill `moves` = z - f; returns the loss at f, and how far scores may change without changing `moves`.

    f + cost is z + cost clipped at a level, after the step was added to the true class; what is clipped adds up to the
    step, so the level is that of a projection onto the simplex (Crammer & Singer 2001, section 6). It is found by
    dropping classes below it in turn (Michelot 1986).

    Parameters
    ----------
    z : the scores, (K,).
    moves : (K,); its initial content is ignored.
    work : (2, K), overwritten.
    """
    own = z[y]
    first, second, worst = -np.inf, -np.inf, y
    for k in range(z.size):
        moves[k] = 0.0
        reach = cost[y, k] + z[k] if k != y else -np.inf
        second = max(second, min(first, reach))
        worst = k if reach > first else worst
        first = max(first, reach)
    if first <= own:
        return 0.0, 0.5 * (own - first)
    if first - step >= max(own + step, second):
        moves[worst], moves[y] = step, -step
        return first - own - 2.0 * step, 0.5 * (first - step - max(own + step, second))
    heights, count, total = work[0], 0, 0.0
    for k in range(z.size):
        reach = cost[y, k] + z[k]
        if k != y and reach > own and reach > first - step:
            heights[count] = reach - own
            total += reach - own
            count += 1
    level, gained, before = 0.0, True, -1
    while before != count:
        before = count
        level = total / (count + 1.0) if gained else (total - step) / count
        if gained and level >= step:
            gained, before = False, -1
            continue
        count, total = 0, 0.0
        for j in range(before):
            if heights[j] > level:
                heights[count] = heights[j]
                total += heights[j]
                count += 1
    others = 0.0
    for k in range(z.size):
        over = cost[y, k] + (z[k] - own) - level
        if k != y and over > 0.0:
            moves[k] = over
            others += over
    moves[y] = -others
    return (0.0 if gained else level - step), 0.0


@jit
def multiclass_hinge_offset(moves, step, y, cost, *rest):  # type: ignore[no-untyped-def]
    """Make moves / step a slope of the loss, p - e_y for shares p of the classes; minus its conjugate: their cost."""
    others, taken, mean = 0.0, 0.0, 0.0
    for k in range(moves.size):
        others += moves[k] if k != y else 0.0
    shrink = step / others if others > step else 1.0
    for k in range(moves.size):
        if k != y:
            moves[k] *= shrink
            taken += moves[k]
            mean += moves[k] / step * cost[y, k]
    moves[y] = -taken
    return mean


@jit
def multiclass_hinge_settle(moves, step, y, free):  # type: ignore[no-untyped-def]
    """Mark the classes whose share of the step is strictly between 0 and 1; the true class has the remainder."""
    others, count = 0.0, 0
    for k in range(moves.size):
        others += moves[k] if k != y else 0.0
    for k in range(moves.size):
        taken = moves[k] > 0.0 if k != y else others < ALL * step
        free[k] = 1.0 if taken else 0.0
        count += taken
    if others > step:
        for k in range(moves.size):
            moves[k] *= step / others
    if count < 2:
        free[:] = 0.0


@register("multiclass_hinge", task="multiclass")
@dataclass(frozen=True)
class MulticlassHinge(CostMatrixLoss):
    """max_k (cost(y, k) + f_k - f_y): the multiclass support vector machine, margin rescaled by a cost.

    Domain: at least two classes. `cost` has a row per true class and a column per predicted one, in the order of the
    labels, 0 on the diagonal and never negative; None is cost 1 for every mistake. At ties the slope takes the true
    class first, then the first of the worst. It is `scaled_multiclass_hinge` with `margin: cost` and `beta: 0`, and has
    what that one lacks, a proximal map.
    """

    formula = "max_k (cost(y, k) + f_k - f_y)"
    source = "Crammer & Singer 2001; Taskar, Guestrin & Koller 2003"
    at_zero = "take loss softmax, or larger weights for rarer classes"
    scaled = False
    value_scores_row = staticmethod(multiclass_hinge_value)
    prox_scores_row = staticmethod(multiclass_hinge_prox)
    offset_scores_row = staticmethod(multiclass_hinge_offset)
    settle_scores_row = staticmethod(multiclass_hinge_settle)

    def prox_shares(self, moves: Array, step: Array, y: Positions) -> Array:
        """The derivative of z - f in z, see `bmrm.losses.base`: 1 for classes with a share strictly inside the step."""
        rows, taken = np.arange(len(y)), moves > 0.0
        taken[rows, y] = -moves[rows, y] < ALL * step
        taken &= taken.sum(axis=1, keepdims=True) > 1
        return taken.astype(np.float64)

    def prox_scores(self, z: Array, step: Array | float, y: Positions) -> Array:
        """The proximal point of each row, by sorting."""
        rows, step = np.arange(len(y)), np.broadcast_to(np.asarray(step, np.float64), z.shape[:1])[:, None]
        reach = self._table(z.shape[1])[y] + z
        own = z[rows, y][:, None].copy()
        reach[rows, y] += step[:, 0]
        falling = -np.sort(-(reach - own), axis=1)
        levels = (np.cumsum(falling, axis=1) - step) / np.arange(1, z.shape[1] + 1)
        last = np.maximum(0, (falling > levels).sum(axis=1) - 1)
        moves = np.maximum(0.0, reach - own - levels[rows, last][:, None])
        moves[rows, y] = 0.0
        moves[rows, y] = -moves.sum(axis=1)
        f: Array = z - moves
        return f
