"""The best labeling of a chain, plain or with a cost of each error added (Viterbi): `best` and `worst` of chains.

Conventions as in `bmrm.kernels.structures.sums`; the parameters of chains are the scores of transitions, see
`bmrm.kernels.sequences.marginals`.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import inlined, jit
from bmrm.kernels.sequences.marginals import step_score


@jit
def best(f, trans, given, path):  # type: ignore[no-untyped-def]
    """Fill `path` with the labeling of the highest score; at ties the lower label, from the end."""
    _search(f, trans, path, 0.0, path)


@inlined
def worst(f, trans, given, truth, path):  # type: ignore[no-untyped-def]
    """Fill `path` with the labeling of most errors + score; at ties the lower label, from the end."""
    _search(f, trans, truth, 1.0, path)


@inlined
def _search(f, trans, y, cost, path):  # type: ignore[no-untyped-def]
    """The labeling of the highest score plus `cost` per label that is not `y`, which is not read where that is 0."""
    if f.shape[1] > trans.shape[0]:
        _best_observed(f, trans, y, cost, path)
    else:
        _best_constant(f, trans, y, cost, path)


@inlined
def _first_largest(values):  # type: ignore[no-untyped-def]
    largest = np.int64(0)
    for k in range(1, values.size):
        if values[k] > values[largest]:
            largest = k
    return largest


@inlined
def _best_constant(f, trans, y, cost, path):  # type: ignore[no-untyped-def]
    labels, steps = trans.shape[0], f.shape[0]
    D = np.empty((steps, labels))
    for t in range(steps):
        if t == 0:
            D[0] = 0.0
        else:
            _best_before(D[t - 1], trans, D[t])
        here, scores = D[t], f[t]
        for k in range(labels):
            here[k] += scores[k]
        if cost != 0.0:
            own = here[y[t]]
            for k in range(labels):
                here[k] += cost
            here[y[t]] = own
    label = _first_largest(D[steps - 1])
    path[steps - 1] = label
    for back in range(1, steps):
        t = steps - 1 - back
        first = np.int64(0)
        for i in range(1, labels):
            if D[t, i] + trans[i, label] > D[t, first] + trans[first, label]:
                first = i
        label = first
        path[t] = label


@inlined
def _best_before(before, trans, out):  # type: ignore[no-untyped-def]
    """out[j] = the largest of before[i] + trans[i, j]."""
    labels = trans.shape[0]
    score, row = before[0], trans[0]
    for j in range(labels):
        out[j] = score + row[j]
    for i in range(1, labels):
        score, row = before[i], trans[i]
        for j in range(labels):
            reach = score + row[j]
            out[j] = reach if reach > out[j] else out[j]


@inlined
def _best_observed(f, trans, y, cost, path):  # type: ignore[no-untyped-def]
    labels, steps = trans.shape[0], f.shape[0]
    D = np.empty((steps, labels))
    came = np.zeros((steps, labels), np.int64)
    for t in range(steps):
        for j in range(labels):
            own = f[t, j] + (cost if cost != 0.0 and j != y[t] else 0.0)
            if t == 0:
                D[0, j] = own
                continue
            reached = D[t - 1, 0] + step_score(f, trans, True, t, 0, j)
            for i in range(1, labels):
                reach = D[t - 1, i] + step_score(f, trans, True, t, i, j)
                if reach > reached:
                    reached, came[t, j] = reach, i
            D[t, j] = reached + own
    label = _first_largest(D[steps - 1])
    for t in range(steps - 1, -1, -1):
        path[t] = label
        label = came[t, label]
