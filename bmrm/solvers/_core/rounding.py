"""What rounding can explain: unit roundoff times the magnitudes that were added, those that cancel included."""

from __future__ import annotations

import math

import numpy as np

from bmrm.problem import Risk, Vector, ability
from bmrm.problem.abilities import Magnitudes, Rounding
from bmrm.problem.regularizer import space_of

ROUNDOFF = 0.5 * float(np.finfo(np.float64).eps)
SMALLEST = 2.0**-1074
"""Error of an operation whose result is no normal number."""
ERRORS = 4.0
"""Units of roundoff that a term brings before it is added: products, differences, elementary functions."""
UNDOUBTED = 64.0
"""Units of roundoff, of what was plainly added, below which nothing needs to be explained."""
UNKNOWN_LENGTH = 1024.0
"""Terms that the sums of a risk are taken to have which does not say how many, besides its weights."""
NEIGHBOURS, SPREAD = 8, 64.0
"""Points next to one at which such a risk is evaluated, and how many times their spread rounding may reach."""

OF_NO_ACCOUNT = 1e-12
"""Rounding below this share of a bound is of no account."""


def cautious(bound: float, size: float) -> float:
    """The bound less what its rounding may be, where numbers of absolute values `size` have cancelled in it."""
    slack = UNDOUBTED * ROUNDOFF * size
    return bound - slack if slack > OF_NO_ACCOUNT * abs(bound) else bound


class Budget:
    """The rounding of a risk's values and planes.

    The error of a sum of n terms is at most n units of roundoff times the sum of their absolute values (Higham,
    "Accuracy and stability of numerical algorithms", 2002, section 3.1). A plane that lies above the risk at a point,
    by rounding only, has nearly a subgradient there for its slope: so what was added for it is known from the
    magnitudes at that point and from how far away it was taken, without the slopes of the rows.

    A risk that cannot say what it adds is evaluated at points that differ in the last digits: its values then scatter
    by what rounding does to them (More & Wild, "Estimating computational noise", SIAM J. Sci. Comput. 33, 2011).

    Parameters
    ----------
    risk : with the ability `Rounding` or without.
    """

    def __init__(self, risk: Risk) -> None:
        self._risk, self._space = risk, space_of(risk)
        self._dim = float(self._space.total(self._space.dim))
        self._known: tuple[Vector, Magnitudes] | None = None

    def at(self, w: Vector, size: float, reach: float = 0.0) -> float:
        """The most by which rounding can put a plane, or a mixture of them, above the risk at `w`.

        Parameters
        ----------
        w : the point.
        size : absolute values that were plainly added: of the risk, of the regularizer, of the products <a, w>.
        reach : the norm of the point where the plane was taken; of several the weighted mean.
        """
        magnitudes = self._magnitudes(w)
        if magnitudes is None:
            terms = UNKNOWN_LENGTH + self._dim
            return ERRORS * ROUNDOFF * terms * size + SPREAD * self._scatter(w)
        sizes, dot, norm = magnitudes.sizes, self._space.dot, self._space.norm
        added = size + magnitudes.terms + dot(sizes, np.abs(w)) + norm(sizes) * reach
        if reach > 0.0 and magnitudes.growth > 0.0:
            away = reach + norm(w)
            added += norm(sizes) * magnitudes.growth * away * away
        return ERRORS * max(magnitudes.length, self._dim) * (ROUNDOFF * added + SMALLEST)

    def _magnitudes(self, w: Vector) -> Magnitudes | None:
        if self._known is None or not np.array_equal(self._known[0], w):
            rounding = ability(self._risk, Rounding)
            if rounding is None:
                return None
            self._known = w.copy(), rounding.at(w)
        return self._known[1]

    def _scatter(self, w: Vector) -> float:
        rng = np.random.default_rng(0)
        value, values = self._risk.value_and_subgradient(w)[0], []
        for _ in range(NEIGHBOURS if self._space.norm(w) > 0.0 else 0):
            beside = w * (1.0 + 2.0 * ROUNDOFF * rng.integers(-2, 3, w.size))
            values.append(self._risk.value_and_subgradient(beside)[0])
        spread = max((abs(each - value) for each in values), default=0.0)
        return spread if math.isfinite(spread) else 0.0
