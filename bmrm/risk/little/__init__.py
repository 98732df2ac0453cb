"""The minimum of J on little data by a few compiled calls, with nothing kept but where they end.

A bound rests on slopes u of rows, subgradients at scores f: R(v) >= <A'u, v> + phi(f) - <u, f>. Its rounding is bounded
a priori: that of a sum of n terms by n units of roundoff times the sum of their absolute values (Higham 2002, section
3.1), in whatever order they are added.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bmrm.losses._core.prepared import PreparedRows, ProximalRows, SharedRows
from bmrm.losses._core.row import Row
from bmrm.problem.abilities import AtOnce, AtPoint, ReachedAtOnce
from bmrm.problem.basics import provides
from bmrm.problem.results import is_own
from bmrm.risk.little import classes, kinked, smooth
from bmrm.risk.little.rows import Goal, Rows, table_of

Method = Callable[[Rows, Goal, "AtPoint | None"], ReachedAtOnce | None]


def at_once(risk: Any) -> AtOnce | None:
    """The ability of a `LinearRisk`, for losses of the package that are sums over rows; None for others."""
    loss, bound = risk.loss, risk.bound
    if not is_own(loss) or risk.layout.extra or bound.learns or not provides(bound.bare, PreparedRows):
        return None
    of: Any = type(loss)
    name, method = _method(of, type(bound.bare), bound.bare.smooth, bound.offset is not None)
    if method is None:
        return None

    def minimised(
        l2: float, free: bool, wanted: Callable[[float], float], most: int, start: AtPoint | None
    ) -> ReachedAtOnce | None:
        rows = Rows(table_of(risk.rows_map), bound.bare, bound.offset, risk.mass)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows does not get there
            return method(rows, Goal(l2, free, wanted, most), start)

    return AtOnce(minimised, bound.bare.rows, name)


@cache
def _method(loss: type, prepared: type, smooth_loss: bool, shifted: bool) -> tuple[str, Method | None]:
    """The solver whose steps are taken, and the function that takes them; None for none."""
    if smooth_loss and all(isinstance(getattr(loss, name, None), Row) for name in ("value_slope", "curvature")):
        return "newton", smooth.newton
    if smooth_loss and issubclass(prepared, SharedRows) and not shifted:
        return "newton", classes.newton
    if not smooth_loss and issubclass(prepared, ProximalRows):
        return "semismooth_newton", kinked.multipliers
    return "", None
