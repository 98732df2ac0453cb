"""Ratios with intervals, geometric means, and performance profiles; NumPy only, nothing is run here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
DRAWS = 2000
"""Bootstrap samples."""
SIDES = (0.05, 0.95)
"""A 90 % interval."""


@dataclass(frozen=True)
class Interval:
    """A middle value with its 90 % interval."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        if not math.isfinite(self.middle):
            return "-" if math.isnan(self.middle) else "inf"
        return f"{self.middle:.2f} ({self.low:.2f} to {self.high:.2f})"


NONE = Interval(math.nan, math.nan, math.nan)
"""There is nothing to compare."""
NOT_REACHED = Interval(math.inf, math.inf, math.inf)
"""We did not get there."""


def ratio(ours: Sequence[float], theirs: Sequence[float], seed: int = 0, paired: bool = True) -> Interval:
    """median(ours) / median(theirs) with its bootstrap interval.

    With `paired` the k-th times are of one round and are drawn together, so that a slow moment of the machine, which
    hit both, does not widen the interval; else, and where the numbers differ, each is drawn on its own.
    """
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    rng = np.random.default_rng(seed)
    first = rng.integers(a.size, size=(DRAWS, a.size))
    second = first if paired and a.size == b.size else rng.integers(b.size, size=(DRAWS, b.size))
    low, high = np.quantile(np.median(a[first], axis=1) / np.median(b[second], axis=1), SIDES)
    return Interval(float(np.median(a) / np.median(b)), float(low), float(high))


def geometric_mean(ratios: Sequence[Interval]) -> Interval:
    """Of the ratios of several problems, which are independent: half-widths of the logarithms add in squares."""
    if not ratios:
        return NONE
    middle, low, high = np.array([(one.middle, one.low, one.high) for one in ratios]).T
    if not np.isfinite(middle).all():
        return NOT_REACHED
    mean = np.log(middle).mean()
    down, up = (np.linalg.norm(np.log(side / middle)) / middle.size for side in (low, high))
    return Interval(float(np.exp(mean)), float(np.exp(mean - down)), float(np.exp(mean + up)))


def performance_profile(times: Mapping[str, Sequence[float]]) -> dict[str, tuple[Vector, Vector]]:
    """Dolan & More (2002): for each solver the share of problems that it solves within a factor of the fastest.

    Parameters
    ----------
    times : by solver, its time on each problem, in one order; inf where it failed.

    Returns
    -------
    By solver, factors (rising, from 1) and the share reached at each; a step function, constant between. Problems
    that nobody solved count for nobody.
    """
    table = np.array([list(row) for row in times.values()], float)
    if table.size == 0:
        return {}
    best = table.min(axis=0)
    solved = np.isfinite(best)
    found = {}
    for name, row in zip(times, table, strict=True):
        factors = np.sort(row[solved] / best[solved])
        factors = factors[np.isfinite(factors)]
        steps, counts = np.unique(factors, return_counts=True)
        share = np.cumsum(counts) / max(1, table.shape[1])
        found[name] = (np.append(1.0, steps), np.append(share[0] if steps.size and steps[0] == 1.0 else 0.0, share))
    return found


def share_at(profile: tuple[Vector, Vector], factor: float) -> float:
    """The share of problems within `factor` of the fastest."""
    factors, shares = profile
    return float(shares[np.searchsorted(factors, factor, side="right") - 1])
