"""Little data as its methods take them, and the rounding of bounds from their slopes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.losses._core.prepared import PreparedRows
from bmrm.problem import Vector
from bmrm.problem.abilities import AtPoint

Array = NDArray[np.float64]
SHARE = 0.25
"""Share of the wanted gap with which Newton's steps end; the rest is for the constants, and rounding."""
HALVINGS = 12
"""Most halvings of a step that makes J larger."""
SHORT = 0.2
"""Length of a step below which curvatures of rows are damped in the next model, and more each time."""
LEAST_DAMPING, CALMER, MOST_DAMPING = 1e-2, 5.0, 1e3
"""The first damping, a share of the mean curvature, the factor by which it changes, and where no more is tried."""
SUMS = 1e-12
"""Largest sum of slopes for which they prove a bound beside a free constant."""
ROUNDOFF = 1.2e-16
"""Of one operation, and a little more."""
BLOCK = 128
"""Rows whose slopes are added by themselves first: sums of n rows have the rounding of BLOCK + n / BLOCK terms."""
TERMS = 16.0
"""Operations before a term is added: products, differences, elementary functions."""


class Rows(NamedTuple):
    """Features in C order, the constant feature among them, and the loss with its targets.

    Attributes
    ----------
    X : (rows, dim) or, for several scores, (rows, dim / scores).
    loss : with its targets and weights.
    offset : what is added to the scores; None for nothing.
    mass : the sum of the weights.
    """

    X: Array
    loss: PreparedRows
    offset: Vector | None
    mass: float

    def begin(self, start: AtPoint | None) -> tuple[Vector, Vector]:
        """Weights and constants of the start, copies; 0 for what is not known."""
        K = self.loss.scores_per_row
        w = np.zeros(self.X.shape[1] * K) if start is None else start.w.copy()
        known = None if start is None else start.constants
        return w, np.zeros(K) if known is None else known.copy()

    def scores(self, w: Array, b: Any) -> Array:
        """X w + b, and the offset."""
        f: Array = self.X @ w
        if self.offset is not None:
            f += self.offset
        f += b
        return f

    def summed(self, u: Vector) -> Vector:
        """X' u, block by block."""
        whole = len(u) // BLOCK
        end, d = whole * BLOCK, self.X.shape[1]
        found: Vector = u[end:] @ self.X[end:]
        if whole:
            blocks = u[:end].reshape(whole, 1, BLOCK) @ self.X[:end].reshape(whole, BLOCK, d)
            found += blocks.sum(axis=0)[0]
        return found


class Goal(NamedTuple):
    """What is minimised, and how well.

    Attributes
    ----------
    l1, l2 : Omega = l1 ||w||_1 + l2/2 ||w||^2.
    free : whether there is a free constant.
    wanted : the gap that is wanted, where J is this.
    most : steps.
    """

    l1: float
    l2: float
    free: bool
    wanted: Callable[[float], float]
    most: int


def damped(damping: float, t: float) -> float:
    """The damping of the next model, after a step of length t; 0 for none."""
    if t < SHORT:
        return max(CALMER * damping, LEAST_DAMPING)
    return damping if t < 1.0 else damping / CALMER if damping > LEAST_DAMPING else 0.0


def table_of(map: Any) -> Array:
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


def rounding(
    rows: Rows, w: Array, b: Any, u: Array, f: Array, l2: float, size: float, away: float, steep: float = 0.0
) -> float:
    """The most by which rounding may have brought together J(w) and a bound that rests on slopes u at scores f near.

    Parameters
    ----------
    b : the constant of each score.
    size : the sum of the absolute values of the loss.
    away : the norm of what is squared in the bound, over l2.
    steep : the steepest slope of a row, where there are kinks.
    """
    wrong, slack = errors(rows, w, b, u, f, size, l2, steep)
    square = float(np.vdot(wrong, wrong))
    added = ROUNDOFF * (w.size + TERMS) * l2 * away * away
    return slack + added + math.sqrt(square) * away + 0.5 * square / l2


def errors(
    rows: Rows, w: Array, b: Any, u: Array, f: Array, size: float, l2: float, steep: float = 0.0, summed: bool = False
) -> tuple[Array, float]:
    """The most that rounding may have changed in each slope of the risk, and in J and the constants of a bound.

    Parameters as of `rounding`.

    Parameters
    ----------
    summed : whether the slopes of the risk are added as by `Rows.summed`.
    """
    X, n, d = np.abs(rows.X), *rows.X.shape
    u, w, several = np.abs(u), np.abs(w), u.shape[1] if u.ndim == 2 else 0
    sizes, sums, constants = X.T @ u / rows.mass, u.sum(axis=0) / rows.mass, np.abs(b)
    total, largest = (float(sums.sum()), float(constants.max())) if several else (float(sums), float(constants))
    terms, shifted = n + d + several + TERMS, float(np.vdot(sums, constants))
    products = float(np.vdot(sizes, w) + np.vdot(u, np.abs(f)) / rows.mass + shifted)
    most = float(np.abs(f).max()) if several else 0.0  # their differences are rounded before exponentials are taken
    if rows.offset is not None:
        products += float(np.vdot(u, np.abs(rows.offset))) / rows.mass
    if steep:  # a score that rounding takes past a kink
        scores = float((X @ w).sum() + np.abs(f).sum() + n * np.sum(constants))
        scores += 0.0 if rows.offset is None else float(np.abs(rows.offset).sum())
        products += (d + TERMS) / terms * steep * scores / rows.mass
    added_up = min(n, BLOCK) + n // BLOCK if summed else n
    wrong = ROUNDOFF * (added_up + several + 2.0 * most + TERMS) * sizes
    added = terms * (size / rows.mass + products + total * (1.0 + largest))
    return wrong, float(ROUNDOFF * (added + (w.size + TERMS) * l2 * float(np.vdot(w, w))))
