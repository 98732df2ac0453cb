"""A walk along lambdas on one risk: solvers that keep from point to point what does not depend on lambda.

Friedman, Hastie & Tibshirani 2010 (glmnet): warm starts down a path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bmrm.problem import (
    Callback,
    Iteration,
    Regularizer,
    Risk,
    SavedPlanes,
    Scored,
    Solution,
    Solver,
    Status,
    Vector,
    ability,
)
from bmrm.problem.abilities import Fingerprint
from bmrm.solvers._core import block_walk, gram_walk, kinked_walk, little_walk, newton_walk, smooth_walk
from bmrm.solvers._core.kept_walk import Walker
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.plane_model import PlaneSolver
from bmrm.solvers._core.predicted import ORDER, predicted

BY_COLUMNS = ("auto", "coordinate_descent")
"""Solvers that the walks of `KEEPING` take the place of."""
KEEPING = (
    gram_walk.walk_of,
    smooth_walk.walk_of,
    little_walk.walk_of,
    block_walk.walk_of,
    newton_walk.walk_of,
    kinked_walk.walk_of,
)
"""Walks on what is kept of the data, each where it serves the problem."""


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
    callback : called with an `Iteration` after each of every point; where it returns True, that point is the last, as
        it is after Ctrl-C.
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
        if ended or solution.status is Status.INTERRUPTED:
            return


def _walker(risk: Risk, regularizer: Regularizer, solver: Solver) -> Walker:
    """The walk that keeps the most."""
    if isinstance(solver, IterativeSolver) and solver.name in BY_COLUMNS:
        for walk_of in KEEPING:
            found = walk_of(risk, regularizer, solver)
            if found is not None:
                return found
    if isinstance(solver, PlaneSolver) and ability(risk, Fingerprint) is not None:
        return partial(_by_planes, solver)
    return partial(_warm, solver)


def _warm(
    solver: Solver, risk: Risk, regularizers: Sequence[Regularizer], start: Vector | None, callback: Callback
) -> Iterator[Solution]:
    """Each begins where those before lead to.

    Dual variables and penalties of the last point were tried: solvers that begin with them take longer than from its
    weights (hinge, 20 points: 487 passes, not 260).
    """
    scored = ability(risk, Scored)
    smooth = scored is not None and scored.phi.facts.smooth
    places: list[tuple[float, Vector]] = []
    for regularizer in regularizers:
        at = _place(regularizer, risk.dim) if smooth else math.nan
        first = predicted(places, at, kinked=not regularizer.smooth) if places else start
        solution = solver.minimize(risk, regularizer, start=first, callback=callback)
        yield solution
        places = [*places[1 - ORDER :], (at, solution.w)]


def _place(regularizer: Regularizer, dim: int) -> float:
    """The logarithm of lambda, up to a constant; nan where it cannot be told."""
    value = regularizer.value(np.ones(dim))
    return math.log(value) if 0.0 < value < math.inf else math.nan


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
