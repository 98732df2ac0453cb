"""Measures of rankings, means over queries; a sample without queries is one ranking.

Rows of equal score stand in no order: a measure is the mean over all orders of them. Grades above 0 are relevant.
"""

from __future__ import annotations

import numpy as np

from bmrm.metrics import ranked
from bmrm.metrics.core import CORRELATION, SKILL, Number, ScoredRows, measure
from bmrm.problem import Vector
from bmrm.registry import Range

_BOTH = ("ranking", "binary")
_RANKS = Number("k", Range(least=1, doc="ranks that count"), None, whole=True, of_loss=False)
_K = Number("k", Range(least=1, doc="rows of highest score"), 10, whole=True)
_HALF_LIFE = Number("half_life", Range(above=1.0, doc="the rank that every other user still sees"), 5.0)
MOST_COPIES = 10_000_000
"""Largest total of the frequency weights in measures of rankings."""


def _ranking(s: ScoredRows, measure: ranked.Measure) -> float | None:
    """The mean over queries, each row as often as its weight says; None where that is no whole number, or too often."""
    s = s.present
    y, f, groups = s.y.astype(np.float64), s.scores, s.groups
    if s.weights is not None and np.any(s.weights != 1.0):
        if np.any(s.weights != np.round(s.weights)) or np.minimum(s.weights, MOST_COPIES + 1.0).sum() > MOST_COPIES:
            return None
        copies = s.weights.astype(np.int64)
        y, f = np.repeat(y, copies), np.repeat(f, copies)
        groups = None if groups is None else np.repeat(groups, copies)
    return ranked.mean_over_queries(measure, y, f, groups=groups)


def _by_weight(s: ScoredRows, measure: ranked.Measure) -> float | None:
    """The mean over queries of a measure that takes weights."""
    s = s.present
    weights = np.ones(len(s.y)) if s.weights is None else s.weights
    return ranked.mean_over_queries(measure, s.y.astype(np.float64), s.scores, weights, groups=s.groups)


@measure(
    *_BOTH,
    "ordinal",
    source="Jarvelin & Kekalainen 2002; Burges et al. 2005",
    weighted="copies",
    number=_RANKS,
    within=SKILL,
)
def ndcg(s: ScoredRows, k: int | None) -> float | None:
    """Sum of (2^y - 1) / log2(1 + rank) over the first k ranks / its largest value; without a number over all ranks.

    Mean over queries with a grade above 0; not defined for grades below 0.
    """
    return _ranking(s, lambda y, f: ranked.ndcg(y, f, k))


@measure(*_BOTH, source="Voorhees 1999", weighted="copies")
def mrr(s: ScoredRows) -> float | None:
    """1 / rank of the first row of grade above 0, mean over queries that have one."""
    return _ranking(s, ranked.reciprocal_rank)


@measure(*_BOTH, source="PROBE paper (2012), tables 3 and 4", weighted="copies")
def map(s: ScoredRows) -> float | None:  # the field's name for it
    """Average precision: mean over rows of grade above 0 of the precision among the rows down to them.

    Mean over queries that have such rows. Ties are averaged over, other than in `average_precision`.
    """
    return _ranking(s, ranked.average_precision)


@measure(
    *_BOTH,
    "ordinal",
    "regression",
    source="SciPy: kendalltau, variant b; Kendall 1945",
    weighted="copies",
    within=CORRELATION,
)
def kendall_tau(s: ScoredRows) -> float | None:
    """(pairs in the order of y - pairs in reverse) / root of (pairs of unequal y x pairs of unequal score).

    Within queries where there are queries; not defined where all y are equal.
    """
    return _ranking(s, ranked.kendall_tau)


@measure("ranking", source="custom of winner takes all", weighted="copies")
def winner_found(s: ScoredRows) -> float | None:
    """Share of queries whose row of highest score has the best grade of the query."""
    return _ranking(s, ranked.winner_found)


@measure("ranking", source="Breese, Heckerman & Kadie 1998", weighted="copies", number=_HALF_LIFE)
def expected_rank_utility(s: ScoredRows, half_life: float) -> float | None:
    """Sum of max(0, y - neutral) 2^(-(rank - 1) / (half_life - 1)) / its largest value, mean over queries with a gain.

    `neutral` is the loss's, else 0; `half_life` too where no number is written, else 5.
    """
    neutral = float(s.parameters.get("neutral", 0.0))

    def of_query(y: Vector, f: Vector) -> float | None:
        return ranked.utility(np.maximum(0.0, y - neutral), f, np.exp2(-np.arange(y.size) / (half_life - 1.0)))

    return _ranking(s, of_query)


@measure(*_BOTH, source="custom of information retrieval", number=_K, stem="precision")
def precision_at_k(s: ScoredRows, k: int) -> float | None:
    """Share of rows of grade above 0 among the k of highest score; `precision_at_k` is at the loss's k, else at 10."""
    return _by_weight(s, lambda y, f, weights: ranked.precision_at(y, f, int(k), weights))


@measure(*_BOTH, source="custom of information retrieval", number=_K, stem="recall")
def recall_at_k(s: ScoredRows, k: int) -> float | None:
    """Share of the rows of grade above 0 that are among the k of highest score; `recall_at_k` as `precision_at_k`."""
    return _by_weight(s, lambda y, f, weights: ranked.recall_at(y, f, int(k), weights))


@measure(*_BOTH, source="PROBE paper (2012), tables 3 and 4; R-precision")
def break_even(s: ScoredRows) -> float | None:
    """Precision among as many rows as there are of grade above 0, where it equals recall."""
    return _by_weight(s, ranked.break_even)
