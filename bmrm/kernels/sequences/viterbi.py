"""The best labeling of each chain, plain or with a cost of each error added (Viterbi).

Conventions as in `bmrm.kernels.sequences.marginals`.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import inlined, jit
from bmrm.kernels.sequences.marginals import step_score


@inlined
def _first_largest(values):  # type: ignore[no-untyped-def]
    best = np.int64(0)
    for k in range(1, values.size):
        if values[k] > values[best]:
            best = k
    return best


@jit
def best_labels(f, trans, y, cost, starts, path):  # type: ignore[no-untyped-def]
    """Fill `path` (tokens,) with each sentence's labeling of the highest score plus `cost` per label that is not `y`.

    At ties the lower label. For transitions that are not observed; `y` is not read where `cost` is 0.
    """
    labels = trans.shape[0]
    longest = 0
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    D = np.empty((longest, labels))
    for s in range(starts.size - 1):
        first, steps = starts[s], starts[s + 1] - starts[s]
        for t in range(steps):
            if t == 0:
                D[0] = 0.0
            else:
                _best_before(D[t - 1], trans, D[t])
            here, scores = D[t], f[first + t]
            for k in range(labels):
                here[k] += scores[k]
            if cost != 0.0:
                own = here[y[first + t]]
                for k in range(labels):
                    here[k] += cost
                here[y[first + t]] = own
        label = _first_largest(D[steps - 1])
        path[first + steps - 1] = label
        for back in range(1, steps):
            t = steps - 1 - back
            best = np.int64(0)
            for i in range(1, labels):
                if D[t, i] + trans[i, label] > D[t, best] + trans[best, label]:
                    best = i
            label = best
            path[first + t] = label


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


@jit
def best_labels_observed(f, trans, y, cost, starts, path):  # type: ignore[no-untyped-def]
    """As `best_labels`, for observed transitions."""
    labels = trans.shape[0]
    for s in range(starts.size - 1):
        first, steps = starts[s], starts[s + 1] - starts[s]
        D = np.empty((steps, labels))
        came = np.zeros((steps, labels), np.int64)
        for t in range(steps):
            for j in range(labels):
                own = f[first + t, j] + (cost if cost != 0.0 and j != y[first + t] else 0.0)
                if t == 0:
                    D[0, j] = own
                    continue
                best = D[t - 1, 0] + step_score(f, trans, True, first + t, 0, j)
                for i in range(1, labels):
                    reach = D[t - 1, i] + step_score(f, trans, True, first + t, i, j)
                    if reach > best:
                        best, came[t, j] = reach, i
                D[t, j] = best + own
        label = _first_largest(D[steps - 1])
        for t in range(steps - 1, -1, -1):
            path[first + t] = label
            label = came[t, label]
