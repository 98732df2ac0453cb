"""The judge: J(w) of every returned w in float64, from the formulas, with NumPy and SciPy alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from benchmarks.race.problem import Task

Array = NDArray[np.float64]
MEANS: dict[str, Callable[[Array, Any, dict[str, Any]], float]] = {
    "hinge": lambda f, y, o: float(np.mean(np.maximum(0.0, 1.0 - y * f))),
    "squared_hinge": lambda f, y, o: 0.5 * float(np.mean(np.maximum(0.0, 1.0 - y * f) ** 2)),
    "logistic": lambda f, y, o: float(np.mean(np.logaddexp(0.0, -y * f))),
    "least_squares": lambda f, y, o: 0.5 * float(np.mean((f - y) ** 2)),
    "least_absolute_deviation": lambda f, y, o: float(np.mean(np.abs(f - y))),
    "quantile": lambda f, y, o: float(np.mean(np.maximum(o["tau"] * (y - f), (1.0 - o["tau"]) * (f - y)))),
    "epsilon_insensitive": lambda f, y, o: float(np.mean(np.maximum(0.0, np.abs(f - y) - o["epsilon"]))),
    "squared_epsilon_insensitive": lambda f, y, o: (
        0.5 * float(np.mean(np.maximum(0.0, np.abs(f - y) - o["epsilon"]) ** 2))
    ),
    "poisson": lambda f, y, o: float(np.mean(np.exp(np.minimum(f, 700.0)) - y * f)),
}
"""Mean loss of one score per row, by the name of the loss."""


def _huber(f: Array, y: Array, o: dict[str, Any]) -> float:
    size, delta = np.abs(f - y), o["delta"]
    return float(np.mean(np.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta))))


MEANS["huber"] = _huber


def objective(task: Task, w: Array) -> float:
    """J(w), w laid out as bmrm does: (features, scores per row) in C order, then parameters of the loss."""
    w = np.ascontiguousarray(w, np.float64).ravel()
    if not np.all(np.isfinite(w)):
        return float("inf")
    problem = task.problem
    penalty = problem.l1 * float(np.abs(w).sum()) + 0.5 * problem.l2 * float(w @ w)
    with np.errstate(over="ignore"):
        return penalty + mean_loss(task, w)


def mean_loss(task: Task, w: Array) -> float:
    """R(w)."""
    options = dict(task.problem.options)
    if task.loss in MEANS:
        return MEANS[task.loss](task.X @ w, task.y, options)
    return WHOLE[task.loss](task, w)


def _table(task: Task, w: Array) -> Array:
    """Scores (rows, classes)."""
    return np.asarray(task.X @ w[: task.features * task.labels.size].reshape(task.features, -1))


def _multiclass_hinge(task: Task, w: Array) -> float:
    f = _table(task, w)
    rows = np.arange(task.rows)
    own = f[rows, task.classes]
    reach = f + 1.0
    reach[rows, task.classes] -= 1.0
    return float(np.mean(reach.max(axis=1) - own))


def _softmax(task: Task, w: Array) -> float:
    f = _table(task, w)
    return float(np.mean(logsumexp(f, axis=1) - f[np.arange(task.rows), task.classes]))


def pairs_sum(high: Array, low: Array) -> float:
    """Sum over all pairs of max(0, 1 - (high_i - low_j)), by prefix sums of the sorted `low`."""
    order = np.sort(low)
    above = np.append(np.cumsum(order[::-1])[::-1], 0.0)
    first = np.searchsorted(order, high - 1.0, side="right")
    return float(np.sum((low.size - first) * (1.0 - high) + above[first]))


def _roc_area(task: Task, w: Array) -> float:
    f, positive = task.X @ w, task.y > 0.0
    return pairs_sum(f[positive], f[~positive]) / (float(positive.sum()) * float((~positive).sum()))


def _rank_hinge(task: Task, w: Array) -> float:
    f, y, groups = task.X @ w, task.y, task.dataset.targets.groups
    total, pairs = 0.0, 0
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        for grade in np.unique(y[rows])[1:]:
            high, low = rows[y[rows] == grade], rows[y[rows] < grade]
            total += pairs_sum(f[high], f[low])
            pairs += high.size * low.size
    return total / pairs


def _f_beta(task: Task, w: Array) -> float:
    """max over tables (a, b) of 1 - F(a, b) + (sum of changed scores) / m, all of them, a block of rows at a time."""
    f, positive = task.X @ w, task.y > 0.0
    weight, m = task.problem.options.get("beta", 1.0) ** 2, task.rows
    lost = np.append(0.0, np.cumsum(np.sort(f[positive]))) / m
    won = np.append(0.0, np.cumsum(np.sort(f[~positive])[::-1])) / m
    positives, b = lost.size - 1, np.arange(won.size)
    best = -np.inf
    for start in range(0, lost.size, 256):
        a = np.arange(start, min(lost.size, start + 256))[:, None]
        reach = 1.0 - (1.0 + weight) * a / (weight * positives + a + b) - lost[positives - a] + won[b]
        best = max(best, float(reach.max()))
    return best


def _sentences(task: Task) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(starts, lengths), the longest sentences first."""
    groups = task.dataset.targets.groups
    assert groups is not None
    edges = np.concatenate([[0], np.flatnonzero(np.diff(groups)) + 1, [task.rows]])
    lengths = np.diff(edges)
    order = np.argsort(-lengths, kind="stable")
    return edges[:-1][order], lengths[order]


def _chains(task: Task, w: Array, join: Callable[[Array], Array], margin: float) -> float:
    """Mean over sentences of join over labelings of (margin errors + score), less the score of the true one."""
    f, labels = _table(task, w), task.labels.size
    transitions = w[task.features * labels :].reshape(labels, labels)
    starts, lengths = _sentences(task)
    own, tokens = task.classes, np.arange(task.rows)
    inner = np.ones(task.rows, bool)
    inner[starts] = False
    score = float(f[tokens, own].sum()) + float(transitions[own[:-1], own[1:]][inner[1:]].sum())
    reach = f + margin
    reach[tokens, own] -= margin
    state = reach[starts]
    for t in range(1, int(lengths[0])):
        alive = int(np.count_nonzero(lengths > t))
        state[:alive] = join(state[:alive, :, None] + transitions) + reach[starts[:alive] + t]
    return (float(join(state[:, :, None]).sum()) - score) / starts.size


WHOLE: dict[str, Callable[[Task, Array], float]] = {
    "multiclass_hinge": _multiclass_hinge,
    "softmax": _softmax,
    "roc_area": _roc_area,
    "rank_hinge": _rank_hinge,
    "f_beta": _f_beta,
    "chain_crf": lambda task, w: _chains(task, w, lambda s: logsumexp(s, axis=1), 0.0),
    "chain_margin": lambda task, w: _chains(task, w, lambda s: s.max(axis=1), 1.0),
}
"""R(w) of the other losses."""
