"""Sentences of max-margin chains in dual ascent: a mixture of labelings for each, kept where the rows are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual import chains as dual_chains
from bmrm.kernels.dual.chains import Mixtures, Room
from bmrm.kernels.jit import specialised
from bmrm.kernels.products.vectors import plain
from bmrm.problem import Check, Scores, unchecked
from bmrm.risk.dual.sentences import Array, SentenceRows, access_of, ends
from bmrm.risk.dual.stored import DualProblem

PER_TOKEN, BESIDES = 4, 32
"""Labelings that a sentence may keep."""


@cache
def _visit_of(way: str, sparse: bool, worst_labeling: Callable[..., Any]) -> Callable[..., None]:
    return specialised(dual_chains.visit, worst_labeling=worst_labeling, **access_of(way, sparse))


class MixtureRows(SentenceRows):
    """As of `SentenceRows`, for prepared losses with `worst_labeling`.

    Memory: that of `SentenceRows`, and room for `PER_TOKEN` labelings per token and some more, 2 bytes a token each.
    """

    _state: Mixtures
    _room: Room

    def __init__(self, problem: DualProblem, check: Check = unchecked) -> None:
        super().__init__(problem, check)
        prepared = problem.prepared
        worst_labeling = prepared.worst_labeling
        self._visit = _visit_of(self._way, problem.l1 > 0.0, worst_labeling)
        self._take_worst = specialised(dual_chains.take_worst, worst_labeling=worst_labeling)
        self._state = _true_labelings(prepared.y, prepared.starts)
        most = PER_TOKEN * self._longest + BESIDES
        scores, slopes = np.empty((2, self._longest, prepared.scores_per_row))
        trans, trans_slope = np.empty((2, self._labels, self._labels))
        line = np.empty(prepared.scores_per_row)
        self._room = Room(scores, slopes, trans, trans_slope, np.empty(most), line)

    def begin(self, start: Scores | None, near: Scores | None, intercept: bool = False) -> None:
        """As of `AscentRows`; `near` is looked at without `start` only. `RowAscents` refuses an intercept.

        What `start` says of transitions is a sum over all sentences, and of no use.
        """
        if start is not None:
            slopes = self.mass * plain(self._layout.table(np.asarray(start)))
            dual_chains.take_slopes(slopes[:, : self._labels], self._sentences, self._state)
        elif near is not None:
            f, trans = self._split(plain(near))
            self._take_worst(f, trans, self._sentences, self._state)

    def offset(self) -> float:
        """As of `AscentRows`."""
        return float(dual_chains.offset(self._sentences, self._state))

    def _add_slopes(self, slope: Array, trans_slope: Array) -> None:
        dual_chains.slopes_of(self._sentences, self._state, slope, trans_slope)


def _true_labelings(y: NDArray[np.int64], starts: NDArray[np.int64]) -> Mixtures:
    """The true labeling alone for each sentence."""
    lengths = np.diff(starts)
    most = PER_TOKEN * lengths + BESIDES
    room_at, path_at = ends(most), ends(most * lengths)
    shares, errors, paths = np.zeros(room_at[-1]), np.zeros(room_at[-1]), np.zeros(path_at[-1], np.uint16)
    shares[room_at[:-1]] = 1.0
    paths[np.repeat(path_at[:-1] - starts[:-1], lengths) + np.arange(y.size)] = y
    return Mixtures(np.ones(lengths.size, np.int64), room_at, path_at, shares, errors, paths)
