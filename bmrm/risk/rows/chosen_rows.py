"""Chosen rows of a risk that is a sum over rows: at random, or those that matter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Matrix, rows_of
from bmrm.problem import UNMETERED, InputError, LinearMap, Meter, Vector, timed
from bmrm.risk.score_function import BoundLoss

Rows = NDArray[np.int64]
ENOUGH = 0.8
"""Share of the rows of a copy that must still be of use."""
MapOf = Callable[[Matrix], LinearMap]
"""A map of some rows, scaled and biased as that of all rows is."""


class ChosenRows:
    """The ability to evaluate chosen rows of a risk that is a sum over rows.

    The mean over `rows` is scaled so that its expectation over rows drawn uniformly is R(w), weights included.

    Parameters
    ----------
    X, bound : all rows, or one rank's, and the loss with their targets.
    map_of : a map of some rows.
    mass : the divisor of R.
    meter : is charged the share of the rows; `map_of` charges nothing.
    """

    def __init__(self, X: Matrix, bound: BoundLoss, map_of: MapOf, mass: float, meter: Meter = UNMETERED) -> None:
        self.X, self.bound, self.map_of, self.mass, self.meter = X, bound, map_of, mass, meter
        self.rows = bound.rows

    def value_and_subgradient_of(self, rows: Rows, w: Vector) -> tuple[float, Vector]:
        """(number of rows / number of chosen ones) times their part of R(w), and a subgradient."""
        rows = np.asarray(rows, np.int64)
        if not rows.size or rows.min() < 0 or rows.max() >= self.rows:
            raise InputError(f"rows must be some of 0 ... {self.rows - 1}")
        value, subgradient, _ = self.meter.timed(rows.size / self.rows, self.part, rows, w)
        factor = self.rows / rows.size
        return value * factor, subgradient * factor

    def part(self, rows: Rows, w: Vector) -> tuple[float, Vector, NDArray[np.bool_]]:
        """The part of R(w) that `rows` make up, its subgradient, and for each whether its slope is 0."""
        if not rows.size:
            return 0.0, np.zeros_like(w), np.zeros(0, bool)
        part = self.map_of_rows(rows)
        value, slope = self.bound.take(rows).value_and_slope(part.matvec(w))
        return value / self.mass, part.rmatvec(slope) / self.mass, self.quiet(slope, rows.size)

    def map_of_rows(self, rows: Rows) -> LinearMap:
        """The map of a copy of `rows`."""
        return self.map_of(rows_of(self.X, rows, self.meter.check))

    def quiet(self, slope: NDArray[np.float64], rows: int) -> NDArray[np.bool_]:
        """For each row whether its slope is 0."""
        quiet: NDArray[np.bool_] = ~np.any(self.bound.layout.table(slope).reshape(rows, -1), axis=1)
        return quiet

    def active_set(self, quiet: int, least: int, most: int, seed: int, first: int = 0) -> RowActiveSet:
        """As of `RowSubsets`; `first` is the number of rows on the ranks before this one."""
        return RowActiveSet(self, quiet, least, most, seed, first)


class RowActiveSet:
    """As of `ActiveSet`, for the rows of one rank.

    A copy of the active rows is kept until too few of them still are: copying costs more than a pass.
    """

    def __init__(self, chosen: ChosenRows, quiet: int, least: int, most: int, seed: int, first: int) -> None:
        self._chosen, self.meter = chosen, chosen.meter
        self._share = 0.0
        self._limits = quiet, least, most
        self._seed = np.uint64(seed)
        self._numbers = np.arange(first, first + chosen.rows, dtype=np.uint64)
        self._quiet = np.zeros(chosen.rows, np.int64)
        self._tried_at = np.zeros(chosen.rows, np.int64)
        """The step at which a dormant row is tried again; 0 for an active row."""
        self._step = 0
        self._left_out: Rows = np.empty(0, np.int64)
        self._held: Rows = np.arange(chosen.rows)
        self._is_held = np.ones(chosen.rows, bool)
        self._held_map: LinearMap = chosen.map_of(chosen.X)

    @timed
    def step(self, w: Vector) -> tuple[float, Vector, float]:
        """As of `ActiveSet`; the share is that of this rank's rows."""
        limit, _, _ = self._limits
        self._step += 1
        here = self._tried_at <= self._step
        rows, self._left_out = np.flatnonzero(here), np.flatnonzero(~here)
        tried = self._tried_at[rows] > 0
        value, subgradient, quiet = self._evaluate(rows, tried, w)
        self._quiet[rows] = np.where(quiet, self._quiet[rows] + 1, 0)
        dormant = quiet & (tried | (self._quiet[rows] >= limit))
        self._tried_at[rows] = 0
        self._tried_at[rows[dormant]] = self._step + 1 + self._duration(rows[dormant])
        self._share = rows.size / max(1, self._chosen.rows)
        self.meter.charge(self._share)
        return value, subgradient, self._share

    def _evaluate(self, rows: Rows, tried: NDArray[np.bool_], w: Vector) -> tuple[float, Vector, NDArray[np.bool_]]:
        """As of `ChosenRows.part`; `tried` says which of the rows are dormant and only tried."""
        chosen = self._chosen
        if chosen.bound.layout.extra:
            return chosen.part(rows, w)
        inside = self._is_held[rows]
        if inside.sum() < ENOUGH * self._held.size or (~inside & ~tried).sum() > (1.0 - ENOUGH) * self._held.size:
            self._held_map = chosen.map_of_rows(rows[~tried])
            self._held = rows[~tried]
            self._is_held = np.zeros(chosen.rows, bool)
            self._is_held[self._held] = True
            inside = ~tried
        value, subgradient, quiet = 0.0, np.zeros_like(w), np.zeros(rows.size, bool)
        if inside.any():
            known = rows[inside]
            scores = self._held_map.matvec(w)
            wanted = np.zeros(chosen.rows, bool)
            wanted[known] = True
            here = wanted[self._held]
            part, slope = chosen.bound.take(known).value_and_slope(scores[here])
            quiet[inside] = chosen.quiet(slope, known.size)
            scores[...] = 0.0
            scores[here] = slope
            value, subgradient = part / chosen.mass, self._held_map.rmatvec(scores) / chosen.mass
        more, extra, quiet[~inside] = chosen.part(rows[~inside], w)
        return value + more, subgradient + extra, quiet

    @timed
    def rest(self, w: Vector) -> tuple[float, Vector]:
        """As of `ActiveSet`."""
        rows = self._left_out
        value, subgradient, quiet = self._chosen.part(rows, w)
        self.meter.charge(1.0 - self._share)
        active = rows[~quiet]
        self._tried_at[active] = self._quiet[active] = 0
        return value, subgradient

    def _duration(self, rows: Rows) -> Rows:
        """Steps dormant, from `least` to `most`: a hash of seed, step and row (splitmix64's mixing)."""
        _, least, most = self._limits
        with np.errstate(over="ignore"):
            x = self._numbers[rows] * np.uint64(0x9E3779B97F4A7C15)
            x += np.uint64(self._step) * np.uint64(0xD1B54A32D192ED03) + self._seed
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x ^= x >> np.uint64(31)
        duration: Rows = least + (x % np.uint64(most - least + 1)).astype(np.int64)
        return duration
