"""Fewer rows than weights, with l2: the same problem in as many weights as there are rows.

At a minimum w = X'alpha (Kimeldorf & Wahba 1971). With X X' = L L' and v = L'alpha the scores are L v, and the norm of
w is that of v: it is the problem of the rows of L. What its run finds is proved with X, so how exact L is does not
count.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, solve_triangular

from bmrm.problem import Vector
from bmrm.problem.abilities import AtPoint, ReachedAtOnce
from bmrm.risk.little import kinked, smooth
from bmrm.risk.little.rows import Array, Goal, Rows

RIDGES = 1e-14, 1e-13, 1e-12
"""Added to the diagonal of X X', times its mean, the first that makes it definite: rows may depend on one another."""
CLOSER = 0.9
"""Of the wanted gap, for the run on L: with X a little is lost to rounding."""
READ = 3.0
"""Passes over X: for X X', for the weights, and for the proof."""


def newton(rows: Rows, goal: Goal, start: AtPoint | None) -> ReachedAtOnce | None:
    """As `smooth.newton`."""
    turned = _Turned.of(rows)
    found = None if turned is None else smooth.newton(turned.rows, _closer(goal), turned.start(start))
    if turned is None or found is None:
        return None
    stays = start is not None and found.steps == 0
    point = AtPoint(start.w if start is not None and stays else turned.weights(found.w), found.constants)
    proved = smooth.newton(rows, goal._replace(most=0), point)
    return None if proved is None else proved._replace(steps=found.steps, passes=READ)


def multipliers(rows: Rows, goal: Goal, start: AtPoint | None) -> ReachedAtOnce | None:
    """As `kinked.multipliers`."""
    turned = _Turned.of(rows)
    if turned is None:
        return None
    run = kinked.Multipliers(turned.rows, _closer(goal), turned.start(start))
    found = run.reached()
    proved = None if found is None else run.proved_with(rows, goal, turned.weights)
    return None if found is None or proved is None else proved._replace(steps=found.steps, passes=READ)


def _closer(goal: Goal) -> Goal:
    return goal._replace(wanted=lambda J: CLOSER * goal.wanted(J))


class _Turned:
    """The problem of the rows of L.

    Attributes
    ----------
    rows : those of L, with the loss of X.
    """

    def __init__(self, X: Array, L: Array, rows: Rows) -> None:
        self._X, self._L = X, L
        self.rows = rows._replace(X=L)

    @classmethod
    def of(cls, rows: Rows) -> _Turned | None:
        """None where X X' is not finite, or so far from definite that rounding does not explain it."""
        K = rows.X @ rows.X.T
        diagonal = K.diagonal().copy()
        for ridge in RIDGES:
            K.flat[:: len(K) + 1] = diagonal + (ridge * float(diagonal.mean()) or 1.0)
            L, wrong = lapack.dpotrf(K, lower=True, clean=True)
            if not wrong and np.isfinite(L).all():
                return cls(rows.X, np.ascontiguousarray(L), rows)
        return None

    def start(self, start: AtPoint | None) -> AtPoint | None:
        """The point v that has the scores of a start."""
        if start is None:
            return None
        return start._replace(w=solve_triangular(self._L, self._X @ start.w, lower=True))

    def weights(self, v: Vector) -> Vector:
        """w for v."""
        found: Vector = solve_triangular(self._L, v, lower=True, trans="T") @ self._X
        return found
