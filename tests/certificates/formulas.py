"""R once more: from the slow twins of the losses, with weights and means, and what its rounding is made of.

The value is a sum of terms. `slopes` bounds the derivative of R in each score from above, so that errors of scores can
be turned into errors of R; `terms` are the sizes of what is added or taken away inside a row's loss, where that is not
seen from its value and slopes (two large terms that cancel).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.conformance import twins_chains, twins_ranking, twins_rows
from tests.conformance.slow_twins import TWINS

STEP = 1e-3
"""Of the difference quotients that bound slopes, relative to 1 and the score."""


def _largest_node_cost(loss):
    _, names = twins_rows.classes(loss)
    return max(twins_rows.node_cost(loss, one, other) for one in names for other in names)


STEEPEST = {
    "hinge": lambda loss: 1.0,
    "cost_sensitive_hinge": lambda loss: max(loss.cost_positive, loss.cost_negative),
    "epsilon_insensitive": lambda loss: 1.0,
    "least_absolute_deviation": lambda loss: 1.0,
    "quantile": lambda loss: max(loss.tau, 1.0 - loss.tau),
    "huber": lambda loss: loss.delta,
    "huber_hinge": lambda loss: 1.0,
    "modified_huber": lambda loss: 4.0,
    "logistic": lambda loss: 1.0,
    "log_cosh": lambda loss: 1.0,
    "perceptron": lambda loss: 1.0,
    "novelty": lambda loss: 1.0,
    "multiclass_hinge": lambda loss: 1.0,
    "scaled_multiclass_hinge": lambda loss: 1.0 if loss.cost is None else float(np.max(loss.cost)) ** loss.beta,
    "softmax": lambda loss: 1.0,
    "weston_watkins": lambda loss: 4.0,
    "multilabel_hinge": lambda loss: 1.0,
    "ontology_hinge": lambda loss: _largest_node_cost(loss) ** loss.beta,
    "ontology_logistic": lambda loss: 1.0,
}
"""The largest slope of a row's loss in any of its scores, where there is one."""


def _logs(loss, y, f):
    return sum(map(abs, f))


def _tweedie(loss, y, f):
    p = loss.power
    rise, fall = twins_rows.exp((2.0 - p) * f) / (2.0 - p), y * twins_rows.exp((1.0 - p) * f) / (p - 1.0) if y else 0.0
    return (rise + fall) * (1.0 + abs(f))


def _quadratic(loss, y, f):
    miss = np.abs(np.subtract(f, y))
    return float(miss @ (np.eye(len(f)) if loss.M is None else np.abs(loss.M)) @ miss)


TERMS = {
    "log_cosh": lambda loss, y, f: abs(f - y) + 1.0,
    "poisson": lambda loss, y, f: twins_rows.exp(f) + abs(y * f),
    "gamma": lambda loss, y, f: abs(f) + y * twins_rows.exp(-f),
    "tweedie": _tweedie,
    "softmax": _logs,
    "ontology_logistic": _logs,
    "ontology_hinge": _logs,
    "multivariate_least_squares": _quadratic,
}


def size_of_target(loss, y):
    """What scores are compared with: targets, margins, costs."""
    if loss.task == "regression":
        return 1.0 + abs(y)
    if loss.task == "multivariate":
        return 1.0 + max(map(abs, y))
    if loss.task == "ontology":
        return 1.0 + 2.0 * len(loss.edges) + float(np.max(getattr(loss, "cost", None) or 0.0))
    return 1.0 + getattr(loss, "rho", 0.0) + getattr(loss, "h", 0.0) + float(np.max(getattr(loss, "cost", None) or 0.0))


@dataclass(frozen=True)
class Risk:
    """R and the parts of its rounding, at some scores.

    Attributes
    ----------
    value : R.
    slopes : like the scores, at least the size of R's derivative in each of them at these scores.
    steepest : likewise, of its derivative anywhere; where there is no such number, `slopes`.
    terms : the sizes of what is added, apart from value and slopes times scores.
    """

    value: float
    slopes: np.ndarray
    steepest: np.ndarray
    terms: float


def risk(problem, f, transitions=None) -> Risk:
    """R of a problem at the scores `f` (rows,) or (rows, scores); sequences have parameters besides."""
    if problem.loss.decomposes == "rows":
        return _rows(problem, f)
    if problem.loss.task == "sequence":
        return _sentences(problem, f, transitions)
    return _sample(problem, f)


def _rows(problem, f) -> Risk:
    loss, twin = problem.loss, TWINS[problem.loss.name]
    weights = np.ones(len(f)) if problem.weights is None else problem.weights
    values, terms, slopes = np.zeros(len(f)), np.zeros(len(f)), np.zeros(f.shape)
    for i in np.flatnonzero(weights):
        y, row = problem.plain[i], f[i].tolist()

        def at(score, y=y):
            return twin(loss, [y], [score])

        values[i] = at(row)
        terms[i] = abs(values[i]) + (TERMS[loss.name](loss, y, row) if loss.name in TERMS else 0.0)
        slopes[i] = _steep(at, row, values[i])
    slopes *= _beside(weights, slopes)
    most = STEEPEST.get(loss.name)
    steepest = slopes if most is None else np.ones(f.shape) * _beside(weights, slopes) * most(loss)
    sizes = np.array([size_of_target(loss, y) for y in problem.plain])
    mass = math.fsum(weights)
    inner = float(np.sum(slopes * _beside(sizes, slopes)))
    return Risk(
        math.fsum(weights * values) / mass,
        slopes / mass,
        steepest / mass,
        (math.fsum(weights * terms) + inner) / mass,
    )


def _beside(weights, table):
    return weights if table.ndim == 1 else weights[:, None]


def _steep(at, row, value):
    """Difference quotients to both sides of each score: of a convex function the larger one is above the slope."""
    single = not isinstance(row, list)
    scores = [row] if single else row
    found = []
    for k, score in enumerate(scores):
        h = STEP * max(1.0, abs(score))
        sides = []
        for side in (score - h, score + h):
            moved = side if single else [*scores[:k], side, *scores[k + 1 :]]
            sides.append(abs(at(moved) - value) / h if math.isfinite(value) else math.inf)
        found.append(max(sides))
    return found[0] if single else found


def _sentences(problem, f, transitions) -> Risk:
    loss = problem.loss
    formula = twins_chains.FORMULAS[loss.name]
    starts = np.flatnonzero(np.diff(problem.groups, prepend=problem.groups[0] - 1))
    lengths = np.diff(np.append(starts, len(f)))
    weights = np.ones(len(starts)) if problem.weights is None else problem.weights[starts]
    flat = np.concatenate((f.ravel(), transitions.ravel())).tolist()
    sentences = twins_chains.sentences(loss, problem.plain, flat)
    values = np.array([formula(loss, *sentence) for sentence in sentences])
    mass = math.fsum(weights)
    rates = lengths ** getattr(loss, "beta", 0.0)
    each = weights / mass * rates
    slopes = np.concatenate((np.repeat(each, lengths)[:, None].repeat(f.shape[1], 1).ravel(), np.zeros(0)))
    of_transitions = np.full(transitions.size, float(each @ (lengths - 1)))
    both = np.concatenate((slopes, of_transitions))
    value = math.fsum(weights * values) / mass
    terms = math.fsum(weights * (np.abs(values) + rates * lengths)) / mass + float(both.sum())
    return Risk(value, both, both, terms)


def _sample(problem, f) -> Risk:
    loss = problem.loss
    counts = np.ones(len(f), int) if problem.weights is None else problem.weights.astype(int)
    rows = np.repeat(np.arange(len(f)), counts)
    plain = [problem.plain[i] for i in rows]
    total, mass, each = _whole(loss, plain, f[rows].tolist())
    slopes = np.zeros(len(f))
    np.add.at(slopes, rows, each)
    return Risk(total / mass, slopes, slopes, abs(total) / mass + float(slopes.sum()))


def _whole(loss, y, f) -> tuple[float, float, Any]:
    """The sum of the twin, what it is divided by, and for each row how steep the quotient may be in its score."""
    name, rows = loss.name, len(y)
    twin = TWINS[name]
    total = twin(loss, y, f)
    if name in ("f_beta", "precision_at_k", "recall_at_k", "break_even"):
        return total, 1.0, np.full(rows, 1.0 / rows)
    if name == "ordinal_thresholds":
        grades = len(set(y))
        return total, float(rows), np.full(rows, (grades - 1 if loss.cuts == "all" else min(2, grades - 1)) / rows)
    if name in ("roc_area", "partial_roc_area", "ordinal"):
        partners = np.array([sum(other != own for other in y) for own in y], float)
        pairs = partners.sum() / 2.0
        if name != "partial_roc_area":
            return total, pairs, partners / pairs
        mass = pairs * loss.max_fpr
        return total, mass, np.where(np.array(y) > 0, partners * loss.max_fpr / mass, partners / mass)
    return total, *_queries(loss, y)


def _queries(loss, y):
    """Of losses over queries: the number that count, and how steep a row's score may be."""
    rows = np.zeros(len(y))
    active = pairs_of_all = 0
    for group in dict.fromkeys(name for name, _ in y):
        members = [k for k, (name, _) in enumerate(y) if name == group]
        grades = np.array([y[k][1] for k in members])
        levels = twins_ranking.levels_of(loss, grades)
        pairs = np.array([np.sum(levels != level) for level in levels], float)
        if not pairs.any():
            continue
        active += 1
        pairs_of_all += pairs.sum() / 2.0
        if loss.name == "rank_hinge":
            rows[members] = pairs if loss.average == "pairs" else pairs / (pairs.sum() / 2.0)
        else:
            joint = getattr(loss, "joint", "ranks")
            share = 1.0  # of winner_takes_all, whose terms are not divided
            if joint != "ranks" and loss.name != "winner_takes_all":
                share = twins_ranking.share_of_pairs(joint, len(members), pairs.sum() / 2.0)
            rows[members] = 1.0 if joint == "ranks" else share * pairs
    mass = pairs_of_all if loss.name == "rank_hinge" and loss.average == "pairs" else float(active)
    return mass, rows / mass
