"""A point that moves along lines, with the risk and its gradient there; through scores where there are any."""

from __future__ import annotations

import numpy as np

from bmrm.problem import Scored, Scores, Vector
from bmrm.solvers.line_search import Along
from bmrm.solvers.monitor import Monitor

REFRESH = 50
"""Moves after which scores are formed anew."""


class Point:
    """Where the search is: w, R(w) and its gradient, and functions along lines through it."""

    def __init__(self, run: Monitor, w: Vector) -> None:
        self.run = run
        self.w = w
        self.value, self.a = run.risk.value_and_subgradient(w)
        self._last = (w, self.value, self.a)

    def along(self, d: Vector) -> Along:
        """t -> (R, its derivative) at w + t d."""

        def evaluate(ts: Vector) -> tuple[Vector, Vector]:
            values, slopes = np.empty(len(ts)), np.empty(len(ts))
            for k, t in enumerate(ts):
                w = self.w + t * d
                values[k], a = self.run.risk.value_and_subgradient(w)
                slopes[k] = a @ d
                self._last = (w, float(values[k]), a)
            return values, slopes

        return evaluate

    def move(self, t: float, d: Vector) -> None:
        """To w + t d."""
        w = self.w + t * d
        if not np.array_equal(w, self._last[0]):
            self._last = (w, *self.run.risk.value_and_subgradient(w))
        self.w, self.value, self.a = self._last


class ScoredPoint(Point):
    """The same with scores: trial steps cost no pass."""

    def __init__(self, run: Monitor, w: Vector, scored: Scored) -> None:
        self.run, self.w = run, w
        self.map, self.phi = scored.map, scored.phi
        self._moves = 0
        self._f: Scores = self.map.scores(w)
        self._fd: Scores = self._f
        self._evaluate()

    def along(self, d: Vector) -> Along:
        """As of `Point`."""
        self._fd = self.map.scores(d)
        return self.phi.along(self._f, self._fd)

    def move(self, t: float, d: Vector) -> None:
        """As of `Point`; scores are formed anew now and then, lest rounding adds up."""
        self.w = self.w + t * d
        self._moves += 1
        self._f = self.map.scores(self.w) if self._moves % REFRESH == 0 else self._f + t * self._fd
        self._evaluate()

    def _evaluate(self) -> None:
        self.value, slope = self.phi.value_and_slope(self._f)
        self.a = self.map.pull_back(slope)
