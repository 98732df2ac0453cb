"""Least squares with l1 or elastic net along lambdas, on one Gram matrix: the rows are read for proofs alone.

Friedman, Hastie & Tibshirani 2010, section 2.2 (covariance updates), kept over all lambdas; duality gaps in the same
coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
"""Most weights for which a Gram matrix of all is formed."""
FINEST = 1e-9
"""Least relative gap that is proved so; below it rounding matters, which the solvers measure."""
AT_ONCE, ROOM = 25, 1 << 26
"""Points whose proofs read the rows together, and most bytes of their scores."""
FIRST, SHARPER, ROUNDS = 0.3, 0.2, 12
"""Accuracy of the first descent of a point, relative to what the gap allows; the factor and the number of the next."""
SPARE = 0.8
"""Share of the tolerance that the gap by the Gram matrix may be: the rest is for its rounding."""
MORE = 8.0
"""Roundings beside those of sums, in multiples of a unit."""
EPS = float(np.finfo(np.float64).eps)


def serves(risk: Risk, regularizer: Regularizer, solver: IterativeSolver) -> bool:
    """Whether it is such a problem, in one process, with more rows than weights, and neither is too large."""
    scored, size = ability(risk, Scored), ability(risk, ProblemSize)
    if scored is None or size is None or size.ranks > 1 or not size.rows > risk.dim or risk.dim > WIDEST:
        return False
    facts = scored.of_rows.facts
    quadratic = facts.quadratic and facts.scores_per_row == 1 and facts.separable and math.isfinite(facts.infimum)
    elastic = provides(regularizer, Elastic) and regularizer.l1 > 0.0
    limited = solver.time_limit is not None or solver.tolerance < FINEST
    return quadratic and elastic and provides(scored.map, SeveralPoints) and not limited


class Guess(NamedTuple):
    """A point that the Gram matrix proves to be good enough."""

    w: Vector
    constant: float
    rounds: int


@dataclass(frozen=True)
class GramWalk:
    """A walk; see `bmrm.solvers._core.walk`.

    With f the scores, c the constant second derivatives and q = A'phi'(f) the slopes at w, the value is
    phi_0 + <q_0 + q, w> / 2, and for every s

        min J >= phi - s <q, w> - N/2 (s - 1)^2 - Omega*(-s q),   N = sum phi'(f)_i^2 / c_i = 2 (phi - inf phi),

    the dual objective at the slopes times s. Sweeps over the coordinates need no more than A' diag(c) A, and neither
    does this gap. For some points at a time both sides are then made anew from the rows, with what rounding may do.

    Parameters
    ----------
    solver : whose tolerance holds; it solves points that are not proved in the end.
    """

    solver: IterativeSolver

    def __call__(
        self, risk: Risk, regularizers: Sequence[Regularizer], start: Vector | None, callback: Any
    ) -> Iterator[Solution]:
        with Budget() as budget:
            meter = Meter(budget.check, waiting=COMPILING)
            with one_thread():
                state = _Descent(risk, meter, start)
        spent = [budget.seconds, meter.passes, budget.compiling]
        size = max(1, min(AT_ONCE, ROOM // max(1, 8 * state.size)))
        for first in range(0, len(regularizers), size):
            some: Any = regularizers[first : first + size]
            with Budget() as budget, one_thread():
                before = meter.passes
                guesses = [state.guess(omega.l1, omega.l2, self.solver) for omega in some]
                proofs = state.proofs(guesses, [(omega.l1, omega.l2) for omega in some])
            shares = [budget.seconds / len(some), (meter.passes - before) / len(some), budget.compiling / len(some)]
            for omega, guess, (objective, lower) in zip(some, guesses, proofs):
                seconds, passes, compiling = (spent[k] + shares[k] for k in range(3))
                spent = [0.0, 0.0, 0.0]
                line = Iteration(guess.rounds, objective, lower, passes, seconds)
                if not line.relative_gap <= self.solver.goal(objective) or guess.rounds > self.solver.max_iterations:
                    yield self.solver.minimize(risk, omega, start=guess.w, callback=callback)
                    continue
                callback(line.told(guess.w, None))
                details = {"grams": 1} | ({"intercept": guess.constant} if state.rows.free else {})
                yield Solution(
                    w=guess.w,
                    objective=objective,
                    lower_bound=lower,
                    status=Status.CONVERGED,
                    iterations=guess.rounds,
                    passes=passes,
                    seconds=seconds,
                    history=(line,),
                    solver="coordinate_descent (one Gram matrix for all lambdas)",
                    details=details,
                    seconds_compiling=compiling,
                )


class _Descent:
    """The Gram matrix, and the point where the walk is."""

    def __init__(self, risk: Risk, meter: Meter, start: Vector | None) -> None:
        self.rows = rows = RowwiseRisk.of("coordinate_descent", metered_risk(risk, meter))
        self.map: Any = rows.map
        zero: Any = rows.map.matvec(np.zeros(risk.dim))
        at: Any = rows.profiled(zero)
        model = GramModel(rows, rows.curvature(at.f, 0.0), np.arange(risk.dim))
        self.H, self.size = model.H, len(at.f)
        self._border, self._mass = (model.border, model.total) if rows.free else (np.zeros(risk.dim), 1.0)
        self._first, self._value, self._infimum = rows.map.rmatvec(at.slope), at.value, rows.phi.facts.infimum
        self._constant = float(at.f[0] - zero[0]) if rows.free else 0.0
        self._lengths = np.sqrt(self.H.diagonal() + self._border**2 / self._mass)
        """Of the columns, in the metric of the second derivatives."""
        self.w = np.zeros(risk.dim) if start is None else np.array(start, np.float64)
        self.q = self._first + self.H @ self.w

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
        constant = self._constant - float(self._border @ self.w) / self._mass
        return Guess(self.w.copy(), constant, max(1, rounds))

    def proofs(self, guesses: Sequence[Guess], penalties: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        """J and a lower bound of its minimum at each, both from the rows, less what rounding may have done."""
        several, count = self.map.several(len(guesses)), len(guesses)
        scores = several.matvec(np.stack([one.w for one in guesses], axis=1).ravel()).reshape(-1, count)
        slopes, values = np.empty((count, self.size)), []
        for k, one in enumerate(guesses):
            value, slopes[k] = self.rows.phi.value_and_slope(scores[:, k] + one.constant)
            values.append(value)
        gradients = several.rmatvec(np.ascontiguousarray(slopes.T)).reshape(-1, count)
        columns = [np.ascontiguousarray(gradients[:, k]) for k in range(count)]
        return [self._proof(*each) for each in zip(guesses, values, slopes, columns, penalties)]

    def _proof(
        self, one: Guess, value: float, slope: Vector, q: Vector, penalty: tuple[float, float]
    ) -> tuple[float, float]:
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
        return objective, min(lower, objective)

    def _bound(self, value: float, sizes: Vector, product: float, l1: float, l2: float) -> float:
        """The best of a few s: 1, and the best of those where Omega* is 0; `sizes` are those of q."""
        square, largest = 2.0 * (value - self._infimum), float(sizes.max(initial=0.0))
        most = l1 / largest if largest > 0.0 else math.inf
        s = min(most, 1.0 - product / square if square > 0.0 else 1.0)
        found = value - s * product - 0.5 * square * (s - 1.0) ** 2
        if l2 > 0.0:
            excess = np.maximum(sizes - l1, 0.0)
            found = max(found, value - product - 0.5 * dot(excess, excess) / l2)
        return found
