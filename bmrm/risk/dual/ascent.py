"""The ability `DualBlocks`: the dual of l1 ||w||_1 + l2/2 ||w||^2 + R(w), ascended row by row."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from bmrm.problem import Check, IncompatibleError, Scores, Vector, unchecked
from bmrm.problem.abilities import DualSweep
from bmrm.problem.meter import UNMETERED, Meter, charged, timed
from bmrm.risk.dual.balance import Balance
from bmrm.risk.dual.visits import LITTLE, AscentRows

PENALTY = 0.05
"""Square of the feature that stands for a free intercept, in units of the mean square norm of rows."""
FASTER, SLOWER, CREEPING, MOST_KEPT = 1.3, 0.7, 0.1, 0.9
"""The square is multiplied by FASTER where the loss caused by the non-zero sum of the slopes, extrapolated from its
decrease (at most a factor MOST_KEPT a sweep), exceeds CREEPING times the gap, and by SLOWER elsewhere."""
GRACE, EVALUATIONS = 0.1, 4
"""Most seconds that the last balance may take after the time limit, if this many sums of slopes fit into them."""
REFRESH = 64
"""Visits of every row after which sums that are updated by differences are computed anew."""


class MakeRows(Protocol):
    """Rows with nothing begun; `check` is called now and then until they are made."""

    def __call__(self, l1: float, l2: float, seed: int, check: Check = unchecked) -> AscentRows: ...


@dataclass(frozen=True)
class RowAscents:
    """As of `DualBlocks`.

    Parameters
    ----------
    rows, dim, mass, infimum : of the risk.
    scores_per_row : K.
    make : the rows, with nothing begun.
    grouped : whether a step is of a group of rows.
    free : whether there is always a free intercept.
    meter : is charged the visits of rows, and half a pass wherever weights are computed from slopes.
    """

    rows: int
    dim: int
    mass: float
    infimum: float
    scores_per_row: int
    make: MakeRows
    grouped: bool = False
    free: bool = False
    meter: Meter = UNMETERED

    def metered(self, meter: Meter) -> RowAscents:
        """The same, charged to `meter`; a sweep that is broken off leaves what belongs together."""
        return replace(self, meter=meter)

    def ascent(
        self,
        l1: float,
        l2: float,
        *,
        seed: int,
        start: Scores | None = None,
        near: Scores | None = None,
        intercept: bool = False,
    ) -> Ascent:
        """As of `DualBlocks`."""
        intercept = intercept or self.free
        if intercept and self.grouped:
            raise IncompatibleError("dual steps of groups know no free intercept; use line_search_bundle or lbfgs")

        def begun() -> Ascent:
            return Ascent(self, self.make(l1, l2, seed, self.meter.check), l1, l2, start, near, intercept)

        return self.meter.timed(0.0 if start is None and near is None else 0.5, begun)


class _OutOfTimeError(Exception):
    """There is no time for a balance."""


class _Grace:
    """A check that leaves `GRACE` seconds to what begins when time is over, to end a run well.

    Parameters
    ----------
    meter : of the run.
    needed : seconds that are needed at least.
    """

    def __init__(self, meter: Meter, needed: float) -> None:
        self._meter, self._end = meter, time.perf_counter() + GRACE
        self._needed = needed

    def check(self, products: float = 0.0, /) -> None:
        self._meter.check()
        if self._meter.spent() and (self._needed > GRACE or time.perf_counter() > self._end):
            raise _OutOfTimeError


class Ascent:
    """As of `DualAscent`, wherever the rows are.

    A free intercept b is held by a penalty to a centre, rho/2 (b - centre)^2, as if a feature of 1 had a weight of its
    own; after every sweep the centre moves to b (an augmented Lagrangian of the sum of the slopes). The feature grows
    where b creeps, and else shrinks: with a large one rows can hardly move.
    """

    def __init__(
        self,
        risk: RowAscents,
        rows: AscentRows,
        l1: float,
        l2: float,
        start: Scores | None,
        near: Scores | None,
        intercept: bool,
    ) -> None:
        self._risk, self._rows, self.meter = risk, rows, risk.meter
        self._threshold, self._l2 = l1 / l2, l2
        self._v = np.zeros(risk.dim)
        self._constant = np.zeros(risk.scores_per_row)
        self._intercept = intercept
        self._sum = np.zeros(risk.scores_per_row)
        """Of the slopes, in units in which the constant moves by `_penalty` times as much."""
        self._visited = np.inf
        """Rows visited since v was last computed from the slopes; inf before the first sweep."""
        rows.begin(start, near, intercept)
        squares, count, scores, slopes = rows.sizes() if intercept else (0.0, 1.0, 1.0, risk.mass)
        self._took = 0.0
        """Seconds that the last sums of slopes took."""
        self._balance = Balance(risk.scores_per_row, slopes, scores / max(count, 1.0))
        self._least_penalty = self._penalty = _penalty(squares, count) if intercept else 0.0
        if start is not None or near is not None:
            share = LITTLE if start is None else 1.0
            shift = self._balanced(share) if intercept else None
            shift = self._constant if shift is None else shift
            self._refresh(shift, share)
            if intercept:
                self._constant = self._constant + shift
                self._sum = -rows.totals(np.zeros_like(shift)) / (risk.mass * l2)

    @timed
    def sweep(self) -> DualSweep:
        """As of `DualAscent`."""
        self._v, visits = self._rows.sweep(self._v, self._constant, self._penalty, self.meter.check)
        self._visited = visits.visited + (self._visited if np.isfinite(self._visited) else 0.0)
        if self._intercept:
            self._move_constant(visits.total, visits.gap / self._risk.mass)
        rows = max(1, self._risk.rows)
        self.meter.charge(visits.visited / rows)
        return DualSweep(visits.gap / self._risk.mass, visits.visited / rows, visits.left / rows)

    def _move_constant(self, total: Vector, gap: float) -> None:
        """The centre moves to the constant, and with it the constant; then the penalty is made to suit."""
        before, self._sum = self._sum, self._sum + total
        move = self._penalty * (total + self._sum)
        self._constant = self._constant + move
        with np.errstate(over="ignore", invalid="ignore"):  # of targets whose squares are as large as numbers are
            squares = float(before @ before)
            kept = float(self._sum @ before) / squares if squares else 0.0
            lost = self._l2 * abs(float(self._sum @ move)) / (1.0 - min(max(kept, 0.0), MOST_KEPT))
        change = FASTER if kept > 0.0 and lost > CREEPING * gap else SLOWER
        self._penalty = max(change * self._penalty, self._least_penalty)

    def unshrink(self) -> None:
        """As of `DualAscent`."""
        self._rows.unshrink()

    @property
    def weights(self) -> Vector:
        """As of `DualAscent`."""
        v = self._v
        if self._threshold == 0.0:
            return np.array(v)
        return np.maximum(v - self._threshold, 0.0) + np.minimum(v + self._threshold, 0.0)

    @timed
    def value(self) -> float:
        """As of `DualAscent`."""
        w = self.weights
        return self._rows.offset() / self._risk.mass - 0.5 * self._l2 * float(w @ w)

    @timed
    def slope(self) -> Scores:
        """As of `DualAscent`."""
        return self._rows.slope()

    @charged(0.5)
    def plane(self, anew: bool = False) -> tuple[Vector, float]:
        """As of `DualAscent`."""
        if not np.isfinite(self._visited):
            return self._floor()
        if self._intercept:
            shift = self._balanced()
            if shift is None:
                return self._evened()
            b = self._refresh(shift)
            self._constant = self._constant + shift
            self._sum = np.zeros_like(shift)
        elif anew or self._visited > REFRESH * self._risk.rows:
            b = self._refresh(np.zeros_like(self._constant))
        else:
            b = self._rows.offset()
        return -self._l2 * self._v, b / self._risk.mass

    def _balanced(self, share: float = 1.0) -> Vector | None:
        def totals(shift: Vector) -> Vector:
            begin = time.perf_counter()
            found = self._rows.totals(shift, share)
            self._took = time.perf_counter() - begin
            return found

        derivative = partial(self._rows.derivative, share=share)
        grace = _Grace(self.meter, EVALUATIONS * self._took)
        try:
            grace.check()
            return self._balance.find(totals, derivative, grace.check)
        except _OutOfTimeError:
            return None

    def _evened(self) -> tuple[Vector, float]:
        """The plane of slopes that sum to 0 without a search; the floor where rows know none."""
        a = self._rows.evened()
        if a is None:
            return self._floor()
        self._sum = np.zeros_like(self._sum)
        b = self._moved(a)
        return -self._l2 * self._v, b / self._risk.mass

    def _floor(self) -> tuple[Vector, float]:
        return np.zeros(self._risk.dim), self._risk.infimum

    def _refresh(self, shift: Vector, share: float = 1.0) -> float:
        """v from the slopes, these first moved by their maps; returns minus the sum of their conjugates."""
        return self._moved(self._rows.settle(shift, share))

    def _moved(self, a: Vector) -> float:
        """Take v from A' slopes; returns minus the sum of their conjugates."""
        self._v = a / (-self._l2 * self._risk.mass)
        self._visited = 0.0
        return self._rows.offset()

    @property
    def constant(self) -> Vector:
        """As of `DualAscent`."""
        return np.array(self._constant)

    @timed
    def scores(self) -> Scores | None:
        """As of `DualAscent`."""
        return self._rows.scores() if self._intercept else None

    @property
    def balance(self) -> Vector:
        """As of `DualAscent`: the penalty, then the constant."""
        return np.append(self._penalty, self._constant) if self._intercept else np.empty(0)

    def resume(self, balance: Vector) -> None:
        """As of `DualAscent`; what the beginning has moved the constant by counts."""
        if self._intercept and balance.shape == (1 + self._constant.size,) and np.all(np.isfinite(balance)):
            self._penalty = max(float(balance[0]), self._least_penalty)
            self._constant = self._constant + balance[1:]


def _penalty(squares: float, rows: float) -> float:
    return PENALTY * (squares / rows if squares > 0.0 else 1.0)
