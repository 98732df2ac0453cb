"""The constant b, added to all scores, at which the slopes of a convex function sum to 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
CENTRED = 1e-15
"""A sum of slopes, whose sizes add up to about 1, that is 0 but for rounding."""
ROUNDS = 100
FAR = 10.0
"""The longest step before a bracket is known, and how fast it grows with b."""


@dataclass(frozen=True)
class Trial(Generic[T]):
    """What was found at `b`: the sum of slopes `rest`, and whatever else the caller wants to keep."""

    b: float
    rest: float
    kept: T
    derivative: Callable[[], float]
    """The derivative of `rest` in b."""


def centre(at: Callable[[float], Trial[T]], b: float) -> tuple[Trial[T], Trial[T], float]:
    """Two trials, and the share of the first with which their slopes mix to a sum of 0.

    They are the same trial, or, where the sum jumps or rounding stops the search, the ends of the smallest bracket
    known. The sum rises with b: Newton's method, safeguarded by the bracket. Where the sum never changes its sign, the
    last trial is returned.

    Parameters
    ----------
    at : evaluates a b.
    b : where to start.
    """
    low: Trial[T] | None = None
    high: Trial[T] | None = None
    here = at(b)
    for _ in range(ROUNDS):
        if abs(here.rest) <= CENTRED or not math.isfinite(here.rest):
            return here, here, 1.0
        low, high = (here, high) if here.rest < 0.0 else (low, here)
        b = _next(here, low, high)
        if b == here.b or not math.isfinite(b):
            break
        here = at(b)
    if low is None or high is None:
        return here, here, 1.0
    return low, high, high.rest / (high.rest - low.rest)


def _next(here: Trial[T], low: Trial[T] | None, high: Trial[T] | None) -> float:
    """Newton's step inside the bracket, else its middle, or outside where a side is missing; the old b for none."""
    derivative = here.derivative()
    newton = here.b - here.rest / derivative if derivative > 0.0 else math.nan
    if low is not None and high is not None:
        b = newton if low.b < newton < high.b else 0.5 * (low.b + high.b)
        return b if low.b < b < high.b else here.b
    farthest = max(FAR, FAR * abs(here.b))
    if math.isfinite(newton) and abs(newton - here.b) <= farthest:
        return newton
    return here.b + math.copysign(farthest, -here.rest)
