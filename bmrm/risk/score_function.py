"""phi: the normalised loss of all scores, R(w) = phi(A w)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.vectors import dot, plain
from bmrm.kernels.workers import Workers
from bmrm.problem import IncompatibleError, InputError, Loss, PreparedLoss, Summary, Targets, Vector

Array = NDArray[np.float64]
Curve = Callable[[Vector], tuple[Vector, Vector]]

ROWS_PER_THREAD = 50_000
"""Rows below which another thread costs more than it saves."""


class BoundLoss:
    """A loss with its targets: prepared for all the rows, and for parts of them.

    Parameters
    ----------
    loss, targets, summary : as `Loss.prepare` takes them; `summary` is over all ranks.
    """

    def __init__(self, loss: Loss, targets: Targets, summary: Summary) -> None:
        self.loss, self.targets, self.summary = loss, targets, summary
        self.rows = targets.rows
        self.whole: PreparedLoss = loss.prepare(targets, summary)

    @property
    def divisible(self) -> bool:
        """Whether the loss is a sum over rows."""
        return self.loss.decomposes == "rows"

    def part(self, start: int, stop: int) -> PreparedLoss:
        """The loss of the rows [start, stop)."""
        if (start, stop) == (0, self.rows):
            return self.whole
        whole: Any = self.whole
        if hasattr(whole, "part"):
            return whole.part(start, stop)  # type: ignore[no-any-return]
        return self.loss.prepare(self.targets.part(start, stop), self.summary)

    def take(self, rows: NDArray[np.int64]) -> PreparedLoss:
        """The loss of the chosen rows, repetition allowed."""
        whole: Any = self.whole
        if hasattr(whole, "take"):
            return whole.take(rows)  # type: ignore[no-any-return]
        t = self.targets
        weights = None if t.weights is None else t.weights[rows]
        groups = None if t.groups is None else t.groups[rows]
        return self.loss.prepare(Targets(t.y[rows], weights, groups), self.summary)


class LossPhi:
    """The loss of rows as a function of their scores, divided by the total mass.

    Parameters
    ----------
    bound : the loss with its targets.
    mass : the mass of all rows on all ranks; None for that of these rows.
    workers : threads for many rows, used where the loss is a sum over rows; None for none.
    """

    def __init__(self, bound: BoundLoss, mass: float | None = None, workers: Workers | None = None) -> None:
        self.bound = bound
        self.mass = bound.whole.mass if mass is None else mass
        if not self.mass > 0.0:
            raise InputError("the examples have total weight 0, expected at least one row of positive weight")
        self.scores_per_row = bound.whole.scores_per_row
        self.smooth = bound.whole.smooth
        self.infimum = bound.whole.infimum / self.mass
        self._workers = Workers(1) if workers is None else workers
        count = min(self._workers.threads, bound.rows // ROWS_PER_THREAD) if bound.divisible else 1
        edges = [bound.rows * k // max(1, count) for k in range(max(1, count) + 1)]
        self._parts = [(slice(a, b), bound.part(a, b)) for a, b in pairwise(edges)]

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """phi(f) and a subgradient, a new array like `f`."""
        results = self._workers.map(lambda part: part[1].value_and_slope(f[part[0]]), self._parts)
        slope = results[0][1] if len(results) == 1 else np.concatenate([slope for _, slope in results])
        slope /= self.mass
        return sum(value for value, _ in results) / self.mass, slope

    def along(self, f: Array, step: Array) -> Curve:
        """The function t -> (phi(f + t step), its derivative in t), for a vector of t."""
        curves = [along(prepared, f[rows], step[rows]) for rows, prepared in self._parts]

        def curve(ts: Vector) -> tuple[Vector, Vector]:
            ts = np.asarray(ts, np.float64)
            results = np.array(self._workers.map(lambda each: each(ts), curves))
            values, derivatives = results.sum(axis=0) / self.mass
            return values, derivatives

        return curve

    def curvature_product(self, f: Array, step: Array) -> Array:
        """phi''(f) step, a new array like `f`; IncompatibleError where the loss has no second derivative."""
        if not hasattr(self.bound.whole, "curvature_product"):
            name = getattr(self.bound.loss, "name", "") or type(self.bound.loss).__name__
            raise IncompatibleError(
                f"{name} has no second derivative; use a solver that needs none, such as bundle or lbfgs"
            )
        pieces = self._workers.map(
            lambda part: part[1].curvature_product(f[part[0]], step[part[0]]),  # type: ignore[attr-defined]
            self._parts,
        )
        product: Array = np.concatenate(pieces)
        product /= self.mass
        return product

    def constant(self, b: Vector) -> Array:
        """The scores whose every row is `b`, shape (scores per row,)."""
        b = np.atleast_1d(np.asarray(b, np.float64))
        return np.full(self.bound.rows, b[0]) if self.scores_per_row == 1 else np.tile(b, (self.bound.rows, 1))

    def total(self, scores: Array) -> Vector:
        """The sum over all rows, (scores per row,)."""
        return np.atleast_1d(scores.sum(axis=0))


def along(prepared: PreparedLoss, f: Array, step: Array) -> Curve:
    """The curve of a prepared loss: its own where it has one, else made of values and slopes."""
    own: Any = getattr(prepared, "along", None)
    if own is not None:
        return own(f, step)  # type: ignore[no-any-return]
    f, step = plain(f), plain(step)

    def curve(ts: Vector) -> tuple[Vector, Vector]:
        values, derivatives = np.empty(len(ts)), np.empty(len(ts))
        for k, t in enumerate(ts):
            values[k], slope = prepared.value_and_slope(f + t * step)
            derivatives[k] = dot(slope, step)
        return values, derivatives

    return curve
