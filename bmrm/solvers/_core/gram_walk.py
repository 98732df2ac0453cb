"""Least squares with l1 or elastic net along lambdas, by a Gram matrix that is kept: rows are read for proofs alone.

Friedman, Hastie & Tibshirani 2010, section 2.2 (covariance updates), kept over all lambdas; duality gaps in the same
coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bmrm.kernels.blas_threads import one_thread
from bmrm.kernels.compiling import COMPILING
from bmrm.kernels.products.vectors import dot
from bmrm.problem import Elastic, Iteration, Regularizer, Risk, Scored, Solution, Status, Vector, ability, provides
from bmrm.problem.abilities import ProblemSize, SeveralPoints
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import Meter
from bmrm.solvers._core.budget import Budget
from bmrm.solvers._core.gram_model import GramModel, minimum
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.rowwise import RowwiseRisk

WIDEST = 2_000
"""Most columns of a Gram matrix, which then takes 32 MB."""
FINEST = 1e-9
"""Least relative gap that is proved so; below it rounding matters, which the solvers measure."""
AT_ONCE, ROOM = 25, 1 << 26
"""Points whose proofs read the rows together, so that a proof costs a twenty-fifth of a pass; and most bytes of their
scores."""
FIRST, SHARPER, ROUNDS = 0.3, 0.2, 12
"""Accuracy of the first descent of a point, relative to what the gap allows; the factor and the number of the next."""
SPARE = 0.8
"""Share of the tolerance that the gap by the Gram matrix may be: the rest is for its rounding."""
NARROW = 400
"""Most weights for which the matrix, then of 1.3 MB, has all columns at once."""
FEW_AT_ONCE, LEAST = 10, 64
"""Points at a time, and most columns that are first taken in, where the matrix has some columns only: points whose
slopes turn out too steep are found again."""
LONGEST = 2.0
"""Most that slopes are scaled by: rounding is scaled with them."""
MORE = 8.0
"""Roundings beside those of sums, in multiples of a unit."""
EPS = float(np.finfo(np.float64).eps)


def serves(risk: Risk, regularizer: Regularizer, solver: IterativeSolver) -> bool:
    """Whether it is such a problem, in one process, and not both rows and weights are too many."""
    scored, size = ability(risk, Scored), ability(risk, ProblemSize)
    if scored is None or size is None or size.ranks > 1 or min(size.rows, risk.dim) > WIDEST:
        return False
    facts = scored.of_rows.facts
    quadratic = facts.quadratic and facts.scores_per_row == 1 and facts.separable and math.isfinite(facts.infimum)
    elastic = provides(regularizer, Elastic) and regularizer.l1 > 0.0
    limited = solver.time_limit is not None or solver.tolerance < FINEST
    return quadratic and elastic and provides(scored.map, SeveralPoints) and not limited


class Guess(NamedTuple):
    """A point that the Gram matrix proves to be good enough, as far as its columns go.

    Attributes
    ----------
    w : (dim,).
    constant : the best free intercept.
    rounds : descents that it took.
    """

    w: Vector
    constant: float
    rounds: int


class Proved(NamedTuple):
    """The same from the rows: J, a lower bound of its minimum, and the slopes A'phi'(f)."""

    guess: Guess
    objective: float
    lower: float
    slopes: Vector


@dataclass(frozen=True)
class GramWalk:
    """A walk; see `bmrm.solvers._core.walk`.

    With f the scores, c the constant second derivatives and q = A'phi'(f) the slopes at w, the value is
    phi_0 + <q_0 + q, w> / 2, and for every s

        min J >= phi - s <q, w> - N/2 (s - 1)^2 - Omega*(-s q),   N = sum phi'(f)_i^2 / c_i = 2 (phi - inf phi),

    the dual objective at the slopes times s. Sweeps over the coordinates need no more than A' diag(c) A, and neither
    does this gap. For some points at a time both sides are then made anew from the rows, with what rounding may do.

    Where features are few, and rows more, the matrix has all columns; else those that were ever in use, and those
    whose slopes were steep for the first lambda of some points or, as the proofs show, too steep for a later one. Then
    these points are found again.

    Parameters
    ----------
    solver : whose tolerance holds; it solves points that are not proved in the end.
    """

    solver: IterativeSolver

    def __call__(
        self, risk: Risk, regularizers: Sequence[Regularizer], start: Vector | None, callback: Any
    ) -> Iterator[Solution]:
        with Budget() as budget, one_thread():
            meter = Meter(budget.check, waiting=COMPILING)
            state = _Descent(risk, meter, start)
        before = budget.seconds, meter.passes, budget.compiling
        size = max(1, min(AT_ONCE if state.whole else FEW_AT_ONCE, ROOM // (8 * max(1, state.size, risk.dim))))
        for first in range(0, len(regularizers), size):
            some: Any = regularizers[first : first + size]
            with Budget() as budget, one_thread():
                passes = meter.passes
                proved = self._proved(state, [(omega.l1, omega.l2) for omega in some])
            spent = budget.seconds, meter.passes - passes, budget.compiling
            stopped = budget.spent is not None  # by Ctrl-C, while the points of this time were proved
            for k, (omega, one) in enumerate(zip(some, proved)):
                shares = [b + each / len(some) for b, each in zip(before, spent)]
                before = 0.0, 0.0, 0.0
                if self._enough(one):
                    found = self._solution(one, state, shares, callback)
                    yield replace(found, status=Status.INTERRUPTED) if stopped and k == len(some) - 1 else found
                else:
                    yield self.solver.minimize(risk, omega, start=one.guess.w, callback=callback)

    def _enough(self, one: Proved) -> bool:
        gap = one.objective - one.lower
        within = gap <= self.solver.goal(one.objective) * abs(one.objective)
        return within and one.guess.rounds <= self.solver.max_iterations

    def _proved(self, state: _Descent, penalties: Sequence[tuple[float, float]]) -> list[Proved]:
        """Points with their proofs; again with more columns where slopes beside those in use are too steep."""
        state.look(penalties[-1][0])
        done: list[Proved] = []
        while True:
            left = penalties[len(done) :]
            guesses = [state.guess(l1, l2, self.solver) for l1, l2 in left]
            proved = state.proofs(guesses, left)
            good = next((k for k, one in enumerate(proved) if not self._enough(one)), len(proved))
            done += proved[:good]
            if good == len(proved):
                return done
            if not state.grow(proved[good:], [l1 for l1, _ in left[good:]]):
                return done + proved[good:]
            state.move(proved[good].guess.w)

    def _solution(self, one: Proved, state: _Descent, shares: Sequence[float], callback: Any) -> Solution:
        guess, (seconds, passes, compiling) = one.guess, shares
        line = Iteration(guess.rounds, one.objective, one.lower, passes, seconds)
        callback(line.told(guess.w, None))
        return Solution(
            w=guess.w,
            objective=one.objective,
            lower_bound=one.lower,
            status=Status.CONVERGED,
            iterations=guess.rounds,
            passes=passes,
            seconds=seconds,
            history=(line,),
            solver="coordinate_descent (one Gram matrix for all lambdas)",
            details={"grams": state.grams} | ({"intercept": guess.constant} if state.rows.free else {}),
            seconds_compiling=compiling,
        )


class _Descent:
    """The Gram matrix of some columns, and the point where the walk is."""

    def __init__(self, risk: Risk, meter: Meter, start: Vector | None) -> None:
        self.rows = rows = RowwiseRisk.of("coordinate_descent", metered_risk(risk, meter))
        self.map: Any = rows.map
        zero: Any = rows.map.matvec(np.zeros(risk.dim))
        at: Any = rows.profiled(zero)
        self.size, self.dim, self.grams = len(at.f), risk.dim, 0
        self.whole = self.size >= self.dim and self.dim <= NARROW
        self._curvature = rows.curvature(at.f, 0.0)
        self._slopes, self._value, self._infimum = rows.map.rmatvec(at.slope), at.value, rows.phi.facts.infimum
        self._last = self._slopes
        """Where the last proof was."""
        self._constant = float(at.f[0] - zero[0]) if rows.free else 0.0
        self._mass = float(rows.phi.total(self._curvature)[0]) if rows.free else 1.0
        self.columns = np.arange(self.dim) if self.whole else np.empty(0, np.int64)
        w = np.zeros(risk.dim) if start is None else np.array(start, np.float64)
        if not self.whole:
            self.columns = np.flatnonzero(w)
        self._form(w)
        squares = self.H.diagonal() + self._border**2 / self._mass if self.whole else rows.map.diagonal(self._curvature)
        self._lengths = np.sqrt(squares)
        """Of the columns, in the metric of the second derivatives."""

    def _form(self, w: Vector) -> None:
        """The matrix of the columns, at a point."""
        model = GramModel(self.rows, self._curvature, self.columns)
        self.H, self.grams = model.H, self.grams + 1
        self._border = model.border if self.rows.free else np.zeros(self.columns.size)
        self._first = self._slopes[self.columns]
        self.move(w)

    def move(self, w: Vector) -> None:
        """To a point whose weights beside the columns are 0."""
        self.w = w[self.columns]
        self.q = self._first + self.H @ self.w

    def look(self, l1: float) -> None:
        """Take columns in that were steeper than this at the last point."""
        if not self.whole:
            self._take(np.abs(self._last) - l1)

    def grow(self, proved: Sequence[Proved], l1s: Sequence[float]) -> bool:
        """Take columns in whose slopes are too steep at some of these points; whether there are any, and room."""
        if self.whole:
            return False
        excess = np.max([np.abs(one.slopes) - l1 for one, l1 in zip(proved, l1s)], axis=0)
        return self._take(excess)

    def _take(self, excess: Vector) -> bool:
        """The columns of the largest excess above 0, as many again as there are, or a few."""
        excess[self.columns] = 0.0
        new = np.flatnonzero(excess > 0.0)
        most = min(max(LEAST, self.columns.size), WIDEST - self.columns.size)
        if not new.size or most <= 0:
            return False
        if new.size > most:
            new = new[np.argpartition(-excess[new], most)[:most]]
        w = np.zeros(self.dim)
        w[self.columns] = self.w
        self.columns = np.sort(np.concatenate((self.columns, new)))
        self._form(w)
        return True

    def guess(self, l1: float, l2: float, solver: IterativeSolver) -> Guess:
        """Descend until the gap is small enough, as far as the Gram matrix tells."""
        share, rounds = FIRST, 0
        for rounds in range(ROUNDS):  # noqa: B007 (told at the end)
            value = max(self._value + 0.5 * dot(self._first + self.q, self.w), self._infimum)
            size = float(np.abs(self.w).sum())
            objective = value + l1 * size + 0.5 * l2 * dot(self.w, self.w)
            lower = self._bound(value, np.abs(self.q), dot(self.q, self.w), l1, l2)
            allowed = SPARE * solver.goal(objective) * abs(objective)
            if objective - lower <= allowed or not math.isfinite(objective):
                break
            goal = share * min(allowed / max(size, 1e-300), l1 * math.sqrt(solver.tolerance))
            after, _ = minimum(self.H, self.q, self.w, l1, l2, goal)
            self.q, self.w, share = self.q + self.H @ (after - self.w), after, share * SHARPER
        constant, w = self._constant - float(self._border @ self.w) / self._mass, np.zeros(self.dim)
        w[self.columns] = self.w
        return Guess(w, constant, max(1, rounds))

    def proofs(self, guesses: Sequence[Guess], penalties: Sequence[tuple[float, float]]) -> list[Proved]:
        """J and a lower bound of its minimum at each, both from the rows, less what rounding may have done."""
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
        return [self._proof(*each) for each in zip(guesses, values, slopes, columns, penalties)]

    def _proof(self, one: Guess, value: float, slope: Vector, q: Vector, penalty: tuple[float, float]) -> Proved:
        """What sums of so many terms may be rounded by is bounded by Cauchy and Schwarz, in the metric of c."""
        (l1, l2), w, sizes = penalty, one.w, np.abs(one.w)
        objective = value + l1 * float(sizes.sum()) + 0.5 * l2 * dot(w, w)
        norm = math.sqrt(max(2.0 * (value - self._infimum), 0.0))
        columns = (self.size + MORE) * EPS * norm * self._lengths
        reach = float(self._lengths @ sizes) * (w.size + MORE) + MORE * abs(one.constant) * math.sqrt(self._mass)
        targets = MORE * math.sqrt(max(2.0 * (self._value - self._infimum), 0.0))
        slack = 4.0 * EPS * norm * (reach + targets) + MORE * MORE * EPS * (abs(value) + objective)
        slack += 2.0 * float(columns @ sizes)
        if self.rows.free:  # what slopes do not sum to 0 counts times the best constant
            left = abs(float(slope.sum())) + self.size * EPS * float(np.abs(slope).sum())
            slack += left * 2.0 * (abs(one.constant) + norm / math.sqrt(self._mass))
        lower = self._bound(value, np.abs(q) + columns, dot(q, w), l1, l2) - slack
        if lower > objective:  # rounding beyond what is thought of: then nothing is proved
            lower = -math.inf
        return Proved(one, objective, lower, q)

    def _bound(self, value: float, sizes: Vector, product: float, l1: float, l2: float) -> float:
        """The best of a few s: 1, and the best of those where Omega* is 0; `sizes` are those of q."""
        square, largest = 2.0 * (value - self._infimum), float(sizes.max(initial=0.0))
        most = l1 / largest if largest > 0.0 else math.inf
        s = min(most, 1.0 - product / square if square > 0.0 else 1.0, LONGEST)
        found = value - s * product - 0.5 * square * (s - 1.0) ** 2
        if l2 > 0.0:
            excess = np.maximum(sizes - l1, 0.0)
            found = max(found, value - product - 0.5 * dot(excess, excess) / l2)
        return found
