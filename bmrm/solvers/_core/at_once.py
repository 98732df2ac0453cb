"""A whole run on little data by a few compiled calls: there bookkeeping takes many times as long as the steps."""

from __future__ import annotations

from typing import Any, cast

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
from bmrm.solvers._core.monitor import LITTLE, IterativeSolver

MOST = 60
"""Most steps. Where they do not get there, a run that keeps account of its steps begins anew."""
LEAST = 1e-11
"""Least tolerance: below it rounding decides."""
REASON = "little data, all at once"


def at_once(
    options: IterativeSolver,
    risk: Risk,
    regularizer: Regularizer,
    start: Vector | Start | None,
    callback: Callback | None,
) -> Solution | None:
    """The solution where the gap is reached, for a run that nobody watches.

    None where it is not, or is no lower than at the start, or somebody asks for each iteration, to go on with a run or
    for a limit of time, the regularizer is not l2, or the data are not little: then nothing has happened.

    Parameters
    ----------
    options : tolerances and limits.
    risk, regularizer : the problem.
    start, callback : as of `IterativeSolver.minimize`.
    """
    if callback is not None or not (start is None or _plain(start, risk.dim)):
        return None
    start = cast("Vector | None", start)
    offered = offer(options, risk, regularizer)
    if offered is None:
        return None
    known = None if start is None or offered.settled is None else offered.settled.of(start)
    found = reached(options, risk, regularizer, offered, None if start is None else AtPoint(start, known))
    if found is None or start is None:
        return found
    value, _ = risk.value_and_subgradient(start)
    return found if found.objective <= value + regularizer.value(start) else None


def _plain(start: Any, dim: int) -> bool:
    """Whether it is a point, not another run; what is neither the driver refuses."""
    numbers = isinstance(start, np.ndarray) and start.dtype == np.float64 and start.shape == (dim,)
    return numbers and bool(np.isfinite(start).all())


def offer(options: IterativeSolver, risk: Risk, regularizer: Regularizer) -> AtOnce | None:
    """The ability, where it serves such a problem and these options; else None."""
    if options.time_limit is not None or options.tolerance < LEAST:
        return None
    if not (provides(regularizer, Elastic) and is_own(regularizer)):
        return None
    offered = ability(risk, AtOnce)
    if offered is None or (regularizer.l1 > 0.0) not in offered.methods:
        return None
    return offered if risk.dim <= offered.most and offered.rows * risk.dim <= LITTLE else None


def reached(
    options: IterativeSolver, risk: Risk, regularizer: Regularizer, offered: AtOnce, start: AtPoint | None = None
) -> Solution | None:
    """The solution, found from `start` on, where the gap is reached; else None."""
    tolerances = options.tolerance, options.absolute_tolerance
    l1, l2 = cast(Elastic, regularizer).l1, cast(Elastic, regularizer).l2
    begin, compiled = working_clock(), COMPILING.seconds
    with one_thread():
        found = offered.minimised(
            l1,
            l2,
            offered.settled is not None,
            lambda objective: relative_goal(objective, *tolerances) * abs(objective),
            min(MOST, options.max_iterations),
            start,
        )
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
