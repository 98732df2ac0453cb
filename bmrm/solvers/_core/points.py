"""A point that moves along lines, with the risk and its gradient there; through scores where there are any."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from bmrm.kernels.products.vectors import dot
from bmrm.numerics.line_search import Along
from bmrm.problem import Scored, Scores, Vector
from bmrm.solvers._core.monitor import Monitor

REFRESH = 20
"""Moves after which scores are formed anew."""


class Place(NamedTuple):
    """A point with what is known there.

    Attributes
    ----------
    w, value, a : weights, R(w) and its gradient.
    offset : of the plane R(w') >= <a, w'> + offset.
    f : scores, where they are kept.
    fresh : whether all this was computed from w.
    """

    w: Vector
    value: float
    a: Vector
    offset: float
    f: Scores | None
    fresh: bool = True


class Point:
    """Where the search is: w, R(w) and its gradient, and functions along lines through it.

    Attributes
    ----------
    place : that.
    """

    def __init__(self, run: Monitor, w: Vector) -> None:
        self.run = run
        self.place = self._evaluated(w)
        self._last = self.place

    @property
    def w(self) -> Vector:
        """Weights."""
        return self.place.w

    @property
    def value(self) -> float:
        """R(w)."""
        return self.place.value

    @property
    def a(self) -> Vector:
        """Its gradient."""
        return self.place.a

    def along(self, d: Vector) -> Along:
        """t -> (R, its derivative) at w + t d."""

        def evaluate(ts: Vector) -> tuple[Vector, Vector]:
            values, slopes = np.empty(len(ts)), np.empty(len(ts))
            for k, t in enumerate(ts):
                self._last = self._evaluated(self.w + t * d)
                values[k], slopes[k] = self._last.value, dot(self._last.a, d)
            return values, slopes

        return evaluate

    def look(self, t: float, d: Vector) -> Place:
        """What is at w + t d, where d is that of the latest `along`."""
        w = self.w + t * d
        if not np.array_equal(w, self._last.w):
            self._last = self._evaluated(w)
        return self._last

    def move(self, t: float, d: Vector) -> None:
        """To w + t d, where d is that of the latest `along`."""
        self.move_to(self.look(t, d))

    def move_to(self, place: Place) -> None:
        """There."""
        self.place = place

    def renew(self, w: Vector) -> Place:
        """Go to w, all computed from there."""
        self.place = self._evaluated(w)
        return self.place

    def _evaluated(self, w: Vector) -> Place:
        value, a = self.run.risk.value_and_subgradient(w)
        return Place(w, value, a, value - dot(a, w), None)


class FusedPoint(Point):
    """The same where scores serve searches, but are not kept: one pass gives value and gradient."""

    def __init__(self, run: Monitor, w: Vector, scored: Scored) -> None:
        self.map, self.phi = scored.map, scored.phi
        super().__init__(run, w)

    def along(self, d: Vector) -> Along:
        """As of `Point`."""
        curve = cache(lambda: self.phi.along(self.map.matvec(self.w), self.map.matvec(d)))
        return lambda ts: curve()(ts)


class ScoredPoint(FusedPoint):
    """The same with scores that move along: trial steps cost no pass."""

    def __init__(self, run: Monitor, w: Vector, scored: Scored) -> None:
        self._moves = 0
        self._fd: Scores = np.empty(0)
        super().__init__(run, w, scored)

    def along(self, d: Vector) -> Along:
        """As of `Point`."""
        f, fd = self.place.f, self.map.matvec(d)
        self._fd = fd
        curve = cache(lambda: self.phi.along(f, fd))  # which is dear for some losses, and often not needed
        return lambda ts: curve()(ts)

    def look(self, t: float, d: Vector) -> Place:
        """As of `Point`; scores are formed anew now and then, lest rounding adds up."""
        w = self.w + t * d
        if self.run.careful or (self._moves + 1) % REFRESH == 0:
            return self._evaluated(w)
        return self._placed(w, self.place.f + t * self._fd)._replace(fresh=False)

    def move_to(self, place: Place) -> None:
        """As of `Point`."""
        self._moves += 1
        self.place = place

    def _evaluated(self, w: Vector) -> Place:
        return self._placed(w, self.map.matvec(w))

    def _placed(self, w: Vector, f: Scores) -> Place:
        value, slope = self.phi.value_and_slope(f)
        return Place(w, value, self.map.rmatvec(slope), value - self.phi.product(slope, f), f)
