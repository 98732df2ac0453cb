"""Whole-sample and ranking losses once more, from their formulas: every pair, labeling, cut point or permutation."""

import itertools
import math

import numpy as np


def _pairs(y, f):
    """(sum of hinges, number of pairs) over the pairs of different grades."""
    hinges = [max(0.0, 1.0 - (f[i] - f[j])) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    return math.fsum(hinges), len(hinges)


def queries(y, f):
    """The grades and the scores of each query; `y` are pairs of group and grade."""
    for group in dict.fromkeys(name for name, _ in y):
        rows = [k for k, (name, _) in enumerate(y) if name == group]
        yield np.array([y[k][1] for k in rows]), np.array([f[k] for k in rows])


def _rank_hinge(loss, y, f):
    sums = [_pairs(grades, scores) for grades, scores in queries(y, f)]
    if loss.average == "pairs":
        return math.fsum(total for total, _ in sums)
    return math.fsum(total / pairs for total, pairs in sums if pairs)


def _partial_roc_area(loss, y, f):
    high = [score for target, score in zip(y, f, strict=True) if target > 0]
    low = sorted((score for target, score in zip(y, f, strict=True) if target < 0), reverse=True)
    shares = [min(1.0, max(0.0, loss.max_fpr * len(low) - k)) for k in range(len(low))]
    return math.fsum(
        share * max(0.0, 1.0 - (p - n)) for p in high for n, share in zip(low, shares, strict=True) if share
    )


def worst_labeling(delta, y, f, size=None):
    """The multivariate hinge by looking at every contingency table; `delta(a, b)` of true and false positives."""
    high = sorted((score for target, score in zip(y, f, strict=True) if target > 0), reverse=True)
    low = sorted((score for target, score in zip(y, f, strict=True) if target < 0), reverse=True)
    best = 0.0 if size is not None and size != len(high) else -math.inf
    for a in range(len(high) + 1):
        for b in range(len(low) + 1):
            if size is None or a + b == size:
                margin = math.fsum(low[:b]) - math.fsum(high[a:])
                best = max(best, delta(a, b) + margin / len(y))
    return best


def _f_beta(loss, y, f):
    positives, weight = sum(target > 0 for target in y), loss.beta**2
    return worst_labeling(lambda a, b: 1.0 - (1.0 + weight) * a / (weight * positives + a + b), y, f)


def _at_k(divisor):
    def total(loss, y, f):
        positives = sum(target > 0 for target in y)
        k = getattr(loss, "k", positives)
        return worst_labeling(lambda a, b: 1.0 - a / divisor(k, positives), y, f, size=k)

    return total


def _ordinal_thresholds(loss, y, f):
    grades, total = sorted(set(y)), 0.0
    for k in range(len(grades) - 1):
        above, below = set(grades[k + 1 :]), set(grades[: k + 1])
        if loss.cuts == "immediate":
            above, below = {grades[k + 1]}, {grades[k]}

        def cost(cut, above=above, below=below):
            return math.fsum(
                max(0.0, 1.0 - score + cut) if target in above else max(0.0, 1.0 + score - cut)
                for target, score in zip(y, f, strict=True)
                if target in above or target in below
            )

        total += min(cost(score + side) for score in f for side in (-1.0, 1.0))
    return total


def share_of_pairs(joint, rows, pairs):
    """What a pair of a query with so many rows and pairs counts."""
    return {"pairs": 1.0 / rows, "pair_mean": 1.0 / max(pairs, 1.0), "pair_sum": 1.0}[joint]


def _rankings(measure):
    """The sum over queries; `measure(loss, grades)` gives the levels, the weights by rank, the loss of a ranking.

    Over all permutations of each query.
    """

    def total(loss, y, f):
        values = []
        for grades, scores in queries(y, f):
            levels, weights, lost = measure(loss, grades)
            if len(set(levels.tolist())) < 2:
                continue
            order = np.argsort(-levels, kind="stable")
            reference = np.array([weights[levels[order] == level].mean() for level in levels])
            above = [(i, j) for i in range(len(levels)) for j in range(len(levels)) if levels[i] > levels[j]]

            def joint(ranks, scores=scores, above=above, weights=weights, reference=reference):
                if loss.joint == "ranks":
                    return float((weights[list(ranks)] - reference) @ scores)
                share = share_of_pairs(loss.joint, len(scores), len(above))
                return share * math.fsum(scores[j] - scores[i] for i, j in above if ranks[i] > ranks[j])

            values.append(
                max(lost(np.array(ranks)) + joint(ranks) for ranks in itertools.permutations(range(len(grades))))
            )
        return math.fsum(values)

    return total


def assignment(loss, grades):
    gains = np.exp2(grades) - 1.0 if loss.name == "ndcg" else np.maximum(0.0, grades - loss.neutral)
    ranks = np.arange(1, len(grades) + 1)
    if loss.name == "ndcg":
        discounts = np.where(ranks <= (loss.truncation or len(ranks)), 1.0 / np.log2(1.0 + ranks), 0.0)
    else:
        discounts = 2.0 ** (-(ranks - 1) / (loss.half_life - 1.0))
    best = float(np.sort(gains)[::-1] @ discounts) or 1.0
    weights = discounts if loss.decay is None else ranks**-loss.decay
    return gains, weights, lambda order: 1.0 - float(discounts[order] @ gains) / best


def _reciprocal(loss, grades):
    relevant = grades > 0
    return (
        relevant.astype(float),
        1.0 / np.arange(1, len(grades) + 1),
        lambda order: 1.0 - 1.0 / (1 + min(order[relevant])),
    )


def _winner(loss, grades):
    best = (grades == grades.max()).astype(float)
    return best, np.eye(1, len(grades))[0], lambda order: 1.0 - best[np.argmin(order)]


def _winners(loss, y, f):
    if loss.joint == "ranks":
        return _rankings(_winner)(loss, y, f)
    terms = []
    for grades, scores in queries(y, f):
        best = grades == grades.max()
        terms += [max(0.0, 1.0 + score - scores[best].mean()) for score in scores[~best]]
    return math.fsum(terms)


def levels_of(loss, grades):
    """The numbers by which a query's rows differ for the loss: rows of one level are of equal worth."""
    measures = {"mean_reciprocal_rank": _reciprocal, "winner_takes_all": _winner}
    if loss.name in ("ndcg", "expected_rank_utility"):
        return assignment(loss, grades)[0]
    return measures[loss.name](loss, grades)[0] if loss.name in measures else grades


TWINS = {
    "ordinal": lambda loss, y, f: _pairs(y, f)[0],
    "rank_hinge": _rank_hinge,
    "partial_roc_area": _partial_roc_area,
    "f_beta": _f_beta,
    "precision_at_k": _at_k(lambda k, positives: k),
    "recall_at_k": _at_k(lambda k, positives: positives),
    "break_even": _at_k(lambda k, positives: positives),
    "ordinal_thresholds": _ordinal_thresholds,
    "ndcg": _rankings(assignment),
    "expected_rank_utility": _rankings(assignment),
    "mean_reciprocal_rank": _rankings(_reciprocal),
    "winner_takes_all": _winners,
}
