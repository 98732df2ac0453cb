"""The risk, the one thing a solver knows of data and loss, and the abilities that it may have besides."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bmrm.problem.basics import IncompatibleError, Scores, Vector, provides
from bmrm.problem.facts import Facts

T = TypeVar("T")
LARGE_SCORES = 1.0
"""Mean absolute score above which the roundoff of scores is noticeable in slopes."""


@runtime_checkable
class Risk(Protocol):
    """All that a solver may know of data and loss."""

    dim: int
    """Length of w."""
    infimum: float
    """A number that R(w) never goes below; 0.0 for most losses, -inf when unknown."""

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """R(w) and one subgradient, a new array of shape (dim,); never changes `w`.

        Parameters
        ----------
        w : (dim,), the weights; not changed.
        """
        ...


def ability(risk: object, kind: type[T]) -> T | None:
    """What `risk` offers of `kind` (`Scored`, or one of abilities.py), or None.

    Asks `risk.ability(kind)` where the risk has that method: abilities depend on the instance (its loss,
    its data), not on the class, and a wrapper forwards or withholds each.

    Parameters
    ----------
    risk : any object.
    kind : the class of the ability.
    """
    method = getattr(risk, "ability", None)
    return method(kind) if method is not None else None


class LinearMap(Protocol):
    """A: data times weights; the only place where passes over the data happen.

    May be derived from: what only some solvers need is refused here.
    """

    def matvec(self, w: Vector) -> Scores:
        """A w, half a pass."""
        ...

    def rmatvec(self, slope: Scores) -> Vector:
        """A' slope, shape (dim,), half a pass; rows of slope 0 are skipped."""
        ...

    def diagonal(self, weights: Scores) -> Vector:
        """The diagonal of A' diag(weights) A, shape (dim,), half a pass; for one score per row."""
        raise _unknown()

    def gram(self, weights: Scores, columns: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """A' diag(weights) A, dense (dim, dim) and symmetric, or its part for some increasing `columns`.

        It costs half a pass and the products of the entries of each row: e (e + 1) / 2 for e entries (of the chosen
        columns), where a pass makes 2 e for each score; full rows, multiplied by BLAS, FULL_SPEED times as fast. Rows
        of weight 0 are skipped. With several scores per row weights c stand for diag(c) - c c' / sum(c), and all
        columns are taken: a Gram matrix for each two scores.
        """
        raise _unknown()

    def gram_product(self, weights: Scores, w: Vector) -> Vector:
        """The product of `gram(weights)` with w, shape (dim,), one pass."""
        raise _unknown()

    def gram_blocks(self, weights: Scores, least: float = 0.0) -> NDArray[np.float64]:
        """The blocks on the diagonal of A' diag(weights) A, one for each score of a row; (K, dim / K, dim / K).

        Half a pass and the products of K Gram matrices. With `least` they are a rough idea only: rows are left out
        whose weight is less than so many times the mean of that score's.
        """
        raise _unknown()

    def active(self, weights: Scores) -> int:
        """How many rows have a weight other than 0, or several of which one is. No product with the data."""
        raise _unknown()


def _unknown() -> IncompatibleError:
    return IncompatibleError("products of rows are not known for these data and this loss; use irls or lbfgs")


class ScoreFunction(Protocol):
    """phi, a convex function of the scores, normalised like the risk: R(w) = phi(A w).

    To be derived from: what is not required has a default here.
    """

    facts: Facts
    """What is constant."""

    def value_and_slope(self, f: Scores) -> tuple[float, Scores]:
        """phi(f) and a subgradient with respect to f."""
        ...

    def along(self, f: Scores, step: Scores) -> Callable[[Vector], tuple[Vector, Vector]]:
        """The function t -> (phi(f + t step), its derivative in t), for a whole vector of t at once.

        At a kink the derivative is any element of the subdifferential. A batch costs one network
        reduction, so a search asks for several t together.
        """
        ...

    def breakpoints(self, f: Scores, step: Scores) -> tuple[float, NDArray[np.float64]]:
        """Of t -> phi(f + t step), t >= 0, its derivative on the right of 0, and where it jumps, and by how much.

        The latter as a table (jumps, 2) in no order; where `facts.piecewise_linear`, IncompatibleError elsewhere.
        """
        raise IncompatibleError("the loss is not piecewise linear in one score per row")

    def tangent(self, f: Scores) -> tuple[float, Scores, float]:
        """phi(f), a subgradient, and the height at f of the plane of that slope: less where a search finds phi."""
        value, slope = self.value_and_slope(f)
        return float(value), slope, float(value)

    def attained(self, f: Scores) -> tuple[float, Vector | None]:
        """phi(f), which `value_and_slope` may give too low by what a search for a minimum has left; here it never is.

        And the constants at which it is attained, None where there are none to be found.
        """
        return float(self.value_and_slope(f)[0]), None

    def hessian_product(self, f: Scores, step: Scores) -> Scores:
        """phi''(f) step, where `facts.curved`; IncompatibleError elsewhere."""
        raise IncompatibleError("there is no second derivative")

    def hessian_diagonal(self, f: Scores) -> Scores:
        """The diagonal of phi''(f), where `facts.diagonal`; IncompatibleError elsewhere."""
        raise IncompatibleError("there is no second derivative row by row")

    def hessian_shares(self, f: Scores) -> Scores:
        """c, where phi''(f) is diag(c) - c c' / sum(c) in each row: `facts.shared`; IncompatibleError elsewhere."""
        raise IncompatibleError("the second derivative is not known by shares")

    def hessian_total(self, f: Scores) -> NDArray[np.float64]:
        """The second derivative in constants added to all rows, (K, K), where `facts.hessian_total`."""
        raise IncompatibleError("the second derivative in constants is not known at once")

    def moreau(self, z: Scores, sigma: float) -> MoreauEnvelope:
        """min over f of phi(f) + sigma/(2 mass) ||f - z||^2, where `facts.prox`; IncompatibleError elsewhere."""
        raise IncompatibleError("there is no proximal map")

    def moreau_along(self, z: Scores, step: Scores, sigma: float) -> Callable[[Vector], tuple[Vector, Vector]]:
        """The function t -> (the envelope's value at z + t step, its derivative in t), for a vector of t."""
        raise IncompatibleError("there is no proximal map")

    def hessian_most(self) -> Scores | None:
        """h with phi''(f) <= diag(h) at all scores f, for one score per row; None where it is not known.

        The conjugate of phi is then strongly convex: phi*(s) - 1/2 sum s_i^2 / h_i is convex.
        """
        return None

    def collect(self, scores: Scores) -> NDArray[np.float64]:
        """Scores, or slopes, of all rows in their order over the ranks, to be saved: (rows,) or (rows, scores)."""
        return np.array(scores, np.float64)

    def hand_out(self, whole: NDArray[np.float64]) -> Scores:
        """The inverse; raises ValueError for another number of rows."""
        return np.array(whole, np.float64)

    def learned(self, scores: Callable[[], Scores]) -> dict[str, NDArray[np.float64]]:
        """What the loss has minimised out at some scores, by name (cut points); {} for most losses."""
        return {}

    def constant(self, b: Vector) -> Scores:
        """The scores whose every row is `b`, shape (scores per row,)."""
        ...

    def total(self, scores: Scores) -> Vector:
        """The sum over all rows, shape (scores per row,): what `constant` is to a slope, transposed."""
        ...

    def magnitude(self, scores: Scores) -> Vector:
        """The sum of absolute values over all rows, (scores per row,), to which the rounding of `total` is relative.

        By default 0: a sum counts as 0 only where it is.
        """
        return np.zeros(self.facts.scores_per_row)

    def product(self, slope: Scores, f: Scores) -> float:
        """<slope, f>, the sum over all rows and their scores; no product with the data.

        With it a plane needs no weights: for a slope s of phi at f, R(w) >= <A's, w> + phi(f) - <s, f> for all w,
        however f came about.
        """
        return float(np.sum(self.total(slope * f)))


def rounding_of_slopes(phi: ScoreFunction, f: Scores, slope: Scores, rows: float) -> float:
    """What rounding leaves in the sums of a slope at `f` over all rows.

    Slopes of smooth losses are exponentials of differences of scores, so that the roundoff of large scores shows in
    them, times the second derivative; that of constants which differ stands for it.
    """
    roundoff = float(np.finfo(np.float64).eps)
    left = float(phi.magnitude(slope).sum())
    size = float(phi.magnitude(f).max()) / rows
    if phi.facts.smooth and phi.facts.curved and LARGE_SCORES < size < math.inf:
        uneven = phi.constant(np.cos(np.arange(1.0, phi.facts.scores_per_row + 1.0)))
        left += size * float(phi.magnitude(phi.hessian_product(f, uneven)).sum())
    return (4.0 + math.sqrt(rows)) * roundoff * left


@dataclass(frozen=True)
class MoreauEnvelope:
    """The Moreau envelope of phi at some scores z, and what its minimiser f proves.

    Attributes
    ----------
    value : phi(f) + sigma/(2 mass) ||f - z||^2.
    slope : sigma/mass (z - f): the gradient in z, and a subgradient of phi at f.
    curvature : the derivative of `slope` in z, an element of its generalised Jacobian: sigma/mass at kinks. With
        several scores per row a table c, for diag(c) - c c' / sum(c) in each row.
    conjugate : phi*(slope) = <slope, f> - phi(f), so that R(w) >= <A' slope, w> - conjugate.
    """

    value: float
    slope: Scores
    curvature: Scores
    conjugate: float


ROUNDING = 1e-12
"""Largest relative difference of two evaluations of J at one point."""


class Settled:
    """Constants b that a solver has found for weights, where it has not minimised over b to the last digit.

    What is kept: the pair of least objective, and the last one.

    Parameters
    ----------
    same : whether two weights are equal.
    """

    def __init__(self, same: Callable[[Vector, Vector], bool] = np.array_equal) -> None:
        self._same, self._pairs = same, list[tuple[float, Vector, Vector]]()

    def note(self, w: Vector, b: Vector, objective: float) -> None:
        """Take J(w, b) = objective into account; it replaces what was said of this w before, but for a better b."""
        if any(pair[1] is w and pair[0] < objective and not np.array_equal(pair[2], b) for pair in self._pairs):
            return
        others = [pair for pair in self._pairs if pair[1] is not w]
        best = min(others, key=lambda pair: pair[0], default=None)
        self._pairs = [(objective, w, b)] if best is None or objective < best[0] else [best, (objective, w, b)]

    @property
    def largest(self) -> float:
        """The size of those that are kept."""
        return max((float(np.abs(b).max(initial=0.0)) for _, _, b in self._pairs), default=0.0)

    def of(self, w: Vector, most: float = math.inf) -> Vector | None:
        """The constants that go with `w`, if it is one of those kept; and if J with them is at most `most`."""
        for objective, point, b in self._pairs:
            if objective <= most + ROUNDING * abs(most) and (point is w or self._same(point, w)):
                return b
        return None


@dataclass(frozen=True)
class Intercept:
    """A free intercept: R(w) = min over b of phi(A w + b), b added to the scores of every row.

    Attributes
    ----------
    phi : before the minimisation over b; a solver may treat b as one more coordinate that the regularizer does not
        touch.
    settled : what solvers have settled for.
    """

    phi: ScoreFunction
    settled: Settled = field(default_factory=Settled)


@runtime_checkable
class PlanesAtOnce(Protocol):
    """The ability of a map over ranks to say in one exchange between them what makes a plane."""

    def plane_at(self, phi: ScoreFunction, f: Scores) -> tuple[float, Scores, Vector, float]:
        """As of the function `plane_at`."""
        ...

    def pulled(self, slope: Scores, f: Scores) -> tuple[Vector, float]:
        """As of the function `pulled`."""
        ...


def plane_at(map: LinearMap, phi: ScoreFunction, f: Scores) -> tuple[float, Scores, Vector, float]:
    """phi(f), its slope s, A's and <s, f>; half a pass."""
    if provides(map, PlanesAtOnce):
        return map.plane_at(phi, f)
    value, slope = phi.value_and_slope(f)
    return value, slope, map.rmatvec(slope), phi.product(slope, f)


def pulled(map: LinearMap, phi: ScoreFunction, slope: Scores, f: Scores) -> tuple[Vector, float]:
    """A's and <s, f> of a slope s of phi at f; half a pass."""
    if provides(map, PlanesAtOnce):
        return map.pulled(slope, f)
    return map.rmatvec(slope), phi.product(slope, f)


@dataclass(frozen=True)
class Scored:
    """The ability R(w) = phi(A w).

    Attributes
    ----------
    map, phi : A and phi; with a free intercept phi after the minimisation over it.
    intercept : the free intercept, None where there is none.
    """

    map: LinearMap
    phi: ScoreFunction
    intercept: Intercept | None = None

    @property
    def of_rows(self) -> ScoreFunction:
        """phi before any minimisation over an intercept."""
        return self.phi if self.intercept is None else self.intercept.phi
