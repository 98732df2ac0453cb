"""Measures of labelled sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.metrics.chunks import f1_of_chunks, f1_of_tokens
from bmrm.metrics.core import Scored, measure


def _named(s: Scored, codes: NDArray[Any]) -> NDArray[np.str_]:
    """Labels by their names; one that the model does not know is a chunk of its own."""
    return np.array([*s.labels, "B-?"])[codes.astype(np.intp)]


@measure
def token_accuracy(s: Scored) -> float:
    """Share of tokens labelled right."""
    return float(np.average(s.y == s.predicted, weights=s.weights))


@measure
def token_f1(s: Scored) -> float:
    """F1 over the tokens whose label is not `O`; weights are not looked at."""
    return f1_of_tokens(_named(s, s.y), _named(s, s.predicted))


@measure
def chunk_f1(s: Scored) -> float:
    """F1 of chunks of all types together, by the definition of CoNLL; weights are not looked at."""
    starts = [0] if s.groups is None else [0, *(np.flatnonzero(np.diff(s.groups)) + 1).tolist()]
    return f1_of_chunks(_named(s, s.y).tolist(), _named(s, s.predicted).tolist(), starts)
