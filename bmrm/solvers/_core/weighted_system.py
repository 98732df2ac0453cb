"""The linear system of one Newton step: weighted least squares with a ridge."""

from __future__ import annotations

import math

import numpy as np

from bmrm.problem import HasCurvature, IncompatibleError, LinearMap, Regularizer, ScoreFunction, Scores, Vector


class WeightedSystem:
    """(A' W A + Omega'') x = A'(W f - s) + Omega'' w - Omega'(w), with s = phi'(f) and W = phi''(f) at f = A w.

    For quadratic Omega the last two terms cancel, and this is `X'WX + lambda` times `x` equals `X'Wz`.

    Parameters
    ----------
    map, phi : R(w) = phi(A w).
    regularizer : with a second derivative (`HasCurvature`).
    w, f : a point and its scores.
    value, a : phi(f) and A' phi'(f).
    """

    def __init__(
        self,
        map: LinearMap,
        phi: ScoreFunction,
        regularizer: Regularizer,
        w: Vector,
        f: Scores,
        value: float,
        a: Vector,
    ) -> None:
        assert isinstance(regularizer, HasCurvature)
        self.map, self.phi, self.w, self.f, self.value = map, phi, w, f, value
        self._curved: HasCurvature = regularizer
        self.gradient: Vector = a + regularizer.subgradient(w)
        """Of phi(A w) + Omega(w)."""

    def product(self, v: Vector, fv: Scores) -> Vector:
        """The matrix times `v`, whose scores are `fv`; half a pass."""
        ridge: Vector = self._curved.curvature_product(self.w, v)
        return self.map.pull_back(self.phi.curvature_product(self.f, fv)) + ridge

    def right_side(self) -> Vector:
        """What remains at x = 0; half a pass."""
        return self.product(self.w, self.f) - self.gradient

    def inverse_diagonal(self) -> Vector:
        """One over the diagonal of the matrix, 1 where that is not positive; IncompatibleError for several scores."""
        if self.phi.scores_per_row != 1:
            raise IncompatibleError("jacobi preconditioning needs one score per row; leave it off")
        weights = self.phi.curvature_product(self.f, self.phi.constant(np.ones(1)))
        ridge = self._curved.curvature_product(self.w, np.ones_like(self.w))
        diagonal = self.map.diagonal(weights) + ridge
        return 1.0 / np.where(np.isfinite(diagonal) & (diagonal > 0.0), diagonal, 1.0)

    @property
    def finite(self) -> bool:
        """Whether the model exists here."""
        return math.isfinite(self.value) and bool(np.all(np.isfinite(self.gradient)))
