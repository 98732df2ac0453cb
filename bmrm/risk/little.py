"""The minimum of J on little data by a few compiled calls, with nothing kept but where they end.

A bound rests on slopes u of rows, subgradients at scores f: R(v) >= <A'u, v> + phi(f) - <u, f>. Its rounding is bounded
a priori: that of a sum of n terms by n units of roundoff times the sum of their absolute values (Higham 2002, section
3.1), in whatever order they are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit, specialised
from bmrm.kernels.rows import little
from bmrm.losses._core.prepared import PreparedRows
from bmrm.losses._core.row import Row
from bmrm.problem import Vector
from bmrm.problem.abilities import AtOnce, ReachedAtOnce
from bmrm.problem.basics import provides
from bmrm.problem.results import is_own

SHARE = 0.25
"""Share of the wanted gap with which Newton's steps end; the rest is for the constant, and rounding."""
HALVINGS = 12
"""Most halvings of a step that makes J larger."""
SUMS = 1e-12
"""Largest sum of slopes for which they prove a bound beside a free constant."""
ROUNDOFF = 1.2e-16
"""Of one operation, and a little more."""
TERMS = 16.0
"""Operations before a term is added: products, differences, elementary functions."""


class Rows(NamedTuple):
    """Rows as the kernels take them: see `bmrm.kernels.rows.little`."""

    X: NDArray[np.float64]
    y: Vector
    weights: Vector
    offset: Vector
    mass: float
    arguments: tuple[Any, ...]


Wanted = Callable[[float], float]
"""The gap that is wanted, where J is this."""


def at_once(risk: Any) -> AtOnce | None:
    """The ability of a `LinearRisk`, for smooth losses of the package that are written as functions of one row."""
    loss, bound = risk.loss, risk.bound
    of: Any = type(loss)
    bare = bound.bare
    fits = bare.smooth and is_own(loss) and provides(bare, PreparedRows) and _by_rows(of)
    if not fits or risk.layout.extra or bound.learns:
        return None

    def minimised(l2: float, free: bool, wanted: Wanted, most: int) -> ReachedAtOnce | None:
        nothing = np.empty(0)
        weights, offset = (nothing if each is None else each for each in (bare.weights, bound.offset))
        rows = Rows(_table(risk.rows_map), bare.y, weights, offset, risk.mass, bare.arguments)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows does not get there
            return newton(rows, of, l2, free, wanted, most)

    return AtOnce(minimised, bare.rows)


@cache
def _by_rows(loss: type) -> bool:
    """Whether values, slopes and second derivatives of a loss are functions of one row."""
    return all(isinstance(getattr(loss, name, None), Row) for name in ("value_slope", "curvature"))


def _table(map: Any) -> NDArray[np.float64]:
    """The rows with their columns scaled and shifted, and the constant feature, in C order."""
    X, columns = map.X, map.columns
    table = np.asarray(X.block(np.arange(X.shape[0])) if X.table is None else X.table, np.float64)
    if columns.shift is not None:
        table = table - columns.shift
    if columns.scale is not None:
        table = table * columns.scale
    if map.bias:
        table = np.column_stack((table, np.ones(len(table))))
    return np.ascontiguousarray(table)


@cache
def _smooth_kernels(value_slope: Any, curvature: Any) -> Any:
    return specialised(little.fall, fast_jit, value_slope=value_slope, curvature=curvature)


def newton(rows: Rows, loss: Any, l2: float, free: bool, wanted: Wanted, most: int) -> ReachedAtOnce | None:
    """Newton's method from 0, with Armijo steps, for a smooth loss; None where it does not get there.

    A bound is that of the slopes at w: J(w) - ||J'(w)||^2 / (2 l2), at the constant where they sum to 0.
    """
    kernel = _smooth_kernels(loss.value_slope.compiled, loss.curvature.compiled)
    X, y, weights, offset, mass, arguments = rows
    n, d = X.shape
    f, there, shift, g, h, ones = np.zeros((6, n))
    a, w, x, H, factor = np.empty(d), np.zeros(d), np.empty(d + 1), np.empty((d + 1, d + 1)), 1.0 / mass
    ones[:] = 1.0
    if offset.size:
        f[:] = offset
    b, still = 0.0, (0.0, 0.0, 0.0)

    def looked(by: Vector, t: float, most: int, omega: tuple[float, float, float], J: float, slope: float) -> Any:
        return kernel(f, by, t, most, y, weights, mass, l2, omega, J, slope, there, g, h, *arguments)

    _, J, size, total, bent = looked(shift, 0.0, 1, still, math.inf, 0.0)
    for steps in range(most + 1):
        if not math.isfinite(J):
            return None
        enough = SHARE * wanted(J)
        rest, lacks, _, length, *along, slope = little.direction(X, g, h, w, factor, l2, free, enough, a, x, shift, H)
        if lacks <= enough:
            f = _scores(rows, w, b)
            move, omega = 0.0, (length, 0.0, 0.0)
            for _ in range(little.CENTRING):
                _, J, size, total, bent = looked(ones, move, 1, omega, math.inf, 0.0)
                f, there = there, f
                b, move = b + move, -total / bent if bent > 0.0 else 0.0
                if not free or abs(total) <= little.CENTRED * mass or b + move == b:
                    break
            rest, lacks, *_ = little.direction(X, g, h, w, factor, l2, free, math.inf, a, x, shift, H)
            away = math.sqrt(2.0 * lacks / l2)
            slack = _rounding(rows, w, b, g, f, l2, size, away)
            bound = J - lacks - slack - (abs(rest) * (1.0 + abs(b)) if free else 0.0)
            if J - bound <= wanted(J) and (not free or abs(rest) <= SUMS):
                return ReachedAtOnce(w, b, J, bound, steps, 2.0 * steps + 1.5)
            rest, lacks, _, length, *along, slope = little.direction(X, g, h, w, factor, l2, free, -1.0, a, x, shift, H)
        if not -math.inf < slope < 0.0:
            return None
        t, J, size, total, bent = looked(shift, 1.0, HALVINGS, (length, *along), J, slope)
        if t == 0.0:
            return None
        f, there = there, f
        w += t * x[:d]
        b += t * float(x[d])
    return None


def _scores(rows: Rows, w: Vector, b: float) -> Vector:
    f: Vector = rows.X @ w
    if rows.offset.size:
        f += rows.offset
    f += b
    return f


def _rounding(
    rows: Rows,
    w: Vector,
    b: float,
    u: Vector,
    f: Vector,
    l2: float,
    size: float,
    away: float,
) -> float:
    """The most by which rounding may have brought together J(w) and a bound that rests on slopes u at scores f near.

    Parameters
    ----------
    size : the sum of the absolute values of the loss.
    away : the norm of what is squared in the bound, over l2.
    """
    X, n, d = np.abs(rows.X), *rows.X.shape
    u, w = np.abs(u), np.abs(w)
    sizes, total, constant = u @ X / rows.mass, float(u.sum()) / rows.mass, abs(b)
    products = (float(sizes @ w) + float(u @ np.abs(f)) / rows.mass) + total * constant
    if rows.offset.size:
        products += float(u @ np.abs(rows.offset)) / rows.mass
    error = ROUNDOFF * (n + TERMS) * math.sqrt(float(sizes @ sizes))
    sums = (n + d + TERMS) * (size / rows.mass + products + total * (1.0 + constant))
    squares = (d + TERMS) * l2 * (float(w @ w) + away * away)
    return float(ROUNDOFF * (sums + squares) + error * away + 0.5 * error * error / l2)
