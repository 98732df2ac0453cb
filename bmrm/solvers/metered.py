"""A risk that counts: passes over the data and the seconds spent in it. Wraps any risk and its abilities."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import (
    Blocks,
    ColumnModel,
    DualAscent,
    DualSteps,
    DualSweep,
    Envelope,
    LinearMap,
    Profiled,
    QuadraticColumns,
    Risk,
    RowPart,
    RowParts,
    RowSubsets,
    Scored,
    ScoreFunction,
    Scores,
    Traffic,
    Variants,
    Vector,
    Watch,
    ability,
)

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Count:
    """What one run has used so far."""

    passes: float = 0.0
    seconds: float = 0.0

    def timed(self, passes: float, function: Callable[..., R], *arguments: Any) -> R:
        """Call and charge."""
        begin = time.perf_counter()
        try:
            return function(*arguments)
        finally:
            self.seconds += time.perf_counter() - begin
            self.passes += passes


class MeteredRisk:
    """`risk` with a `Count`; offers what `risk` offers."""

    def __init__(self, risk: Risk) -> None:
        self.inner = risk
        self.dim = risk.dim
        self.infimum = risk.infimum
        self.count = Count()
        self._traffic = ability(risk, Traffic)
        self._traffic_start = self._traffic.seconds() if self._traffic is not None else 0.0

    @property
    def network_seconds(self) -> float:
        """Seconds waited for other ranks since this object was made."""
        return self._traffic.seconds() - self._traffic_start if self._traffic is not None else 0.0

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """As of the risk inside; one pass."""
        return self.count.timed(1.0, self.inner.value_and_subgradient, w)

    def ability(self, kind: type[T]) -> T | None:
        """The ability of the risk inside, metered."""
        offered = ability(self.inner, kind)
        wrap = _WRAPPERS.get(kind)
        return offered if offered is None or wrap is None else cast(T, wrap(offered, self.count))


@dataclass(frozen=True)
class _Map:
    inner: LinearMap
    count: Count
    half: float = 0.5
    """Of a pass over all rows."""

    def scores(self, w: Vector) -> Scores:
        return self.count.timed(self.half, self.inner.scores, w)

    def pull_back(self, slope: Scores) -> Vector:
        return self.count.timed(self.half, self.inner.pull_back, slope)

    def diagonal(self, weights: Scores) -> Vector:
        return self.count.timed(self.half, self.inner.diagonal, weights)

    def gram(self, weights: Scores, columns: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        return self.count.timed(self.half, self.inner.gram, weights, columns)

    def gram_blocks(self, weights: Scores, least: float = 0.0) -> NDArray[np.float64]:
        return self.count.timed(self.half, self.inner.gram_blocks, weights, least)

    def active(self, weights: Scores) -> int:
        return self.count.timed(0.0, self.inner.active, weights)


@dataclass(frozen=True)
class _Phi:
    """What a score function from outside need not say, it is taken to have not."""

    inner: ScoreFunction
    count: Count

    @property
    def smooth(self) -> bool:
        return self.inner.smooth

    @property
    def one_maximum(self) -> bool:
        return getattr(self.inner, "one_maximum", False)

    @property
    def curved(self) -> bool:
        return self.inner.curved

    @property
    def diagonal(self) -> bool:
        return getattr(self.inner, "diagonal", self.inner.separable)

    @property
    def separable(self) -> bool:
        return self.inner.separable

    @property
    def shift_free(self) -> bool:
        return getattr(self.inner, "shift_free", False)

    @property
    def proximal(self) -> bool:
        return self.inner.proximal

    @property
    def mass(self) -> float:
        return self.inner.mass

    @property
    def scores_per_row(self) -> int:
        return self.inner.scores_per_row

    def total(self, scores: Scores) -> Vector:
        return self.count.timed(0.0, self.inner.total, scores)

    def value_and_slope(self, f: Scores) -> tuple[float, Scores]:
        return self.count.timed(0.0, self.inner.value_and_slope, f)

    def along(self, f: Scores, step: Scores) -> Callable[[Vector], tuple[Vector, Vector]]:
        function = self.count.timed(0.0, self.inner.along, f, step)
        return lambda t: self.count.timed(0.0, function, t)

    def curvature_product(self, f: Scores, step: Scores) -> Scores:
        return self.count.timed(0.0, self.inner.curvature_product, f, step)

    def curvature(self, f: Scores) -> Scores:
        return self.count.timed(0.0, self.inner.curvature, f)

    def envelope(self, z: Scores, sigma: float) -> Envelope:
        return self.count.timed(0.0, self.inner.envelope, z, sigma)

    def envelope_along(self, z: Scores, step: Scores, sigma: float) -> Callable[[Vector], tuple[Vector, Vector]]:
        function = self.count.timed(0.0, self.inner.envelope_along, z, step, sigma)
        return lambda t: self.count.timed(0.0, function, t)

    def constant(self, b: Vector) -> Scores:
        return self.count.timed(0.0, self.inner.constant, b)


@dataclass(frozen=True)
class _Rows:
    inner: RowSubsets
    count: Count

    @property
    def rows(self) -> int:
        return self.inner.rows

    def value_and_subgradient_of(self, rows: NDArray[np.int64], w: Vector) -> tuple[float, Vector]:
        share = len(rows) / max(1, self.inner.rows)
        return self.count.timed(share, self.inner.value_and_subgradient_of, rows, w)

    def watch(self, quiet: int, least: int, most: int, seed: int, first: int = 0) -> Watch:
        return _Watch(self.inner.watch(quiet, least, most, seed, first), self.count)


@dataclass
class _Watch:
    inner: Watch
    count: Count
    share: float = 0.0

    def step(self, w: Vector) -> tuple[float, Vector, float]:
        value, subgradient, self.share = self.count.timed(0.0, self.inner.step, w)
        self.count.passes += self.share
        return value, subgradient, self.share

    def rest(self, w: Vector) -> tuple[float, Vector]:
        return self.count.timed(1.0 - self.share, self.inner.rest, w)


@dataclass(frozen=True)
class _Variants:
    inner: Variants
    count: Count

    @property
    def rows(self) -> int:
        return self.inner.rows

    @property
    def offset(self) -> int | None:
        return self.inner.offset

    def outcome_sums(self) -> tuple[float, float]:
        return self.count.timed(0.0, self.inner.outcome_sums)

    def mass(self, rows: NDArray[np.int64] | None, changes: Mapping[str, float]) -> float:
        return self.count.timed(0.0, self.inner.mass, rows, changes)

    def variant(
        self, rows: NDArray[np.int64] | None, changes: Mapping[str, float], mass: float | None = None
    ) -> ScoreFunction:
        return _Phi(self.count.timed(0.0, self.inner.variant, rows, changes, mass), self.count)


@dataclass(frozen=True)
class _Parts:
    inner: RowParts
    count: Count

    @property
    def rows(self) -> int:
        return self.inner.rows

    def part(self, weights: Scores) -> RowPart:
        part = self.count.timed(0.0, self.inner.part, weights)
        half = 0.5 * part.rows / max(1, self.inner.rows)
        return replace(part, map=_Map(part.map, self.count, half), phi=_Phi(part.phi, self.count))


@dataclass(frozen=True)
class _Blocks:
    inner: Blocks
    count: Count

    def values_and_subgradients(self, w: Vector, blocks: int) -> tuple[Vector, NDArray[np.float64]]:
        return self.count.timed(1.0, self.inner.values_and_subgradients, w, blocks)

    def infima(self, blocks: int) -> Vector:
        return self.inner.infima(blocks)


@dataclass(frozen=True)
class _DualSteps:
    inner: DualSteps
    count: Count

    @property
    def rows(self) -> int:
        return self.inner.rows

    @property
    def grouped(self) -> bool:
        return getattr(self.inner, "grouped", False)

    def ascent(
        self,
        l1: float,
        l2: float,
        *,
        seed: int,
        start: Scores | None = None,
        near: Scores | None = None,
        intercept: bool = False,
    ) -> DualAscent:
        def make() -> DualAscent:
            return self.inner.ascent(l1, l2, seed=seed, start=start, near=near, intercept=intercept)

        begun = start is not None or near is not None
        return _DualAscent(self.count.timed(0.5 if begun else 0.0, make), self.count)


@dataclass(frozen=True)
class _DualAscent:
    inner: DualAscent
    count: Count

    def sweep(self) -> DualSweep:
        found = self.count.timed(0.0, self.inner.sweep)
        self.count.passes += found.visits
        return found

    def reopen(self) -> None:
        self.inner.reopen()

    @property
    def weights(self) -> Vector:
        return self.inner.weights

    def value(self) -> float:
        return self.count.timed(0.0, self.inner.value)

    def slope(self) -> Scores:
        return self.count.timed(0.0, self.inner.slope)

    def plane(self) -> tuple[Vector, float]:
        return self.count.timed(0.5, self.inner.plane)

    @property
    def constant(self) -> Vector:
        return self.inner.constant


@dataclass(frozen=True)
class _Columns:
    inner: QuadraticColumns
    count: Count

    def model(self, columns: NDArray[np.int64], curvature: Scores, intercept: bool = False) -> ColumnModel:
        model = self.count.timed(0.0, self.inner.model, columns, curvature, intercept)
        self.count.passes += model.passes
        return _ColumnModel(model, self.count)


class _ColumnModel:
    def __init__(self, inner: ColumnModel, count: Count) -> None:
        self.inner, self.count = inner, count
        self.passes = inner.passes

    def minimise(
        self, gradient: Vector, w: Vector, l1: float, l2: float, goal: float, share: float, most: int
    ) -> tuple[Vector, float]:
        found = self.inner.minimise(
            gradient, w, l1, l2, goal, share, most
        )  # a solver's own work, and no time of the risk
        self._charge()
        return found

    def distance(self) -> float:
        found = self.inner.distance()
        self._charge()
        return found

    def _charge(self) -> None:
        self.count.passes += self.inner.passes - self.passes
        self.passes = self.inner.passes

    @property
    def scores(self) -> Scores:
        return self.count.timed(0.0, lambda: self.inner.scores)


_WRAPPERS: dict[type, Callable[[Any, Count], Any]] = {
    Scored: lambda scored, count: Scored(_Map(scored.map, count), _Phi(scored.phi, count)),
    Profiled: lambda scored, count: Profiled(_Map(scored.map, count), _Phi(scored.phi, count)),
    RowParts: _Parts,
    RowSubsets: _Rows,
    Blocks: _Blocks,
    DualSteps: _DualSteps,
    Variants: _Variants,
    QuadraticColumns: _Columns,
}
