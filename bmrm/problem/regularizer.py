"""The regularizer, the planes that bound a risk from below, and the master problem made of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bmrm.problem.basics import IncompatibleError, Vector, provides
from bmrm.problem.risk import ability
from bmrm.problem.space import Space


@runtime_checkable
class Regularizer(Protocol):
    """Omega, its lambda included; immutable, convex, and nowhere negative."""

    @property
    def smooth(self) -> bool:
        """Differentiable everywhere."""
        ...

    def value(self, w: Vector) -> float:
        """Omega(w), finite or +inf.

        Parameters
        ----------
        w : (dim,), the weights; not changed.
        """
        ...

    def subgradient(self, w: Vector) -> Vector:
        """A subgradient of Omega at w, (dim,); the gradient where there is one.

        Parameters
        ----------
        w : (dim,), the weights; not changed.
        """
        ...

    def along(self, w: Vector, step: Vector) -> Callable[[Vector], tuple[Vector, Vector]]:
        """The function t -> (Omega(w + t step), its derivative in t), for a vector of t.

        Parameters
        ----------
        w, step : (dim,), a point and a direction.
        """
        ...


@runtime_checkable
class HasSpace(Protocol):
    """A regularizer that takes the space into account: which coordinates are one feature, or where the others are."""

    def bind(self, space: Space) -> Regularizer:
        """Omega as a function of vectors laid out like this."""
        ...


def space_of(risk: object) -> Space:
    """The space of the w of `risk`, which is an object with `dim`, or with the ability `Space`."""
    space = ability(risk, Space)
    return Space(risk.dim) if space is None else space  # type: ignore[attr-defined]


def bound(regularizer: Regularizer, risk: object) -> Regularizer:
    """Omega as a function of the w of `risk`; IncompatibleError where that is a slice, which Omega knows nothing of."""
    space = space_of(risk)
    if provides(regularizer, HasSpace):
        return regularizer.bind(space)
    if not space.whole:
        name = type(regularizer).__name__
        raise IncompatibleError(f"regularizer {name} needs all weights in one place, here they are sliced; use l2")
    return regularizer


@runtime_checkable
class HasMaster(Protocol):
    """A regularizer that can serve the bundle method."""

    def master(self, planes: Planes) -> Master:
        """A master that works on these planes: none as yet, for a term of the risk, or more, each with its infimum."""
        ...


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


class BlockPenalty(NamedTuple):
    """A sum over blocks of coordinates, as arrays; what kernels get is `tuple(penalty)` (`bmrm.kernels.blocks`).

        Omega(w) = sum_j [ l1_j |w_j| + l2_j/2 (w_j - center_j)^2 + (0 if lower_j <= w_j <= upper_j else inf) ]
                   + sum over blocks b of strength_b ||w_b||

    The blocks are a partition of the coordinates. In a block of positive strength there are no bounds, and l2 is one
    number; l1 and center may differ. A coordinate is free where l1 = l2 = 0, its block has strength 0, and there are no
    bounds. Omega is nowhere negative.

    Attributes
    ----------
    starts : (blocks + 1,) int64; block b holds `coordinates[starts[b] : starts[b + 1]]`.
    coordinates : (dim,) int64, a permutation.
    strengths : (blocks,) >= 0.
    l1, l2 : (dim,) >= 0.
    center : (dim,) finite.
    lower, upper : (dim,), -inf and inf where there is no bound; lower <= upper.
    """

    starts: NDArray[np.int64]
    coordinates: NDArray[np.int64]
    strengths: Vector
    l1: Vector
    l2: Vector
    center: Vector
    lower: Vector
    upper: Vector

    @property
    def blocks(self) -> int:
        """How many."""
        return len(self.strengths)

    def block(self, b: int) -> NDArray[np.int64]:
        """The coordinates of a block."""
        return self.coordinates[self.starts[b] : self.starts[b + 1]]

    @property
    def bounded(self) -> bool:
        """Whether any coordinate has a bound."""
        return bool(np.any(self.lower > -np.inf) or np.any(self.upper < np.inf))

    @property
    def free(self) -> NDArray[np.int64]:
        """The coordinates that Omega does not touch, in increasing order."""
        plain = (self.l1 == 0.0) & (self.l2 == 0.0) & (self.lower == -np.inf) & (self.upper == np.inf)
        plain[self.coordinates] &= np.repeat(self.strengths == 0.0, np.diff(self.starts))
        return np.flatnonzero(plain)


@runtime_checkable
class BlockSeparable(Protocol):
    """A regularizer that is a sum over blocks of coordinates: block coordinate descent needs no more of it."""

    @property
    def smooth(self) -> bool:
        """As of `Regularizer`."""
        ...

    @property
    def title(self) -> str:
        """The name of the class that was bound, for messages."""
        ...

    @property
    def penalty(self) -> BlockPenalty:
        """The blocks, and all numbers."""
        ...


@runtime_checkable
class HasBounds(Protocol):
    """A regularizer that is +inf somewhere."""

    def project(self, w: Vector) -> Vector:
        """The nearest point where Omega is finite; `w` itself where it is."""
        ...


@dataclass(frozen=True)
class FeatureColumns:
    """The features of the data, as far as a regularizer may want to know them.

    Attributes
    ----------
    count : how many; inputs of the space beyond them are no features, such as a constant one.
    names : one each; None where they have none.
    units : what the weight of each is multiplied by to have that of the solver, which sees scaled features; None for 1.
    """

    count: int
    names: tuple[str, ...] | None = None
    units: Vector | None = None


@runtime_checkable
class OfFeatures(Protocol):
    """A regularizer whose options speak of single features, by number or name, or of weights in the data's units."""

    def with_features(self, columns: FeatureColumns) -> Regularizer | HasSpace:
        """The same for these features, ready for `bind`; InputError for those that are not there."""
        ...


@runtime_checkable
class Rescalable(Protocol):
    """A regularizer that weighs features, and may be the same problem without that on features that are divided."""

    def rescaled(self) -> tuple[Vector, Regularizer] | None:
        """What to divide the features by, and the regularizer then; None where it is not the same problem.

        Asked of what `with_features` returns; weights found with it are to be divided alike.
        """
        ...


@runtime_checkable
class Centred(Protocol):
    """A regularizer of w - c, for a c that options give: it is another one of v = w - c."""

    @property
    def center(self) -> Any:
        """None for 0; text for the path of a model file, whose weights are c; or numbers."""
        ...

    def center_of(self, columns: FeatureColumns, scores: int) -> NDArray[np.float64]:
        """Numbers for c, (features, scores), in the units of the data; InputError where they do not fit."""
        ...

    def without_center(self) -> Regularizer:
        """The regularizer of v."""
        ...


class Planes(Protocol):
    """The cutting planes R_k(w) >= <a_j, w> + b_j of a master, which nobody else keeps, in its order.

    The lower-bound planes (a = 0, b = infima[k]) are not stored: masters know them from `infima`.
    """

    space: Space
    """Of the slopes, with their inner products."""
    infima: tuple[float, ...]
    """Per block, a number that R_k never goes below; -inf when unknown."""

    def __len__(self) -> int: ...

    @property
    def ids(self) -> NDArray[np.int64]:
        """What the master has called them; never the same id twice."""
        ...

    @property
    def offsets(self) -> Vector:
        """b_j."""
        ...

    @property
    def blocks(self) -> NDArray[np.int64]:
        """The term of the risk that each belongs to."""
        ...

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """Keep a copy of a plane, after the others; returns its id."""
        ...

    def drop(self, ids: Sequence[int]) -> NDArray[np.int64]:
        """Forget planes; the places where those that stay stood before, in their new order."""
        ...

    def row(self, place: int) -> Vector:
        """The slope at this place; it must not be changed."""
        ...

    def products(self, a: Vector) -> Vector:
        """<a_j, a> for all planes: a Gram row."""
        ...

    def combine(self, alpha: Vector) -> Vector:
        """sum_j alpha_j a_j."""
        ...

    def multipliers(self, alpha: Vector) -> dict[int, float]:
        """Plane id -> alpha where it is positive."""
        ...


@dataclass(frozen=True)
class MasterSolution:
    """The minimiser of the model, and what it proves."""

    w: Vector
    multipliers: dict[int, float]
    """Plane id -> alpha; planes that are not here have 0."""
    lower_bound: float
    """A true lower bound of min J, from a feasible dual point: never above the minimum but for rounding."""
    exact: bool = True
    """Whether w is meant to minimise the model to the accuracy asked for; else it is a step on the way."""


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

    planes: Planes

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """Take a copy of a plane into the model; returns its id.

        Parameters
        ----------
        a : (dim,), its slope.
        b : its offset: R_block(w) >= <a, w> + b.
        block : the term of the risk that it bounds; default 0, the first.
        """
        ...

    def remove(self, planes: Sequence[int]) -> None:
        """Forget planes.

        Parameters
        ----------
        planes : their ids, as `add` returned them.
        """
        ...

    def solve(self, accuracy: float) -> MasterSolution:
        """Solve to `accuracy` relative to the objective of the model; `lower_bound` is valid at any accuracy.

        A master that only takes a step towards it says so (`MasterSolution.exact`).

        Parameters
        ----------
        accuracy : greater than 0, relative.
        """
        ...
