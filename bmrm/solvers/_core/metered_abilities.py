"""Metered abilities of a risk, but for its scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import (
    ActiveSet,
    Blocks,
    ColumnModel,
    DualAscent,
    DualBlocks,
    DualSweep,
    Magnitudes,
    ModifiedLoss,
    QuadraticModel,
    Rounding,
    RowPart,
    RowParts,
    RowSubsets,
    ScoreFunction,
    Scores,
    Vector,
    interruptible,
)
from bmrm.solvers._core.metered_scores import Count, MeteredMap, MeteredPhi


@dataclass(frozen=True)
class MeteredRows:
    """As of `RowSubsets`, counted."""

    inner: RowSubsets
    count: Count

    @property
    def rows(self) -> int:
        return self.inner.rows

    def value_and_subgradient_of(self, rows: NDArray[np.int64], w: Vector) -> tuple[float, Vector]:
        share = len(rows) / max(1, self.inner.rows)
        return self.count.timed(share, self.inner.value_and_subgradient_of, rows, w)

    def active_set(self, quiet: int, least: int, most: int, seed: int, first: int = 0) -> ActiveSet:
        return MeteredActiveSet(self.inner.active_set(quiet, least, most, seed, first), self.count)


@dataclass
class MeteredActiveSet:
    """As of `ActiveSet`, counted."""

    inner: ActiveSet
    count: Count
    share: float = 0.0

    def step(self, w: Vector) -> tuple[float, Vector, float]:
        value, subgradient, self.share = self.count.timed(0.0, self.inner.step, w)
        self.count.passes += self.share
        return value, subgradient, self.share

    def rest(self, w: Vector) -> tuple[float, Vector]:
        return self.count.timed(1.0 - self.share, self.inner.rest, w)


@dataclass(frozen=True)
class MeteredVariants:
    """As of `ModifiedLoss`, counted."""

    inner: ModifiedLoss
    count: Count

    @property
    def rows(self) -> int:
        return self.inner.rows

    @property
    def offset(self) -> int | None:
        return self.inner.offset

    def target_sums(self) -> tuple[float, float]:
        return self.count.timed(0.0, self.inner.target_sums)

    def mass(self, rows: NDArray[np.int64] | None, changes: Mapping[str, float]) -> float:
        return self.count.timed(0.0, self.inner.mass, rows, changes)

    def variant(
        self, rows: NDArray[np.int64] | None, changes: Mapping[str, float], mass: float | None = None
    ) -> ScoreFunction:
        return MeteredPhi(self.count.timed(0.0, self.inner.variant, rows, changes, mass), self.count)


@dataclass(frozen=True)
class MeteredParts:
    """As of `RowParts`, counted."""

    inner: RowParts
    count: Count
    share: float = 1.0
    """What a pass over these rows is of one over all."""

    @property
    def rows(self) -> int:
        return self.inner.rows

    def part(self, weights: Scores) -> RowPart:
        part = self.count.timed(0.0, self.inner.part, weights)
        half = 0.5 * self.share * part.rows / max(1, self.inner.rows)
        map, phi = MeteredMap.of(part.map, self.count, half), MeteredPhi(part.phi, self.count)
        return replace(part, map=map, phi=phi, parts=MeteredParts(part.parts, self.count, 2.0 * half))

    def curved_rows(self, z: Scores, sigma: float, reach: float) -> Scores:
        return self.count.timed(0.0, self.inner.curved_rows, z, sigma, reach)

    def products(self) -> NDArray[np.float64]:
        return self.count.timed(0.5 * self.share, self.inner.products)


@dataclass(frozen=True)
class MeteredRounding:
    """As of `Rounding`, counted."""

    inner: Rounding
    count: Count

    @property
    def subject(self) -> str:
        return self.inner.subject

    @property
    def foreign(self) -> bool:
        return self.inner.foreign

    @property
    def row_norm(self) -> float:
        return self.inner.row_norm

    def at(self, w: Vector, constant: Vector | None = None) -> Magnitudes:
        return self.count.timed(1.5, self.inner.at, w, constant)


@dataclass(frozen=True)
class MeteredBlocks:
    """As of `Blocks`, counted."""

    inner: Blocks
    count: Count

    def values_and_subgradients(self, w: Vector, blocks: int) -> tuple[Vector, NDArray[np.float64]]:
        return self.count.timed(1.0, self.inner.values_and_subgradients, w, blocks)

    def infima(self, blocks: int) -> Vector:
        return self.inner.infima(blocks)


@dataclass(frozen=True)
class MeteredSteps:
    """As of `DualBlocks`, counted."""

    inner: DualBlocks
    count: Count

    @property
    def rows(self) -> int:
        return self.inner.rows

    @property
    def grouped(self) -> bool:
        return self.inner.grouped

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
        return MeteredAscent(self.count.timed(0.5 if begun else 0.0, make), self.count)


@dataclass(frozen=True)
class MeteredAscent:
    """As of `DualAscent`, counted."""

    inner: DualAscent
    count: Count

    def sweep(self) -> DualSweep:
        found = self.count.timed(0.0, self.inner.sweep)
        self.count.passes += found.visits
        return found

    def unshrink(self) -> None:
        self.inner.unshrink()

    @property
    def weights(self) -> Vector:
        return self.inner.weights

    def value(self) -> float:
        return self.count.timed(0.0, self.inner.value)

    def slope(self) -> Scores:
        return self.count.timed(0.0, self.inner.slope)

    def plane(self, anew: bool = False) -> tuple[Vector, float]:
        return self.count.timed(0.5, self.inner.plane, anew)

    @property
    def constant(self) -> Vector:
        return self.inner.constant

    def scores(self) -> Scores | None:
        return self.count.timed(0.0, self.inner.scores)

    @property
    def balance(self) -> Vector:
        return self.inner.balance

    def resume(self, balance: Vector) -> None:
        self.inner.resume(balance)


@dataclass(frozen=True)
class MeteredColumns:
    """As of `QuadraticModel`, counted."""

    inner: QuadraticModel
    count: Count

    def model(self, columns: NDArray[np.int64], curvature: Scores, intercept: bool = False) -> ColumnModel:
        model = interruptible(
            self.count.timed(0.0, self.inner.model, columns, curvature, intercept), self.count.budget.check
        )
        self.count.passes += model.passes
        return MeteredModel(model, self.count)


class MeteredModel:
    """As of `ColumnModel`, counted."""

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
