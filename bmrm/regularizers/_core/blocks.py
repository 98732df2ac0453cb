"""Omega as a sum over blocks of coordinates: one record of arrays, from which all that solvers ask for is computed.

A regularizer of the folder that is bound to a space is one of these: its file says what the arrays are, no more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import IncompatibleError, Master, Space, Vector
from bmrm.problem.regularizer import BlockPenalty, Planes
from bmrm.regularizers.base import Line, load

CONIC = "bmrm.masters.conic:ConicMaster"

Numbers = float | Vector
"""One for all coordinates, or one each."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """A sum over blocks of coordinates of a space; see `BlockPenalty`.

    It offers what is true of it whatever the numbers are. What only some have (a conjugate that planes can meet, which
    takes that no coordinate is free, bounds, a second derivative, strong convexity) classes derived from it add;
    `blocks` makes the right one.

    Parameters
    ----------
    penalty : the arrays.
    title : what messages call it, the name of the class that was bound.
    """

    penalty: BlockPenalty
    title: str = "Blocks"
    smooth: bool = False

    @cached_property
    def _arrays(self) -> tuple[Any, ...]:
        return tuple(self.penalty)

    def _plain(self, array: Vector) -> Vector:
        """For kernels, which do not look at the length."""
        from bmrm.kernels.products.vectors import plain

        if np.shape(array) != self.penalty.l1.shape:
            raise ValueError(f"{self.title} is for {self.penalty.l1.size} weights, got shape {np.shape(array)}")
        return plain(array)

    def value(self, w: Vector) -> float:
        """Omega(w); +inf outside the bounds.

        Parameters
        ----------
        w : (dim,), the weights.
        """
        return float(_kernels().value(self._plain(w), self._arrays))

    def subgradient(self, w: Vector) -> Vector:
        """A subgradient at w: a kink, a norm or a bound adds nothing where w is 0, or at the bound.

        Parameters
        ----------
        w : (dim,), the weights.
        """
        out = np.empty(len(w))
        _kernels().subgradient(self._plain(w), self._arrays, out)
        return out

    def along(self, w: Vector, step: Vector) -> Line:
        """The function t -> (Omega(w + t step), its derivative in t), for a vector of t; no copies of w.

        Parameters
        ----------
        w, step : (dim,), a point and a direction.
        """
        w, step, line, arrays = self._plain(w), self._plain(step), _kernels().line, self._arrays

        def evaluate(t: Vector) -> tuple[Vector, Vector]:
            places = np.ascontiguousarray(t, np.float64).ravel()
            values, slopes = np.empty(places.size), np.empty(places.size)
            line(w, step, places, arrays, values, slopes)
            return values.reshape(np.shape(t)), slopes.reshape(np.shape(t))

        return evaluate

    def prox(self, v: Vector, step: float) -> Vector:
        """argmin over w of step * Omega(w) + 1/2 ||w - v||^2, in closed form block by block.

        Parameters
        ----------
        v : (dim,), the point to stay near.
        step : greater than 0, the factor of Omega.
        """
        out = np.empty(len(v))
        _kernels().prox(self._plain(v), float(step), self._arrays, out)
        return out

    def master(self, planes: Planes) -> Master:
        """As of `HasMaster`.

        Parameters
        ----------
        planes : an empty store, which the master fills.
        """
        return load(CONIC)(planes, self.penalty)


class ConjugateBlocks(Blocks):
    """The same where no coordinate is free: a plane proves a bound, once its slope is scaled."""

    def conjugate(self, v: Vector) -> float:
        """The maximum over w of <v, w> - Omega(w), in closed form block by block; +inf where there is none.

        Parameters
        ----------
        v : (dim,), a dual point.
        """
        return float(_kernels().conjugate(self._plain(v), self._arrays))

    def feasible(self, v: Vector) -> float:
        """The largest scale s in [0, 1] with a finite conjugate at s v.

        Parameters
        ----------
        v : (dim,), a dual point.
        """
        return float(_kernels().feasible(self._plain(v), self._arrays))


class BoundedBlocks(ConjugateBlocks):
    """The same with bounds: Omega is +inf outside them."""

    def project(self, w: Vector) -> Vector:
        """The nearest point within the bounds; `w` itself where it is.

        Parameters
        ----------
        w : (dim,), the weights.
        """
        out = np.empty(len(w))
        return out if _kernels().project(self._plain(w), self._arrays, out) else w


class StrongBlocks(ConjugateBlocks):
    """The same where every coordinate has an l2 of its own, and none has bounds."""

    @property
    def modulus(self) -> float:
        """The least l2: Omega is that strongly convex."""
        return float(self.penalty.l2.min())


class FreeBoundedBlocks(Blocks):
    """The same with bounds, and free coordinates."""

    project = BoundedBlocks.project


class SmoothBlocks(Blocks):
    """The same where all is smooth, and there are free coordinates: no l1, no strengths, no bounds."""

    def hessian_product(self, f: Vector, step: Vector) -> Vector:
        """The second derivative, l2 on the diagonal, times `step`.

        Parameters
        ----------
        f : (dim,), the weights where it is taken.
        step : (dim,), the direction.
        """
        return self.penalty.l2 * step


class SmoothStrongBlocks(StrongBlocks):
    """The same where all is smooth, and no coordinate is free."""

    hessian_product = SmoothBlocks.hessian_product


@dataclass
class Partition:
    """Blocks of coordinates that are gathered one by one; coordinates in none become blocks of their own.

    Parameters
    ----------
    space : of w.
    """

    space: Space
    _parts: list[NDArray[np.int64]] = field(default_factory=list)
    _sizes: list[NDArray[np.int64]] = field(default_factory=list)
    _strengths: list[Vector] = field(default_factory=list)

    def add(self, features: NDArray[np.int64], strength: float) -> None:
        """A block of all coordinates of some features."""
        self._take(self.space.coordinates(features)[None], strength)

    def add_each(self, features: NDArray[np.int64], strength: float) -> None:
        """A block for each of some features, of its coordinates for all scores."""
        self._take(self.space.coordinates(features).reshape(-1, self.space.scores), strength)

    def arrays(self, strength_of_others: float = 0.0) -> tuple[NDArray[np.int64], NDArray[np.int64], Vector]:
        """`starts`, `coordinates` and `strengths` of `BlockPenalty`."""
        taken = np.concatenate([np.empty(0, np.int64), *self._parts])
        alone = np.ones(self.space.dim, bool)
        alone[taken] = False
        others = np.flatnonzero(alone)
        sizes = np.concatenate([np.zeros(1, np.int64), *self._sizes, np.ones(len(others), np.int64)])
        strengths = np.concatenate([np.empty(0), *self._strengths, np.full(len(others), strength_of_others)])
        return np.cumsum(sizes), np.concatenate([taken, others]), strengths

    def _take(self, table: NDArray[np.int64], strength: float) -> None:
        """A block for each row."""
        count, size = table.shape
        self._parts.append(table.ravel())
        self._sizes.append(np.full(count, size, np.int64))
        self._strengths.append(np.full(count, float(strength)))


def blocks(
    space: Space,
    title: str,
    *,
    partition: tuple[NDArray[np.int64], NDArray[np.int64], Vector] | None = None,
    l1: Numbers = 0.0,
    l2: Numbers = 0.0,
    center: Numbers = 0.0,
    lower: Numbers = -np.inf,
    upper: Numbers = np.inf,
) -> Blocks:
    """Omega on a space, with the members that it has by its numbers.

    Parameters
    ----------
    space : of w; IncompatibleError where vectors are slices.
    title : the name of the class that is bound, for messages.
    partition : as of `Partition.arrays`; None where every coordinate is a block of strength 0.
    l1, l2, center, lower, upper : of every coordinate, or one number for all.
    """
    if not space.whole:
        raise IncompatibleError(f"regularizer {title} needs all weights in one place, here they are sliced; use l2")
    dim = space.dim
    if partition is None:
        partition = np.arange(dim + 1), np.arange(dim), np.zeros(dim)
    numbers = (np.array(np.broadcast_to(np.asarray(one, np.float64), dim)) for one in (l1, l2, center, lower, upper))
    penalty = BlockPenalty(*partition, *numbers)
    kinked = bool(np.any(penalty.l1 > 0.0) or np.any(penalty.strengths > 0.0))
    free, strong = penalty.free.size > 0, bool(np.all(penalty.l2 > 0.0))
    if penalty.bounded:
        return (FreeBoundedBlocks if free else BoundedBlocks)(penalty, title)
    if kinked:
        return (Blocks if free else StrongBlocks if strong else ConjugateBlocks)(penalty, title)
    return (SmoothStrongBlocks if strong else SmoothBlocks)(penalty, title, smooth=True)


def _kernels() -> Any:
    """Not at the top: regularizers are made where nothing is compiled."""
    from bmrm.kernels.blocks import separable

    return separable
