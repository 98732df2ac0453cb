"""The master of L2 by one line search of its dual: in place of the quadratic program.

Teo, Smola, Vishwanathan & Le, KDD 2007, proof of Theorem 2 and section 6. The dual of the model is (eq. 12)

    D(alpha) = b'alpha - ||A alpha||^2 / (2 lambda),  alpha in a product of simplices,  w = -A alpha / lambda.

When a plane comes, alpha moves towards its vertex: with (v, c) = (A alpha, b'alpha) of its block and the sum of all
blocks u = A alpha, D along eta in [0, 1] is a parabola of slope (b - c) - <u, a - v> / lambda and second derivative
-||a - v||^2 / lambda. The proof shows that these steps alone bring the gap to epsilon in O(1 / (lambda epsilon)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bmrm.masters._core.planes import PlaneStore
from bmrm.problem import MasterSolution, Vector

FORGOTTEN = 1e-16
"""Multipliers below this are 0: later steps only make them smaller, and the planes may leave."""


class LineSearchQP:
    """Improves the model of `SimplexQP` (the protocol `Master`), whose parameters these are, by a step for each plane.

    Its solution is a point that the multipliers determine and a bound that they prove, not the minimum of the model,
    whatever accuracy is asked for: this is what makes it cheap, a few products with the planes and no system to solve.
    """

    def __init__(self, planes: PlaneStore, lam: float) -> None:
        self.planes, self._lam = planes, lam
        self._infima = np.array(self.planes.infima)
        self._rest = np.isfinite(self._infima).astype(np.float64)
        """The multipliers of the infima; 0 where there is none."""
        self._alpha = np.zeros(0)
        """In the order of the planes."""
        self._seen = 0
        """The first id that no plane had at the last solution."""

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """As of `Master`."""
        id = self.planes.add(a, b, block)
        first = not self._rest[block] > 0.0 and not self._alpha[self.planes.blocks[:-1] == block].any()
        self._alpha = np.append(self._alpha, float(first))
        return id

    def remove(self, planes: Sequence[int]) -> None:
        """Forget planes; their multipliers go to the rest of their block, to its infimum if that is all."""
        self._alpha = self._alpha[self.planes.drop(planes)]
        self._onto_simplices()

    def solve(self, accuracy: float) -> MasterSolution:
        """A step towards each new plane, or, where none is new, towards the one that is highest at w in its block.

        The bound is that of the multipliers, -inf as long as a block has neither infimum nor planes.
        """
        pull, ids = self.planes.combine(self._alpha), self.planes.ids
        new = np.flatnonzero(ids >= self._seen)
        for place in new[np.argsort(ids[new])].tolist() or self._highest(pull):
            pull = self._towards(place, pull)
        self._seen = int(ids.max(initial=-1)) + 1
        self._alpha[self._alpha < FORGOTTEN] = 0.0
        self._onto_simplices()
        pull = self.planes.combine(self._alpha)
        known = np.isfinite(self._infima)
        linear = float(self._alpha @ self.planes.offsets) + float(self._rest[known] @ self._infima[known])
        covered = known | (np.bincount(self.planes.blocks, minlength=known.size) > 0)
        bound = linear - 0.5 * self.planes.space.dot(pull, pull) / self._lam if covered.all() else -math.inf
        return MasterSolution(pull / -self._lam, self.planes.multipliers(self._alpha), bound, exact=False)

    def _towards(self, place: int, pull: Vector) -> Vector:
        """Move the multipliers of a block towards this plane; returns A alpha after it."""
        a, block, dot = self.planes.row(place), int(self.planes.blocks[place]), self.planes.space.dot
        mine = self.planes.blocks == block
        alpha = np.where(mine, self._alpha, 0.0)
        away = a - self.planes.combine(alpha)
        infimum = self._infima[block] if self._rest[block] > 0.0 else 0.0
        height = float(alpha @ self.planes.offsets) + float(self._rest[block]) * infimum
        slope = float(self.planes.offsets[place]) - height - dot(pull, away) / self._lam
        curvature = dot(away, away) / self._lam
        eta = 0.0 if slope <= 0.0 else min(1.0, slope / curvature) if curvature > 0.0 else 1.0
        self._alpha[mine] *= 1.0 - eta
        self._rest[block] *= 1.0 - eta
        self._alpha[place] += eta
        return pull + eta * away

    def _highest(self, pull: Vector) -> list[int]:
        """The highest plane of each block at w."""
        heights = self.planes.offsets - self.planes.products(pull) / self._lam
        blocks = [np.flatnonzero(self.planes.blocks == block) for block in range(self._infima.size)]
        return [int(mine[np.argmax(heights[mine])]) for mine in blocks if mine.size]

    def _onto_simplices(self) -> None:
        """Sums of 1 in every block that has an infimum or planes."""
        total = np.bincount(self.planes.blocks, weights=self._alpha, minlength=self._rest.size) + self._rest
        for block in np.flatnonzero(total <= 0.0):
            mine = np.flatnonzero(self.planes.blocks == block)
            if np.isfinite(self._infima[block]):
                self._rest[block] = 1.0
            elif mine.size:
                self._alpha[mine[-1]] = 1.0
        total[total <= 0.0] = 1.0
        self._alpha /= total[self.planes.blocks]
        self._rest /= total
