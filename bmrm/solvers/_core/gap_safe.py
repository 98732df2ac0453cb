"""Weights that are proved to be 0 at the minimum: safe screening by the duality gap.

Ndiaye, Fercoq, Gramfort & Salmon 2017 (Gap Safe rules).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blocks.descent import proved_zeros
from bmrm.problem import Scores, Vector
from bmrm.problem.regularizer import BlockPenalty
from bmrm.solvers._core.best import ROUNDING
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.monitor import Monitor
from bmrm.solvers._core.rowwise import RowwiseRisk

NEAR = 0.1
"""Largest relative gap at which screening is tried: above it hardly any feature can be excluded."""
PATIENCE = 25.0
"""Passes before the norms of columns are computed, which costs half a pass: at most 2 % of a run."""
MARGIN = 1e-9
"""Relative safety margin of the test, far above the rounding of norms and products."""


class SafeZeros:
    """Which w_j are 0 in every minimiser of phi(A w) + l1 ||w||_1 + l2/2 ||w||^2.

    The dual is D(s) = -phi*(s) - Omega*(-A's). Where phi'' <= diag(c), phi* is strongly convex in the norm
    sum s_i^2 / c_i, and with it -D, so that any dual point s is near the best one s*:

        1/2 sum_i (s_i - s*_i)^2 / c_i <= D(s*) - D(s) <= J(w) - D(s) = G.

    By Cauchy and Schwarz |<A_j, s> - <A_j, s*>| <= sqrt(2 G) n_j with n_j^2 = sum_i c_i A_ij^2. At the minimum
    w_j != 0 needs |<A_j, s*>| >= l1, for the elastic net as for l1. Hence w_j = 0 where

        |<A_j, s>| + sqrt(2 G) n_j < l1.

    For a mean loss of curvature at most L with weights v and mass M, c_i = L v_i / M. Scale and shift of the features
    are in A, so that `map.diagonal` gives n_j^2. Under a free intercept the slopes sum to 0, s - s* does not see a
    constant, and A_j may be less any: the best one, the mean with weights c, leaves n_j^2 - (sum_i c_i A_ij)^2 / sum c.

    What the point is made of does not matter: the mixture of planes that has proved the best bound is a dual point,
    too, and so is one mixed with the floor, the plane of s = 0.

    Memory: 9 dim bytes, none without a bound of the curvature.

    Parameters
    ----------
    run : the bookkeeping.
    rows : the data and the loss.
    l1 : of the regularizer.

    Attributes
    ----------
    found : one per weight, once something is known.
    """

    def __init__(self, run: Monitor, rows: RowwiseRisk, l1: float) -> None:
        self._run, self._rows, self._l1 = run, rows, l1
        self._most = rows.phi.hessian_most()
        self._norms: Vector | None = None
        self.found: NDArray[np.bool_] | None = None

    @property
    def count(self) -> int:
        """How many."""
        return 0 if self.found is None else int(np.count_nonzero(self.found))

    def update(self, certificate: Certificate) -> None:
        """Look again, with the best point and the dual point of `certificate`; what was found stays."""
        run, point = self._run, certificate.point()
        if self._most is None or point is None or not run.relative_gap <= NEAR:
            return
        if self._norms is None:
            if run.meter.reading < PATIENCE:
                return
            self._norms = self._lengths(self._most)
        a, bound = point
        gap = max(run.objective - bound, 0.0) + ROUNDING * abs(run.objective)
        zero = self._zero(a, math.sqrt(2.0 * gap), self._norms)
        self.found = zero if self.found is None else self.found | zero

    def _zero(self, a: Vector, radius: float, norms: Vector) -> NDArray[np.bool_]:
        return np.abs(a) + radius * norms < self._l1 * (1.0 - MARGIN)

    def _lengths(self, most: Scores) -> Vector:
        """n_j, rounded upwards; half a pass, and another half under a free intercept."""
        rows = self._rows
        squares = rows.map.diagonal(most)
        longer = MARGIN * squares
        if rows.free:
            sums, mass = rows.map.rmatvec(most), float(rows.phi.total(most)[0])
            squares = np.maximum(squares - sums**2 / mass, 0.0)
        lengths: Vector = np.sqrt(squares + longer)
        return lengths


class SafeBlocks(SafeZeros):
    """The same for a sum over blocks (Ndiaye et al. 2017, section 5): which w_b are 0 in every minimiser.

    By Cauchy and Schwarz A_b's is within sqrt(2 G) n_b of A_b's*, in the Euclidean norm, where n_b^2 is the sum over
    the block of n_j^2: the Frobenius norm, which is never less than the norm of the operator and costs no product of
    columns. The block is 0 where minus all these slopes leave 0 a minimiser of its penalty less its product with them:
    ||soft(A_b's, l1)|| + sqrt(2 G) n_b < strength, for instance.

    Parameters
    ----------
    run : the bookkeeping.
    rows : the data and the loss.
    penalty : the blocks.

    Attributes
    ----------
    found : one per block, once something is known.
    """

    def __init__(self, run: Monitor, rows: RowwiseRisk, penalty: BlockPenalty) -> None:
        super().__init__(run, rows, 0.0)
        self._penalty = penalty

    @property
    def count(self) -> int:
        """How many weights are in these blocks."""
        return 0 if self.found is None else int(np.diff(self._penalty.starts)[self.found].sum())

    def _zero(self, a: Vector, radius: float, norms: Vector) -> NDArray[np.bool_]:
        zero = np.zeros(self._penalty.blocks, np.bool_)
        proved_zeros(-a, radius, norms, tuple(self._penalty), MARGIN, zero)
        return zero

    def _lengths(self, most: Scores) -> Vector:
        """n_b, rounded upwards."""
        penalty, squares = self._penalty, super()._lengths(most) ** 2
        owner = np.repeat(np.arange(penalty.blocks), np.diff(penalty.starts))
        sums = np.bincount(owner, squares[penalty.coordinates], penalty.blocks)
        lengths: Vector = np.sqrt(sums) * (1.0 + MARGIN)
        return lengths
