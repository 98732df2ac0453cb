"""Targets of every task, as users give them and as the slow twins take them, for rows with a hidden score."""

import numpy as np

from bmrm.data.labels import LabelSets
from tests.conformance import twins_rows

DRAWS = {}


def task(name):
    def keep(function):
        DRAWS[name] = function
        return function

    return keep


def classes_of(rng, hidden, count, weights):
    """Classes 0 to count - 1 by rising hidden score, each of them in some row of positive weight."""
    mode = rng.choice(["separable", "noisy", "random", "rare"], p=[0.3, 0.4, 0.2, 0.1])
    rows = len(hidden)
    score = hidden + (0.0 if mode == "separable" else rng.normal(size=rows) * (1.0 if mode == "noisy" else 100.0))
    rank = np.argsort(np.argsort(score))
    y = np.minimum((rank * count) // rows, count - 1)
    if mode == "rare":
        y[:] = 0
    present = rng.permutation(np.flatnonzero(weights > 0.0))
    for k in range(count):
        if not np.any(y[present] == k):
            y[present[k]] = k
    missing = [k for k in range(count) if not np.any(y[present] == k)]
    for k in missing:  # overwritten by one that came later
        y[next(i for i in present if np.sum(y[present] == y[i]) > 1)] = k
    return y


@task("binary")
def _binary(rng, hidden, loss, weights, groups):
    y = classes_of(rng, hidden, 2, weights)
    names = [np.array([-1.0, 1.0]), np.array([0, 1]), np.array([1, 2]), np.array(["no", "yes"])]
    return names[rng.integers(len(names))][y], (2.0 * y - 1.0).tolist()


@task("multiclass")
def _multiclass(rng, hidden, loss, weights, groups):
    cost = getattr(loss, "cost", None)
    count = len(cost) if cost is not None else int(rng.integers(2, min(5, 1 + np.count_nonzero(weights))))
    y = classes_of(rng, hidden, count, weights)
    names = np.array(["a", "b", "c", "d", "e"]) if rng.random() < 0.3 else np.array([0, 1, 2, 5, 9])
    return names[y], y.tolist()


@task("regression")
def _regression(rng, hidden, loss, weights, groups):
    y = hidden + 0.3 * rng.normal(size=len(hidden))
    mode = rng.choice(["plain", "whole", "constant", "large", "small", "far"], p=[0.5, 0.2, 0.1, 0.08, 0.06, 0.06])
    least = getattr(loss, "targets_from", "")
    if mode == "whole":
        y = np.round(y)
    elif mode == "constant":
        y[:] = rng.choice([0.0, 1.0, -3.7])
    elif mode == "far":
        y[rng.integers(len(y))] *= 1e3
    elif not least and mode in ("large", "small"):
        y *= 10.0 ** (rng.uniform(0, 6) if mode == "large" else rng.uniform(-6, 0))
    if least:
        y = np.abs(y) + (0.01 if least == "> 0" else 0.0)
    return y, y.tolist()


@task("novelty")
def _novelty(rng, hidden, loss, weights, groups):
    return None, [0.0] * len(hidden)


@task("multivariate")
def _multivariate(rng, hidden, loss, weights, groups):
    outputs = int(rng.integers(2, 4)) if loss.M is None else len(loss.M)
    y = hidden[:, None] * rng.normal(size=outputs) + rng.normal(size=(len(hidden), outputs))
    return y, y.tolist()


@task("ordinal")
def _ordinal(rng, hidden, loss, weights, groups):
    y = classes_of(rng, hidden, int(rng.integers(2, min(5, 1 + np.count_nonzero(weights)))), weights)
    grades = np.sort(rng.choice(np.arange(-3, 12), size=5, replace=False)).astype(float)[y]
    return grades, grades.tolist()


@task("ranking")
def _ranking(rng, hidden, loss, weights, groups):
    y = np.clip(np.round(hidden - hidden.min()), 0, 4) if rng.random() < 0.6 else rng.integers(0, 4, len(hidden)) * 1.0
    present = np.flatnonzero(weights > 0.0)
    mates = next((i, j) for i in present for j in present if i < j and groups[i] == groups[j])
    y[mates[0]], y[mates[1]] = 0.0, 3.0
    return y, list(zip(groups.tolist(), y.tolist(), strict=True))


@task("sequence")
def _sequence(rng, hidden, loss, weights, groups):
    y = classes_of(rng, hidden, int(rng.integers(2, 4)), weights)
    names = np.array(["B", "I", "O"]) if rng.random() < 0.5 else np.array([0, 1, 2])
    return names[y], list(zip(groups.tolist(), y.tolist(), strict=True))


@task("multilabel")
def _multilabel(rng, hidden, loss, weights, groups):
    names = np.array([1.0, 2.0, 5.0, 7.0])[: int(rng.integers(2, 5))]
    table = hidden[:, None] + 2.0 * rng.normal(size=(len(hidden), len(names))) > 0.3
    row = np.flatnonzero(weights > 0.0)[0]
    table[row] = True  # each label is seen
    return LabelSets.from_rows([names[each] for each in table]), [set(np.flatnonzero(each).tolist()) for each in table]


@task("ontology")
def _ontology(rng, hidden, loss, weights, groups):
    _, candidates = twins_rows.classes(loss)
    names = np.array(candidates)[classes_of(rng, hidden, len(candidates), weights)]
    return names, names.tolist()
