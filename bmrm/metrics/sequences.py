"""Measures of sequence labeling: tokens, and chunks by the definition of the CoNLL shared tasks.

The weight of a token is that of its sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.metrics.core import ScoredRows, measure
from bmrm.problem import Vector

OUTSIDE = "O"
"""Label of tokens outside all chunks."""

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


@dataclass(frozen=True)
class Counts:
    """Sums of weights: of what is true, of what was found, and of what is both."""

    true: float
    found: float
    common: float

    @property
    def precision(self) -> float:
        """common / found; 0 where nothing was found."""
        return self.common / self.found if self.found > 0.0 else 0.0

    @property
    def recall(self) -> float:
        """common / true; 0 where nothing is true."""
        return self.common / self.true if self.true > 0.0 else 0.0

    @property
    def f1(self) -> float:
        """2 common / (true + found); 0 where there is nothing."""
        both = self.true + self.found
        return 2.0 * self.common / both if both > 0.0 else 0.0


def counts_of_chunks(
    truth: Sequence[str], predicted: Sequence[str], starts: Sequence[int], weights: Vector | None = None
) -> dict[str, Counts]:
    """Chunks by type, in sort order; a chunk weighs as much as its first token, 1 where `weights` is None."""
    true, found = chunks(truth, starts), chunks(predicted, starts)
    sums: dict[str, list[float]] = {kind: [0.0, 0.0, 0.0] for kind in sorted({kind for *_, kind in true | found})}
    for k, some in enumerate((true, found, true & found)):
        for begin, _, kind in sorted(some):
            sums[kind][k] += 1.0 if weights is None else float(weights[begin])
    return {kind: Counts(*three) for kind, three in sums.items()}


def total(counts: Iterable[Counts]) -> Counts:
    """Of all types together."""
    some = list(counts)
    return Counts(sum(c.true for c in some), sum(c.found for c in some), sum(c.common for c in some))


def counts_of_tokens(truth: NDArray[np.str_], predicted: NDArray[np.str_], weights: Vector | None = None) -> Counts:
    """Tokens whose label is not `O`: what is common is a true label, not `O`, that is predicted."""
    mass = np.ones(len(truth)) if weights is None else weights
    common = mass[(truth == predicted) & (truth != OUTSIDE)]
    return Counts(float(mass[truth != OUTSIDE].sum()), float(mass[predicted != OUTSIDE].sum()), float(common.sum()))


def _named(s: ScoredRows, codes: NDArray[Any]) -> NDArray[np.str_]:
    """Labels by their names; one without a name is a chunk of its own."""
    return np.array([*s.labels, "B-?"])[codes.astype(np.intp)]


def _starts(s: ScoredRows) -> NDArray[np.int64]:
    """The first token of each sentence; one sentence where there are no groups."""
    return np.flatnonzero(np.diff(s.groups, prepend=s.groups[0] - 1)) if s.groups is not None else np.zeros(1, np.int64)


def chunks_by_type(s: ScoredRows) -> dict[str, Counts]:
    """The chunks of each type, as the table of `conlleval` has them."""
    return counts_of_chunks(_named(s, s.y).tolist(), _named(s, s.predicted).tolist(), _starts(s).tolist(), s.weights)


def _chunks(s: ScoredRows) -> Counts:
    return total(chunks_by_type(s).values())


@measure("sequence", source="scikit-learn: accuracy_score", of="predictions")
def token_accuracy(s: ScoredRows) -> float:
    """Share of tokens labelled right."""
    return float(np.average(s.y == s.predicted, weights=s.weights))


@measure("sequence", source="scikit-learn: f1_score, average micro, of the labels other than O", of="predictions")
def token_f1(s: ScoredRows) -> float:
    """2 C / (T + P): T tokens not `O`, P predicted not `O`, C of the first that are labelled right."""
    return counts_of_tokens(_named(s, s.y), _named(s, s.predicted), s.weights).f1


@measure("sequence", source="CoNLL 2000: conlleval", of="predictions")
def chunk_f1(s: ScoredRows) -> float:
    """2 (chunks in common) / (true chunks + predicted chunks), of all types together."""
    return _chunks(s).f1


@measure("sequence", source="CoNLL 2000: conlleval", of="predictions")
def chunk_precision(s: ScoredRows) -> float:
    """Chunks in common / predicted chunks, of all types together; 0 where none are predicted."""
    return _chunks(s).precision


@measure("sequence", source="CoNLL 2000: conlleval", of="predictions")
def chunk_recall(s: ScoredRows) -> float:
    """Chunks in common / true chunks, of all types together; 0 where there are none."""
    return _chunks(s).recall


@measure("sequence", source="0/1 loss of structured prediction", of="predictions")
def sentence_accuracy(s: ScoredRows) -> float:
    """Share of sentences with every token labelled right."""
    starts = _starts(s)
    right = np.minimum.reduceat((s.y == s.predicted).astype(np.int64), starts)
    return float(np.average(right, weights=None if s.weights is None else s.weights[starts]))
