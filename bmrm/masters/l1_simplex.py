"""The master of L1: a linear program by a warm-started simplex method.

    min over w:      lambda ||w||_1 + sum_k max(infimum_k, max over planes j of block k of <a_j, w> + b_j)
    max over alpha:  b'alpha,  alpha in a product of simplices,  |A alpha| <= lambda

(eq. 10 of Teo, Smola, Vishwanathan & Le, KDD 2007, with the l1 norm). A new plane is a new column of the dual, whose
last basis stays feasible: so a solution starts from the last one, has a lower bound at every step, and stops as soon
as the gap is small enough. See `kernels/masters/simplex_lp.py` for the method.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.masters.lp_basis import Basis, Program
from bmrm.kernels.masters.simplex_lp import DONE, NEEDS_ROOM, solve_simplex_lp
from bmrm.masters._core.linear import Infima, flatter
from bmrm.masters._core.planes import PlaneStore
from bmrm.masters._core.screening import ScreenedRows
from bmrm.masters._core.simplex_program import enlarged
from bmrm.problem import MasterSolution, Vector

EPS = float(np.finfo(np.float64).eps)


class SimplexLP:
    """min over w of lambda ||w||_1 + the model of the planes (the protocol `Master`).

    The lower bound is the dual at multipliers that are projected onto the simplices and scaled down until they are
    feasible to the last digit. Memory is (planes) x (features that ever passed the screening) x 8 bytes, and the square
    of the number of non-zero weights.

    Parameters
    ----------
    planes : as of `HasMaster`.
    lam : lambda > 0.
    """

    def __init__(self, planes: PlaneStore, lam: float) -> None:
        self.planes, self._lam = planes, lam
        self._flat = flatter(lam, planes.infima, 1e-12)
        self._blocks = blocks = len(planes.infima)
        self._infima = Infima(planes.infima)
        self._rows = ScreenedRows(planes, blocks, self._flat, blocks, self._flat)
        self._s = self._age = 0
        self._P = self._S = np.zeros(0, dtype=np.int64)
        self._sign = self._alpha = np.zeros(0)
        self._X = self._columns = np.zeros((0, 0))
        self._make_room(16 + blocks)
        self._begin()

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """As of `Master`; the plane may enter the basis at the next `solve`."""
        id = self.planes.add(a, b, block)
        self._infima.begin(a, b, block)
        self._rows.add(a, block)
        return id

    def remove(self, planes: Sequence[int]) -> None:
        """Remove planes; if one of them is in the basis, the next solution starts from the lower-bound planes."""
        K, count = self._blocks, len(self.planes)
        order = self.planes.drop(planes)
        self._rows.keep(order)
        basic = self._P[: K + self._s]
        place = inverse(np.concatenate([np.arange(K), K + order]), K + count)[basic]
        if np.any(place < 0):
            self._begin()
        else:
            basic[:] = place

    def solve(self, accuracy: float) -> MasterSolution:
        """Minimise the model; `accuracy` is the duality gap allowed, relative to the model's objective.

        Where an infimum is -inf and the planes alone leave the model unbounded, w is the minimiser with a provisional
        infimum, and the bound is -inf.
        """
        planes, K = self.planes, self._blocks
        self._infima.deepen(planes)
        weights = self._run(max(accuracy, 4.0 * EPS))
        everything = np.zeros(K + len(planes))
        everything[self._P[: K + self._s]] = self._alpha[: K + self._s]
        w = self._rows.spread(weights / self._flat)
        return self._infima.solution(planes, self._lam, w, everything[K:], everything[:K])

    def _run(self, accuracy: float) -> Vector:
        """The weights times lambda, by the kernel; once more from the lower-bound planes when it is stuck."""
        planes, K, rows = self.planes, self._blocks, self._rows.matrix
        n, p = K + len(planes), rows.shape[1]
        b = np.concatenate([self._infima.values, planes.offsets])
        block = np.concatenate([np.arange(K), planes.blocks])
        program, weights = Program(rows, self._rows.sizes(), b, block, K, n), np.zeros(p)
        again = True
        while True:
            code, self._s, self._age, _, _ = solve_simplex_lp(
                program, self._basis(n, p), self._s, self._age, weights, accuracy, 200 + 20 * n
            )
            if code == NEEDS_ROOM:
                self._make_room(2 * len(self._P))
            elif code == DONE or not again:
                return weights
            else:
                self._begin()
                again = False

    def _basis(self, n: int, p: int) -> Basis:
        """The basis for n variables and p features."""
        if self._columns.shape[0] < n or self._columns.shape[1] != len(self._P):
            self._columns = np.zeros((len(self._rows.matrix), len(self._P)))
        wherep, wheres = inverse(self._P[: self._blocks + self._s], n), inverse(self._S[: self._s], p)
        return Basis(self._P, self._S, self._sign, wherep, wheres, self._X, self._alpha, self._columns)

    def _begin(self) -> None:
        """The basis of the infima: w = 0."""
        K = self._blocks
        self._P[:K] = np.arange(K)
        self._X[:K, :K] = np.eye(K)
        self._s = self._age = 0

    def _make_room(self, room: int) -> None:
        """Room for so many planes in the basis."""
        self._P, self._S = enlarged(self._P, room), enlarged(self._S, room)
        self._sign, self._alpha = enlarged(self._sign, room), enlarged(self._alpha, room)
        self._X = enlarged(self._X, room, room)


def inverse(places: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """where[places[k]] = k for n entries, -1 elsewhere."""
    where = np.full(n, -1, dtype=np.int64)
    where[places] = np.arange(len(places))
    return where
