"""A whole run on little data by a few compiled calls: there bookkeeping takes many times as long as the steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmrm.kernels.blas_threads import one_thread
from bmrm.problem import (
    Callback,
    Elastic,
    Iteration,
    Regularizer,
    Risk,
    Scored,
    Solution,
    Start,
    Status,
    Vector,
    ability,
    provides,
    relative_gap,
)
from bmrm.problem.abilities import AtOnce, ProblemSize, ReachedAtOnce
from bmrm.problem.results import is_own
from bmrm.solvers._core.budget import Budget
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
    offered, size = ability(risk, AtOnce), ability(risk, ProblemSize)
    if offered is None or size is None or risk.dim > NARROW or size.rows * risk.dim > LITTLE:
        return None
    with Budget() as budget, one_thread():
        found = offered.minimised(
            regularizer.l2,
            offered.free,
            lambda objective: options.goal(objective) * abs(objective),
            min(MOST, options.max_iterations),
        )
        spent = budget.seconds, budget.compiling
    return None if found is None else _told(options, risk, found, spent)


def _told(options: IterativeSolver, risk: Risk, found: ReachedAtOnce, spent: tuple[float, float]) -> Solution | None:
    J, (seconds, compiling) = found.objective, spent
    bound = max(found.bound, risk.infimum)
    if not (bound <= J and relative_gap(J, bound) <= options.goal(J)):
        return None
    details: dict[str, Any] = {}
    scored = ability(risk, Scored)
    if scored is not None and scored.intercept is not None:
        scored.intercept.settled.note(found.w, np.array([found.constant]), J)
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
        seconds_compiling=compiling,
    )
