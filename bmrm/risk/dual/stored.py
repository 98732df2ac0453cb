"""Rows in the order in which dual coordinate ascent visits them: a copy of the data, and what every loss needs."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Entries, Features, pieces
from bmrm.kernels.atomic import give_up
from bmrm.kernels.dual import order as dual_order
from bmrm.kernels.dual import rows as dual_rows
from bmrm.kernels.dual import sweep as dual_sweep
from bmrm.kernels.dual import team as dual_team
from bmrm.kernels.dual.moves import listed_rows
from bmrm.kernels.dual.rows import Rows
from bmrm.kernels.dual.sweep import (
    BIAS,
    CAUTION,
    CONSTANT,
    CURVE,
    DRIFT,
    GAP,
    OFFSET,
    ROUNDING,
    SHIFT,
    TARGET,
    TOTAL,
    WEIGHT,
    WIDTH,
    Shrinking,
    Steps,
)
from bmrm.kernels.dual.team import OPEN, VISITED
from bmrm.kernels.jit import specialised
from bmrm.kernels.products.vectors import plain
from bmrm.problem import Check, Vector, facts_of, unchecked
from bmrm.risk.dual.joint import Gathering, LocalRows, rounds_for, threads_for
from bmrm.risk.dual.visits import Visits
from bmrm.risk.linear_map import DataMap

Array = NDArray[np.float64]
NOTHING = np.empty(0)
ROUND = 1.0 / 8.0
"""Share of all rows that must be visited before sweeps over the active rows return."""
TEAM_CALL = 1e6
"""Least nanoseconds of visits for which several threads are called together."""
LOOK, SLOWER = 5e7, 4.0
"""Nanoseconds of visits between two checks of the clock; and the largest ratio of actual to estimated time of rows of
several scores, whose proximal maps may need many exponentials."""
PER_ROW, PER_ENTRY, DENSE = 20.0, 1.0, 0.3
"""Nanoseconds of a visit for each score of a row, for each entry of a sparse row, and of a dense one."""
LEAST_CURVE, LEAST_LARGE = 1e-5, 1e-9
"""Least curvature of a row whose features are (nearly) zero, in units of scores: slopes are differences divided by it.
The second holds for units above 1, so that scores of 1e20 still tell one slope from another."""


@dataclass(frozen=True)
class DualProblem:
    """What one process has of the dual.

    Attributes
    ----------
    map : the data.
    prepared : the loss of the rows, of scores that have the offset.
    mass : S, over all ranks.
    l1, l2 : of the regularizer.
    seed : of the order.
    offset : added to the scores of the rows, like scores; None without.
    """

    map: DataMap
    prepared: Any
    mass: float
    l1: float
    l2: float
    seed: int
    offset: Array | None = None

    @property
    def threshold(self) -> float:
        """Of the soft thresholding that makes weights."""
        return self.l1 / self.l2

    @property
    def scale(self) -> float:
        """Of the features: squared norms times this are curvatures."""
        return 1.0 / (self.mass * self.l2)


Row = Callable[..., Any]
"""A compiled function, mostly of one row."""
READ: dict[str, dict[str, Row]] = {
    "csr": {"span": dual_rows.span, "column": dual_rows.column, "entry": dual_rows.entry},
    "valueless": {"span": dual_rows.span, "column": dual_rows.column, "entry": dual_rows.entry_valueless},
    "dense": {"span": dual_rows.span_dense, "column": dual_rows.column_dense, "entry": dual_rows.entry_dense},
}
"""Functions that read a row, by the storage of the rows."""
FETCH = {"csr": dual_rows.fetch, "valueless": dual_rows.fetch_valueless, "dense": dual_rows.fetch_dense}
"""Functions that prefetch a row, by the storage of the rows."""


def made_with(template: Row, functions: dict[str, Row]) -> Row:
    """`specialised` with those of the functions that the template calls."""
    called = template.__code__.co_names  # type: ignore[attr-defined]
    return specialised(template, **{name: function for name, function in functions.items() if name in called})


def sweep_kernels(templates: ModuleType, others: Sequence[str], with_factor: Row, functions: dict[str, Row]) -> Any:
    """The kernels of a loss: `visit` (a sweep), `rounds` of sweeps, `team` by several threads, and `others` by name.

    Parameters
    ----------
    templates : the module of `sweep` and the others.
    with_factor : of `bmrm.kernels.dual.team`.
    functions : what templates call, by name: of the loss, and of the way in which rows are stored.
    """
    visit = made_with(templates.sweep, functions)
    rounds = specialised(dual_sweep.rounds, visit=visit)
    team = specialised(dual_team.rounds, visit=visit, with_factor=with_factor)
    made = {name: made_with(getattr(templates, name), functions) for name in others}
    return SimpleNamespace(visit=visit, rounds=rounds, team=team, **made)


class Opened(NamedTuple):
    """Weights that a kernel may move: its last argument, and what puts back what it keeps in numbers of its own.

    The second returns the total as of `Visits`; it comes once, whatever the kernel has visited.
    """

    dual: tuple[Any, ...]
    close: Callable[[], Vector]


class ShuffledRows(LocalRows):
    """A copy of the rows in a random order, the numbers that belong to each, and which of them are open.

    Memory: a copy of the entries of the data, 8 numbers a row, and the order twice.

    Parameters
    ----------
    problem : with a `PreparedRows`.
    check : called now and then while the rows are copied.
    """

    def __init__(self, problem: DualProblem, check: Check = unchecked) -> None:
        map, prepared = problem.map, problem.prepared
        self.map, self.mass = map, problem.mass
        self.threshold, self.scale = problem.threshold, problem.scale
        rows, width = map.rows, int(prepared.scores_per_row)
        self._shape = () if width == 1 else (width,)
        random = np.array([problem.seed], np.uint64)
        self._places = np.arange(rows, dtype=np.uint32)
        dual_order.shuffle(self._places, random)
        stored = stored_rows(map, self._places, keep_sparse=problem.l1 == 0.0, check=check)
        self._way, self._matrix, self._shift = stored.way, tuple(stored.matrix), stored.shift
        self._arguments = prepared.arguments
        self._state = aligned(rows * WIDTH)
        table = self._state.reshape(rows, WIDTH)
        units, self._scores, self._steep = units_of(prepared)
        units = units[self._places]
        least = np.maximum(LEAST_CURVE * np.minimum(units, 1.0), LEAST_LARGE * units)
        table[:, CURVE] = np.maximum((stored.norms + map.bias) * self.scale, least)
        table[:, TARGET] = prepared.y[self._places]
        table[:, WEIGHT] = 1.0 if prepared.weights is None else prepared.weights[self._places]
        table[:, SHIFT] = stored.along
        self._added = None if problem.offset is None else plain(problem.offset[self._places])
        if self._added is not None and width == 1:
            table[:, OFFSET] = self._added
        present = np.arange(rows, dtype=np.uint32)
        self._present = present if prepared.weights is None else present[table[:, WEIGHT] > 0.0]
        self._open = self._present
        self._shrinking = Shrinking(np.empty_like(present), np.empty_like(present), np.full(1, np.inf), random)
        self._limit = ROUND * self._present.size
        self._cost = cost_of(map, stored, width)
        """Of a visit, in nanoseconds."""
        self._look = LOOK if width == 1 else LOOK / SLOWER
        self._gathering: Gathering | None = None
        """Of the last sweep, if several threads shared it."""
        self._known = False
        """Whether every row has a score at which its slope is one."""
        self._drawn = 0
        self._pieces: dict[int, tuple[int, int, float, float]] = {}
        """Of the sweep under way, by number: where it begins, how many are left of it, and its sums."""

    _kernels: Any
    """Of the loss, see `sweep_kernels`."""

    @abstractmethod
    def _dual(self, features: Array, numbers: Array, steps: tuple[float, ...]) -> tuple[Any, ...]:
        """The last argument of kernels, for weights of features and what moves with them, CONSTANT, BIAS and TOTAL."""

    def _opened(
        self, v: Vector, constant: Vector, penalty: float, factor: float = 1.0, numbers: Vector | None = None
    ) -> Opened:
        """For visits that move v in place by `factor` times what they should, curvatures being that much larger.

        `numbers`, three for each score of a row, take what moves with v; by default new ones.
        """
        table = v.reshape(-1, *self._shape)
        features, bias, shift = table[: self.map.features], self.map.bias, self._shift
        step, moves = factor * self.scale, penalty
        beside = np.zeros((3, *self._shape)) if numbers is None else numbers.reshape(3, *self._shape)
        beside[:] = 0.0
        beside[CONSTANT] = constant.reshape(self._shape)
        if bias:
            beside[BIAS] = table[-1]
        if shift is not None:
            beside[CONSTANT] -= shift @ features
            moves += float(shift @ shift)
        steps = Steps(self.threshold, step, factor, float(bias), moves, step * penalty)

        def close() -> Vector:
            if shift is not None:
                np.subtract(features, np.multiply.outer(shift, beside[TOTAL]), out=features)
            if bias:
                table[-1] = beside[BIAS]
            return np.asarray(beside[TOTAL] / factor).reshape(-1)

        return Opened(self._dual(features, beside, tuple(steps)), close)

    def _with_offset(self, scores: Any) -> Array:
        """Scores of the data as the losses of the rows see them, in the order of visits."""
        found: Array = np.asarray(scores)[self._places]
        return plain(found if self._added is None else found + self._added)

    def _without_offset(self, seen: Array) -> Array:
        """The inverse of `_with_offset`."""
        return self._unshuffled(seen if self._added is None else seen - self._added)

    def _planes_raised(self, slopes: Array) -> float:
        """What the offset adds to minus the conjugates at these slopes, in the order of visits; 0 without."""
        if self._added is None:
            return 0.0
        products = slopes * self._added
        return float(products.sum() - ROUNDING * np.abs(products).sum())

    def _unshuffled(self, table: Array) -> Array:
        """Numbers of the rows in the order of the data."""
        numbers = np.empty(table.shape)
        numbers[self._places] = table
        return numbers

    def work(self) -> float:
        """As of `LocalRows`."""
        return self._open.size * self._cost

    def sweep(self, v: Vector, constant: Vector, penalty: float, check: Check = unchecked) -> tuple[Vector, Visits]:
        """As of `AscentRows`; v changes in place. Several threads share a sweep that is worth it."""
        work, workers = self.work(), self.map.workers
        threads = threads_for(work, v.size, workers.threads)
        if threads == 1:
            self._gathering = None  # v moves without its copies
            return v, self.alone(v, constant, penalty, check)
        found = self._gathering
        if found is None or not found.fits(v, threads):
            self._gathering = None  # one lot of copies at a time
            found = self._gathering = Gathering(v, threads, constant.size, self._shrinking.random)
        return v, self._shared(found, rounds_for(work, v.size, threads), work, constant, penalty, check)

    def _shared(
        self, found: Gathering, rounds: int, work: float, constant: Vector, penalty: float, check: Check
    ) -> Visits:
        """A sweep by several threads, or several if they are short, of so many rounds."""
        meeting, known, opened = found.meeting, self._known, self._open.copy()  # it may lie where rows are kept
        v, threads = meeting.v, len(meeting.copies)
        if self._shift is not None or self.map.bias:
            meeting.copies[:] = v  # these have moved at the end of the last sweep
        numbers, state = meeting.scalar_copies, found.state
        shared = self._opened(v, constant, penalty, numbers=meeting.scalars)
        duals = [self._opened(meeting.copies[t], constant, penalty, numbers=numbers[t]).dual for t in range(threads)]
        some = max(1, int(rounds * threads * self._look / work))
        shrinking = (*self._shrinking[:3], found.random)
        limit = max(self._limit, TEAM_CALL / self._cost)

        def visit(thread: int) -> None:
            try:
                given = (turns, penalty, self._matrix, opened, shrinking, limit, known, duals[thread])
                self._kernels.team(thread, meeting, state, *given)
            except BaseException:
                give_up(meeting.flags, threads)
                raise

        try:
            for first in range(0, rounds, some):
                check()
                turns = (first, min(first + some, rounds), rounds)
                self.map.workers.team(visit, threads)
        finally:
            total = shared.close()
        kept, rows = self._shrinking.kept, self._shrinking.kept.size
        parts = [kept[rows * t // threads :][: state.counts[t, OPEN]] for t in range(threads)]
        self._open, self._known = np.concatenate(parts), True
        gap = float(state.sums[:, GAP].sum()) if known else np.nan
        return Visits(total, gap, float(state.progress[VISITED]), self._open.size)

    def alone(
        self, v: Vector, constant: Vector, penalty: float, check: Check = unchecked, factor: float = 1.0
    ) -> Visits:
        """As of `LocalRows`: sweeps until ROUND of all rows has been visited, in one call of a kernel if short."""
        check()
        if self.work() > self._look:
            return self._long(v, constant, penalty, check, factor)
        sums, known = np.zeros(2), self._known
        opened = self._opened(v, constant, penalty, factor)
        try:
            count, visited = self._kernels.rounds(
                self._matrix, self._open, tuple(self._shrinking), self._limit, known, sums, opened.dual
            )
        finally:
            total = opened.close()
        self._open, self._known = self._shrinking.kept[:count], True
        return Visits(total, float(sums[GAP]) if known else np.nan, visited, count)

    def _long(self, v: Vector, constant: Vector, penalty: float, check: Check, factor: float) -> Visits:
        total, visited, found = np.zeros(constant.size), 0.0, None
        while found is None or (found.left and visited < self._limit and not np.isnan(found.gap)):
            self.draw()
            pieces = math.ceil(self.work() / self._look)
            for piece in range(pieces):
                check()
                total = total + self.visit(piece, pieces, v, constant + penalty * total, penalty, factor)
            found = self.close(total)
            visited += found.visited
        return replace(found, visited=visited)

    def draw(self) -> None:
        """As of `LocalRows`."""
        order, kept, _, random = self._shrinking
        self._drawn = self._open.size
        kept[: self._drawn] = self._open
        dual_order.shuffle_blocks(kept[: self._drawn], order, random)
        self._pieces.clear()

    def visit(self, piece: int, pieces: int, v: Vector, constant: Vector, penalty: float, factor: float) -> Vector:
        """As of `LocalRows`."""
        order, kept, margin, _ = self._shrinking
        first, last = self._drawn * piece // pieces, self._drawn * (piece + 1) // pieces
        sums, opened = np.zeros(2), self._opened(v, constant, penalty, factor)
        left = self._kernels.visit(
            order[first:last], kept[first:last], margin[0], self._known, sums, self._matrix, opened.dual
        )
        self._pieces[piece] = (first, left, float(sums[GAP]), float(sums[DRIFT]))
        return opened.close()

    def list_moves(
        self, piece: int, pieces: int, v: Vector, weights: Vector, factor: float, pairs: Array
    ) -> tuple[float, int]:
        """As of `LocalRows`: sparse rows tell where they have moved v."""
        if self._way == "dense" or self._shift is not None or pieces == 1:
            return super().list_moves(piece, pieces, v, weights, factor, pairs)
        order, (indptr, indices, *_) = self._shrinking.order, self._matrix
        some = order[self._drawn * piece // pieces : self._drawn * (piece + 1) // pieces]
        width = 1 if not self._shape else self._shape[0]
        found: tuple[float, int] = listed_rows(
            some, indptr, indices, width, self.map.features, v, weights, factor, pairs
        )
        return found

    def close(self, total: Vector) -> Visits:
        """As of `LocalRows`."""
        kept, known, count, gap, drift = self._shrinking.kept, self._known, 0, 0.0, 0.0
        for _, (first, left, part, drifted) in sorted(self._pieces.items()):
            kept[count : count + left] = kept[first : first + left]
            count, gap, drift = count + left, gap + part, drift + drifted
        if known:
            self._shrinking.margin[0] = CAUTION * math.sqrt(drift / max(1, self._drawn))
        self._open, self._known = kept[:count], True
        return Visits(total, gap if known else np.nan, self._drawn, count)

    def unshrink(self) -> None:
        """As of `AscentRows`."""
        self._open = self._present
        self._shrinking.margin[0] = np.inf

    def sizes(self) -> tuple[float, float, float, float]:
        """As of `AscentRows`."""
        table = self._state.reshape(-1, WIDTH)
        squares = float(table[self._present, CURVE].sum()) / self.scale
        return squares, float(self._present.size), self._scores, self._steep


@dataclass(frozen=True)
class OrderedRows:
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


def units_of(prepared: Any) -> tuple[Array, float, float]:
    """The differences of scores by which the slope of each row changes, and the sums of the sizes of scores and slopes.

    1, and sums of 1 and of the mass, but for numbers as targets: scores are of their size, and a row's difference is
    its target, or the mean of all if that is larger, over the mean slope at scores of 0; so it is the size of targets
    where slopes do not grow with it, and 1 where they do.
    """
    rows, facts = prepared.rows, facts_of(prepared.loss)
    weights = np.ones(rows) if prepared.weights is None else prepared.weights
    usual = np.ones(rows), float(rows), float(weights.sum())
    if facts.task != "regression" or facts.targets_from or not usual[2]:
        return usual
    sizes = np.abs(prepared.y)
    largest = float(sizes.max())
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = float(np.abs(prepared.value_and_slope(np.zeros(rows))[1]).sum())
        if not 0.0 < slopes < math.inf:
            return usual
        mean = largest * float(weights @ (sizes / largest)) / usual[2]
        units = np.maximum(sizes, mean) * (usual[2] / slopes)
        size = rows * mean
    return (units, size, slopes) if np.all(np.isfinite(units)) and math.isfinite(size) else usual


def cost_of(map: DataMap, stored: OrderedRows, width: int) -> float:
    """Nanoseconds of the visit of a row with so many scores, on average."""
    per_entry = DENSE if stored.way == "dense" else PER_ENTRY
    return width * (PER_ROW + per_entry * map.X.nnz / max(1, map.rows))


def stored_rows(map: DataMap, order: NDArray[np.uint32], keep_sparse: bool, check: Check = unchecked) -> OrderedRows:
    """The rows in this order; a shift makes sparse rows dense unless they are to stay sparse."""
    columns, X, norms = map.columns, map.X, np.empty(map.rows)
    shift = columns.shift
    if shift is not None and columns.scale is not None:
        shift = shift * columns.scale
    if X.entries is not None and (shift is None or keep_sparse):
        way, matrix = _sparse(X.entries, X.nnz, columns.scale, order, norms, check)
        if shift is None:
            return OrderedRows(way, matrix, norms, None, 0.0)
        along = np.empty(map.rows)
        scaled = shift if columns.scale is None else shift * columns.scale
        X.products(1).scores(0, map.rows, plain(scaled), 0.0, along)
        along = along[order]
        return OrderedRows(
            way, matrix, np.maximum(norms - 2.0 * along + float(shift @ shift), 0.0), plain(shift), along
        )
    return OrderedRows("dense", (_dense(X, columns.scale, shift, order, norms, check),), norms, None, 0.0)


def _dense(
    X: Features, scale: Vector | None, shift: Vector | None, order: NDArray[np.uint32], norms: Array, check: Check
) -> NDArray[Any]:
    moved = scale is not None or shift is not None
    out = np.empty(X.shape, np.float64 if moved else X.dtype)
    for some in pieces(len(out), out.size, check):
        rows, part = order[some], out[some]
        np.multiply(X.block(rows), 1.0 if scale is None else scale, out=part)
        if shift is not None:
            part -= shift
        dual_order.squared_norms(part, norms[some])
    return out


def _sparse(
    X: Entries, nnz: int, scale: Vector | None, order: NDArray[np.uint32], norms: Array, check: Check
) -> tuple[str, tuple[NDArray[Any], ...]]:
    count, old = order.size, X.columns
    indptr, indices = np.empty(count + 1, np.int64), np.empty(nnz, np.uint32)
    indptr[0] = 0
    parts = ((some, slice(some.start, some.stop + 1)) for some in pieces(count, nnz, check))
    if X.values is None and scale is None:
        for rows, ends in parts:
            dual_order.copy_rows_valueless(X.indptr, old, order[rows], indptr[ends], indices, norms[rows])
        return "valueless", (indptr, indices)
    source = np.ascontiguousarray(np.broadcast_to(1.0, old.shape) if X.values is None else X.values)
    values = np.empty(nnz, source.dtype if scale is None else np.float64)
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
