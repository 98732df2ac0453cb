"""The regularizer, the planes that bound a risk from below, and the master problem made of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bmrm.problem.basics import Vector


@runtime_checkable
class Regularizer(Protocol):
    """Omega, its lambda included; immutable, convex, and nowhere negative."""

    @property
    def smooth(self) -> bool:
        """Differentiable everywhere."""
        ...

    def value(self, w: Vector) -> float: ...

    def subgradient(self, w: Vector) -> Vector: ...

    def along(self, w: Vector, step: Vector) -> Callable[[Vector], tuple[Vector, Vector]]:
        """The function t -> (Omega(w + t step), its derivative in t), for a vector of t."""
        ...


@runtime_checkable
class HasMaster(Protocol):
    """A regularizer that can serve the bundle method."""

    def master(self, planes: Planes, blocks: int = 1) -> Master: ...


@runtime_checkable
class HasConjugate(Protocol):
    """A regularizer whose conjugate Omega*(v) = max over w of <v, w> - Omega(w) is known."""

    def conjugate(self, v: Vector) -> float:
        """Omega*(v), possibly +inf."""
        ...

    def feasible(self, v: Vector) -> float:
        """The largest scale s in [0, 1] with Omega*(s v) finite: 1.0 for L2, min(1, lam / max |v|) for L1."""
        ...


@runtime_checkable
class HasProx(Protocol):
    """A regularizer whose proximal map is known."""

    def prox(self, v: Vector, step: float) -> Vector:
        """argmin over w of step * Omega(w) + 1/2 ||w - v||^2."""
        ...


@runtime_checkable
class StronglyConvex(Protocol):
    """A regularizer with Omega(w) - modulus/2 ||w||^2 convex."""

    @property
    def modulus(self) -> float:
        """Greater than 0: lambda for L2."""
        ...


@runtime_checkable
class Elastic(Protocol):
    """A regularizer Omega(w) = l1 ||w||_1 + l2/2 ||w||^2: coordinate, dual and Newton solvers need no more of it."""

    @property
    def l1(self) -> float: ...

    @property
    def l2(self) -> float: ...


class Planes(Protocol):
    """Where cutting planes R_k(w) >= <a_j, w> + b_j live.

    The lower-bound planes (a = 0, b = infima[k]) are not stored: masters know them from `infima`.
    """

    dim: int
    infima: tuple[float, ...]
    """Per block, a number that R_k never goes below; -inf when unknown."""

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """Keep a copy of the plane; returns its id, never used before."""
        ...

    def products(self, a: Vector) -> Vector:
        """<a_j, a> for all planes, in the order of `ids`: a Gram row."""
        ...

    def combine(self, alpha: Vector) -> Vector:
        """sum_j alpha_j a_j, in the order of `ids`."""
        ...

    def drop(self, ids: Sequence[int]) -> None: ...

    def fold(self, ids: Sequence[int], alpha: Vector) -> int:
        """Replace planes of one block by their average with weights `alpha`, still a lower bound; returns its id."""
        ...

    def plane(self, id: int) -> tuple[Vector, float, int]:
        """(a, b, block); the array must not be changed."""
        ...

    @property
    def ids(self) -> tuple[int, ...]: ...

    @property
    def offsets(self) -> Vector:
        """b_j in the order of `ids`."""
        ...


@dataclass(frozen=True)
class MasterSolution:
    """The minimiser of the model, and what it proves."""

    w: Vector
    multipliers: dict[int, float]
    """Plane id -> alpha; planes that are not here have 0."""
    lower_bound: float
    """A true lower bound of min J, from a feasible dual point: never above the minimum but for rounding."""


@dataclass(frozen=True, eq=False)
class SavedPlanes:
    """The planes of a finished run, for another run on the same risk with any lambda.

    Attributes
    ----------
    slopes : (planes, dim).
    offsets, blocks : (planes,).
    fingerprint : of the risk (`Fingerprint`).
    sizes, norms : (planes,), the absolute values of what was added to make the offsets, and the norms of the points
        where the planes were taken; None where that is not known.
    """

    slopes: NDArray[np.float64]
    offsets: Vector
    blocks: NDArray[np.int64]
    infima: tuple[float, ...]
    fingerprint: str
    sizes: Vector | None = None
    norms: Vector | None = None


class Master(Protocol):
    """min over w of Omega(w) + sum over blocks of max_j (<a_j, w> + b_j), kept hot between calls."""

    def add(self, plane: int) -> None:
        """Take plane `plane` of `planes` into the model."""
        ...

    def remove(self, planes: Sequence[int]) -> None:
        """Forget planes; call before they are dropped from `planes`."""
        ...

    def solve(self, accuracy: float) -> MasterSolution:
        """Solve to `accuracy` relative to the objective of the model; `lower_bound` is valid at any accuracy."""
        ...
