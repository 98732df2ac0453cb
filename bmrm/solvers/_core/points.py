"""A point with the plane of the risk there; and iterates, which move along lines, through scores if there are any."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from bmrm.kernels.products.vectors import dot
from bmrm.numerics.line_search import Along
from bmrm.problem import LinearMap, Scored, ScoreFunction, Scores, Vector, plane_at
from bmrm.problem.regularizer import space_of
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.monitor import Monitor

REFRESH = 20
"""Updates by differences after which scores are computed from the data again."""


@dataclass(frozen=True, eq=False)
class Point:
    """A point w with value, gradient and scores.

    Attributes
    ----------
    w, value, a : weights, R(w) and its gradient.
    offset : of the plane R(w') >= <a, w'> + offset; -inf where there is none.
    f : scores; None where they are not kept.
    fresh : whether all this was computed from w.
    """

    w: Vector
    value: float
    a: Vector
    offset: float
    f: Scores
    fresh: bool = field(default=True, kw_only=True)


def noted(run: Monitor, certificate: Certificate, point: Point) -> float:
    """J at a point, of which the run takes note, and of what its plane proves."""
    objective = point.value + run.regularizer.value(point.w)
    run.improve(point.w, objective, fresh=point.fresh)
    if point.offset != -math.inf:
        run.take_plane(certificate, point.w, point.value, point.a, point.offset)
    return objective


def placed(map: LinearMap, phi: ScoreFunction, w: Vector, f: Scores, *, fresh: bool = True) -> Point:
    """The point w of scores f, with the plane of phi(A w) there; half a pass."""
    value, _, a, product = plane_at(map, phi, f)
    return Point(w, value, a, value - product, f, fresh=fresh)


class Iterate:
    """The current point of a search, and functions along lines through it.

    Attributes
    ----------
    point : that.
    """

    def __init__(self, run: Monitor, w: Vector) -> None:
        self.run, self.space = run, space_of(run.risk)
        self.point = self._evaluated(w)
        self._last = self.point

    def along(self, d: Vector) -> Along:
        """t -> (R, its derivative) at w + t d."""

        def evaluate(ts: Vector) -> tuple[Vector, Vector]:
            values, slopes = np.empty(len(ts)), np.empty(len(ts))
            for k, t in enumerate(ts):
                self._last = self._evaluated(_moved(self.point.w, t, d))
                values[k], slopes[k] = self._last.value, self.dot(self._last.a, d)
            return values, slopes

        return evaluate

    def dot(self, a: Vector, b: Vector) -> float:
        """The inner product of two vectors of weights."""
        return float(self.space.total(dot(a, b)))

    def look(self, t: float, d: Vector) -> Point:
        """What is at w + t d, where d is that of the latest `along`."""
        w = _moved(self.point.w, t, d)
        if not self.space.same(w, self._last.w):
            self._last = self._evaluated(w)
        return self._last

    def move(self, t: float, d: Vector) -> None:
        """To w + t d, where d is that of the latest `along`."""
        self.move_to(self.look(t, d))

    def move_to(self, point: Point) -> None:
        """There."""
        self.point = point

    def renew(self, w: Vector) -> Point:
        """Go to w, all computed from there."""
        self.point = self._evaluated(w)
        return self.point

    def _evaluated(self, w: Vector) -> Point:
        value, a = self.run.risk.value_and_subgradient(w)
        return Point(w, value, a, value - self.dot(a, w), None)


class FusedIterate(Iterate):
    """The same where scores serve searches, but are not kept: one pass gives value and gradient."""

    def __init__(self, run: Monitor, w: Vector, scored: Scored) -> None:
        self.map, self.phi = scored.map, scored.phi
        super().__init__(run, w)

    def along(self, d: Vector) -> Along:
        """As of `Iterate`."""
        curve = cache(lambda: self.phi.along(self.map.matvec(self.point.w), self.map.matvec(d)))
        return lambda ts: curve()(ts)


class ScoredIterate(FusedIterate):
    """The same with scores that move along: trial steps cost no pass."""

    def __init__(self, run: Monitor, w: Vector, scored: Scored) -> None:
        self._moves = 0
        self._fd: Scores = np.empty(0)
        super().__init__(run, w, scored)

    def along(self, d: Vector) -> Along:
        """As of `Iterate`."""
        f, fd = self.point.f, self.map.matvec(d)
        self._fd = fd
        curve = cache(lambda: self.phi.along(f, fd))  # which is dear for some losses, and often not needed
        return lambda ts: curve()(ts)

    def look(self, t: float, d: Vector) -> Point:
        """As of `Iterate`; scores are formed anew now and then, lest rounding adds up."""
        w = _moved(self.point.w, t, d)
        if self.run.careful or (self._moves + 1) % REFRESH == 0:
            return self._evaluated(w)
        return placed(self.map, self.phi, w, self.point.f + t * self._fd, fresh=False)

    def move_to(self, point: Point) -> None:
        """As of `Iterate`."""
        self._moves += 1
        self.point = point

    def _evaluated(self, w: Vector) -> Point:
        return placed(self.map, self.phi, w, self.map.matvec(w))


def _moved(w: Vector, t: float, d: Vector) -> Vector:
    """W + t d, without a third vector."""
    found: Vector = t * d
    found += w
    return found
