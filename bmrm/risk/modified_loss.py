"""phi stated anew: of some rows only, or with a loss changed within limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import (
    UNMETERED,
    HasMeanTarget,
    HasVariant,
    IncompatibleError,
    Meter,
    Targets,
    Vector,
    provides,
    timed,
)
from bmrm.risk.score_function import BoundLoss, LossPhi


class LossVariants:
    """The ability `ModifiedLoss` of a loss that is a sum over rows.

    Parameters
    ----------
    bound : the loss with the targets of these rows.
    offset : where in w the weight of a constant feature stands, None where there is none.
    meter : what calls are timed by.
    """

    def __init__(self, bound: BoundLoss, offset: int | None, meter: Meter = UNMETERED) -> None:
        self.bound, self.offset, self.meter = bound, offset, meter
        self.rows = bound.rows

    @timed
    def target_sums(self) -> tuple[float, float]:
        """As of `ModifiedLoss`; of one rank's rows where there are several."""
        loss = self.bound.loss
        if not provides(loss, HasMeanTarget):
            title = self.bound.facts.title
            raise IncompatibleError(f"{title} has no mean target to start from; leave binitmean off")
        prepared: Any = self.bound.whole
        weights = np.ones(self.rows) if prepared.weights is None else prepared.weights
        return float(weights @ loss.targets01(prepared.y)), float(weights.sum())

    @timed
    def mass(self, rows: NDArray[np.int64] | None, changes: Mapping[str, float]) -> float:
        """As of `ModifiedLoss`."""
        return self._bound(rows, changes).whole.mass

    @timed
    def variant(
        self, rows: NDArray[np.int64] | None, changes: Mapping[str, float], mass: float | None = None
    ) -> LossPhi:
        """As of `ModifiedLoss`."""
        return LossPhi(self._bound(rows, changes), mass).metered(self.meter)

    def _bound(self, rows: NDArray[np.int64] | None, changes: Mapping[str, float]) -> BoundLoss:
        loss = self.bound.loss
        if changes:
            if not provides(loss, HasVariant):
                title = self.bound.facts.title
                raise IncompatibleError(f"{title} cannot be changed by {', '.join(changes)}; logistic can")
            loss = loss.variant(**changes)
        return BoundLoss(loss, self._targets(rows), self.bound.summary, scaled=True)

    def _targets(self, rows: NDArray[np.int64] | None) -> Targets:
        """The targets with weight 0 off `rows`."""
        t = self.bound.targets
        if rows is None:
            return t
        weights: Vector = np.zeros(t.rows)
        weights[rows] = 1.0 if t.weights is None else t.weights[rows]
        return Targets(t.y, weights, t.groups)
