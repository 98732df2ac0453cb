"""A whole run on little data by a few compiled calls: there bookkeeping takes many times as long as the steps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from bmrm.kernels.blas_threads import one_thread
from bmrm.kernels.compiling import COMPILING, working_clock
from bmrm.problem import (
    Callback,
    Elastic,
    Iteration,
    Regularizer,
    Risk,
    Solution,
    Start,
    Status,
    Vector,
    ability,
    provides,
    relative_gap,
)
from bmrm.problem.abilities import AtOnce, AtPoint
from bmrm.problem.results import is_own
from bmrm.problem.solution import relative_goal
from bmrm.solvers._core.monitor import IterativeSolver

MOST = 60
"""Most steps. Where they do not get there, a run that keeps account of its steps begins anew."""
LEAST = 1e-11
"""Least tolerance: below it rounding decides."""
SHORTEST = 1e-9
"""Seconds of a limit at least: a run has one, or none."""
SLACK = 1e-14
"""By how much, relative, rounding may put the end of a run above its start, where it stays there."""
REASON = "little data, all at once"


T = TypeVar("T", bound=IterativeSolver)


class _LateError(Exception):
    """The limit of time."""


def with_rest(solver: T, begin: float) -> T:
    """The solver with what is left of its limit of time, of a run that began then by `working_clock`."""
    if solver.time_limit is None:
        return solver
    return replace(solver, time_limit=max(solver.time_limit - (working_clock() - begin), SHORTEST))


def at_once(
    options: T, risk: Risk, regularizer: Regularizer, start: Vector | Start | None, callback: Callback | None
) -> tuple[Solution | None, T]:
    """The solution where the gap is reached, for a run that nobody watches, and the solver with what time is left.

    No solution where it is not, not within the limit of time, or is no lower than at the start, or somebody asks for
    each iteration or to go on with a run, the regularizer has no such steps, or the data are not little.

    Parameters
    ----------
    options : tolerances and limits.
    risk, regularizer : the problem.
    start, callback : as of `IterativeSolver.minimize`.
    """
    if callback is not None or not (start is None or _plain(start, risk.dim)):
        return None, options
    start = cast("Vector | None", start)
    offered = offer(options, risk, regularizer)
    if offered is None:
        return None, options
    begin = working_clock()
    known = None if start is None or offered.settled is None else offered.settled.of(start)
    found = reached(options, risk, regularizer, offered, None if start is None else AtPoint(start, known))
    if found is not None and start is not None:
        value, _ = risk.value_and_subgradient(start)
        before = value + regularizer.value(start)
        slack = 0.0 if found.iterations else SLACK * abs(before)
        found = found if found.objective - before <= slack else None
    return (None, with_rest(options, begin)) if found is None else (found, options)


def _plain(start: Any, dim: int) -> bool:
    """Whether it is a point, not another run; what is neither the driver refuses."""
    numbers = isinstance(start, np.ndarray) and start.dtype == np.float64 and start.shape == (dim,)
    return numbers and bool(np.isfinite(start).all())


def offer(options: IterativeSolver, risk: Risk, regularizer: Regularizer) -> AtOnce | None:
    """The ability, where it serves such a problem and these options; else None."""
    if options.tolerance < LEAST:
        return None
    if not (provides(regularizer, Elastic) and is_own(regularizer)):
        return None
    offered = ability(risk, AtOnce)
    if offered is None or (regularizer.l1 > 0.0) not in offered.methods:
        return None
    return offered if risk.dim <= offered.most and offered.rows * risk.dim <= offered.entries else None


def reached(
    options: IterativeSolver, risk: Risk, regularizer: Regularizer, offered: AtOnce, start: AtPoint | None = None
) -> Solution | None:
    """The solution, found from `start` on, where the gap is reached in time; else None."""
    tolerances = options.tolerance, options.absolute_tolerance
    limit = math.inf if options.time_limit is None else options.time_limit
    l1, l2 = cast(Elastic, regularizer).l1, cast(Elastic, regularizer).l2
    begin, compiled = working_clock(), COMPILING.seconds

    def wanted(objective: float) -> float:
        """The gap; it is asked for in every step."""
        if working_clock() - begin >= limit:
            raise _LateError
        return relative_goal(objective, *tolerances) * abs(objective)

    steps, free = min(MOST, options.max_iterations), offered.settled is not None
    try:
        with one_thread():
            found = offered.minimised(l1, l2, free, wanted, steps, start)
    except _LateError:
        return None
    if found is None:
        return None
    J, seconds = found.objective, working_clock() - begin
    bound = max(found.bound, risk.infimum)
    if not (bound <= J and relative_gap(J, bound) <= relative_goal(J, *tolerances)):
        return None
    details: dict[str, Any] = {}
    w, constants = found.w, found.constants
    if offered.settled is not None:
        offered.settled.note(w, constants, J)
        if len(constants) == 1:
            details["intercept"] = float(constants[0])
    return Solution(
        w=w,
        objective=J,
        lower_bound=bound,
        status=Status.CONVERGED,
        iterations=found.steps,
        passes=found.passes,
        seconds=seconds,
        history=(Iteration(found.steps, J, bound, found.passes, seconds),),
        solver=f"{offered.methods[l1 > 0.0]} ({REASON})",
        details=details,
        seconds_compiling=COMPILING.seconds - compiled,
    )
