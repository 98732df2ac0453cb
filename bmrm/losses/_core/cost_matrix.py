"""The worst rival of the true class, and a cost for each mistake: losses that rescale the margin or the slack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses._core.prepared import Array, Positions, PreparedRows, along_by_blocks
from bmrm.losses._core.rescaling import Cost, checked_cost, cost_option
from bmrm.losses.base import MulticlassLoss
from bmrm.problem import InputError, Summary, Targets


def worst_rivals(violations: Array, y: Positions) -> Positions:
    """(rows,) the first class of the largest violation in (rows, K); the true one, `y`, where none is above 0."""
    return np.where(violations.max(axis=1) > 0.0, violations.argmax(axis=1), y)


def towards(rivals: Positions, y: Positions, classes: int, rates: Array | float = 1.0) -> Array:
    """(rows, classes): in each row its rate at the rival and minus it at the true class, 0 where they are the same."""
    rows, slope = np.arange(len(y)), np.zeros((len(y), classes))
    slope[rows, rivals] += rates
    slope[rows, y] -= rates
    return slope


def above_own(f: Array, y: Positions) -> Array:
    """f_k - f_y for each row and class k."""
    return f - f[np.arange(len(y)), y][:, None]


@fast_jit
def cost_matrix_kernel(f, y, weights, slope, margins, rates, scaled):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum of the largest violations.

    A violation is rate (margin + f_k - f_y); rates are not looked at, and taken for 1, unless `scaled`.
    """
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.shape[0]):
        own = y[i]
        worst, best = own, 0.0
        for k in range(f.shape[1]):
            slope[i, k] = 0.0
            ahead = f[i, k] - f[i, own]
            violation = rates[own, k] * (margins[own, k] + ahead) if scaled else margins[own, k] + ahead
            if violation > best:
                worst, best = k, violation
        rate = rates[own, worst] if scaled else 1.0
        if weighted:
            best *= weights[i]
            rate *= weights[i]
        total += best
        slope[i, worst] += rate
        slope[i, own] -= rate
    return total


@dataclass(frozen=True)
class CostMatrixLoss(MulticlassLoss):
    """A multiclass loss with `cost`: a row per true class and a column per predicted one, in the order of the labels.

    0 on the diagonal and never negative; None is cost 1 for every mistake.
    """

    cost: Cost | None = cost_option()  # noqa: RUF009

    scaled: ClassVar[bool]
    """Whether the cost may rescale the slack, not the margin alone."""
    kernel = staticmethod(cost_matrix_kernel)
    along_kernel = staticmethod(along_by_blocks(cost_matrix_kernel))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cost is not None:
            object.__setattr__(self, "cost", checked_cost(self.cost, self.title))

    def prepare(self, targets: Targets, summary: Summary) -> PreparedRows:
        """Bind to some rows; InputError unless there are two classes or more, and as many as `cost` has rows."""
        if self.cost is not None and len(summary.labels) >= 2 and len(self.cost) != len(summary.labels):
            raise InputError(f"{self.title}: cost is for {len(self.cost)} classes, the data have {len(summary.labels)}")
        return super().prepare(targets, summary)

    def arguments(self, summary: Summary) -> tuple[Any, ...]:
        """Margins and rates, and whether there are rates other than 1."""
        return *self._tables(len(summary.labels)), self.scaled

    def value(self, f: Array, y: Positions) -> Array:
        """The loss of each row."""
        loss: Array = np.maximum(0.0, self._violations(f, y).max(axis=1))
        return loss

    def slope(self, f: Array, y: Positions) -> Array:
        """Its slope: the rate at the worst class, minus it at the true one, 0 where they are the same."""
        rivals = worst_rivals(self._violations(f, y), y)
        _, rates = self._tables(f.shape[1])
        return towards(rivals, y, f.shape[1], rates[y, rivals])

    def _violations(self, f: Array, y: Positions) -> Array:
        margins, rates = self._tables(f.shape[1])
        found: Array = rates[y] * (margins[y] + above_own(f, y))
        return found

    def _tables(self, classes: int) -> tuple[Array, Array]:
        """Margins and rates, (classes, classes): a mistake violates its margin by rate (margin + f_k - f_y)."""
        cost = self._table(classes)
        return cost, np.ones_like(cost)

    def _table(self, classes: int) -> Array:
        return 1.0 - np.eye(classes) if self.cost is None else np.array(self.cost)
