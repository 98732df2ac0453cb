"""The labeling of a chain that violates its margin most, for margins and slacks rescaled by errors.

Conventions as in `bmrm.kernels.structures.sums` and `bmrm.kernels.sequences.marginals`.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import inlined, jit
from bmrm.kernels.sequences.marginals import step_score

U = np.uint64


@inlined
def terms(path, f, trans, given, at):  # type: ignore[no-untyped-def]
    """Where the terms of a labeling's score stand: from token to token label, transition, observed transition."""
    labels, width, steps = trans.shape[0], f.shape[1], path.size
    count, before, begin = 1, path[0], trans.size
    at[0] = begin + before
    for t in range(1, steps):
        label, begin = path[t], begin + width
        pair = before * labels + label
        at[count] = begin + label
        at[count + 1] = pair
        count += 2
        if width > labels:
            at[count] = begin + labels + pair
            count += 1
        before = label
    return count


@inlined
def score(path, f, trans, given):  # type: ignore[no-untyped-def]
    """The score of a labeling of one sentence."""
    labels, before = U(trans.shape[0]), U(path[0])
    total = f[U(0), before]
    for t in range(1, path.size):
        label = U(path[t])
        total += f[U(t), label] + trans[before, label]
        before = label
    if U(f.shape[1]) > labels:
        for t in range(1, path.size):
            total += f[U(t), labels + U(path[t - 1]) * labels + U(path[t])]
    return total


@jit
def violating(f, trans, given, truth, margins, rates, path):  # type: ignore[no-untyped-def]
    """Exact for all margins and rates, by one dynamic program over the number of errors."""
    labels, steps = trans.shape[0], f.shape[0]
    observed = f.shape[1] > labels
    D = np.empty((steps, labels, steps + 1))
    _by_errors(f, trans, observed, truth, D)
    t = steps - 1
    worst, errors, label = 0.0, 0, truth[t]
    for e in range(1, t + 2):
        for j in range(labels):
            violation = rates[e] * (margins[e] + D[t, j, e])
            if violation > worst:
                worst, errors, label = violation, e, j
    if errors == 0:
        for at in range(steps):
            path[at] = truth[at]
        return
    e = errors
    while True:
        path[t] = label
        e -= label != truth[t]
        if t == 0:
            break
        best, top = np.int64(0), D[t - 1, 0, e] + step_score(f, trans, observed, t, 0, label)
        for i in range(1, labels):
            reach = D[t - 1, i, e] + step_score(f, trans, observed, t, i, label)
            if reach > top:
                best, top = i, reach
        label = best
        t -= 1


@jit
def _by_errors(f, trans, observed, y, D):  # type: ignore[no-untyped-def]
    """Fill D[t, j, e]: by how much the best start with e errors that ends in label j at t exceeds the start of `y`."""
    labels = trans.shape[0]
    for t in range(f.shape[0]):
        truth = f[t, y[t]]
        for j in range(labels):
            right = j == y[t]
            for e in range(t + 2):
                D[t, j, e] = -np.inf
            if t == 0:
                D[0, j, 0 if right else 1] = f[0, j] - truth
                continue
            own_step = step_score(f, trans, observed, t, y[t - 1], y[t])
            here = D[t, j, 0 if right else 1 :]
            for i in range(labels):
                gain = step_score(f, trans, observed, t, i, j) - own_step + (f[t, j] - truth)
                before = D[t - 1, i]
                for e in range(t + 1):
                    reach = before[e] + gain
                    here[e] = reach if reach > here[e] else here[e]
