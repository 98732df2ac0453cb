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
from bmrm.losses._core.proximal_scores import ProximalScoresRows
from bmrm.losses._core.row import Row
from bmrm.problem.abilities import AtOnce, AtPoint, ReachedAtOnce
from bmrm.problem.basics import provides
from bmrm.problem.results import is_own
from bmrm.risk.little import classes, kinked, kinked_classes, smooth
from bmrm.risk.little.rows import Goal, Rows, table_of

LOOPS, SYSTEMS = 64, 192
"""Most weights where the matrix of a step is factored by plain loops, and by LAPACK, for several scores."""
ENTRIES, MOST_ENTRIES, MOST_ROWS = 150_000, 300_000, 40_000
"""Rows times weights up to which a run all at once is worth it, with several scores and with one, and rows: where it no
longer took less time than `auto`'s rules (`benchmarks/little_shapes.py` compares them, on other problems)."""
FEW_ROWS, WIDE, DENSE = 200, 2_000_000, 0.25
"""Rows up to which a problem with more weights is solved in as many weights as rows, found likewise, its most entries,
16 MB, and what share of them is not 0 at least: rows are made dense."""
Method = Callable[[Rows, Goal, "AtPoint | None"], ReachedAtOnce | None]


def at_once(risk: Any) -> AtOnce | None:
    """The ability of a `LinearRisk`, for losses of the package that are sums over rows; None for others."""
    loss, bound = risk.loss, risk.bound
    if not is_own(loss) or risk.layout.extra or bound.learns or not provides(bound.bare, PreparedRows):
        return None
    of: Any = type(loss)
    methods = _methods(of, type(bound.bare), bound.bare.smooth, bound.offset is not None)
    if not methods or bound.bare.rows > MOST_ROWS:
        return None
    most, entries = (SYSTEMS, ENTRIES) if bound.bare.scores_per_row > 1 else (LOOPS, MOST_ENTRIES)
    few = risk.dim > most and methods[False][1] in INSTEAD and _few_rows(risk)
    if few:
        name, method = methods[False]
        methods, most, entries = {False: (name, INSTEAD[method])}, risk.dim, WIDE

    def minimised(
        l1: float, l2: float, free: bool, wanted: Callable[[float], float], most: int, start: AtPoint | None
    ) -> ReachedAtOnce | None:
        rows = Rows(table_of(risk.rows_map), bound.bare, bound.offset, risk.mass)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows does not get there
            return methods[l1 > 0.0][1](rows, Goal(l1, l2, free, wanted, most), start)

    names = {l1: name for l1, (name, _) in methods.items()}
    return AtOnce(minimised, bound.bare.rows, names, most, entries, few)


def _few_rows(risk: Any) -> bool:
    """Whether so few that their products are worth more than those of columns, and nearly dense."""
    rows, entries = risk.bound.bare.rows, risk.bound.bare.rows * risk.dim
    few = rows < risk.dim and rows <= FEW_ROWS and entries <= WIDE
    return few and bool(entries <= MOST_ENTRIES or risk.problem_size.entries >= DENSE * entries)


def _sparse(rows: Rows, goal: Goal, start: AtPoint | None) -> ReachedAtOnce | None:
    from bmrm.risk.little import sparse  # descent on Gram matrices, which ranks that answer do without

    return sparse.newton(rows, goal, start)


def _few_newton(rows: Rows, goal: Goal, start: AtPoint | None) -> ReachedAtOnce | None:
    from bmrm.risk.little import few_rows  # LAPACK, which ranks that answer do without

    return few_rows.newton(rows, goal, start)


def _few_multipliers(rows: Rows, goal: Goal, start: AtPoint | None) -> ReachedAtOnce | None:
    from bmrm.risk.little import few_rows

    return few_rows.multipliers(rows, goal, start)


INSTEAD: dict[Method, Method] = {smooth.newton: _few_newton, kinked.multipliers: _few_multipliers}
"""With fewer rows than weights."""


@cache
def _methods(loss: type, prepared: type, smooth_loss: bool, shifted: bool) -> dict[bool, tuple[str, Method]]:
    """Without and with l1, where there is one: the solver whose steps are taken, and the function that takes them."""
    if smooth_loss and all(isinstance(getattr(loss, name, None), Row) for name in ("value_slope", "curvature")):
        return {False: ("newton", smooth.newton), True: ("coordinate_descent", _sparse)}
    if smooth_loss and issubclass(prepared, SharedRows) and not shifted:
        return {False: ("newton", classes.newton)}
    if not smooth_loss and issubclass(prepared, ProximalRows):
        return {False: ("semismooth_newton", kinked.multipliers)}
    if not smooth_loss and issubclass(prepared, ProximalScoresRows) and not shifted:
        return {False: ("semismooth_newton", kinked_classes.multipliers)}
    return {}
