"""Little data along lambdas: each point all at once, from where the last one ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bmrm.kernels.compiling import working_clock
from bmrm.problem import Callback, Regularizer, Risk, Solution, Vector
from bmrm.problem.abilities import AtOnce, AtPoint
from bmrm.solvers._core.at_once import offer, reached, with_rest
from bmrm.solvers._core.kept_walk import Walker
from bmrm.solvers._core.monitor import LITTLE, IterativeSolver


def walk_of(risk: Risk, regularizer: Regularizer, solver: IterativeSolver) -> Walker | None:
    """The walk, where it is such a problem."""
    offered = offer(solver, risk, regularizer) if solver.name == "auto" else None
    if offered is None:
        return None
    # with few rows multipliers, as many as there are, would be found anew at each point
    smooth, little = offered.methods[False] == "newton", offered.rows * risk.dim <= LITTLE
    return partial(_walk, solver, offered) if (smooth if offered.by_rows else little) else None


def _walk(
    solver: IterativeSolver,
    offered: AtOnce,
    risk: Risk,
    regularizers: Sequence[Regularizer],
    start: Vector | None,
    callback: Callback,
) -> Iterator[Solution]:
    """The points; the solver finds those that are not reached at once."""
    point = None if start is None else AtPoint(start)
    for regularizer in regularizers:
        begin = working_clock()
        found = reached(solver, risk, regularizer, offered, point)
        if found is None:
            found = with_rest(solver, begin).minimize(
                risk, regularizer, start=None if point is None else point.w, callback=callback
            )
        else:
            callback(found.history[-1])
        yield found
        point = AtPoint(found.w, None if offered.settled is None else offered.settled.of(found.w))
