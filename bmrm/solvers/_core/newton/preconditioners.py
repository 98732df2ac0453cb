"""Preconditioners of conjugate gradients on a Hessian: its diagonal, or its blocks of single scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from bmrm.kernels.blas_threads import lapack, lapack_threads
from bmrm.problem import Check, Elastic, InputError, Risk, Scored, Scores, Vector, ability, provides
from bmrm.problem.abilities import ProblemSize, RowSample
from bmrm.problem.counted import metered_risk
from bmrm.problem.loss import HasCurvature
from bmrm.problem.meter import FULL, FULL_SPEED, Meter
from bmrm.solvers._core.newton.smooth_point import Objective, SmoothPoint
from bmrm.solvers._core.newton.system import Matrix

Preconditioner = Callable[[Vector], Vector]
LARGEST = 1 << 24
"""Most entries of the blocks: 128 MB."""
FEW, DEAR = 20.0, 12.0
"""Most passes that the blocks may cost; least cost, in passes, of a Hessian that is formed of a sample of the rows."""
LEAST = 0.5
"""Rows whose weight is below this share of the mean are left out: where scores are far apart, few rows matter."""
ROUNDING = 1e-12
"""Share of a diagonal entry below which a difference of such entries is rounding."""
ENOUGH = 8
"""Rows in the sample for each feature, enough to estimate the correlation of features. Chosen without a sweep."""


@dataclass(frozen=True)
class Costs:
    """Costs of Gram matrices, in passes.

    Attributes
    ----------
    full : whether rows are multiplied as full ones.
    passes : of one of features over all rows, where there is one score per row.
    of_rows : of the inner products of all rows.
    """

    full: bool
    passes: float
    of_rows: float

    @classmethod
    def of(cls, risk: Risk, scores_per_row: int) -> Costs | None:
        """None where the problem size is unknown."""
        size = ability(risk, ProblemSize)
        if size is None:
            return None
        width = size.entries / max(1, size.rows)
        full = width > FULL * risk.dim / scores_per_row
        speed = FULL_SPEED if full else 1.0
        return cls(full, 0.25 * (width + 1.0) / speed, 0.25 * (size.rows + 1.0) / (scores_per_row * speed))


def rows_for_blocks(risk: Risk, objective: Objective, seed: int, check: Check) -> Scored | None:
    """The rows that the blocks of a Hessian are taken from, where these cost less than they save; else None.

    With several scores they are all; with one, where the Hessian itself would be dear, a sample of full rows: where
    many features are absent from a row it would have too little of rare ones. Their Gram matrices call
    `check`; those of a sample are counted in no run.
    """
    phi, K = objective.phi, objective.phi.facts.scores_per_row
    costs = Costs.of(risk, K)
    fits = phi.facts.diagonal and not objective.free and provides(objective.regularizer, Elastic)
    if costs is None or not fits or risk.dim**2 > LARGEST * K:
        return None
    if K > 1:
        return Scored(objective.map, phi) if costs.passes <= FEW else None
    offer, rows = ability(risk, RowSample), ENOUGH * risk.dim
    if offer is None or 2 * rows > offer.rows or not (costs.full and costs.passes > DEAR):
        return None
    try:
        return ability(metered_risk(offer.sample(rows, seed), Meter(check)), Scored)
    except InputError:  # one class only, or weights of 0
        return None


def by_diagonal(objective: Objective, point: SmoothPoint, eliminated: Vector | float = 0.0) -> Preconditioner:
    """Jacobi's; none where there are several scores per row. `eliminated` is what the diagonal of A' phi'' A loses."""
    if not objective.phi.facts.separable:
        return lambda r: r
    weights = objective.phi.hessian_diagonal(point.full)
    of_omega = cast(HasCurvature, objective.regularizer).hessian_product(point.w, np.ones_like(point.w))
    return jacobi(objective.map.diagonal(weights), of_omega, eliminated)


def jacobi(of_phi: Vector, of_omega: Vector | float, eliminated: Vector | float = 0.0) -> Preconditioner:
    """The inverse of the diagonal `of_phi` + `of_omega`, of which the first loses `eliminated`."""
    diagonal = np.maximum(of_phi - eliminated, ROUNDING * of_phi) + of_omega
    inverse = 1.0 / np.where(np.isfinite(diagonal) & (diagonal > 0.0), diagonal, 1.0)
    return lambda r: inverse * r


class BlockPreconditioner:
    """The inverses of A_k' diag(phi''_kk) A_k + l2, k a score of a row, on what they leave of the mean over scores.

    Where phi does not change with a number added to all scores of a row, that mean has the second derivative of the
    regularizer only: without taking it out the blocks would be too stiff in it.

    Parameters
    ----------
    rows : some rows, or all.
    f : their scores where the Hessian is taken.
    l2 : of the regularizer.
    """

    def __init__(self, rows: Scored, f: Scores, l2: float) -> None:
        self.l2, self.free = l2, rows.phi.facts.shift_invariant
        grams = rows.map.gram_blocks(rows.phi.hessian_diagonal(f), LEAST if rows.phi.facts.scores_per_row > 1 else 0.0)
        self.factors: list[Matrix | None] = []
        for gram in grams:
            gram.reshape(-1)[:: gram.shape[0] + 1] += self.l2
            with lapack_threads(gram.shape[0]):
                factor, info = lapack().dpotrf(gram.T, lower=0, overwrite_a=1)
            self.factors.append(factor if info == 0 and np.all(np.isfinite(factor)) else None)

    def __call__(self, r: Vector) -> Vector:
        """The inverse times r, (dim,)."""
        table = r.reshape(-1, len(self.factors))
        mean = table.mean(axis=1, keepdims=True) if self.free else np.zeros(1)
        found = table - mean
        for k, factor in enumerate(self.factors):
            if factor is not None:
                found[:, k] = lapack().dpotrs(factor, found[:, k], lower=0)[0]
        if self.free:
            found += mean / (self.l2 or 1.0) - found.mean(axis=1, keepdims=True)
        return found.reshape(-1)
