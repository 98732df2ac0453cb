"""Sentences of conditional random fields in dual ascent: potentials for each, and the marginals that they give."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual import marginals as dual_marginals
from bmrm.kernels.dual.marginals import Potentials, Room
from bmrm.kernels.jit import specialised
from bmrm.kernels.products.vectors import plain
from bmrm.problem import Check, Scores, unchecked
from bmrm.risk.dual.sentences import Array, SentenceRows, access_of, ends
from bmrm.risk.dual.stored import DualProblem

LEAST_MARGINAL = 1e-9
"""What slopes to begin with say of marginals is not believed below this."""


@cache
def _visit_of(way: str, sparse: bool) -> Callable[..., None]:
    return specialised(dual_marginals.visit, **access_of(way, sparse))


class MarginalRows(SentenceRows):
    """As of `SentenceRows`, for losses `by_marginals`.

    Memory: that of `SentenceRows`, and 16 bytes for each score of a token and, for each sentence, each transition.
    """

    _state: Potentials
    _room: Room

    def __init__(self, problem: DualProblem, check: Check = unchecked) -> None:
        super().__init__(problem, check)
        prepared = problem.prepared
        self._visit = _visit_of(self._way, problem.l1 > 0.0)
        width, labels = prepared.scores_per_row, self._labels
        self._state = _true_marginals(prepared, self._lengths)
        tables = (*np.empty((2, labels, labels)), *np.empty((2, self._longest, labels)))
        self._room = Room(np.empty((7, self._longest * width + labels**2)), np.empty(width), tables)

    def begin(self, start: Scores | None, near: Scores | None, intercept: bool = False) -> None:
        """As of `AscentRows`; `start` is looked at without `near` only. `RowAscents` refuses an intercept.

        What `start` says of transitions is a sum over all sentences, and of no use: labels are taken to be independent.
        """
        if near is not None:
            self._take(*self._split(plain(near)))
        elif start is not None:
            slopes, trans = self._split(self.mass * plain(start))
            y, each = self._sentences.y, np.repeat(self._sentences.weights, self._lengths)
            marginals = slopes[:, : self._labels] / np.where(each > 0.0, each, 1.0)[:, None]
            marginals[np.arange(y.size), y] += 1.0
            f = np.zeros(slopes.shape)
            f[:, : self._labels] = np.log(np.maximum(marginals, LEAST_MARGINAL))
            self._take(f, np.zeros_like(trans))

    def _take(self, f: Array, trans: Array) -> None:
        dual_marginals.take_scores(f, trans, self._sentences, self._state, self._room.tables)

    def offset(self) -> float:
        """As of `AscentRows`."""
        entropies = float(self._sentences.weights @ self._state.entropies)
        return entropies - float(dual_marginals.rounding_of_entropies(self._sentences, self._state))

    def _add_slopes(self, slope: Array, trans_slope: Array) -> None:
        dual_marginals.slopes_of(self._sentences, self._state, slope, trans_slope)


def _true_marginals(prepared: Any, lengths: NDArray[np.int64]) -> Potentials:
    """The true labeling for each sentence, nothing begun."""
    labels, sentences = prepared.labels, lengths.size
    at = ends(lengths * prepared.scores_per_row + labels * labels)
    marginals = np.zeros(at[-1])
    dual_marginals.take_truth(prepared.y, prepared.starts, labels, prepared.observed, at, marginals)
    begun = np.zeros(sentences, np.bool_)
    return Potentials(at, np.zeros(at[-1]), marginals, np.zeros(sentences), np.ones(sentences), begun)
