"""Least squares along lambdas: what is quadratic is kept.

Friedman, Hastie & Tibshirani 2010, section 2.2 (covariance updates), kept over all lambdas; duality gaps in the same
coordinates.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import dot
from bmrm.problem import Risk, Vector
from bmrm.problem.abilities import SeveralPoints
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import Meter
from bmrm.solvers._core.gram_model import GramModel
from bmrm.solvers._core.kept_walk import EPS, LEAST, MORE, Guess, Proved, served
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.rowwise import RowwiseRisk

Units = NDArray[np.int64]

WIDEST = 2_000
"""Most columns of a Gram matrix, which then takes 32 MB."""
AT_ONCE = 25
"""Points whose proofs read the rows together, so that a proof costs a twenty-fifth of a pass."""
FEW_AT_ONCE = 10
"""The same where some columns are in only: points whose slopes turn out too steep are found again."""
LONGEST = 2.0
"""Most that slopes are scaled by: rounding is scaled with them."""
CLEAR = 1e-2
"""Share of the gap allowed that rounding of a Gram matrix may be, for it to prove a point by itself."""


def quadratic(risk: Risk, solver: IterativeSolver) -> bool:
    """Whether it is least squares in one process, and not both rows and weights are too many."""
    found = served(risk, solver)
    if found is None:
        return False
    scored, size = found
    return scored.of_rows.facts.quadratic and min(size.rows, risk.dim) <= WIDEST


class Descent(ABC):
    """The quadratic on the columns taken in, and the point where the walk is. Columns come in units: one, or a block.

    With f the scores, c the constant second derivatives and q = A'phi'(f) the slopes at w, the value is
    phi_0 + <q_0 + q, w> / 2, and for every s

        min J >= phi - s <q, w> - N/2 (s - 1)^2 - Omega*(-s q),   N = sum phi'(f)_i^2 / c_i = 2 (phi - inf phi),

    the dual objective at the slopes times s. Descent needs no more than A' diag(c) A, and neither does this gap. For
    some points at a time both sides are then made anew from the rows, with what rounding may do; where the matrix has
    all columns, and what its own rounding may do is little, it proves them by itself.

    Where features are few, and rows more, the matrix has all columns; else those that were ever in use, and those
    whose slopes were steep for the first lambda of some points or, as the proofs show, too steep for a later one. Then
    these points are found again.

    Parameters
    ----------
    risk, meter : that is minimised, and what passes are charged to.
    start : (dim,), None for 0.
    narrow : most weights for which all columns are taken in at once, where rows are more.

    Attributes
    ----------
    whole : whether all are in.
    columns : those that are, increasing.
    grams : how often the quadratic was formed.
    """

    def __init__(self, risk: Risk, meter: Meter, start: Vector | None, narrow: int) -> None:
        self.rows = rows = RowwiseRisk.of("coordinate_descent", metered_risk(risk, meter))
        self.map: Any = rows.map
        self.w = np.empty(0)
        zero: Any = rows.map.matvec(np.zeros(risk.dim))
        at: Any = rows.profiled(zero)
        self.size, self.dim, self.grams = len(at.f), risk.dim, 0
        self.whole = self.size >= self.dim and self.dim <= narrow
        self.curvature = rows.curvature(at.f, 0.0)
        self.slopes, self.value, self.infimum = rows.map.rmatvec(at.slope), at.value, rows.phi.facts.infimum
        self._last = self.slopes
        """Where the last proof was."""
        self._constant = float(at.f[0] - zero[0]) if rows.free else 0.0
        self._weight = float(rows.phi.total(self.curvature)[0])
        self.mass = self._weight if rows.free else 1.0
        w = np.zeros(risk.dim) if start is None else np.array(start, np.float64)
        self.units = np.arange(self.sizes.size) if self.whole else self.units_of(np.flatnonzero(w))
        self.columns = self.columns_of(self.units)
        self._form(w)
        squares = self.H.diagonal() + self.border**2 / self.mass if self.whole else rows.map.diagonal(self.curvature)
        self._lengths = np.sqrt(squares)
        """Of the columns, in the metric of the second derivatives; with what is taken off them."""
        shifts = cast("SeveralPoints", rows.map).shifts()
        if shifts is not None:
            self._lengths += shifts * math.sqrt(self._weight)

    @property
    def at_once(self) -> int:
        """Points whose proofs read the rows together."""
        return AT_ONCE if self.whole else FEW_AT_ONCE

    @property
    def details(self) -> dict[str, Any]:
        """Of solutions."""
        return {"grams": self.grams}

    @property
    @abstractmethod
    def sizes(self) -> Units:
        """Columns of each unit."""

    @abstractmethod
    def units_of(self, columns: Units) -> Units:
        """Those that have these columns."""

    @abstractmethod
    def columns_of(self, units: Units) -> Units:
        """Theirs, increasing."""

    @abstractmethod
    def excess(self, slopes: Vector, omega: Any) -> Vector:
        """By how much the slopes of each unit are too steep for its weights to be 0; at most 0 where they are not."""

    @abstractmethod
    def move(self, w: Vector) -> None:
        """To a point whose weights beside the columns are 0."""

    @abstractmethod
    def guess(self, omega: Any, solver: IterativeSolver) -> Guess:
        """Descend until the gap is small enough, as far as the columns tell."""

    @abstractmethod
    def bound(self, value: float, slopes: Vector, product: float, omega: Any) -> float:
        """The best of a few s: 1, and the best of those where Omega* is 0; of the slopes sizes count alone.

        Parameters
        ----------
        value, slopes, product : phi(f), A'phi'(f), and its product with w.
        """

    def form(self) -> None:
        """The quadratic of the columns."""
        model = GramModel(self.rows, self.curvature, self.columns)
        self.H, self._ridge = model.H, model.ridge
        self.border = model.border if self.rows.free else np.zeros(self.columns.size)

    def _form(self, w: Vector) -> None:
        self.grams += 1
        self.form()
        self.first = self.slopes[self.columns]
        self.move(w)

    @property
    def widest(self) -> int:
        """Most columns."""
        return WIDEST

    def look(self, omega: Any) -> None:
        """Take columns in that were steeper than this allows at the last point."""
        if not self.whole:
            self._take(self.excess(self._last, omega))

    def grow(self, proved: Sequence[Proved], omegas: Sequence[Any]) -> bool:
        """Take columns in whose slopes are too steep at some of these points; whether there are any, and room."""
        if self.whole:
            return False
        return self._take(np.max([self.excess(one.slopes, omega) for one, omega in zip(proved, omegas)], axis=0))

    def _take(self, excess: Vector) -> bool:
        """The units of the largest excess above 0, as many columns again as there are, or a few."""
        excess[self.units] = 0.0
        new = np.flatnonzero(excess > 0.0)
        room = self.widest - self.columns.size
        most = min(max(LEAST, self.columns.size), room)
        if not new.size or most <= 0:
            return False
        new = new[np.argsort(-excess[new], kind="stable")]
        columns = np.cumsum(self.sizes[new])
        new = new[: max(1, int(np.searchsorted(columns, most, "right")))]
        if self.sizes[new].sum() > room:
            return False
        w = self.whole_w()
        self.units = np.sort(np.concatenate((self.units, new)))
        self.columns = self.columns_of(self.units)
        self._form(w)
        return True

    def whole_w(self) -> Vector:
        """The point, (dim,)."""
        w = np.zeros(self.dim)
        w[self.columns] = self.w
        return w

    def guessed(self, rounds: int) -> Guess:
        """The point where the walk is."""
        constant = self._constant - float(self.border @ self.w) / self.mass
        return Guess(self.whole_w(), constant, max(1, rounds))

    def proofs(self, guesses: Sequence[Guess], omegas: Sequence[Any], solver: IterativeSolver) -> list[Proved]:
        """J and a lower bound of its minimum at each, less what rounding may have done."""
        found = self._by_matrix(guesses, omegas, solver) if self.whole else None
        return self._by_rows(guesses, omegas) if found is None else found

    def _by_matrix(
        self, guesses: Sequence[Guess], omegas: Sequence[Any], solver: IterativeSolver
    ) -> list[Proved] | None:
        """Both from the Gram matrix; None where its rounding counts.

        Sums of n terms are rounded by no more than n units times the sum of sizes. By Cauchy and Schwarz, with L_j the
        lengths of the columns and M that of phi'(f_0) in the metric of c, an entry of H is within u L_j L_k of the
        true one, u being a unit times rows and columns, a slope q_j within u L_j (M + <L, |w|>), and the value within
        u (M + <L, |w|>)^2.
        """
        table = np.stack([one.w for one in guesses], axis=1)
        slopes = (self.first[:, None] + self.H @ table - self._ridge * table).T
        norm = math.sqrt(max(2.0 * (self.value - self.infimum), 0.0)) + abs(self._constant) * math.sqrt(self._weight)
        unit, found = (self.size + self.dim + MORE) * EPS, []
        for one, q, omega in zip(guesses, slopes, omegas):
            reach = norm + float(self._lengths @ np.abs(one.w))
            rounding = unit * reach * reach
            value = max(self.value + 0.5 * dot(self.first + q, one.w), self.infimum)
            objective = (value + omega.value(one.w)) * (1.0 + MORE * EPS) + rounding
            if not MORE * rounding <= CLEAR * solver.goal(objective) * abs(objective):
                return None
            steeper = q + np.copysign(unit * reach * self._lengths, q)
            lower = self.bound(value, steeper, dot(q, one.w), omega) - MORE * rounding
            found.append(Proved(one, objective, lower if lower <= objective else -math.inf, q))
        return found

    def _by_rows(self, guesses: Sequence[Guess], omegas: Sequence[Any]) -> list[Proved]:
        several, count = self.map.several(len(guesses)), len(guesses)
        found = several.matvec(np.stack([one.w for one in guesses], axis=1).ravel())
        scores = found.reshape(-1, count)
        slopes, values = np.empty((count, self.size)), []
        for k, one in enumerate(guesses):
            value, slopes[k] = self.rows.phi.value_and_slope(scores[:, k] + one.constant)
            values.append(value)
        gradients = several.rmatvec(np.ascontiguousarray(slopes.T).reshape(found.shape)).reshape(-1, count)
        columns = [np.ascontiguousarray(gradients[:, k]) for k in range(count)]
        self._last = columns[-1]
        return [self._proof(*each) for each in zip(guesses, values, slopes, columns, omegas)]

    def _proof(self, one: Guess, value: float, slope: Vector, q: Vector, omega: Any) -> Proved:
        """What sums of so many terms may be rounded by is bounded by Cauchy and Schwarz, in the metric of c."""
        w, sizes = one.w, np.abs(one.w)
        objective = value + omega.value(w)
        norm = math.sqrt(max(2.0 * (value - self.infimum), 0.0))
        columns = (self.size + MORE) * EPS * norm * self._lengths
        reach = float(self._lengths @ sizes) * (w.size + MORE) + MORE * abs(one.constant) * math.sqrt(self.mass)
        targets = MORE * math.sqrt(max(2.0 * (self.value - self.infimum), 0.0))
        slack = 4.0 * EPS * norm * (reach + targets) + MORE * MORE * EPS * (abs(value) + objective)
        slack += 2.0 * float(columns @ sizes)
        if self.rows.free:  # what slopes do not sum to 0 counts times the best constant
            left = abs(float(slope.sum())) + self.size * EPS * float(np.abs(slope).sum())
            slack += left * 2.0 * (abs(one.constant) + norm / math.sqrt(self.mass))
        lower = self.bound(value, q + np.copysign(columns, q), dot(q, w), omega) - slack
        if lower > objective:  # rounding beyond what is thought of: then nothing is proved
            lower = -math.inf
        return Proved(one, objective, lower, q)
