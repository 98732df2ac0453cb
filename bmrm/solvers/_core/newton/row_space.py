"""Newton's system of few rows in many dimensions, by the inner products of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import norm
from bmrm.problem import Check, Facts, LinearMap, ScoreFunction, Scores, Vector, unchecked
from bmrm.problem.abilities import RowPart, RowParts
from bmrm.solvers._core.newton.system import add_to_diagonal, solve_positive

Array = NDArray[np.float64]
NONE = 1e-14
"""Eigenvalues of a row's Hessian below this share of the largest count as 0."""


class Vectors(NamedTuple):
    """Z with Z Z' = C, the second derivatives of the rows: vectors of scores (r, K), and the row of each (r,)."""

    rows: NDArray[np.int64]
    scores: Array


class RowGram:
    """A A', the inner products of some rows of one process, formed once and when they are first asked for.

    Parameters
    ----------
    parts : of these rows.
    matrix : theirs, where it is known.
    """

    def __init__(self, parts: RowParts, matrix: Array | None = None) -> None:
        self.parts, self._matrix = parts, matrix

    @property
    def matrix(self) -> Array:
        """(rows, rows)."""
        if self._matrix is None:
            self._matrix = self.parts.products()
        return self._matrix

    def of(self, part: RowPart) -> RowGram:
        """That of a part of these rows, cut out of this one where that has been formed."""
        if self._matrix is None:
            return RowGram(part.parts)
        chosen = part.restrict(np.arange(self.parts.rows))
        return RowGram(part.parts, self._matrix[np.ix_(chosen, chosen)])


def rank_at_most(facts: Facts, rows: int) -> int:
    """Of how many vectors Z can be made: where a constant in all scores of a row changes nothing, one less."""
    return rows * (facts.scores_per_row - int(facts.shift_invariant and facts.scores_per_row > 1))


def rank_of(curvature: Scores) -> int:
    """How many vectors `vectors_of` gives."""
    present = curvature > 0.0
    if curvature.ndim == 1:
        return int(np.count_nonzero(present))
    return int(np.count_nonzero(present)) - int(np.count_nonzero(present.any(axis=1)))


@dataclass(frozen=True)
class RowQuadratic:
    """The quadratic model of a Newton step, in terms of inner products of rows.

        l2/2 ||w||^2 + <linear, w> + residual b + <slope, e> + 1/2 e'Z Z'e,   e = A w + b - f

    Attributes
    ----------
    map, products : A of some rows of one process, and A A'.
    vectors : Z.
    f, slope : the scores of the point of the step, without its b, and the slopes there.
    l2 : of the regularizer, above 0.
    linear : None for 0.
    residual : 0 where all slopes are of these rows; None without a free intercept. With one there is one score per row.
    check : called now and then.
    """

    map: LinearMap
    products: Array
    vectors: Vectors
    f: Scores
    slope: Scores
    l2: float
    linear: Vector | None = None
    residual: float | None = None
    check: Check = unchecked

    def step(self, w: Vector, gradient: Vector, rest: float) -> tuple[Vector, float]:
        """From w, with the gradients in w and in b, to the minimum; half a pass or 1.

        Near the minimum, where the gradient is small, the step itself is solved for, which has more digits than the
        difference of two points; far from it fewer.
        """
        if norm(gradient) >= self.l2 * norm(w):
            found, shift = self.minimum()
            return found - w, shift
        zero, residual = 0.0 * self.f, None if self.residual is None else rest
        return replace(self, f=zero, slope=zero, linear=gradient, residual=residual).minimum()

    def minimum(self) -> tuple[Vector, float]:
        """The best w, and the change of b; half a pass, 1 where there is a linear term.

        With slope = Z t + kept, w is A'x - linear / l2 with x = Z y - kept / l2, and y solves (Woodbury)

            (l2 + Z' A A' Z) y = Z' (f + A (A'kept + linear) / l2 - b) - t.

        Where rows have one score, t takes all slopes of those with a second derivative: they may be far larger than
        those at the minimum, l2 x, which would lose digits as a difference of such terms.
        """
        rows, Z = self.vectors
        count = self.products.shape[0]
        width = Z.shape[1]
        kept, t = np.array(self.slope).reshape(count, width), np.zeros(rows.size)
        if width == 1:
            t = kept[rows, 0] / Z[:, 0]
            kept[rows] = 0.0
        x, there = kept / -self.l2, self.f.reshape(count, width)
        there = there - self.products @ x
        if self.linear is not None:
            there += self.map.matvec(self.linear).reshape(count, width) / self.l2
        y, shift = self._solved(np.sum(there[rows] * Z, axis=1) - t, float(np.sum(x)))
        np.add.at(x, rows, Z * y[:, None])
        w = self.map.rmatvec(x.reshape(self.slope.shape))
        return (w if self.linear is None else w - self.linear / self.l2), shift

    def _solved(self, right: Vector, total: float) -> tuple[Vector, float]:
        """y, and the b with which x, of which `total` is the sum of what is not Z y, sums to residual / l2."""
        rows, Z = self.vectors
        if not rows.size:
            return right, 0.0
        matrix = self.products[np.ix_(rows, rows)]
        matrix *= Z @ Z.T
        add_to_diagonal(matrix, self.l2)
        if self.residual is None:
            return solve_positive(matrix, right, self.check), 0.0
        ones = Z[:, 0]
        y, by_constant = solve_positive(matrix, np.column_stack((right, ones)), self.check).T
        corner = float(ones @ by_constant)
        if not corner > 0.0:  # no curvature along the intercept: leave it
            return y, 0.0
        b = (float(ones @ y) + total - self.residual / self.l2) / corner
        return y - b * by_constant, b


def vectors_of(curvature: Scores) -> Vectors:
    """Z for `curvature` as of `MoreauEnvelope`.

    diag(c) - c c' / sum(c) by Cholesky's method: with t_k the sum of c_k and what follows, vector k is
    sqrt(c_k t_{k+1} / t_k) (e_k - (c_{k+1}, ...) / t_{k+1}).
    """
    if curvature.ndim == 1:
        rows = np.flatnonzero(curvature > 0.0)
        return Vectors(rows, np.sqrt(curvature[rows])[:, None])
    tails = np.cumsum(curvature[:, ::-1], axis=1)[:, ::-1]
    chosen, vectors = [], []
    for k in range(curvature.shape[1] - 1):
        rows = np.flatnonzero((curvature[:, k] > 0.0) & (tails[:, k + 1] > 0.0))
        found = np.zeros((rows.size, curvature.shape[1]))
        found[:, k] = 1.0
        found[:, k + 1 :] = -curvature[rows, k + 1 :] / tails[rows, k + 1, None]
        found *= np.sqrt(curvature[rows, k] * tails[rows, k + 1] / tails[rows, k])[:, None]
        chosen.append(rows)
        vectors.append(found)
    return Vectors(np.concatenate(chosen), np.concatenate(vectors))


def vectors_at(phi: ScoreFunction, f: Scores) -> Vectors | None:
    """Z for phi''(f), phi a sum over rows of one process; None where it is not finite."""
    K = phi.facts.scores_per_row
    if K == 1:
        curvature = phi.hessian_diagonal(f)
        return vectors_of(curvature) if np.all(np.isfinite(curvature)) else None
    blocks = np.stack([phi.hessian_product(f, phi.constant(unit)) for unit in np.eye(K)], axis=2)
    if not np.all(np.isfinite(blocks)):
        return None
    values, vectors = np.linalg.eigh(blocks)
    rows, which = np.nonzero(values > NONE * values[:, -1:])
    return Vectors(rows, vectors[rows, :, which] * np.sqrt(values[rows, which])[:, None])
