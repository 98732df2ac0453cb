"""A start from a sample of the rows, for solvers whose iterations are dear."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

from bmrm.problem import IncompatibleError, InputError, Iteration, Scored, Vector, ability
from bmrm.problem.abilities import ProblemSize, RowSample
from bmrm.solvers._core.budget import Budgeted
from bmrm.solvers._core.monitor import LITTLE, Monitor

WELL_POSED, WORTH_IT = 2, 8
"""Rows per feature that a sample must have: with an explicit `sample` (else its minimum is no use), and by default."""
ENOUGH = 100
"""Most iterations on the sample, for runs that neither their gap nor their gain ends. Chosen without a sweep."""
SHARE = 0.05
"""Rows of the sample, as a share of all, where the option is null."""


class SampleMinimum(NamedTuple):
    """An approximate minimiser for a sample of `rows` rows, and J of the sample there."""

    w: Vector
    rows: int
    objective: float


def start_from_sample(solver: Any, monitor: Monitor, *, steady: bool, exact: bool = False) -> SampleMinimum | None:
    """The minimum of a sample of the rows; None without a sample worth taking.

    The minimum of n rows is about dim / n (relative) lower than their share in the minimum of all rows: what goes
    beyond is learned by heart. So the sample is left when its gap is less, or, where J falls steadily, what an
    iteration still gains.

    Parameters
    ----------
    solver : with the options `sample` and `seed`; it solves the sample itself, which may take a smaller one first.
    monitor : of the run on all rows.
    steady : whether every iteration of the solver lowers J.
    exact : whether the solver is done after one iteration where the loss is a quadratic.
    """
    offer = ability(monitor.risk, RowSample)
    rows = 0 if offer is None else round(_share(solver.sample, monitor, exact) * offer.rows)
    least = WORTH_IT if solver.sample is None else WELL_POSED
    if offer is None or rows < least * monitor.risk.dim:
        return None
    enough = monitor.risk.dim / rows
    rough = dataclasses.replace(solver, tolerance=max(enough, solver.tolerance), max_iterations=ENOUGH)
    before = math.inf

    def gains_little(line: Iteration) -> bool:
        nonlocal before
        gained, before = before - line.objective, line.objective
        return steady and 0.0 < gained <= enough * abs(line.objective)

    try:
        drawn = Budgeted(offer.sample(rows, solver.seed or 0), monitor.budget)
        found = rough.minimize(drawn, monitor.regularizer, callback=gains_little)
    except (InputError, IncompatibleError):  # one class only, or weights of 0
        return None
    share = rows / offer.rows
    products = found.history[-1].passes_gram if found.history else 0.0
    monitor.meter.charge((found.passes - products) * share, products * share)
    monitor.untried = found.w
    return SampleMinimum(found.w, rows, found.objective)


def _share(wanted: float | None, monitor: Monitor, exact: bool) -> float:
    """What a null stands for."""
    if wanted is not None:
        return wanted
    size = ability(monitor.risk, ProblemSize)
    small = size is not None and size.entries <= LITTLE
    return 0.0 if small or (exact and _quadratic(monitor)) else SHARE


def _quadratic(monitor: Monitor) -> bool:
    scored = ability(monitor.risk, Scored)
    return scored is not None and scored.of_rows.facts.quadratic
