"""Lower bounds of the minimum by planes of the risk: eq. 15 of the KDD 2007 paper, and the best mixture of two."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bmrm.kernels.products.vectors import blend, dot
from bmrm.masters._core.planes import product_and_sizes
from bmrm.problem import HasConjugate, Regularizer, Space, Vector, provides
from bmrm.solvers._core.audit import Audit, Seen
from bmrm.solvers._core.rounding import Proof

ANYWHERE = Space(1)
"""Of vectors of any length that are whole."""


def plane_bound(regularizer: Regularizer, a: Vector, b: float, infimum: float) -> float:
    """The lower bound of min J that one plane R(w) >= <a, w> + b proves; -inf where it proves nothing.

    min over w of Omega(w) + s (<a, w> + b) + (1 - s) infimum, with s the largest for which it is finite.
    """
    return _bound_of(regularizer if provides(regularizer, HasConjugate) else None, a, b, infimum)


def _bound_of(regularizer: HasConjugate | None, a: Vector, b: float, infimum: float) -> float:
    if regularizer is None:
        return -math.inf
    down = -a
    scale = regularizer.feasible(down)
    if scale < 1.0 and not math.isfinite(infimum):
        return -math.inf
    floor = (1.0 - scale) * infimum if scale < 1.0 else 0.0
    if scale != 1.0:
        down *= scale
    bound = scale * b + floor - regularizer.conjugate(down)
    return bound if not math.isnan(bound) else -math.inf


class Certificate:
    """One plane of the risk, mixed anew with every plane that arrives so that its bound rises the most.

    A mixture of planes is a plane, so its bound is true. The mixing weight comes from the parabola through three
    bounds, exact for quadratic conjugates: a Frank-Wolfe step in the dual, which converges where single planes,
    taken at points that oscillate, prove little. Memory is one vector.

    Parameters
    ----------
    regularizer : Omega; without a conjugate there is no bound.
    infimum : a lower bound of R, or -inf; used where Omega's conjugate is not finite everywhere.
    space : of w, where it may be sliced.
    """

    def __init__(self, regularizer: Regularizer, infimum: float, space: Space = ANYWHERE) -> None:
        self._space = space
        self._regularizer = regularizer if provides(regularizer, HasConjugate) else None
        self._infimum = infimum
        self._plane: Plane | None = None
        self.bound = -math.inf

    def take(self, w: Vector, value: float, a: Vector, offset: float | None = None) -> float:
        """Take the plane R(v) >= value + <a, v - w> into account; the best bound so far.

        Parameters
        ----------
        w : (dim,), the point.
        value, a : R(w) and a subgradient there, (dim,).
        offset : of the plane at v = 0, where it is known better than by value - <a, w>.
        """
        product, size, reach = product_and_sizes(self._space, a, w)
        b = value - product if offset is None else offset
        if math.isfinite(b) and self._regularizer is not None:
            self._join(Plane(a, b, abs(value) + size, reach, w))
        return self.bound

    def holds(self, seen: Audit, w: Vector, value: float, a: Vector) -> bool:
        """Whether the plane of the bound holds where R(w) and a subgradient there are known.

        Parameters
        ----------
        seen : compares them, and knows their rounding.
        w : (dim,), the point.
        value, a : R(w) and a subgradient there, (dim,).
        """
        plane = self._plane
        if plane is None:
            return True
        return seen.plane_holds(plane.a, plane.b, plane.size, plane.reach, self, Seen(w, value, a, value))

    def highest(self, w: Vector) -> tuple[float, Vector | None]:
        """The plane's value at `w`, and where most of it was taken.

        Parameters
        ----------
        w : (dim,), the point.
        """
        plane = self._plane
        return (-math.inf, None) if plane is None else (self._dot(plane.a, w) + plane.b, plane.where)

    def farthest(self, sizes: Vector) -> float:
        """<sizes, |v|>, v the point where most of the plane was taken.

        Parameters
        ----------
        sizes : (dim,), not negative.
        """
        return 0.0 if self._plane is None else self._dot(sizes, np.abs(self._plane.where))

    def _dot(self, a: Vector, b: Vector) -> float:
        return float(self._space.total(dot(a, b)))

    @property
    def proof(self) -> Proof:
        """The bound, and what rounding may do to it."""
        plane, regularizer = self._plane, self._regularizer
        if plane is None or regularizer is None or not math.isfinite(self.bound):
            return Proof()
        size = plane.size + 2.0 * abs(plane.b) + abs(self.bound)
        return Proof(self.bound, size, plane.reach, self, 1.0 - regularizer.feasible(-plane.a))

    def point(self) -> tuple[Vector, float] | None:
        """A' s of the dual point that proves `bound`, for which the conjugate is finite, and `bound`; None without."""
        plane, regularizer = self._plane, self._regularizer
        if plane is None or regularizer is None or not math.isfinite(self.bound):
            return None
        return regularizer.feasible(-plane.a) * plane.a, self.bound

    def _join(self, fresh: Plane) -> None:
        alone, plane = self._bound(fresh.a, fresh.b), self._plane
        if plane is None or not math.isfinite(self.bound):
            self._plane, self.bound = fresh._replace(a=fresh.a.copy()), alone
            return
        known, half = self.bound, _mixed(plane, fresh, 0.5)
        middle = self._bound(*half)
        curvature = 2.0 * (2.0 * middle - known - alone)
        share = 0.5 + 0.5 * (alone - known) / curvature if curvature > 0.0 else 0.5
        share = min(max(share, 0.0), 1.0)
        mixture = _mixed(plane, fresh, share)
        best = max((known, 0.0), (middle, 0.5), (alone, 1.0), (self._bound(*mixture), share))
        if best[0] > known:
            self.bound = best[0]
            if best[1] != share:
                share, mixture = best[1], half if best[1] == 0.5 else _mixed(plane, fresh, best[1])
            size = (1.0 - share) * plane.size + share * fresh.size
            reach = (1.0 - share) * plane.reach + share * fresh.reach
            where = plane.where if share < 0.5 else fresh.where
            self._plane = Plane(*mixture, size, reach, where)

    def _bound(self, a: Vector, b: float) -> float:
        return _bound_of(self._regularizer, a, b, self._infimum)


class SinglePlane(Certificate):
    """The plane that proves most, alone: for smooth risks the last one proves as much as a mixture, for less."""

    def _join(self, fresh: Plane) -> None:
        alone = self._bound(fresh.a, fresh.b)
        if alone > self.bound or self._plane is None:
            self._plane, self.bound = fresh, alone


class Plane(NamedTuple):
    """R(w) >= <a, w> + b.

    Attributes
    ----------
    size : the absolute values of what was added to make b.
    reach : the norm of the point where it was taken; of a mixture the weighted mean.
    where : that point; of a mixture that of the largest share added at once.
    """

    a: Vector
    b: float
    size: float
    reach: float
    where: Vector


def _mixed(one: Plane, other: Plane, share: float) -> tuple[Vector, float]:
    return blend(one.a, other.a, share), (1.0 - share) * one.b + share * other.b
