"""A walk along lambdas on one risk: solvers that keep from point to point what does not depend on lambda.

Friedman, Hastie & Tibshirani 2010 (glmnet): warm starts down a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bmrm.problem import (
    Callback,
    Iteration,
    Regularizer,
    Risk,
    SavedPlanes,
    Solution,
    Solver,
    Start,
    State,
    Vector,
    ability,
)
from bmrm.problem.abilities import Fingerprint
from bmrm.solvers._core import gram_walk
from bmrm.solvers._core.monitor import PROVED, IterativeSolver
from bmrm.solvers._core.plane_model import PlaneSolver

Walker = Callable[[Risk, Sequence[Regularizer], "Vector | None", Callback], Iterator[Solution]]
"""From risk, regularizers, start and callback to a solution for each regularizer, in turn."""
BY_COLUMNS = ("auto", "coordinate_descent")
"""Solvers that a walk on one Gram matrix takes the place of."""
OF_ONE = (PROVED,)
"""What states keep that belongs to one regularizer."""


def walk(
    risk: Risk,
    regularizers: Sequence[Regularizer],
    solver: Solver,
    *,
    start: Vector | None = None,
    callback: Callback | None = None,
) -> Iterator[Solution]:
    """A certified solution for each regularizer on one risk, each found from what is known after those before.

    Parameters
    ----------
    risk : that is minimised, with its intercept.
    regularizers : bound to its space, of one kind, from the largest lambda to the smallest.
    solver : with its tolerance and limits, which are those of each point.
    start : (dim,), where the first begins; None: at zero.
    callback : called with an `Iteration` after each of every point; where it returns True, that point is the last.
    """
    if not regularizers:
        return
    ended = False

    def told(line: Iteration) -> bool:
        nonlocal ended
        ended = callback is not None and bool(callback(line))
        return ended

    for solution in _walker(risk, regularizers[0], solver)(risk, regularizers, start, told):
        yield solution
        if ended:
            return


def _walker(risk: Risk, regularizer: Regularizer, solver: Solver) -> Walker:
    """The walk that keeps the most."""
    if (
        isinstance(solver, IterativeSolver)
        and solver.name in BY_COLUMNS
        and gram_walk.serves(risk, regularizer, solver)
    ):
        return gram_walk.GramWalk(solver)  # type: ignore[arg-type]
    if isinstance(solver, PlaneSolver) and ability(risk, Fingerprint) is not None:
        return partial(_by_planes, solver)
    return partial(_warm, solver)


def _warm(
    solver: Solver, risk: Risk, regularizers: Sequence[Regularizer], start: Vector | None, callback: Callback
) -> Iterator[Solution]:
    """Each begins at the last solution, with what its solver keeps for one more run: dual variables, penalties."""
    iterative = solver if isinstance(solver, IterativeSolver) else None
    first: Any = start
    for regularizer in regularizers:
        state: State = {}

        def kept(line: Iteration) -> bool:
            nonlocal state
            # made only where the run ends: it may be as large as the data
            met = iterative is not None and line.relative_gap <= iterative.goal(line.objective)
            state = line.state() if met and line.state is not None else {}
            return bool(callback(line))

        solution = solver.minimize(risk, regularizer, start=first, callback=kept)
        yield solution
        first = Start(solution.w, state={key: value for key, value in state.items() if key not in OF_ONE})
        first = first if iterative is not None else solution.w


def _by_planes(
    solver: PlaneSolver, risk: Risk, regularizers: Sequence[Regularizer], start: Vector | None, callback: Callback
) -> Iterator[Solution]:
    """Each begins with all planes, which belong to the risk alone, and at the minimiser of their model."""
    keeping: Any = replace(solver, keep_planes=True)
    planes: SavedPlanes | None = None
    for regularizer in regularizers:
        more = {} if planes is None else {"planes": planes}
        solution = keeping.minimize(risk, regularizer, start=start, callback=callback, **more)
        planes, start = solution.planes, None
        yield solution if solver.keep_planes else replace(solution, planes=None)
