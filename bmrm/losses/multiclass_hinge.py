"""Multiclass hinge loss of Crammer and Singer, for any cost matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses.base import MulticlassLoss
from bmrm.losses.prepared import Array, Positions, PreparedRows
from bmrm.problem import InputError, Summary, Targets
from bmrm.registry import parameter

Cost = tuple[tuple[float, ...], ...]


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
class MulticlassHinge(MulticlassLoss):
    """max_k (cost(y, k) + f_k - f_y): the multiclass support vector machine, margin rescaled by a cost.

    Domain: at least two classes. `cost` has a row per true class and a column per predicted one, in the order of the
    labels, 0 on the diagonal and never negative; None is cost 1 for every mistake. At ties the slope takes the true
    class first, then the first of the worst.
    """

    cost: Cost | None = parameter(  # noqa: RUF009
        None,
        doc="cost of each mistake, a row per true class",
        example=((0.0, 2.0, 1.0), (1.0, 0.0, 1.0), (3.0, 1.0, 0.0)),
    )

    formula = "max_k (cost(y, k) + f_k - f_y)"
    source = "Crammer & Singer 2001; Taskar, Guestrin & Koller 2003"
    kernel = staticmethod(multiclass_hinge_kernel)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cost is None:
            return
        try:
            table = np.array(self.cost, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError("multiclass_hinge: cost is no matrix of numbers, expected a row per class") from error
        if table.ndim != 2 or table.shape[0] != table.shape[1] or table.shape[0] < 2:
            raise InputError(f"multiclass_hinge: cost has shape {table.shape}, expected (classes, classes)")
        if not np.all(np.isfinite(table)) or table.min() < 0.0 or np.any(np.diag(table) != 0.0):
            raise InputError("multiclass_hinge: cost must be finite, never negative, and 0 on the diagonal")
        # Lists come from YAML; tuples make the loss hashable and comparable.
        object.__setattr__(self, "cost", tuple(tuple(row) for row in table.tolist()))

    def prepare(self, targets: Targets, summary: Summary) -> PreparedRows:
        """Bind to some rows; InputError unless there are two classes or more, and as many as `cost` has rows."""
        if self.cost is not None and len(summary.labels) >= 2 and len(self.cost) != len(summary.labels):
            raise InputError(
                f"multiclass_hinge: cost is for {len(self.cost)} classes, the data have {len(summary.labels)}"
            )
        return super().prepare(targets, summary)

    def arguments(self, summary: Summary) -> tuple[Any, ...]:
        """The cost matrix."""
        return (self._table(len(summary.labels)),)

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

    def _table(self, classes: int) -> Array:
        return 1.0 - np.eye(classes) if self.cost is None else np.array(self.cost)
