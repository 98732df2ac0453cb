"""Rows in the order in which dual coordinate ascent visits them: a copy of the data, and what every loss needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Csr, Matrix, nnz_of, pieces
from bmrm.kernels.dual import order as dual_order
from bmrm.kernels.dual.rows import Rows
from bmrm.kernels.dual.sweep import CAUTION, CURVE, DRIFT, SHIFT, TARGET, WEIGHT, WIDTH, Shrinking
from bmrm.kernels.products.vectors import plain
from bmrm.problem import Check, Vector, unchecked
from bmrm.risk.linear_map import DataMap
from bmrm.risk.products.blocks import products_of

Array = NDArray[np.float64]
NOTHING = np.empty(0)
ROUND, SHARED_ROUND = 1.0 / 8.0, 1.0
"""Sweeps over the open rows are repeated until so large a share of all rows has been visited; with several ranks until
the second."""
ENTRIES, PER_ROW, PER_PAIR = 2e7, 20.0, 2.0
"""Entries that are visited between two looks at the clock, about a twentieth of a second; how many a row is as dear as
besides its own, and each of its scores where there are several."""
LEAST_CURVE = 1e-5
"""Curvature of a row whose features are (nearly) zero: slopes come from differences divided by it."""


@dataclass(frozen=True)
class DualProblem:
    """What one process has of the dual.

    Attributes
    ----------
    map : the data.
    prepared : the loss of the rows.
    mass : S, over all ranks.
    l1, l2 : of the regularizer.
    seed : of the order.
    shares : the number of ranks that sweep at once (Ma et al. 2015: sigma').
    """

    map: DataMap
    prepared: Any
    mass: float
    l1: float
    l2: float
    seed: int
    shares: int = 1

    @property
    def threshold(self) -> float:
        """Of the soft thresholding that makes weights."""
        return self.l1 / self.l2

    @property
    def scale(self) -> float:
        """Of the features: squared norms times this are curvatures."""
        return 1.0 / (self.mass * self.l2)


class SweepKernels(Protocol):
    """Compiled for one loss and one way to store rows."""

    @property
    def rounds(self) -> Callable[..., tuple[int, int]]:
        """Sweeps, one after the other."""
        ...

    @property
    def visit(self) -> Callable[..., int]:
        """One sweep."""
        ...


class ShuffledRows:
    """A copy of the rows in a random order, the numbers that belong to each, and which of them are open.

    Memory: a copy of the entries of the data, 8 numbers a row, and the order twice.

    Parameters
    ----------
    problem : with a `PreparedRows`.
    check : called now and then while the rows are copied.
    """

    def __init__(self, problem: DualProblem, check: Check = unchecked) -> None:
        map, prepared = problem.map, problem.prepared
        self.map, self.mass, self.shares = map, problem.mass, problem.shares
        self.threshold, self.scale = problem.threshold, problem.scale
        rows = map.rows
        random = np.array([problem.seed], np.uint64)
        self._places = np.arange(rows, dtype=np.uint32)
        dual_order.shuffle(self._places, random)
        stored = stored_rows(map, self._places, keep_sparse=problem.l1 == 0.0, check=check)
        self._way, self._matrix, self._shift = stored.way, tuple(stored.matrix), stored.shift
        self._arguments = prepared.arguments
        self._state = aligned(rows * WIDTH)
        table = self._state.reshape(rows, WIDTH)
        table[:, CURVE] = np.maximum((stored.norms + map.bias) * self.scale, LEAST_CURVE)
        table[:, TARGET] = prepared.y[self._places]
        table[:, WEIGHT] = 1.0 if prepared.weights is None else prepared.weights[self._places]
        table[:, SHIFT] = stored.along
        present = np.arange(rows, dtype=np.uint32)
        self._present = present if prepared.weights is None else present[table[:, WEIGHT] > 0.0]
        self._open = self._present
        self._shrinking = Shrinking(np.empty_like(present), np.empty_like(present), np.full(1, np.inf), random)
        self._limit = (ROUND if self.shares == 1 else SHARED_ROUND) * self._present.size
        self._work = PER_ROW + nnz_of(map.X) / max(1, rows)
        """Of a visit, in entries, for one score."""
        self._known = False
        """Whether every row has a score at which its slope is one."""

    def _rounds(
        self, kernels: SweepKernels, sums: Array, dual: tuple[Any, ...], width: int, check: Check
    ) -> tuple[int, int]:
        """`kernels.rounds` on the open rows, with looks at the clock; how many are left open, and the visits.

        `dual` are the fields of a `Dual`; `width` are the scores of a row. A check that raises leaves slopes and
        weights that belong together, but not which rows are open.
        """
        rows, known = self._open, self._known
        order, kept, margin, random = self._shrinking
        limit = self._limit
        size = max(1, int(ENTRIES / (self._work * width * (PER_PAIR if width > 1 else 1.0))))
        check()
        if rows.size <= size:
            return kernels.rounds(self._matrix, rows, tuple(self._shrinking), limit, known, sums, dual)
        visited, count = 0, rows.size
        kept[:count] = rows
        while count and visited < limit:
            dual_order.shuffle_blocks(kept[:count], order, random)
            visited, left, parts = visited + count, 0, np.zeros(2)
            for first in range(0, count, size):
                check()
                some = order[first : min(first + size, count)]
                left += kernels.visit(some, kept[left:], margin[0], known, sums, self._matrix, dual)
                parts += sums
            sums[:] = parts
            if not known:
                return left, visited
            margin[0] = CAUTION * np.sqrt(sums[DRIFT] / count)
            count = left
        return count, visited

    def unshrink(self) -> None:
        """As of `AscentRows`."""
        self._open = self._present
        self._shrinking.margin[0] = np.inf

    def squares(self) -> tuple[float, float]:
        """As of `AscentRows`."""
        table = self._state.reshape(-1, WIDTH)
        return float(table[self._present, CURVE].sum()) / self.scale, float(self._present.size)


@dataclass(frozen=True)
class Stored:
    """Rows in visiting order, scaled; `shift` has still to be taken from each where it is not None.

    Attributes
    ----------
    way : of `WAYS`.
    matrix : what the kernels of that way take.
    norms : squared norms of the rows, shifted.
    shift : (features,), in scaled units.
    along : <row, shift> for each; 0.0 without a shift.
    """

    way: str
    matrix: tuple[NDArray[Any], ...]
    norms: Array
    shift: Vector | None
    along: Array | float


def stored_rows(map: DataMap, order: NDArray[np.uint32], keep_sparse: bool, check: Check = unchecked) -> Stored:
    """The rows in this order; a shift makes sparse rows dense unless they are to stay sparse."""
    columns, X, norms = map.columns, map.X, np.empty(map.rows)
    shift = columns.shift
    if shift is not None and columns.scale is not None:
        shift = shift * columns.scale
    if isinstance(X, Csr) and (shift is None or keep_sparse):
        way, matrix = _sparse(X, columns.scale, order, norms, check)
        if shift is None:
            return Stored(way, matrix, norms, None, 0.0)
        along = np.empty(map.rows)
        scaled = shift if columns.scale is None else shift * columns.scale
        products_of(X, 1).scores(0, map.rows, plain(scaled), 0.0, along)
        along = along[order]
        return Stored(way, matrix, np.maximum(norms - 2.0 * along + float(shift @ shift), 0.0), plain(shift), along)
    return Stored("dense", (_dense(X, columns.scale, shift, order, norms, check),), norms, None, 0.0)


def _dense(
    X: Matrix, scale: Vector | None, shift: Vector | None, order: NDArray[np.uint32], norms: Array, check: Check
) -> NDArray[Any]:
    moved = scale is not None or shift is not None
    out = np.empty(X.shape, np.float64 if moved else X.dtype)
    for some in pieces(len(out), out.size, check):
        rows, part = order[some], out[some]
        block = X.select(rows).to_dense() if isinstance(X, Csr) else X[rows]
        np.multiply(block, 1.0 if scale is None else scale, out=part)
        if shift is not None:
            part -= shift
        dual_order.squared_norms(part, norms[some])
    return out


def _sparse(
    X: Csr, scale: Vector | None, order: NDArray[np.uint32], norms: Array, check: Check
) -> tuple[str, tuple[NDArray[Any], ...]]:
    indptr, indices = np.empty(X.rows + 1, np.int64), np.empty(X.nnz, np.uint32)
    old = X.indices.view(np.uint32)
    indptr[0] = 0
    parts = ((some, slice(some.start, some.stop + 1)) for some in pieces(X.rows, X.nnz, check))
    if X.values is None and scale is None:
        for rows, ends in parts:
            dual_order.copy_rows_valueless(X.indptr, old, order[rows], indptr[ends], indices, norms[rows])
        return "valueless", (indptr, indices)
    source = np.ascontiguousarray(np.broadcast_to(1.0, old.shape) if X.values is None else X.values)
    values = np.empty(X.nnz, source.dtype if scale is None else np.float64)
    factors = NOTHING if scale is None else plain(scale)
    stored = Rows(X.indptr, old, source)
    for rows, ends in parts:
        copy = Rows(indptr[ends], indices, values)
        dual_order.copy_rows(stored, factors, order[rows], copy, norms[rows])
    return "csr", Rows(indptr, indices, values)


def aligned(size: int) -> Array:
    """Zeros that begin at a cache line."""
    numbers = np.zeros(size + WIDTH)
    first = (-numbers.ctypes.data // 8) % WIDTH
    return numbers[first : first + size]
