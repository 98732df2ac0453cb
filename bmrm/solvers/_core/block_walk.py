"""Least squares with a sum over blocks along lambdas, by exact block steps on what is kept.

Yang & Hastie 2024 (adelie): blocks in their eigenbases. Bertrand & Massias 2021: Anderson extrapolation. Friedman,
Hastie & Tibshirani 2010: the columns in use are kept over all lambdas.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bmrm.kernels.blocks import separable, walk
from bmrm.kernels.blocks.descent import survey
from bmrm.kernels.blocks.exact import BlockGrams
from bmrm.kernels.products.columns import Columns
from bmrm.problem import BlockSeparable, Regularizer, Risk, Vector, provides
from bmrm.problem.abilities import FullColumns
from bmrm.problem.meter import Meter
from bmrm.problem.regularizer import BlockPenalty
from bmrm.solvers._core.block_sets import part_of
from bmrm.solvers._core.gram_model import RIDGE
from bmrm.solvers._core.kept_walk import ROOM, SPARE, Guess, KeptWalk
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.quadratic_walk import LONGEST, WIDEST, Descent, Units, quadratic

LARGEST = 500
"""Most columns of a block: its eigenvectors take some 10 times the cube of that in operations, about a second."""
FIRST, SHARPER, ROUNDS, SWEEPS = 1.0, 0.3, 12, 20
"""Distance from optimality up to which the first descent of a point goes, over what the gap allows; factor of that of
each next one; most descents of a point; most sweeps over all blocks in each, between which there are up to fifty over
those in use. Chosen by hand on the tuning rows of `benchmarks/paths.py`, without a sweep."""
NARROW = 400
"""Most weights for which the matrix, then of 1.3 MB, has all columns at once."""
NO_STARTS, NO_ROWS = np.zeros(1, np.int64), np.zeros(1, np.uint32)


def walk_of(risk: Risk, regularizer: Regularizer, solver: IterativeSolver) -> KeptWalk | None:
    """The walk, where it is such a problem: kinks, and neither bounds nor centers, free weights nor huge blocks."""
    if not provides(regularizer, BlockSeparable) or regularizer.smooth or not quadratic(risk, solver):
        return None
    penalty = regularizer.penalty
    plain = not penalty.bounded and not penalty.center.any() and not penalty.free.size
    if not plain or np.diff(penalty.starts).max(initial=0) > LARGEST:
        return None
    return KeptWalk(solver, BlockDescent, "blocks kept for all lambdas")


class BlockDescent(Descent):
    """By blocks, on a Gram matrix or, where rows are fewer than its columns would be, on the columns themselves."""

    def __init__(self, risk: Risk, meter: Meter, start: Vector | None, regularizer: Any) -> None:
        penalty: BlockPenalty = regularizer.penalty
        self._penalty, self._sizes = penalty, np.diff(penalty.starts)
        self._owner = np.empty(risk.dim, np.int64)
        self._owner[penalty.coordinates] = np.repeat(np.arange(penalty.blocks), self._sizes)
        self._bases: dict[int, tuple[Vector, Vector, Vector]] = {}
        """Of blocks the Gram matrix, the eigenvectors and the eigenvalues."""
        self._before: tuple[float, Vector, Vector] | None = None
        """The size of lambda at the last point, its weights, and how these changed by the size."""
        super().__init__(risk, meter, start, NARROW)

    @property
    def sizes(self) -> Units:
        """As of `Descent`."""
        return self._sizes

    @property
    def widest(self) -> int:
        """As of `Descent`."""
        return max(WIDEST, ROOM // (8 * self.size)) if self._by_columns else WIDEST

    def units_of(self, columns: Units) -> Units:
        """As of `Descent`."""
        return np.unique(self._owner[columns])

    def columns_of(self, units: Units) -> Units:
        """As of `Descent`."""
        return part_of(self._penalty, units)[0]

    def excess(self, slopes: Vector, omega: Any) -> Vector:
        """As of `Descent`."""
        away, used = np.empty(self._sizes.size), np.empty(self._sizes.size, np.bool_)
        survey(np.zeros(self.dim), -slopes, tuple(omega.penalty), away, used)
        return away

    @property
    def _by_columns(self) -> bool:
        return not self.whole and provides(self.map, FullColumns) and self.size <= WIDEST

    def form(self) -> None:
        """As of `Descent`."""
        if self._by_columns:
            table = self.map.full_columns(self.columns)
            self.border = np.zeros(self.columns.size)
            if self.rows.free:
                self.border = table @ self.curvature
                table -= self.border[:, None] / self.mass
            table *= np.sqrt(self.curvature)
        else:
            super().form()
            table = self.H
        self._columns = Columns(NO_STARTS, NO_ROWS, table)
        self._basis = self._decomposed(table)
        size, rows = table.shape[0], table.shape[1]
        self._history = walk.History(
            np.zeros((walk.SWEEPS + 1, size)),
            np.zeros((walk.SWEEPS + 1, rows)),
            np.zeros(walk.SWEEPS),
            np.zeros((walk.SWEEPS, walk.SWEEPS)),
        )
        self._work, self._used = np.zeros((4, size)), np.zeros(self.units.size, np.int64)
        self._before = None

    def _decomposed(self, table: Any) -> BlockGrams:
        """Of the blocks that are in; each is decomposed once."""
        _, part = part_of(self._penalty, self.units)
        for k, unit in enumerate(self.units.tolist()):
            if unit not in self._bases:
                places = part.block(k)
                some = table[places]
                gram = some @ some.T if self._by_columns else some[:, places]
                values, vectors = np.linalg.eigh(gram)
                self._bases[unit] = gram.ravel(), vectors.T.ravel(), values
        bases = [self._bases[unit] for unit in self.units.tolist()]
        grams, vectors, values = (
            np.concatenate([np.empty(0), *parts]) for parts in (zip(*bases) if bases else [()] * 3)
        )
        least = RIDGE * (float(values.mean()) if values.size else 0.0)
        values = np.maximum(values, least if least > 0.0 else 1.0)
        starts, last = np.concatenate(([0], np.cumsum(self._sizes[self.units] ** 2))), part.starts[1:] - 1
        return BlockGrams(starts, grams, values[last], vectors, values)

    def move(self, w: Vector) -> None:
        """As of `Descent`."""
        self.w = w[self.columns]
        self._r = self.w @ self._columns.values

    def guess(self, omega: Any, solver: IterativeSolver) -> Guess:
        """As of `Descent`."""
        _, part = part_of(omega.penalty, self.units)
        size = float(part.strengths.sum() + part.l1.sum() + part.l2.sum())
        before = self.w.copy()
        self._predict(tuple(part), size)
        target = walk.Target(
            self.value,
            self.infimum,
            SPARE * solver.tolerance,
            SPARE * (solver.absolute_tolerance or 0.0),
            LONGEST,
            FIRST,
            SHARPER,
            ROUNDS,
            SWEEPS,
        )
        to = walk.walk_dense if self._by_columns else walk.walk_gram
        found = (self.w, self._r, self._work, self._used, self._history)
        rounds = to(self._columns, self.first, self._basis, tuple(part), target, *found)
        last = self._before[0] if self._before is not None else 0.0
        steps = (self.w - before) / (size - last) if self._before is not None and size != last else 0.0 * before
        self._before = size, self.w.copy(), steps
        return self.guessed(rounds)

    def _predict(self, penalty: tuple[Any, ...], size: float) -> None:
        """Weights of blocks in use go on as they went, in lambda, if J falls by that."""
        if self._before is None:
            return
        last, w, steps = self._before
        ahead = np.where(self.w == 0.0, 0.0, w + (size - last) * steps)
        r = ahead @ self._columns.values
        half = 0.5 * (ahead @ r - self.w @ self._r if not self._by_columns else r @ r - self._r @ self._r)
        rise = self.first @ (ahead - self.w) + half
        if rise + separable.value(ahead, penalty) < separable.value(self.w, penalty):
            self.w[:], self._r[:] = ahead, r

    def bound(self, value: float, slopes: Vector, product: float, omega: Any) -> float:
        """As of `Descent`."""
        square = 2.0 * (value - self.infimum)
        return float(walk.best_bound(value, square, product, -slopes, tuple(omega.penalty), LONGEST))
