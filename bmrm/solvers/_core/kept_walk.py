"""A walk along lambdas on what is kept of the data: the rows are read for proofs of some points at a time.

Friedman, Hastie & Tibshirani 2010 (glmnet): warm starts down a path.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from bmrm.kernels.blas_threads import one_thread
from bmrm.kernels.compiling import COMPILING
from bmrm.problem import Callback, Iteration, Regularizer, Risk, Scored, Solution, Status, Vector, ability, provides
from bmrm.problem.abilities import ProblemSize, SeveralPoints
from bmrm.problem.meter import Meter
from bmrm.solvers._core.budget import Budget
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.rowwise import RowwiseRisk

Walker = Callable[[Risk, Sequence[Regularizer], "Vector | None", Callback], Iterator[Solution]]
"""From risk, regularizers, start and callback to a solution for each regularizer, in turn."""
FINEST = 1e-9
"""Least relative gap that is proved so; below it rounding matters, which the solvers measure."""
ROOM = 1 << 26
"""Most bytes of scores of points that are proved together, and of copies of columns."""
SPARE = 0.8
"""Share of the tolerance that the gap on the columns taken in may be: the rest is for rounding, and other columns."""
LEAST = 64
"""Most columns that are first taken in."""
MORE = 8.0
"""Roundings beside those of sums, in multiples of a unit."""
EPS = float(np.finfo(np.float64).eps)


def served(risk: Risk, solver: IterativeSolver, pieces: bool = False) -> tuple[Scored, ProblemSize] | None:
    """The rows that a walk can prove points on, some at a time: one score each, in memory, of one process.

    None for others.

    Nor where a time limit counts, or rounding: the solvers see to these.

    Parameters
    ----------
    risk, solver : the problem, and what would solve it.
    pieces : whether the loss is to be linear in pieces, with a proximal map, and not one with second derivatives.
    """
    scored, size = ability(risk, Scored), ability(risk, ProblemSize)
    if scored is None or size is None or size.ranks > 1 or not size.resident:
        return None
    if not provides(scored.map, SeveralPoints):
        return None
    facts = scored.of_rows.facts
    known = facts.piecewise_linear and facts.prox if pieces else facts.separable
    single = facts.scores_per_row == 1 and known and math.isfinite(facts.infimum)
    limited = solver.time_limit is not None or solver.tolerance < FINEST
    return (scored, size) if single and not limited else None


class Guess(NamedTuple):
    """A point that is good enough, as far as the columns taken in tell.

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
    """The same with J, a lower bound of its minimum, and the slopes A'phi'(f)."""

    guess: Guess
    objective: float
    lower: float
    slopes: Vector


class Kept(Protocol):
    """What is kept, and the point where the walk is.

    Attributes
    ----------
    rows : the data and the loss.
    size : the number of rows.
    at_once : points whose proofs read the rows together.
    details : of solutions.
    """

    rows: RowwiseRisk
    size: int

    @property
    def at_once(self) -> int: ...

    @property
    def details(self) -> dict[str, Any]: ...

    def look(self, omega: Any) -> None:
        """Take columns in that were steeper than this allows at the last point."""
        ...

    def guess(self, omega: Any, solver: IterativeSolver) -> Guess:
        """Descend until the gap is small enough, as far as the columns tell."""
        ...

    def proofs(self, guesses: Sequence[Guess], omegas: Sequence[Any], solver: IterativeSolver) -> list[Proved]:
        """J and a lower bound of its minimum at each, less what rounding may have done."""
        ...

    def grow(self, proved: Sequence[Proved], omegas: Sequence[Any]) -> bool:
        """Take columns in whose slopes are too steep at some of these points; whether there are any, and room."""
        ...

    def move(self, w: Vector) -> None:
        """To a point whose weights beside the columns are 0."""
        ...


class AllColumns:
    """Base class of a `Kept` that has all columns from the start."""

    def look(self, omega: Any) -> None:
        """As of `Kept`."""

    def grow(self, proved: Sequence[Proved], omegas: Sequence[Any]) -> bool:
        """As of `Kept`."""
        return False


@dataclass(frozen=True)
class KeptWalk:
    """A walk; see `bmrm.solvers._core.walk`.

    For some points at a time each is descended to on the columns that are in, and J and a lower bound are made from
    all rows and columns. Columns come in whose slopes were steep for the first lambda of some points or, as the proofs
    show, too steep for a later one. Then these points are found again.

    Parameters
    ----------
    solver : whose tolerance holds; it solves points that are not proved in the end.
    begin : makes the descent.
    title, method : of the walk, in solutions: what is kept, and the solver whose steps it takes.
    """

    solver: IterativeSolver
    begin: Callable[[Risk, Meter, Vector | None, Any], Kept]
    title: str
    method: str = "coordinate_descent"

    def __call__(
        self, risk: Risk, regularizers: Sequence[Regularizer], start: Vector | None, callback: Any
    ) -> Iterator[Solution]:
        with Budget() as budget, one_thread():
            meter = Meter(budget.check, waiting=COMPILING)
            state = self.begin(risk, meter, start, regularizers[0])
        before = budget.seconds, meter.passes, budget.compiling
        size = max(1, min(state.at_once, ROOM // (8 * max(1, state.size, risk.dim))))
        for first in range(0, len(regularizers), size):
            some: Any = regularizers[first : first + size]
            with Budget() as budget, one_thread():
                passes = meter.passes
                proved = self._proved(state, some)
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

    def _proved(self, state: Kept, omegas: Sequence[Any]) -> list[Proved]:
        """Points with their proofs; again with more columns where slopes beside those in use are too steep."""
        state.look(omegas[-1])
        done: list[Proved] = []
        while True:
            left = omegas[len(done) :]
            guesses = [state.guess(omega, self.solver) for omega in left]
            proved = state.proofs(guesses, left, self.solver)
            good = next((k for k, one in enumerate(proved) if not self._enough(one)), len(proved))
            done += proved[:good]
            if good == len(proved):
                return done
            if not state.grow(proved[good:], left[good:]):
                return done + proved[good:]
            state.move(proved[good].guess.w)

    def _solution(self, one: Proved, state: Kept, shares: Sequence[float], callback: Any) -> Solution:
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
            solver=f"{self.method} ({self.title})",
            details=state.details | ({"intercept": guess.constant} if state.rows.free else {}),
            seconds_compiling=compiling,
        )
