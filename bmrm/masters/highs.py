"""The master of L1: one linear program in HiGHS that grows by a row per plane.

    min over w, xi:  lambda ||w||_1 + sum_k xi_k,   <a_j, w> + b_j <= xi_k for planes j of block k,  infimum_k <= xi_k

(eq. 10 of Teo, Smola, Vishwanathan & Le, KDD 2007, with the l1 norm). With w = u - v, u, v >= 0, a new row leaves the
last basis dual feasible, so the dual simplex method continues from there. A feature gets columns only when the planes
are large enough in it to matter (`ScreenedFeatures`); a late column keeps the basis dual feasible too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.masters._core.bounds import flatter, l1_bound, onto_simplices
from bmrm.masters._core.infima import Infima
from bmrm.masters._core.planes import MemoryPlanes
from bmrm.masters._core.screening import ScreenedFeatures
from bmrm.problem import BmrmError, MasterSolution, MissingLibraryError, Vector

try:
    import highspy
except ModuleNotFoundError as error:
    raise MissingLibraryError("engine highs needs", "highspy", "lp") from error

SPAN = 256.0
"""The program is rescaled when values of the model have changed by this factor."""


class HighsLP:
    """min over w of lambda ||w||_1 + the model of the planes (the protocol `Master`), by the dual simplex.

    The program is kept in units where the objective is about 1 and lambda is 1. Silent, single-threaded, without
    presolve (which would lose the basis).

    Parameters
    ----------
    dim, infima : as of `HasMaster`.
    lam : lambda > 0.
    """

    def __init__(self, dim: int, infima: Sequence[float], lam: float) -> None:
        self._lam = lam
        self._flat = flatter(lam, infima, 1e-9)
        self._blocks = len(infima)
        self.planes = MemoryPlanes(dim, infima)
        self._infima = Infima(self.planes.infima)
        self._screened = ScreenedFeatures(dim, self._blocks, self._flat)
        self._last: tuple[Vector, Vector] | None = None
        self._rows = 0
        self._unit = 0.0
        self._program: Any = None

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """As of `Master`; the row joins the program at the next `solve`."""
        id = self.planes.add(a, b, block)
        self._screened.hear(a, block)
        if self._infima.begin(a, b, block):
            self._program = None
        return id

    def remove(self, planes: Sequence[int]) -> None:
        """Forget planes."""
        gone = self.planes.close(planes)
        rows = gone[gone < self._rows]
        if self._program is not None and len(rows):
            self._program.deleteRows(len(rows), rows.astype(np.int32))
        self._rows -= len(rows)

    def solve(self, accuracy: float) -> MasterSolution:
        """Minimise the model; `accuracy` sets the tolerance of the simplex method, 1e-10 at the least.

        Where an infimum is -inf and the planes alone leave the model unbounded, w is the minimiser with a provisional
        infimum, and the bound is -inf.

        Raises
        ------
        BmrmError : HiGHS fails, four times.
        """
        if self._last is not None and self._infima.deepen(self.planes, self._last[0], self._rows, self._last[1]):
            self._program = None
        unit = self._scale()
        if self._program is None or not unit / SPAN <= self._unit <= unit * SPAN:
            self._begin(unit)
        self._grow()
        self._run(min(max(0.1 * accuracy, 1e-10), 1e-7))
        solution = self._program.getSolution()
        x = np.array(solution.col_value)
        alpha = -np.array(solution.row_dual, dtype=np.float64)
        block = self.planes.blocks
        rest: Vector = 1.0 - np.bincount(block, weights=alpha, minlength=self._blocks).astype(np.float64)
        alpha, rest = onto_simplices(alpha, rest, self.planes, self._blocks)
        w = np.zeros(self.planes.dim)
        pairs = x[self._blocks :].reshape(-1, 2)
        w[self._screened.columns] = (pairs[:, 0] - pairs[:, 1]) * (self._unit / self._flat)
        self._last = (w, rest)
        return MasterSolution(w, self.planes.multipliers(alpha), l1_bound(alpha, rest, self.planes, self._lam))

    def _scale(self) -> float:
        """The size of the model's value at w = 0."""
        top = self._infima.values.copy()
        np.maximum.at(top, self.planes.blocks, self.planes.offsets)
        depth = (top - self._infima.values).max(initial=0.0)
        return float(max(np.abs(top).max(), depth)) or 1.0

    def _begin(self, unit: float) -> None:
        """A program without planes."""
        program = highspy.Highs()
        options = {"output_flag": False, "threads": 1, "parallel": "off", "presolve": "off", "solver": "simplex"}
        options["large_matrix_value"] = math.inf  # else a plane as steep as 1e15 is left out
        for name, value in options.items():
            program.setOptionValue(name, value)
        self._program, self._unit, self._rows = program, unit, 0
        self._screened.forget()
        K = self._blocks
        nothing = np.zeros(0, dtype=np.int32)
        program.addCols(
            K,
            np.ones(K),
            self._infima.values / unit,
            np.full(K, np.inf),
            0,
            np.zeros(K, np.int32),
            nothing,
            np.zeros(0),
        )

    def _grow(self) -> None:
        """Add columns for features that have passed the screening since, then rows for new planes."""
        new = self._screened.fresh()
        if len(new):
            self._add_columns(new)
        for place in range(self._rows, len(self.planes)):
            self._add_row(place)
        self._rows = len(self.planes)

    def _add_columns(self, features: NDArray[np.int64]) -> None:
        """u_i and v_i for each of `features`, with their entries in the existing rows."""
        n, m = self._rows, len(features)
        entries = np.empty((m, 2, n))
        for place in range(n):
            entries[:, 0, place] = self.planes.row(place)[features]
        entries[:, 0] /= self._flat
        entries[:, 1] = -entries[:, 0]
        flat = entries.reshape(2 * m, n)
        column, row = np.nonzero(flat)
        starts = np.searchsorted(column, np.arange(2 * m)).astype(np.int32)
        ones, zeros, top = np.ones(2 * m), np.zeros(2 * m), np.full(2 * m, np.inf)
        self._program.addCols(2 * m, ones, zeros, top, len(row), starts, row.astype(np.int32), flat[column, row])

    def _add_row(self, place: int) -> None:
        """<a, u - v> / lambda - xi_k <= -b, in units of the program."""
        values = self.planes.row(place)[self._screened.columns] / self._flat
        used = np.flatnonzero(values)
        index = np.empty(2 * len(used) + 1, dtype=np.int32)
        entry = np.empty(len(index))
        index[0], entry[0] = self.planes.blocks[place], -1.0
        index[1::2], index[2::2] = self._blocks + 2 * used, self._blocks + 2 * used + 1
        entry[1::2], entry[2::2] = values[used], -values[used]
        most = -float(self.planes.offsets[place]) / self._unit
        if self._program.addRow(-math.inf, most, len(index), index, entry) == highspy.HighsStatus.kError:
            raise BmrmError("HiGHS does not take a plane of the master problem; engine cvxopt may")

    def _run(self, tolerance: float) -> None:
        """The dual simplex from the last basis; if that fails, from none, in a new program, and by interior points."""
        for attempt in range(4):
            if attempt == 1:
                self._program.clearSolver()
            elif attempt >= 2:  # what HiGHS keeps beside the basis can be in its way
                self._begin(self._scale())
                self._grow()
            if attempt == 3:
                self._program.setOptionValue("solver", "ipm")
            solved = self._optimal(max(tolerance, 1e-9) if attempt else tolerance)
            self._program.setOptionValue("solver", "simplex")
            if solved:
                return
        status = self._program.modelStatusToString(self._program.getModelStatus())
        raise BmrmError(f"HiGHS could not solve the master problem ({status}); engine cvxopt may")

    def _optimal(self, tolerance: float) -> bool:
        self._program.setOptionValue("primal_feasibility_tolerance", tolerance)
        self._program.setOptionValue("dual_feasibility_tolerance", tolerance)
        self._program.run()
        return bool(self._program.getModelStatus() == highspy.HighsModelStatus.kOptimal)
