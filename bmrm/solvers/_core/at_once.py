"""A whole run on little data by a few compiled calls: there bookkeeping takes many times as long as the steps."""

from __future__ import annotations

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
from bmrm.problem.abilities import AtOnce
from bmrm.problem.results import is_own
from bmrm.problem.solution import relative_goal
from bmrm.solvers._core.monitor import LITTLE, IterativeSolver

NARROW = 64
"""Most weights: the matrix of a step is factored by plain loops."""
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
    """The solution where the gap is reached.

    None where it is not, or somebody asks for each iteration, for a start or for a limit of time, the regularizer is
    not l2, or the data are not little: then nothing has happened.

    Parameters
    ----------
    options : tolerances and limits.
    risk, regularizer : the problem.
    start, callback : as of `IterativeSolver.minimize`.
    """
    asked = start is not None or callback is not None or options.time_limit is not None or options.tolerance < LEAST
    if asked or not (provides(regularizer, Elastic) and is_own(regularizer) and regularizer.l1 == 0.0):
        return None
    offered = ability(risk, AtOnce)
    if offered is None or risk.dim > NARROW or offered.rows * risk.dim > LITTLE:
        return None
    tolerances = options.tolerance, options.absolute_tolerance
    begin, compiled = working_clock(), COMPILING.seconds
    with one_thread():
        found = offered.minimised(
            regularizer.l2,
            offered.settled is not None,
            lambda objective: relative_goal(objective, *tolerances) * abs(objective),
            min(MOST, options.max_iterations),
        )
    if found is None:
        return None
    J, seconds = found.objective, working_clock() - begin
    bound = max(found.bound, risk.infimum)
    if not (bound <= J and relative_gap(J, bound) <= relative_goal(J, *tolerances)):
        return None
    details = {}
    if offered.settled is not None:
        offered.settled.note(found.w, np.array([found.constant]), J)
        details["intercept"] = found.constant
    return Solution(
        w=found.w,
        objective=J,
        lower_bound=bound,
        status=Status.CONVERGED,
        iterations=found.steps,
        passes=found.passes,
        seconds=seconds,
        history=(Iteration(found.steps, J, bound, found.passes, seconds),),
        solver=f"newton ({REASON})",
        details=details,
        seconds_compiling=COMPILING.seconds - compiled,
    )
