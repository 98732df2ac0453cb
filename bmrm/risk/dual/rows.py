"""The rows of one process in dual coordinate ascent: slopes, a copy of the data in visiting order, kernels."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual import rows as dual_rows
from bmrm.kernels.dual import sweep as dual_sweep
from bmrm.kernels.dual import team as dual_team
from bmrm.kernels.dual.sweep import SCORE, SLOPE, WEIGHT, WIDTH, Dual
from bmrm.kernels.jit import fast_jit, specialised
from bmrm.kernels.products.vectors import plain
from bmrm.problem import Check, Scores, Vector, unchecked
from bmrm.risk.dual.stored import FETCH, READ, DualProblem, Row, ShuffledRows, made_with, sweep_kernels
from bmrm.risk.dual.visits import LITTLE

Array = NDArray[np.float64]


@cache
def kernels_of(way: str, sparse: bool, prox_row: Row, value_row: Row) -> Any:
    """The kernels for a loss; `sparse` where weights are soft thresholded."""
    weigh = dual_rows.soft if sparse else dual_rows.itself
    if way == "dense":
        gather, spread = specialised(dual_rows.gather_dense, fast_jit, weigh=weigh), dual_rows.spread_dense
    else:
        gather = specialised(dual_rows.gather, weigh=weigh, **READ[way])
        spread = specialised(dual_rows.spread, **READ[way])
    functions = {"prox_row": prox_row, "value_row": value_row, "weigh": weigh, "fetch": FETCH[way]}
    functions |= {"gather": gather, "spread": spread, "score_of": made_with(dual_sweep.score_of, functions)}
    return sweep_kernels(dual_sweep, ("offsets", "shifted", "near", "inverse"), dual_team.one_score, functions)


class OneScoreRows(ShuffledRows):
    """As of `AscentRows`, for losses of one score with `prox_row` and `value_row`.

    Memory and parameters: see `ShuffledRows`.
    """

    def __init__(self, problem: DualProblem, check: Check = unchecked) -> None:
        super().__init__(problem, check)
        prepared, sparse = problem.prepared, problem.l1 > 0.0
        self._smooth = bool(prepared.smooth)
        self._kernels = kernels_of(self._way, sparse, prepared.loss.prox_row, prepared.loss.value_row)

    def begin(self, start: Scores | None, near: Scores | None, intercept: bool = False) -> None:
        """As of `AscentRows`."""
        if start is None and near is None:
            return
        table = self._state.reshape(-1, WIDTH)
        slopes = np.zeros(table.shape[0]) if start is None else self.mass * np.asarray(start)[self._places]
        if near is None:
            self._kernels.inverse(self._state, plain(slopes), self._arguments)
        else:
            table[:, SLOPE] = np.where(table[:, WEIGHT] > 0.0, slopes, 0.0)
            share = LITTLE if start is None else 1.0
            self._kernels.near(self._state, self._with_offset(near), share, self._arguments)
        self._known = True

    def _dual(self, features: Array, numbers: Array, steps: tuple[float, ...]) -> tuple[Any, ...]:
        return tuple(Dual(self._state, features, numbers, steps, self._smooth, self._arguments))

    def totals(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`."""
        totals = np.empty(1)
        self._kernels.shifted(self._state, plain(shift), share, totals, self._arguments)
        return totals

    def settle(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`; half a pass."""
        if shift[0] != 0.0:
            table = self._state.reshape(-1, WIDTH)
            self._kernels.near(self._state, table[:, SCORE] + shift[0], share, self._arguments)
        return self.map.rmatvec(self._slopes())

    def offset(self) -> float:
        """As of `AscentRows`."""
        raised = self._planes_raised(self._state.reshape(-1, WIDTH)[:, SLOPE])
        return float(self._kernels.offsets(self._state, self._arguments)) + raised

    def slope(self) -> Array:
        """As of `AscentRows`; (rows,)."""
        return self._slopes() / self.mass

    def scores(self) -> Array:
        """As of `AscentRows`; (rows,)."""
        return self._without_offset(self._state.reshape(-1, WIDTH)[:, SCORE])

    def _slopes(self) -> Array:
        return self._unshuffled(self._state.reshape(-1, WIDTH)[:, SLOPE])
