"""Abilities of rows: evaluate some, take some out, draw a sample, bring their scores together, change their loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Features
from bmrm.data.matrix.products import active_rows
from bmrm.kernels.products.vectors import column_sums, plain
from bmrm.kernels.rows.dormancy import part_rows, settle, wake
from bmrm.kernels.workers import Workers
from bmrm.problem import IncompatibleError, InputError, Targets, Vector, provides
from bmrm.problem.abilities import RowPart
from bmrm.problem.loss import HasMeanTarget, HasVariant
from bmrm.problem.meter import FULL_SPEED, UNMETERED, Meter, half_pass, timed
from bmrm.risk.linear_map import DataMap, added
from bmrm.risk.score_function import BoundLoss, LossPhi
from bmrm.risk.score_layout import TailedMap

Rows = NDArray[np.int64]
Array = NDArray[np.float64]
Seen = Callable[[Rows, Rows], object]
"""Told listed rows and the positions of those with a slope; by several threads, but of a row by one."""
NO_PARAMETERS = np.empty(0)


def unseen(rows: Rows, active: Rows) -> None:
    """Nobody wants to know."""


class ChosenRows:
    """The ability to evaluate chosen rows of a risk that is a sum over rows; they are read where they lie.

    The mean over `rows` is scaled so that its expectation over rows drawn uniformly is R(w), weights included.

    Parameters
    ----------
    map, bound : of all rows, or one rank's: the map (not metered), and the loss with their targets.
    mass : the divisor of R.
    meter : is charged the share of the rows.
    """

    def __init__(self, map: DataMap | TailedMap, bound: BoundLoss, mass: float, meter: Meter = UNMETERED) -> None:
        self.map, self.bound, self.mass, self.meter = map, bound, mass, meter
        self.rows = bound.rows

    def value_and_subgradient_of(self, rows: Rows, w: Vector) -> tuple[float, Vector]:
        """(number of rows / number of chosen ones) times their part of R(w), and a subgradient."""
        rows = np.ascontiguousarray(rows, np.int64)
        if not rows.size or rows.min() < 0 or rows.max() >= self.rows:
            raise InputError(f"rows must be some of 0 ... {self.rows - 1}")
        value, subgradient = self.meter.timed(rows.size / self.rows, self.part, rows, w)
        factor = self.rows / rows.size
        return value * factor, subgradient * factor

    def part(self, rows: Rows, w: Vector, seen: Seen = unseen) -> tuple[float, Vector]:
        """The part of R(w) that `rows` make up, and its subgradient.

        As `LinearRisk.evaluate` does for all rows, chunk by chunk while a chunk is in the cache.
        """
        if not rows.size:
            return 0.0, np.zeros_like(w)
        weights, parameters = self.map.split(w) if isinstance(self.map, TailedMap) else (w, NO_PARAMETERS)
        rows_map = self.map.rows_map if isinstance(self.map, TailedMap) else self.map
        layout, products = self.bound.layout, rows_map.products
        v, offset = rows_map.inward(weights)

        def work(chunks: list[Rows]) -> tuple[float, Array, Array, Array]:
            value, gradient = 0.0, rows_map.zeros()
            total, of_parameters = np.zeros(layout.shape(1)[1:]), np.zeros(layout.extra)
            for chunk in chunks:
                f = layout.new(chunk.size, parameters)
                products.scores_of(chunk, v, offset, layout.table(f))
                with self.bound.quiet():
                    loss, slope = self.bound.take(chunk).value_and_slope(f)
                table = plain(layout.table(slope))
                active = active_rows(table)
                products.add_rmatvec_of(chunk, active, table, gradient)
                seen(chunk, active)
                value += loss
                of_parameters += layout.parameters(slope)
                total += column_sums(table)
            return value, gradient, total, of_parameters

        values, gradients, totals, tails = zip(*rows_map.workers.map(work, rows_map.listed(rows)), strict=True)
        subgradient = rows_map.outward(added(list(gradients)), added(list(totals)))
        if layout.extra:
            subgradient = np.concatenate((subgradient, added(list(tails))))
        subgradient /= self.mass
        return self.bound.told(sum(values) / self.mass), subgradient

    def active_set(self, quiet: int, least: int, most: int, seed: int, first: int = 0) -> RowActiveSet:
        """As of `RowSubsets`; `first` is the number of rows on the ranks before this one."""
        return RowActiveSet(self, quiet, least, most, seed, first)


class RowActiveSet:
    """As of `ActiveSet`, for the rows of one rank."""

    def __init__(self, chosen: ChosenRows, quiet: int, least: int, most: int, seed: int, first: int) -> None:
        self._chosen, self.meter = chosen, chosen.meter
        self._limits = quiet, least, most, seed
        self._first = first
        self._used_at = np.zeros(chosen.rows, np.int32)
        """The last step at which the slope was not 0."""
        self._tried_at = np.zeros(chosen.rows, np.int32)
        """The step at which a dormant row is tried again; 0 for an active row."""
        self._rows: Rows = np.empty(chosen.rows, np.int64)
        """Those of the last step, and behind them those that it left out."""
        self._due = 0
        self._step = 0

    @property
    def _share(self) -> float:
        return self._due / max(1, self._chosen.rows)

    @timed
    def step(self, w: Vector) -> tuple[float, Vector, float]:
        """As of `ActiveSet`; the share is that of this rank's rows."""
        self._step += 1
        self._due = int(part_rows(self._tried_at, self._step, self._rows))

        def seen(rows: Rows, active: Rows) -> None:
            state, room = (self._used_at, self._tried_at), np.empty(rows.size + 1, np.int64)
            settle(rows, active, self._step, self._first, *self._limits, *state, room)

        value, subgradient = self._chosen.part(self._rows[: self._due], w, seen)
        self.meter.charge(self._share)
        return value, subgradient, self._share

    @timed
    def rest(self, w: Vector) -> tuple[float, Vector]:
        """As of `ActiveSet`."""

        def seen(rows: Rows, active: Rows) -> None:
            wake(rows, active, self._step, self._used_at, self._tried_at)

        self.meter.charge(1.0 - self._share)
        return self._chosen.part(self._rows[self._due :], w, seen)


@dataclass(frozen=True)
class ChosenParts:
    """The ability `RowParts`.

    Parameters
    ----------
    X, bound : all rows, and the loss with their targets.
    map_of : a map of some rows.
    mass : the divisor of R.
    workers : the threads of the parts.
    meter, share : what is charged, and the share of these rows in a pass.
    """

    X: Features
    bound: BoundLoss
    map_of: Callable[[Features], DataMap]
    mass: float
    workers: Workers
    meter: Meter = UNMETERED
    share: float = 1.0

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.bound.rows

    @timed
    def part(self, weights: Array) -> RowPart:
        """The rows of weight other than 0, copied."""
        rows = active_rows(plain(weights if weights.ndim == 1 else np.abs(weights).sum(axis=1)))
        X = self.X.select(rows, self.meter.check)
        share = self.share * rows.size / max(1, self.rows)
        part = replace(self, X=X, bound=self.bound.some(rows), share=share)
        phi = LossPhi(part.bound, self.mass, self.workers).metered(self.meter)
        return RowPart(self.map_of(X), phi, lambda scores: scores[rows], int(rows.size), part)

    @timed
    def curved_rows(self, z: Array, sigma: float, reach: float) -> Array:
        """Of the loss."""
        whole: Any = self.bound.whole
        found: Array = whole.curved_rows(z, sigma, reach)
        return found

    @half_pass
    def products(self) -> Array:
        """Of the inputs; charged as Gram matrices are."""
        map = self.map_of(self.X)
        speed = FULL_SPEED if self.X.full else 1.0
        self.meter.charge(0.0, self.share * (self.rows + 1.0) / (4.0 * map.scores_per_row * speed))
        found = self.X.row_products(map.columns.scale, map.columns.shift, self.meter.check)
        return found + 1.0 if map.bias else found


def drawn(total: int, rows: int, seed: int) -> Rows:
    """So many of `total` rows without repetition, increasing."""
    if not 0 < rows <= total:
        raise InputError(f"a sample of {rows} rows, expected 1 to {total}")
    return np.sort(np.random.default_rng(seed).choice(total, rows, replace=False, shuffle=False))


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
        prepared: Any = self.bound.bare
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
        return replace(t, weights=weights)
