"""Lower bounds of J from the slopes of a smooth loss by rows, less what rounding may have done."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from bmrm.kernels.products.vectors import careful_norm, dot
from bmrm.problem import Vector
from bmrm.problem.abilities import SeveralPoints
from bmrm.solvers._core.kept_walk import EPS, MORE, Guess, Proved
from bmrm.solvers._core.rowwise import RowwiseRisk


class RowProofs:
    """What proofs need of the data: half a pass.

    Parameters
    ----------
    rows : the data and the loss; its infimum is finite, its map knows `SeveralPoints`.
    """

    def __init__(self, rows: RowwiseRisk) -> None:
        ones: Any = rows.ones
        self._free, self._size, self._infimum = rows.free, len(ones), float(rows.phi.facts.infimum)
        self._lengths = np.sqrt(rows.map.diagonal(ones))
        shifts = cast("SeveralPoints", rows.map).shifts()
        if shifts is not None:
            self._lengths += shifts * math.sqrt(self._size)

    def of(self, one: Guess, at: Any, q: Vector, omega: Any, scores: Vector) -> Proved:
        """Any slope of phi makes a plane, whose offset belongs to the scores as they are: the sums of q are rounded.

        By Cauchy and Schwarz: a slope q_j by rows times ||A_j|| ||phi'||, J by what scores are rounded by.

        Parameters
        ----------
        one : the weights.
        at : the `ProfiledLoss` at their scores.
        q : (dim,), A' times its slope.
        omega : the regularizer.
        scores : A w.
        """
        norm = careful_norm(at.slope)
        constant = float(at.f[0] - scores[0]) if self._free else 0.0
        objective = at.value + omega.value(one.w)
        reach = self.reach(one.w) + MORE * abs(constant) * math.sqrt(self._size)
        slack = EPS * norm * (reach + MORE * careful_norm(at.f))
        slack += MORE * EPS * (abs(at.value) + abs(objective) + abs(self._infimum))
        if self._free:
            left = abs(float(at.slope.sum())) + self._size * EPS * float(np.abs(at.slope).sum())
            slack += 2.0 * left * (abs(constant) + 1.0)
        steeper = q + np.copysign((self._size + MORE) * EPS * norm * self._lengths, q)
        lower = self.bound(at.offset, steeper, float(omega.l1), float(omega.l2)) - slack
        if not lower <= objective:
            lower = -math.inf
        return Proved(Guess(one.w, constant, one.rounds), objective, lower, q)

    def reach(self, w: Vector) -> float:
        """Units of roundoff by which scores of w may be off, as a norm over rows."""
        return float(self._lengths @ np.abs(w)) * (w.size + MORE)

    def bound(self, offset: float, slopes: Vector, l1: float, l2: float) -> float:
        """From R(w) >= <q, w> + offset, mixed with the infimum until Omega* is finite; or at once with an l2."""
        sizes = np.abs(slopes)
        largest = float(sizes.max(initial=0.0))
        s = min(1.0, l1 / largest) if largest > 0.0 else 1.0
        found = s * offset + (1.0 - s) * self._infimum
        if l2 > 0.0:
            excess = np.maximum(sizes - l1, 0.0)
            found = max(found, offset - 0.5 * dot(excess, excess) / l2)
        return found
