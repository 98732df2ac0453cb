"""Measures of sequence labeling: tokens, and chunks by the definition of the CoNLL shared tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

OUTSIDE = "O"
"""The label of tokens that belong to nothing."""

Chunk = tuple[int, int, str]
"""First token, last token, type."""


def chunks(labels: Sequence[str], starts: Sequence[int]) -> set[Chunk]:
    """The chunks of labelled tokens, as `conlleval` finds them.

    Labels are `O`, or a sign, a dash and a type: `B-` begins a chunk, `I-` continues one, `E-` and `L-` end one, `S-`
    and `U-` are one alone; `B` without more is of type "". A chunk also begins with an `I-` or `E-` that no chunk of
    its type goes before, and ends where the type changes. A label without a sign of these is a chunk of that type,
    which runs as long as the label repeats.

    Parameters
    ----------
    labels : of all tokens.
    starts : the first token of each sentence; chunks end with sentences.
    """
    found = set()
    first = set(starts)
    begin, kind, ended = -1, "", True
    for t, label in enumerate([*labels, OUTSIDE]):
        sign, type = _split(label)
        breaks = ended or t in first or t == len(labels) or type != kind or sign in "BSUO"
        if breaks and begin >= 0:
            found.add((begin, t - 1, kind))
            begin = -1
        if sign == "O":
            ended = True
            continue
        if begin < 0:
            begin, kind = t, type
        ended = sign in "ELSU"
    return found


def _split(label: str) -> tuple[str, str]:
    if label == OUTSIDE:
        return "O", ""
    sign, dash, type = label.partition("-")
    if sign in ("B", "I", "E", "L", "S", "U") and (dash or len(label) == 1):
        return sign, type
    return "I", label


def f1_of_chunks(truth: Sequence[str], predicted: Sequence[str], starts: Sequence[int]) -> float:
    """2 (chunks in common) / (true chunks + predicted chunks): F1 over all types together; 0 without any chunk."""
    true, found = chunks(truth, starts), chunks(predicted, starts)
    return 2.0 * len(true & found) / max(1, len(true) + len(found))


def f1_of_tokens(truth: NDArray[np.str_], predicted: NDArray[np.str_]) -> float:
    """F1 over the tokens whose label is not `O`: a hit is a true label, not `O`, that is predicted."""
    hits = np.count_nonzero((truth == predicted) & (truth != OUTSIDE))
    return float(2.0 * hits / max(1, np.count_nonzero(truth != OUTSIDE) + np.count_nonzero(predicted != OUTSIDE)))
