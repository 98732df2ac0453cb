"""What one run uses, counted, and metered scores: passes over the data and the seconds spent in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.compiling import COMPILING
from bmrm.problem import (
    LinearMap,
    MoreauEnvelope,
    ScoreFunction,
    Scores,
    Vector,
    interruptible,
)
from bmrm.solvers._core.budget import Budget

R = TypeVar("R")


@dataclass
class Count:
    """What one run has used so far, and its budget; seconds without those that compiled kernels."""

    budget: Budget
    passes: float = 0.0
    seconds: float = 0.0

    def timed(self, passes: float, function: Callable[..., R], *arguments: Any) -> R:
        """Call and charge, unless the budget is spent."""
        self.budget.check()
        begin, compiling = time.perf_counter(), COMPILING.seconds
        try:
            return function(*arguments)
        finally:
            self.seconds += time.perf_counter() - begin - (COMPILING.seconds - compiling)
            self.passes += passes


@dataclass(frozen=True)
class MeteredMap:
    """As of `LinearMap`, counted."""

    inner: LinearMap
    count: Count
    half: float = 0.5
    """Of a pass over all rows."""

    @classmethod
    def of(cls, map: LinearMap, count: Count, half: float = 0.5) -> MeteredMap:
        """The map, looking at the budget in long work, too."""
        return cls(interruptible(map, count.budget.check), count, half)

    def matvec(self, w: Vector) -> Scores:
        return self.count.timed(self.half, self.inner.matvec, w)

    def rmatvec(self, slope: Scores) -> Vector:
        return self.count.timed(self.half, self.inner.rmatvec, slope)

    def diagonal(self, weights: Scores) -> Vector:
        return self.count.timed(self.half, self.inner.diagonal, weights)

    def gram(self, weights: Scores, columns: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        return self.count.timed(self.half, self.inner.gram, weights, columns)

    def gram_blocks(self, weights: Scores, least: float = 0.0) -> NDArray[np.float64]:
        return self.count.timed(self.half, self.inner.gram_blocks, weights, least)

    def active(self, weights: Scores) -> int:
        return self.count.timed(0.0, self.inner.active, weights)


class MeteredPhi(ScoreFunction):
    """As of `ScoreFunction`, timed."""

    def __init__(self, inner: ScoreFunction, count: Count) -> None:
        self.inner, self.count, self.facts = inner, count, inner.facts

    def total(self, scores: Scores) -> Vector:
        return self.count.timed(0.0, self.inner.total, scores)

    def tangent(self, f: Scores) -> tuple[float, Scores, float]:
        return self.count.timed(0.0, self.inner.tangent, f)

    def attained(self, f: Scores) -> tuple[float, Vector | None]:
        return self.count.timed(0.0, self.inner.attained, f)

    def product(self, slope: Scores, f: Scores) -> float:
        return self.count.timed(0.0, self.inner.product, slope, f)

    def magnitude(self, scores: Scores) -> Vector:
        return self.count.timed(0.0, self.inner.magnitude, scores)

    def value_and_slope(self, f: Scores) -> tuple[float, Scores]:
        return self.count.timed(0.0, self.inner.value_and_slope, f)

    def along(self, f: Scores, step: Scores) -> Callable[[Vector], tuple[Vector, Vector]]:
        function = self.count.timed(0.0, self.inner.along, f, step)
        return lambda t: self.count.timed(0.0, function, t)

    def hessian_product(self, f: Scores, step: Scores) -> Scores:
        return self.count.timed(0.0, self.inner.hessian_product, f, step)

    def hessian_diagonal(self, f: Scores) -> Scores:
        return self.count.timed(0.0, self.inner.hessian_diagonal, f)

    def moreau(self, z: Scores, sigma: float) -> MoreauEnvelope:
        return self.count.timed(0.0, self.inner.moreau, z, sigma)

    def moreau_along(self, z: Scores, step: Scores, sigma: float) -> Callable[[Vector], tuple[Vector, Vector]]:
        function = self.count.timed(0.0, self.inner.moreau_along, z, step, sigma)
        return lambda t: self.count.timed(0.0, function, t)

    def constant(self, b: Vector) -> Scores:
        return self.count.timed(0.0, self.inner.constant, b)
