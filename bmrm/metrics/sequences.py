"""Measures of labelled sequences; the weight of a token is that of its sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.metrics.chunks import Counts, counts_of_chunks, counts_of_tokens, total
from bmrm.metrics.core import Scored, measure


def _named(s: Scored, codes: NDArray[Any]) -> NDArray[np.str_]:
    """Labels by their names; one without a name is a chunk of its own."""
    return np.array([*s.labels, "B-?"])[codes.astype(np.intp)]


def _starts(s: Scored) -> NDArray[np.int64]:
    """The first token of each sentence; one sentence where there are no groups."""
    return np.flatnonzero(np.diff(s.groups, prepend=s.groups[0] - 1)) if s.groups is not None else np.zeros(1, np.int64)


def chunks_by_type(s: Scored) -> dict[str, Counts]:
    """The chunks of each type, as the table of `conlleval` has them."""
    return counts_of_chunks(_named(s, s.y).tolist(), _named(s, s.predicted).tolist(), _starts(s).tolist(), s.weights)


def _chunks(s: Scored) -> Counts:
    return total(chunks_by_type(s).values())


@measure("sequence", source="scikit-learn: accuracy_score", of="predictions")
def token_accuracy(s: Scored) -> float:
    """Share of tokens labelled right."""
    return float(np.average(s.y == s.predicted, weights=s.weights))


@measure("sequence", source="scikit-learn: f1_score, average micro, of the labels other than O", of="predictions")
def token_f1(s: Scored) -> float:
    """2 C / (T + P): T tokens not `O`, P predicted not `O`, C of the first that are labelled right."""
    return counts_of_tokens(_named(s, s.y), _named(s, s.predicted), s.weights).f1


@measure("sequence", source="CoNLL 2000: conlleval", of="predictions")
def chunk_f1(s: Scored) -> float:
    """2 (chunks in common) / (true chunks + predicted chunks), of all types together."""
    return _chunks(s).f1


@measure("sequence", source="CoNLL 2000: conlleval", of="predictions")
def chunk_precision(s: Scored) -> float:
    """Chunks in common / predicted chunks, of all types together; 0 where none are predicted."""
    return _chunks(s).precision


@measure("sequence", source="CoNLL 2000: conlleval", of="predictions")
def chunk_recall(s: Scored) -> float:
    """Chunks in common / true chunks, of all types together; 0 where there are none."""
    return _chunks(s).recall


@measure("sequence", source="0/1 loss of structured prediction", of="predictions")
def sentence_accuracy(s: Scored) -> float:
    """Share of sentences with every token labelled right."""
    starts = _starts(s)
    right = np.minimum.reduceat((s.y == s.predicted).astype(np.int64), starts)
    return float(np.average(right, weights=None if s.weights is None else s.weights[starts]))
