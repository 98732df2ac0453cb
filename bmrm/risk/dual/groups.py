"""Groups of rows in dual ascent, for losses of structures: mixtures of labelings, or marginals, where the rows are."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual import groups as dual_groups
from bmrm.kernels.dual import many as dual_many
from bmrm.kernels.dual import marginals as dual_marginals
from bmrm.kernels.dual import mixtures as dual_mixtures
from bmrm.kernels.dual import order as dual_order
from bmrm.kernels.dual import rows as dual_rows
from bmrm.kernels.dual.groups import Grouped, Steps, Weights
from bmrm.kernels.dual.marginals import Potentials
from bmrm.kernels.dual.mixtures import Mixtures
from bmrm.kernels.jit import inlined, made, specialised
from bmrm.kernels.products.vectors import plain
from bmrm.losses._core.structure import Structure, room_of
from bmrm.problem import Check, Scores, Vector, unchecked
from bmrm.risk.dual.joint import LocalRows
from bmrm.risk.dual.stored import READ, DualProblem, cost_of, stored_rows
from bmrm.risk.dual.visits import Visits
from bmrm.risk.linear_map import DataMap
from bmrm.risk.score_layout import ScoreLayout, TailedMap

Array = NDArray[np.float64]
MOST_PRODUCTS = 2**27
"""Most inner products of rows of groups that are kept in memory: 1 GB."""
GROUPS = 200
"""Groups visited between two checks of the clock: some hundredths of a second."""
PER_PAIR = 2.0
"""Nanoseconds of a visit for each pair of labels of a row."""
WORTH = 0.2
"""Groups with an estimated gap below this share of the mean gap are skipped."""
GROWTH, UNSEEN = 1.5, 0.02
"""In a sweep without a visit the estimated gap of a group is multiplied by GROWTH, and UNSEEN times the mean is
added."""
PER_ROW, BESIDES = 4, 32
"""Labelings that a group may keep: for each of its rows, and in addition."""
LEAST_MARGINAL = 1e-9
"""Least marginal in a start from given slopes: smaller ones are not accurate."""


def keeps_groups(map: DataMap, prepared: Any) -> bool:
    """Whether memory allows: rows stay sparse, and so does what is kept of each group."""
    shifted = map.X.entries is not None and map.columns.shift is not None
    lengths = np.diff(prepared.groups.starts)
    return not shifted and int((lengths**2).sum()) <= MOST_PRODUCTS


@cache
def access_of(way: str, sparse: bool) -> dict[str, Callable[..., Any]]:
    """`read_scores` and `move_weights` for a way to store rows; `sparse` where weights are soft thresholded."""
    row, weigh = READ[way], dual_rows.soft if sparse else dual_rows.itself
    gather, spread = (
        specialised(dual_many.gather, inlined, weigh=weigh, **row),
        specialised(dual_many.spread, inlined, **row),
    )
    return {
        "read_scores": specialised(dual_groups.read_scores, gather_row=gather, weigh=weigh),
        "move_weights": specialised(dual_groups.move_weights, spread_row=spread),
    }


class GroupRows(LocalRows):
    """As of `AscentRows`, for losses of structures: a step is of a group.

    A group is visited when its gap, which grows by a guess while it is left alone, is worth it.

    Memory: a copy of the data, 8 bytes for each pair of rows of a group.

    Parameters
    ----------
    problem : with a `PreparedGroups`.
    check : called now and then while the rows are copied.
    """

    def __init__(self, problem: DualProblem, check: Check = unchecked) -> None:
        map, prepared, mass = problem.map, problem.prepared, problem.mass
        self.map, self.mass = map, mass
        self._layout, self._labels = ScoreLayout(prepared.scores_per_row, prepared.extra_dim), int(prepared.labels)
        self._prepared, self._structure = prepared, prepared.structure
        self._whole_map = TailedMap(map, self._layout) if prepared.extra_dim else map
        self._steps = Steps(problem.threshold, problem.scale, float(map.bias))
        self._random = np.array([problem.seed], np.uint64)
        stored = stored_rows(map, np.arange(map.rows, dtype=np.uint32), keep_sparse=False, check=check)
        self._way, self._matrix = stored.way, stored.matrix
        given, y, starts, weights = prepared.groups
        lengths = np.diff(starts)
        weights = weights if weights.size else np.ones(lengths.size)
        gram_at = ends(lengths**2)
        products = np.empty(gram_at[-1])
        grams, row = made(dual_groups.grams, **READ[self._way]), np.zeros(map.features)
        for first in range(0, lengths.size, GROUPS):
            check()
            some = slice(first, first + GROUPS + 1)
            grams(self._matrix, starts[some], gram_at[some], float(map.bias), row, products)
        self._groups = Grouped(starts, y, weights, products, gram_at, given)
        self._lengths, self._present = lengths, np.flatnonzero(weights > 0.0)
        self._longest = int(lengths.max(initial=1))
        self._gaps, self._hopes = np.zeros(lengths.size), np.full(lengths.size, np.inf)
        self._order = self._present
        self._cost: float = cost_of(map, stored, prepared.scores_per_row) + PER_PAIR * self._labels**2
        """Of the visit of a row, in nanoseconds."""
        self._path, self._places = np.empty(self._longest, np.int64), room_of(prepared.groups)[0]
        functions = self._functions(prepared.structure) | access_of(self._way, problem.l1 > 0.0)
        self._visit = made(self._template, **functions)

    _state: NamedTuple
    """What is known of each group."""
    _room: NamedTuple
    """What visits overwrite."""

    @abstractmethod
    def begin(self, start: Scores | None, near: Scores | None, intercept: bool = False) -> None:
        """As of `AscentRows`; `RowAscents` refuses an intercept."""

    @abstractmethod
    def offset(self) -> float:
        """As of `AscentRows`."""

    @abstractmethod
    def _add_slopes(self, slope: Array, of_parameters: Array) -> None:
        """Add the slopes of R times its mass, of rows and of parameters."""

    _template: ClassVar[Callable[..., Any]]
    """Of a visit."""

    @abstractmethod
    def _functions(self, structure: Structure) -> dict[str, Callable[..., Any]]:
        """What the template calls of the structure."""

    def work(self) -> float:
        """As of `LocalRows`."""
        return float(self._lengths[self._promising()].sum()) * self._cost

    def _promising(self) -> NDArray[np.int64]:
        hopes = self._hopes[self._present]
        found: NDArray[np.int64] = self._present[hopes >= WORTH * (hopes.mean() if hopes.size else 0.0)]
        return found

    def sweep(self, v: Vector, constant: Vector, penalty: float, check: Check = unchecked) -> tuple[Vector, Visits]:
        """As of `AscentRows`; v changes in place."""
        return v, self.alone(v, constant, penalty, check)

    def alone(
        self, v: Vector, constant: Vector, penalty: float, check: Check = unchecked, factor: float = 1.0
    ) -> Visits:
        """As of `LocalRows`. Groups with a small estimated gap are skipped."""
        self.draw()
        pieces = math.ceil(self._order.size / GROUPS)
        for piece in range(pieces):
            check()
            self.visit(piece, pieces, v, constant, penalty, factor)
        return self.close(np.zeros_like(constant))

    def draw(self) -> None:
        """As of `LocalRows`."""
        self._order = self._promising()
        dual_order.shuffle(self._order, self._random)

    def visit(self, piece: int, pieces: int, v: Vector, constant: Vector, penalty: float, factor: float) -> Vector:
        """As of `LocalRows`; the constant is not looked at."""
        rows, tail = self._split(v)
        bias = rows[-1] if self.map.bias else np.zeros(rows.shape[1])
        weights = Weights(rows[: self.map.features], tail, bias)
        steps = self._steps._replace(step=factor * self._steps.step)
        some = self._order[self._order.size * piece // pieces : self._order.size * (piece + 1) // pieces]
        given = (self._gaps, self._matrix, self._groups, self._state)
        self._visit(some, *given, weights, steps, self._room)
        return np.zeros_like(constant)

    def close(self, total: Vector) -> Visits:
        """As of `LocalRows`."""
        order, gap = self._order, float(self._gaps.sum())
        self._hopes = GROWTH * self._hopes + UNSEEN * gap / max(1, self._present.size)
        self._hopes[order] = self._gaps[order]
        visited = float(self._lengths[order].sum())
        return Visits(total, gap, visited, visited)

    def unshrink(self) -> None:
        """As of `AscentRows`."""
        self._hopes[:] = np.inf

    def totals(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`: zeros, whatever the shift; there is no free intercept."""
        return np.zeros(len(shift))

    def settle(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`; half a pass. A shift changes nothing."""
        return self._whole_map.rmatvec(self._slopes())

    def sizes(self) -> tuple[float, float, float, float]:
        """As of `AscentRows`; the rows of groups of weight 0 count, too."""
        products, gram_at = self._groups.grams, self._groups.gram_at
        diagonals = [products[at : at + n * n : n + 1] for at, n in zip(gram_at, self._lengths, strict=False)]
        rows = float(self._groups.starts[-1])
        return float(sum(diagonal.sum() for diagonal in diagonals)), rows, rows, rows

    def scores(self) -> Array:
        """As of `AscentRows`: zeros; there is no free intercept."""
        return self._layout.new(self.map.rows, np.zeros(self._layout.extra))

    def slope(self) -> Array:
        """As of `AscentRows`; flat where there are parameters, which stand last."""
        return self._slopes() / self.mass

    def _slopes(self) -> Array:
        found = self._layout.new(self.map.rows, np.zeros(self._layout.extra))
        found[:] = 0.0
        self._add_slopes(*self._split(found))
        return found

    def _split(self, numbers: Array) -> tuple[Array, Array]:
        """The rows and the parameters, views."""
        split: tuple[Array, Array] = self._prepared.split(numbers)
        return split


class MixtureRows(GroupRows):
    """As of `GroupRows`, for margins: a mixture of labelings for each group.

    Memory: that of `GroupRows`, and room for `PER_ROW` labelings per row and some more, 2 bytes a row each.
    """

    _template = staticmethod(dual_mixtures.visit)
    _state: Mixtures

    def __init__(self, problem: DualProblem, check: Check = unchecked) -> None:
        super().__init__(problem, check)
        starts, y, lengths = self._groups.starts, self._groups.y, self._lengths
        most = PER_ROW * lengths + BESIDES
        room_at, path_at = ends(most), ends(most * lengths)
        shares, errors, paths = np.zeros(room_at[-1]), np.zeros(room_at[-1]), np.zeros(path_at[-1], np.uint16)
        shares[room_at[:-1]] = 1.0
        paths[np.repeat(path_at[:-1] - starts[:-1], lengths) + np.arange(y.size)] = y
        self._state = Mixtures(np.ones(lengths.size, np.int64), room_at, path_at, shares, errors, paths)
        width, many, terms = self._layout.scores_per_row, PER_ROW * self._longest + BESIDES, self._places.size
        numbers, slopes = np.empty((2, self._longest * width + self._layout.extra))
        places = np.empty((9, terms), np.int64)
        self._room = dual_mixtures.Room(numbers, slopes, np.empty(many), np.empty(width), places, self._path)

    def _functions(self, structure: Structure) -> dict[str, Callable[..., Any]]:
        values_of = made(dual_mixtures.values_of, score=structure.score)
        return {
            "worst": structure.worst,
            "terms": structure.terms,
            "score": structure.score,
            "values_of": values_of,
            "mix": made(dual_mixtures.mix, terms=structure.terms, values_of=values_of),
        }

    def begin(self, start: Scores | None, near: Scores | None, intercept: bool = False) -> None:
        """As of `AscentRows`; `near` is looked at without `start` only. `RowAscents` refuses an intercept.

        What `start` says of parameters is a sum over all groups, and of no use.
        """
        if start is not None:
            slopes, _ = self._split(self.mass * plain(start))
            dual_mixtures.take_slopes(plain(slopes[:, : self._labels]), self._groups, self._state)
        elif near is not None:
            take = made(dual_mixtures.take_worst, worst=self._structure.worst)
            take(*self._split(plain(near)), self._groups, self._state, self._path)

    def offset(self) -> float:
        """As of `AscentRows`."""
        return float(dual_mixtures.offset(self._groups, self._state))

    def _add_slopes(self, slope: Array, of_parameters: Array) -> None:
        add = made(dual_mixtures.slopes_of, terms=self._structure.terms)
        add(self._groups, self._state, slope, of_parameters, self._path, self._places)


class MarginalRows(GroupRows):
    """As of `GroupRows`, for likelihoods: potentials for each group, and the marginals that they give.

    Memory: that of `GroupRows`, and 16 bytes for each score of a row and, for each group, each parameter.
    """

    _template = staticmethod(dual_marginals.visit)
    _state: Potentials

    def __init__(self, problem: DualProblem, check: Check = unchecked) -> None:
        super().__init__(problem, check)
        width, extra, groups = self._layout.scores_per_row, self._layout.extra, self._lengths.size
        at = ends(self._lengths * width + extra)
        marginals = np.zeros(at[-1])
        begun = np.zeros(groups, np.bool_)
        self._state = Potentials(at, np.zeros(at[-1]), marginals, np.zeros(groups), np.ones(groups), begun)
        take = made(dual_marginals.take_truth, terms=self._structure.terms)
        take(self._groups, width, np.empty(self._prepared.shape), at, marginals, self._places)
        self._room = dual_marginals.Room(np.empty((7, self._longest * width + extra)), np.empty(width))

    def _functions(self, structure: Structure) -> dict[str, Callable[..., Any]]:
        assert structure.marginals is not None
        evaluate = made(dual_marginals.evaluate, marginals=structure.marginals)
        return {
            "log_partition": structure.log_partition,
            "begin": made(dual_marginals.begin, evaluate=evaluate),
            "ascend": made(dual_marginals.ascend, evaluate=evaluate),
        }

    def begin(self, start: Scores | None, near: Scores | None, intercept: bool = False) -> None:
        """As of `AscentRows`; `start` is looked at without `near` only. `RowAscents` refuses an intercept.

        What `start` says of parameters is a sum over all groups, and of no use: labels are taken to be independent.
        """
        if near is not None:
            self._take(*self._split(plain(near)))
        elif start is not None:
            slopes, parameters = self._split(self.mass * plain(start))
            y, each = self._groups.y, np.repeat(self._groups.weights, self._lengths)
            marginals = slopes[:, : self._labels] / np.where(each > 0.0, each, 1.0)[:, None]
            marginals[np.arange(y.size), y] += 1.0
            f = np.zeros(slopes.shape)
            f[:, : self._labels] = np.log(np.maximum(marginals, LEAST_MARGINAL))
            self._take(f, np.zeros_like(parameters))

    def _take(self, f: Array, parameters: Array) -> None:
        take = made(dual_marginals.take_scores, marginals=self._structure.marginals)
        take(f, parameters, self._groups, self._state)

    def offset(self) -> float:
        """As of `AscentRows`."""
        entropies = float(self._groups.weights @ self._state.entropies)
        return entropies - float(dual_marginals.rounding_of_entropies(self._groups, self._state))

    def _add_slopes(self, slope: Array, of_parameters: Array) -> None:
        add = made(dual_marginals.slopes_of, terms=self._structure.terms)
        add(self._groups, self._state, slope, of_parameters, self._places)


def ends(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of them begins, and the last ends."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
