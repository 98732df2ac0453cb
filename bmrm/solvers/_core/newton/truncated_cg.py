"""Linear conjugate gradients that stop early: Algorithms 6 and 7 of Komarek's thesis (2004), of which irls is made.

A x = b with A the second derivative of J, normalised as J is. Algorithm 6 (`cgeps`) watches the residual and ends
with its last point; Algorithm 7 (`cgdeveps`) watches the deviance and ends with the point where that was least.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bmrm.kernels.products.vectors import norm
from bmrm.numerics.conjugate_gradients import ConjugateGradients
from bmrm.problem import LinearMap, Scores, Vector

Product = Callable[[Vector, Scores], Vector]
"""A v from v and its scores."""
Deviance = Callable[[Scores], float]
HUGE = 1e100
"""Residuals whose largest entry is above this, or below its inverse, are scaled before products are formed: squares
would overflow or vanish."""


@dataclass(frozen=True)
class Stops:
    """When to stop; see `IRLS`."""

    threshold: float
    """A residual norm below which Algorithm 6 stops; 0 where Algorithm 7 is meant."""
    deviance_change: float
    """A relative change of the deviance below which Algorithm 7 stops; 0 where Algorithm 6 is meant."""
    window: float
    decay: float
    most: int


@dataclass
class Watched:
    """A quantity that must keep decreasing, such as a residual norm; `left` is 0 if it has not for too long."""

    window: float
    left: float = field(init=False)
    least: float = math.inf

    def __post_init__(self) -> None:
        self.left = self.window

    def take(self, value: float) -> None:
        if value <= self.least:
            self.least, self.left = value, self.window
        else:
            self.left -= 1


@dataclass
class TruncatedCG:
    """One solution of A x = b.

    Parameters
    ----------
    map : forms scores; half a pass an iteration, the other half is in `product`.
    product : v, scores of v -> A v.
    deviance : of scores; asked for only where `stops` need it.
    stops : when to stop.
    inverse_diagonal : of A, for Jacobi preconditioning; None for none.
    """

    map: LinearMap
    product: Product
    deviance: Deviance
    stops: Stops
    inverse_diagonal: Vector | None = None
    iterations: int = 0

    def solve(self, x: Vector, f: Scores, residual: Vector) -> tuple[Vector, Scores | None]:
        """The solution, and its scores where they were followed.

        Parameters
        ----------
        x, f : where to start, with its scores.
        residual : b - A x.
        """
        stops = self.stops
        follows = stops.deviance_change > 0.0 or math.isfinite(stops.decay)
        unit = unit_of(residual)  # of residuals and directions
        cg = ConjugateGradients(residual if unit == 1.0 else residual / unit, self._preconditioned)
        now = self.deviance(f) if follows else math.nan
        before, least_deviance = math.inf, now
        best: tuple[Vector, Scores | None] = (x, f if follows else None)
        last = best
        watched = Watched(stops.window)
        for self.iterations in range(stops.most + 1):
            if self.iterations == stops.most or watched.left <= 0:
                break
            if stops.threshold > 0.0 and watched.least < stops.threshold / unit:
                break
            if stops.deviance_change > 0.0 and relative_change(before, now) < stops.deviance_change:
                break
            d = cg.direction
            fd = self.map.matvec(d)
            alpha = cg.advance(self.product(d, fd))
            if alpha is None:  # rounding, or nothing left to gain
                break
            x = x + (alpha * unit) * d
            if follows:
                f = f + (alpha * unit) * fd
                before, now = now, self.deviance(f)
            if stops.deviance_change > 0.0:
                watched.take(now)
            else:
                watched.take(norm(cg.residual))
            last = (x, f if follows else None)
            if follows and not now <= stops.decay * least_deviance:
                self.iterations += 1
                return best
            if now < least_deviance:
                best, least_deviance = last, now
        return best if stops.deviance_change > 0.0 else last

    def _preconditioned(self, r: Vector) -> Vector:
        return r if self.inverse_diagonal is None else self.inverse_diagonal * r


def unit_of(residual: Vector) -> float:
    """What to divide by, so that squares neither overflow nor vanish: mostly 1."""
    largest = float(np.max(np.abs(residual), initial=0.0))
    return largest if 0.0 < largest < 1.0 / HUGE or HUGE < largest < math.inf else 1.0


def length_of(residual: Vector) -> float:
    """Its Euclidean norm, which overflows only where that itself is beyond all numbers."""
    unit = unit_of(residual)
    return unit * norm(residual / unit)


def relative_change(before: float, now: float) -> float:
    """|(before - now) / now|, the thesis' measure of progress; 0 where both are 0."""
    if math.isinf(before) or now == 0.0:
        return 0.0 if before == now else math.inf
    return abs((before - now) / now)
