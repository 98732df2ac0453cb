"""A risk that counts: passes over the data and the seconds spent in it. Wraps any risk and its abilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from bmrm.problem import (
    Blocks,
    DualBlocks,
    ModifiedLoss,
    Profiled,
    QuadraticModel,
    Risk,
    Rounding,
    RowParts,
    RowSubsets,
    Scored,
    Traffic,
    Vector,
    ability,
    interruptible,
)
from bmrm.problem.results import evaluator
from bmrm.solvers._core.budget import Budget
from bmrm.solvers._core.metered_abilities import (
    MeteredBlocks,
    MeteredColumns,
    MeteredParts,
    MeteredRounding,
    MeteredRows,
    MeteredSteps,
    MeteredVariants,
)
from bmrm.solvers._core.metered_scores import Count, MeteredMap, MeteredPhi

T = TypeVar("T")


class MeteredRisk:
    """`risk` with a `Count`; offers what `risk` offers. Every call checks the `budget` before it begins."""

    def __init__(self, risk: Risk, budget: Budget | None = None) -> None:
        self.inner = risk
        self.dim = risk.dim
        self.infimum = risk.infimum
        self.count = Count(Budget() if budget is None else budget)
        self._evaluate = evaluator(interruptible(risk, self.count.budget.check))
        self._traffic = ability(risk, Traffic)
        self._traffic_start = self._traffic.seconds() if self._traffic is not None else 0.0

    @property
    def network_seconds(self) -> float:
        """Seconds waited for other ranks since this object was made."""
        return self._traffic.seconds() - self._traffic_start if self._traffic is not None else 0.0

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """As of the risk inside; one pass."""
        return self.count.timed(1.0, self._evaluate, w)

    def ability(self, kind: type[T]) -> T | None:
        """The ability of the risk inside, metered."""
        offered = ability(self.inner, kind)
        if offered is not None:
            offered = interruptible(offered, self.count.budget.check)
        wrap = _WRAPPERS.get(kind)
        return offered if offered is None or wrap is None else cast(T, wrap(offered, self.count))


_WRAPPERS: dict[type, Callable[[Any, Count], Any]] = {
    Scored: lambda scored, count: Scored(
        MeteredMap.of(scored.map, count), MeteredPhi(interruptible(scored.phi, count.budget.check), count)
    ),
    Profiled: lambda scored, count: Profiled(
        MeteredMap.of(scored.map, count), MeteredPhi(scored.phi, count), scored.settled
    ),
    RowParts: MeteredParts,
    RowSubsets: MeteredRows,
    Blocks: MeteredBlocks,
    DualBlocks: MeteredSteps,
    ModifiedLoss: MeteredVariants,
    QuadraticModel: MeteredColumns,
    Rounding: MeteredRounding,
}
