"""Measures of one ranking: the rows of a query with their grades, ordered by score.

Rows of equal score stand in no order: every measure is the mean over all orders of them, so that no model gains by
giving many rows one score. None where a measure is not defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

GRADES = 64
"""Most grades whose pairs are counted grade by grade."""
Array = NDArray[np.float64]
Measure = Callable[..., "float | None"]
"""(grades, scores), and (grades, scores, weights) where rows may have weights."""


def mean_over_queries(measure: Measure, *rows: Array, groups: NDArray[np.int64] | None) -> float | None:
    """The mean of a measure over the queries where it is defined; None where it is for none of them.

    `rows` are the arrays that the measure takes, an entry for each row.
    """
    if groups is None:
        return measure(*rows)
    order = np.argsort(groups, kind="stable")
    borders = np.flatnonzero(np.diff(groups[order])) + 1
    values = [measure(*(array[query] for array in rows)) for query in np.split(order, borders)]
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


def _ties(f: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows by falling score, and where in that order rows of equal scores begin."""
    order = np.argsort(-f, kind="stable")
    return order, np.append(0, np.flatnonzero(np.diff(f[order])) + 1)


def dcg_shares(f: Array, discounts: Array) -> Array:
    """(rows,) the discount of each row's rank, averaged over rows of equal score; `discounts` are by rank."""
    order, starts = _ties(f)
    lengths = np.diff(np.append(starts, f.size))
    shares = np.empty(f.size)
    shares[order] = np.repeat(np.add.reduceat(discounts, starts) / lengths, lengths)
    return shares


def utility(gains: Array, f: Array, discounts: Array) -> float | None:
    """sum of gain times discount of the rank, over its largest value; not defined where no row has a gain."""
    best = float(np.sort(gains)[::-1] @ discounts)
    return float(gains @ dcg_shares(f, discounts)) / best if best > 0.0 else None


def ndcg(y: Array, f: Array, ranks: int | None = None) -> float | None:
    """Normalised discounted cumulative gain of the first `ranks`: gains 2^y - 1, discounts 1 / log2(1 + rank)."""
    if y.min() < 0.0:
        return None
    rank = np.arange(1, y.size + 1)
    discounts = np.where(rank <= (y.size if ranks is None else ranks), 1.0 / np.log2(1.0 + rank), 0.0)
    return utility(np.exp2(y) - 1.0, f, discounts)


def reciprocal_rank(y: Array, f: Array) -> float | None:
    """1 over the rank of the first row of grade above 0; not defined where there is none."""
    relevant = y > 0.0
    if not relevant.any():
        return None
    top = f[relevant].max()
    before, tied = int(np.sum(f > top)), int(np.sum(f == top))
    good = int(np.sum(relevant & (f == top)))
    # The first good one of the tied rows is the (j + 1)-th of them where j others come first, which are drawn in turn.
    j = np.arange(tied - good + 1)
    others = np.cumprod(np.append(1.0, (tied - good - j[:-1]) / (tied - j[:-1])))
    return float(np.sum(others * good / (tied - j) / (before + j + 1)))


def relevant_among(y: Array, f: Array, k: float, weights: Array | None = None) -> float:
    """The weight of the rows of grade above 0 among rows of highest score that weigh k together."""
    mass = np.ones(f.size) if weights is None else weights
    order, starts = _ties(f)
    blocks = np.add.reduceat(mass[order], starts)
    good = np.add.reduceat(np.where(y > 0.0, mass, 0.0)[order], starts)
    taken = np.clip(k - (np.cumsum(blocks) - blocks), 0.0, blocks)
    shares = np.divide(taken, blocks, out=np.zeros(blocks.size), where=blocks > 0.0)
    return float(shares @ good)


def relevant(y: Array, weights: Array | None = None) -> float:
    """The weight of the rows of grade above 0."""
    return float(np.sum(y > 0.0) if weights is None else weights[y > 0.0].sum())


def precision_at(y: Array, f: Array, k: int, weights: Array | None = None) -> float | None:
    """Share of rows of grade above 0 among the k of highest score; missing ones count as irrelevant."""
    return relevant_among(y, f, k, weights) / k


def recall_at(y: Array, f: Array, k: int, weights: Array | None = None) -> float | None:
    """Share of the rows of grade above 0 that are among the k of highest score."""
    total = relevant(y, weights)
    return relevant_among(y, f, k, weights) / total if total > 0.0 else None


def break_even(y: Array, f: Array, weights: Array | None = None) -> float | None:
    """Precision, and recall, among as many rows as there are of grade above 0."""
    total = relevant(y, weights)
    return relevant_among(y, f, total, weights) / total if total > 0.0 else None


def average_precision(y: Array, f: Array) -> float | None:
    """Mean over the rows of grade above 0 of the precision among the rows down to them.

    In a block of n rows of equal score, g of them relevant, below N rows with G relevant: the row at place j is
    relevant with chance g / n, and then (j - 1) (g - 1) / (n - 1) of those before it in the block are, on average.
    """
    relevant = y > 0.0
    if not relevant.any():
        return None
    order, starts = _ties(f)
    lengths = np.diff(np.append(starts, f.size))
    good = np.add.reduceat(relevant[order].astype(np.float64), starts)
    before = np.cumsum(good) - good
    place = np.arange(f.size) - np.repeat(starts, lengths)
    inside = np.repeat((good - 1.0) / np.maximum(lengths - 1, 1), lengths) * place
    precision = (np.repeat(before, lengths) + 1.0 + inside) / np.arange(1, f.size + 1)
    return float(np.repeat(good / lengths, lengths) @ precision) / float(good.sum())


def kendall_tau(y: Array, f: Array) -> float | None:
    """Kendall's tau-b of grades and scores; not defined where either is constant."""
    if np.all(y == y[0]):
        return None
    if np.all(f == f[0]):
        return 0.0
    grades, counts = np.unique(y, return_counts=True)
    if len(grades) > GRADES:
        from scipy.stats import kendalltau  # whose imports take longer than most runs

        return float(kendalltau(y, f).statistic)
    order = np.argsort(y, kind="stable")
    levels = np.split(f[order], np.cumsum(counts)[:-1])
    below, agreeing = np.sort(levels[0]), 0
    for level in levels[1:]:
        higher, lower = np.searchsorted(below, level, "left"), np.searchsorted(below, level, "right")
        agreeing += int(higher.sum()) + int(lower.sum()) - below.size * level.size
        below = np.sort(np.concatenate((below, level)), kind="stable")
    of_grades, of_scores = (_untied(count, y.size) for count in (counts, np.unique(f, return_counts=True)[1]))
    return agreeing / math.sqrt(of_grades * of_scores)


def _untied(counts: NDArray[np.int64], rows: int) -> int:
    """The pairs of rows of different value, which so many have each."""
    return (rows * (rows - 1) - int(counts @ (counts - 1))) // 2


def winner_found(y: Array, f: Array) -> float | None:
    """Share of best grade among the rows of highest score; not defined where all have one grade."""
    if np.all(y == y[0]):
        return None
    return float(np.mean(y[f == f.max()] == y.max()))
