"""The sentences of one process in dual ascent: which are visited, and what all losses of sentences share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual import many as dual_many
from bmrm.kernels.dual import order as dual_order
from bmrm.kernels.dual import rows as dual_rows
from bmrm.kernels.dual import sentences as dual_sentences
from bmrm.kernels.dual.sentences import Sentences, Steps, Weights
from bmrm.kernels.jit import inlined, specialised
from bmrm.kernels.products.vectors import plain
from bmrm.problem import Check, Scores, Vector, unchecked
from bmrm.risk.dual.joint import LocalRows
from bmrm.risk.dual.many import WAYS
from bmrm.risk.dual.stored import DualProblem, cost_of, stored_rows
from bmrm.risk.dual.visits import Visits
from bmrm.risk.layout import Layout, TailedMap
from bmrm.risk.linear_map import DataMap

Array = NDArray[np.float64]
MOST_PRODUCTS = 2**27
"""Products of the rows of sentences that are kept in memory: 1 GB."""
SENTENCES = 200
"""Visited between two looks at the clock: some hundredths of a second."""
PER_TRANSITION = 2.0
"""Nanoseconds that a visit takes for each transition of a token."""
WORTH = 0.2
"""Sentences with an estimated gap below this share of the mean gap are skipped."""
GROWTH, UNSEEN = 1.5, 0.02
"""In a sweep without a visit the estimated gap of a sentence is multiplied by GROWTH, and UNSEEN times the mean is
added."""


def keeps_sentences(map: DataMap, prepared: Any) -> bool:
    """Whether memory allows: rows stay sparse, and so does what is kept of each sentence."""
    shifted = map.X.entries is not None and map.columns.shift is not None
    lengths = np.diff(prepared.starts)
    return not shifted and int((lengths**2).sum()) <= MOST_PRODUCTS


@cache
def access_of(way: str, sparse: bool) -> dict[str, Callable[..., Any]]:
    """`read_scores` and `move_weights` for a way to store rows; `sparse` where weights are soft thresholded."""
    row, weigh = _row(way), dual_rows.soft if sparse else dual_rows.itself
    gather, spread = (
        specialised(dual_many.gather, inlined, weigh=weigh, **row),
        specialised(dual_many.spread, inlined, **row),
    )
    return {
        "read_scores": specialised(dual_sentences.read_scores, gather_row=gather, weigh=weigh),
        "move_weights": specialised(dual_sentences.move_weights, spread_row=spread),
    }


@cache
def _grams_of(way: str) -> Callable[..., None]:
    return specialised(dual_sentences.grams, **_row(way))


def _row(way: str) -> dict[str, Callable[..., Any]]:
    span, column, entry, _ = WAYS[way]
    return {"span": span, "column": column, "entry": entry}


class SentenceRows(LocalRows):
    """As of `AscentRows`, for losses of sentences: a step is of a sentence.

    A sentence is visited when its gap, which grows by a guess while it is left alone, is worth it.

    Memory: a copy of the data, 8 bytes for each pair of tokens of a sentence.

    Parameters
    ----------
    problem : with a `PreparedChains`.
    check : called now and then while the rows are copied.
    """

    def __init__(self, problem: DualProblem, check: Check = unchecked) -> None:
        map, prepared, mass = problem.map, problem.prepared, problem.mass
        self.map, self.mass = map, mass
        self._layout, self._labels = Layout(prepared.scores_per_row, prepared.extra_dim), int(prepared.labels)
        self._steps = Steps(problem.threshold, problem.scale, float(map.bias))
        self._random = np.array([problem.seed], np.uint64)
        stored = stored_rows(map, np.arange(map.rows, dtype=np.uint32), keep_sparse=False, check=check)
        self._way, self._matrix = stored.way, stored.matrix
        starts = prepared.starts
        lengths = np.diff(starts)
        weights = np.ones(lengths.size) if prepared.weights is None else plain(prepared.weights)
        gram_at = ends(lengths**2)
        products = np.empty(gram_at[-1])
        grams, row = _grams_of(self._way), np.zeros(map.features)
        for first in range(0, lengths.size, SENTENCES):
            check()
            some = slice(first, first + SENTENCES + 1)
            grams(self._matrix, starts[some], gram_at[some], float(map.bias), row, products)
        self._sentences = Sentences(starts, prepared.y, weights, products, gram_at, bool(prepared.observed))
        self._lengths, self._present = lengths, np.flatnonzero(weights > 0.0)
        self._longest = int(lengths.max(initial=1))
        self._gaps, self._hopes = np.zeros(lengths.size), np.full(lengths.size, np.inf)
        self._order = self._present
        self._cost: float = cost_of(map, stored, prepared.scores_per_row) + PER_TRANSITION * self._labels**2
        """Of the visit of a token, in nanoseconds."""

    _state: NamedTuple
    """What is known of each sentence."""
    _room: NamedTuple
    """What visits overwrite."""
    _visit: Callable[..., None]
    """The compiled `visit`."""

    @abstractmethod
    def begin(self, start: Scores | None, near: Scores | None, intercept: bool = False) -> None:
        """As of `AscentRows`; `RowAscents` refuses an intercept."""

    @abstractmethod
    def offset(self) -> float:
        """As of `AscentRows`."""

    @abstractmethod
    def _add_slopes(self, slope: Array, trans_slope: Array) -> None:
        """Add the slopes of R times its mass, of tokens and of transitions."""

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
        """As of `LocalRows`. Sentences with a small estimated gap are skipped."""
        self.draw()
        pieces = math.ceil(self._order.size / SENTENCES)
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
        given = (self._gaps, self._matrix, self._sentences, self._state)
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
        return TailedMap(self.map, self._layout).rmatvec(self._slopes())

    def sizes(self) -> tuple[float, float, float, float]:
        """As of `AscentRows`; the rows of sentences of weight 0 count, too."""
        products, gram_at = self._sentences.grams, self._sentences.gram_at
        diagonals = [products[at : at + n * n : n + 1] for at, n in zip(gram_at, self._lengths, strict=False)]
        rows = float(self._sentences.starts[-1])
        return float(sum(diagonal.sum() for diagonal in diagonals)), rows, rows, rows

    def scores(self) -> Array:
        """As of `AscentRows`: zeros; there is no free intercept."""
        return np.zeros(self.map.rows * self._layout.scores_per_row + self._layout.extra)

    def slope(self) -> Array:
        """As of `AscentRows`; flat, the transitions last."""
        return self._slopes() / self.mass

    def _slopes(self) -> Array:
        flat = np.zeros(self.map.rows * self._layout.scores_per_row + self._layout.extra)
        self._add_slopes(*self._split(flat))
        return flat

    def _split(self, flat: Array) -> tuple[Array, Array]:
        """The rows and the transitions, views."""
        border = flat.size - self._layout.extra
        return flat[:border].reshape(-1, self._layout.scores_per_row), flat[border:].reshape(self._labels, self._labels)


def ends(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of them begins, and the last ends."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
