"""A cost for each mistake, shared by the multiclass losses that rescale the margin or the slack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.losses.base import MulticlassLoss
from bmrm.losses.prepared import Array, PreparedRows
from bmrm.problem import InputError, Summary, Targets
from bmrm.registry import parameter

Cost = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class CostMatrixLoss(MulticlassLoss):
    """A multiclass loss with `cost`: a row per true class and a column per predicted one, in the order of the labels.

    0 on the diagonal and never negative; None is cost 1 for every mistake.
    """

    cost: Cost | None = parameter(  # noqa: RUF009
        None,
        doc="cost of each mistake, a row per true class; or a file of numbers",
        example=((0.0, 2.0, 1.0), (1.0, 0.0, 1.0), (3.0, 1.0, 0.0)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cost is None:
            return
        name = self.title
        try:
            table = np.array(self.cost, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: cost is no matrix of numbers, expected a row per class") from error
        if table.ndim != 2 or table.shape[0] != table.shape[1] or table.shape[0] < 2:
            raise InputError(f"{name}: cost has shape {table.shape}, expected (classes, classes)")
        if not np.all(np.isfinite(table)) or table.min() < 0.0 or np.any(np.diag(table) != 0.0):
            raise InputError(f"{name}: cost must be finite, never negative, and 0 on the diagonal")
        # Lists come from YAML; tuples make the loss hashable and comparable.
        object.__setattr__(self, "cost", tuple(tuple(row) for row in table.tolist()))

    def prepare(self, targets: Targets, summary: Summary) -> PreparedRows:
        """Bind to some rows; InputError unless there are two classes or more, and as many as `cost` has rows."""
        if self.cost is not None and len(summary.labels) >= 2 and len(self.cost) != len(summary.labels):
            raise InputError(f"{self.title}: cost is for {len(self.cost)} classes, the data have {len(summary.labels)}")
        return super().prepare(targets, summary)

    def arguments(self, summary: Summary) -> tuple[Any, ...]:
        """The cost matrix."""
        return (self._table(len(summary.labels)),)

    def _table(self, classes: int) -> Array:
        return 1.0 - np.eye(classes) if self.cost is None else np.array(self.cost)
