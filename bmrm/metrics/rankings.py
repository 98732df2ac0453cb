"""Measures of rankings, means over queries."""

from __future__ import annotations

import numpy as np

from bmrm.metrics import ranked
from bmrm.metrics.core import Scored, measure
from bmrm.problem import Vector


def _ranking(s: Scored, measure: ranked.Measure) -> float | None:
    """The mean over queries; not defined for weights other than 1, which rankings have no place for."""
    if s.weights is not None and np.any(s.weights != 1.0):
        return None
    return ranked.mean_over_queries(measure, s.y.astype(np.float64), s.scores, s.groups)


@measure
def ndcg(s: Scored) -> float | None:
    """Normalised discounted cumulative gain over all ranks, mean over queries with a grade above 0."""
    return _ranking(s, ranked.ndcg)


@measure
def ndcg_at_10(s: Scored) -> float | None:
    """Normalised discounted cumulative gain of the first ten ranks, mean over queries with a grade above 0."""
    return _ranking(s, lambda y, f: ranked.ndcg(y, f, 10))


@measure
def mrr(s: Scored) -> float | None:
    """1 over the rank of the first row of grade above 0, mean over queries that have one."""
    return _ranking(s, ranked.reciprocal_rank)


@measure
def map(s: Scored) -> float | None:  # the field's name for it
    """Mean over queries with rows of grade above 0 of their average precision."""
    return _ranking(s, ranked.average_precision)


@measure
def kendall_tau(s: Scored) -> float | None:
    """Kendall's tau-b of grades and scores, within queries where there are queries."""
    return _ranking(s, ranked.kendall_tau)


@measure
def winner_found(s: Scored) -> float | None:
    """Share of queries whose row of highest score has the best grade of the query."""
    return _ranking(s, ranked.winner_found)


@measure
def expected_rank_utility(s: Scored) -> float | None:
    """The utility of Breese et al. at the loss's `half_life` and `neutral`, mean over queries with a gain."""
    half_life, neutral = float(s.parameters.get("half_life", 5.0)), float(s.parameters.get("neutral", 0.0))

    def of_query(y: Vector, f: Vector) -> float | None:
        return ranked.utility(np.maximum(0.0, y - neutral), f, np.exp2(-np.arange(y.size) / (half_life - 1.0)))

    return _ranking(s, of_query)


@measure
def precision_at_k(s: Scored) -> float | None:
    """Share of positive rows (of grade above 0) among the loss's `k` of highest score; 10 where it has none."""
    k = int(s.parameters.get("k", 10))
    return _ranking(s, lambda y, f: ranked.precision_at(y, f, k))


@measure
def recall_at_k(s: Scored) -> float | None:
    """Share of the positive rows (of grade above 0) that are among the loss's `k` of highest score."""
    k = int(s.parameters.get("k", 10))
    return _ranking(s, lambda y, f: ranked.recall_at(y, f, k))


@measure
def break_even(s: Scored) -> float | None:
    """Precision among as many rows as there are positive ones (of grade above 0), where it equals recall."""
    return _ranking(s, ranked.break_even)
