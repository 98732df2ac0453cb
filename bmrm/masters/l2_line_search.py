"""The master of L2 by one line search of its dual: in place of the quadratic program.

Teo, Smola, Vishwanathan & Le, KDD 2007, proof of Theorem 2 and section 6. The dual of the model is (eq. 12)

    D(alpha) = b'alpha - alpha' G alpha / (2 lambda),  alpha in a product of simplices,  w = -A alpha / lambda

with G = A'A. When plane j comes, alpha moves towards its vertex: with beta the part of alpha in the block of the plane,
D along eta in [0, 1] is a parabola of slope b_j - b'beta - (G_j - beta' G) alpha / lambda and of second derivative
-(G_jj - 2 G_j beta + beta' G beta) / lambda. The proof shows that these steps alone bring the gap to epsilon in
O(1 / (lambda epsilon)).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bmrm.masters._core.planes import PlaneStore
from bmrm.masters.l2_active_set import SimplexQP
from bmrm.problem import MasterSolution, Vector

FORGOTTEN = 1e-16
"""Multipliers below this are set to 0: later steps only decrease them, and their planes can be removed."""


class LineSearchQP(SimplexQP):
    """Improves the model of `SimplexQP`, whose parameters and planes these are, by a step for each plane.

    Its solution is a point that the multipliers determine and a bound that they prove, not the minimum of the model,
    whatever accuracy is asked for: this is what makes it cheap, no system is solved.
    """

    def __init__(self, planes: PlaneStore, lam: float) -> None:
        super().__init__(planes, lam)
        self._seen = 0
        """The first id that no plane had at the last solution."""

    def solve(self, accuracy: float) -> MasterSolution:
        """A step towards each new plane, or, where none is new, towards the one that is highest at w in its block.

        The bound is that of the multipliers, -inf as long as a block has neither infimum nor planes.
        """
        ids, alpha = self.planes.ids, self._program.qp.alpha
        new = np.flatnonzero(ids >= self._seen)
        with np.errstate(over="ignore", invalid="ignore"):  # slopes may be anything
            for place in new[np.argsort(ids[new])].tolist() or self._highest():
                self._towards(self._program.first + place)
        self._seen = int(ids.max(initial=-1)) + 1
        alpha[alpha < FORGOTTEN] = 0.0
        return replace(self._evaluate()[0], exact=False)

    def _towards(self, j: int) -> None:
        """Move the multipliers of a block towards variable j."""
        n, qp = self._program.n, self._program.qp
        alpha, b = qp.alpha[:n], qp.b[:n]
        own = alpha.copy() if self._program.blocks == 1 else np.where(qp.block[:n] == qp.block[j], alpha, 0.0)
        pull, at_work = self._times(alpha), np.flatnonzero(own)
        mean, shares = pull if self._program.blocks == 1 else self._times(own), own[at_work]
        slope = b[j] - shares @ b[at_work] - (pull[j] - shares @ pull[at_work]) / self._lam
        curvature = (qp.diagonal[j] - 2.0 * mean[j] + shares @ mean[at_work]) / self._lam
        eta = 0.0 if not slope > 0.0 else min(1.0, slope / curvature) if curvature > 0.0 else 1.0
        alpha -= eta * own
        alpha[j] += eta

    def _highest(self) -> list[int]:
        """The places of the highest plane of each block at w."""
        n, qp = self._program.n, self._program.qp
        heights = (qp.b[:n] - self._times(qp.alpha[:n]) / self._lam)[self._program.first :]
        blocks = [np.flatnonzero(self.planes.blocks == block) for block in range(self._program.blocks)]
        return [int(mine[np.argmax(heights[mine])]) for mine in blocks if mine.size]

    def _times(self, alpha: Vector) -> Vector:
        """G alpha; products that overflow count for nothing where alpha is 0."""
        G = self._program.qp.G[: alpha.size, : alpha.size]
        found: Vector = G @ alpha
        return alpha[alpha != 0.0] @ G[alpha != 0.0] if np.isnan(found).any() else found
