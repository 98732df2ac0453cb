"""Rank 0 solves alone, with all rows."""

from __future__ import annotations

from dataclasses import replace

from bmrm.problem import Callback, Regularizer, Risk, Solution, Vector, ability
from bmrm.problem.abilities import Gathered
from bmrm.solvers._core.auto.rules import ALONE
from bmrm.solvers._core.budget import Budget, Budgeted
from bmrm.solvers._core.monitor import IterativeSolver


def alone(
    solver: IterativeSolver,
    gathered: Gathered,
    risk: Risk,
    regularizer: Regularizer,
    start: Vector | None,
    callback: Callback | None,
) -> Solution:
    """The solver's result on the gathered rows, within its limit of time, to gather them included.

    Parameters
    ----------
    solver : that is to run there.
    gathered : of `risk`.
    risk, regularizer, start, callback : as of `IterativeSolver.minimize`.
    """
    with Budget(solver.time_limit, ability(risk, Budget)) as budget:
        whole = Budgeted(gathered.gathered(), budget)
        before = budget.seconds
        found = solver.minimize(whole, regularizer, start=start, callback=callback)
        seconds, compiling = found.seconds + before, budget.compiling
        return replace(found, seconds=seconds, seconds_compiling=compiling, solver=f"{found.solver}, {ALONE}")
