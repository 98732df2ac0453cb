"""Sentences of labelled tokens, ready for the losses of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.chain_curvature import chain_curvatures
from bmrm.kernels.vectors import plain
from bmrm.losses.prepared import NO_WEIGHTS, Array, Positions
from bmrm.problem import InputError, Vector


class PreparedChains:
    """Some sentences, ready to be evaluated.

    Attributes
    ----------
    y : (tokens,) positions of labels, int64.
    starts : (sentences + 1,) int64, where each sentence starts, and the number of tokens.
    weights : (sentences,), or None where all are 1.
    labels : K.
    """

    infimum = 0.0

    def __init__(self, loss: Any, y: Positions, starts: Positions, weights: Vector | None, labels: int) -> None:
        self.loss, self.y, self.starts, self.weights, self.labels = loss, y, starts, weights, labels
        self.observed = loss.transitions == "observed"
        self.scores_per_row = labels + (labels * labels if self.observed else 0)
        self.extra_dim = labels * labels
        self.mass = float(starts.size - 1) if weights is None else float(weights.sum())
        self.smooth = bool(loss.smooth)

    def part(self, start: int, stop: int) -> PreparedChains:
        """The tokens [start, stop), whole sentences."""
        first, last = np.searchsorted(self.starts, (start, stop))
        if self.starts[first] != start or self.starts[last] != stop:
            raise InputError(f"{self.loss.title}: the rows {start} to {stop} part a sentence")
        weights = None if self.weights is None else self.weights[first:last]
        starts = self.starts[first : last + 1] - start
        return type(self)(self.loss, self.y[start:stop], starts, weights, self.labels)

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The weighted sum over the sentences, and its slope; `f` and slope are flat, the transitions last."""
        f = plain(f)
        slope = np.zeros_like(f)
        weights = NO_WEIGHTS if self.weights is None else self.weights
        table, transitions = self._split(f)
        table_slope, transitions_slope = self._split(slope)
        value = self.loss.kernel(
            table, transitions, self.observed, self.y, self.starts, weights, table_slope, transitions_slope
        )
        return float(value), slope

    def _split(self, f: Array) -> tuple[Array, Array]:
        rows = self.y.shape[0]
        border = rows * self.scores_per_row
        return f[:border].reshape(rows, self.scores_per_row), f[border:].reshape(self.labels, self.labels)


class CurvedChains(PreparedChains):
    """`PreparedChains` of `chain_crf`, which has a second derivative."""

    def curvature_product(self, f: Array, step: Array) -> Array:
        """The second derivative of the weighted sum at `f`, times `step`; a new flat array."""
        f, step = plain(f), plain(step)
        product = np.zeros_like(f)
        weights = NO_WEIGHTS if self.weights is None else self.weights
        at, along, into = self._split(f), self._split(step), self._split(product)
        chain_curvatures(*at, self.observed, *along, self.starts, weights, *into)
        return product


def sentence_starts(groups: NDArray[np.int64] | None, rows: int, loss: str) -> Positions:
    """(sentences + 1,) int64: the first row of each run of equal groups, then the number of rows."""
    if groups is None and rows:
        raise InputError(f"{loss}: no groups, expected the number of its sentence for each token")
    inner = np.empty(0, np.int64) if groups is None else np.flatnonzero(np.diff(groups)) + 1
    ends = [0, rows] if rows else [0]
    return np.concatenate((ends[:1], inner, ends[1:])).astype(np.int64)


def sentence_weights(weights: Vector | None, starts: Positions, loss: str) -> Vector | None:
    """(sentences,): the weight that all tokens of a sentence share."""
    if weights is None:
        return None
    each = weights[starts[:-1]]
    other = np.flatnonzero(weights != np.repeat(each, np.diff(starts)))
    if other.size:
        raise InputError(f"{loss}: the weight of row {other[0]} differs from that of the rest of its sentence")
    return each
