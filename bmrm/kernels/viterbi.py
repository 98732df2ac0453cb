"""The best labelling of each chain, plain, with a cost of each error added, or with errors rescaling the slack.

Conventions as in `bmrm.kernels.chains`.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.chains import step_score
from bmrm.kernels.jit import jit


@jit
def best_labels(f, trans, y, cost, starts, path):  # type: ignore[no-untyped-def]
    """Fill `path` (tokens,) with each sentence's labelling of the highest score plus `cost` per label that is not `y`.

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
        label = np.argmax(D[steps - 1])
        path[first + steps - 1] = label
        for back in range(1, steps):
            t = steps - 1 - back
            best = np.int64(0)
            for i in range(1, labels):
                if D[t, i] + trans[i, label] > D[t, best] + trans[best, label]:
                    best = i
            label = best
            path[first + t] = label


@jit
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
        label = np.int64(np.argmax(D[steps - 1]))
        for t in range(steps - 1, -1, -1):
            path[first + t] = label
            label = came[t, label]


@jit
def excess_and_errors(f, trans, observed, y, path, first, stop):  # type: ignore[no-untyped-def]
    """By how much the score of `path` exceeds that of `y` in the sentence [first, stop), and how many labels differ."""
    excess, errors = 0.0, 0
    for t in range(first, stop):
        excess += f[t, path[t]] - f[t, y[t]]
        errors += path[t] != y[t]
        if t > first:
            excess += step_score(f, trans, observed, t, path[t - 1], path[t]) - step_score(
                f, trans, observed, t, y[t - 1], y[t]
            )
    return excess, errors


@jit
def add_difference(observed, y, path, first, stop, factor, slope, trans_slope):  # type: ignore[no-untyped-def]
    """Add `factor` times (features of `path` minus those of `y`) of a sentence to the slopes."""
    labels = trans_slope.shape[0]
    for t in range(first, stop):
        slope[t, path[t]] += factor
        slope[t, y[t]] -= factor
        if t > first:
            i, j = path[t - 1], path[t]
            trans_slope[i, j] += factor
            trans_slope[y[t - 1], y[t]] -= factor
            if observed:
                slope[t, labels + i * labels + j] += factor
                slope[t, labels + y[t - 1] * labels + y[t]] -= factor


@jit
def chain_margins(f, trans, observed, y, starts, weights, slope, trans_slope):  # type: ignore[no-untyped-def]
    """The sum over sentences of weight times max over labellings of (errors + score) minus the score of `y`.

    Adds to `slope` and `trans_slope`.
    """
    path = np.empty(y.size, np.int64)
    if observed:
        best_labels_observed(f, trans, y, 1.0, starts, path)
    else:
        best_labels(f, trans, y, 1.0, starts, path)
    total = 0.0
    for s in range(starts.size - 1):
        first, stop = starts[s], starts[s + 1]
        excess, errors = excess_and_errors(f, trans, observed, y, path, first, stop)
        weight = weights[s] if weights.size else 1.0
        if excess + errors > 0.0 and weight != 0.0:
            total += weight * (excess + errors)
            add_difference(observed, y, path, first, stop, weight, slope, trans_slope)
    return total


@jit
def _by_errors(f, trans, observed, y, first, stop, D):  # type: ignore[no-untyped-def]
    """Fill D[t, j, e]: by how much the best start with e errors that ends in label j at t exceeds the start of `y`."""
    labels = trans.shape[0]
    for t in range(stop - first):
        at = first + t
        truth = f[at, y[at]]
        for j in range(labels):
            right = j == y[at]
            for e in range(t + 2):
                D[t, j, e] = -np.inf
            if t == 0:
                D[0, j, 0 if right else 1] = f[at, j] - truth
                continue
            own_step = step_score(f, trans, observed, at, y[at - 1], y[at])
            shift = 0 if right else 1
            here = D[t, j, shift:]
            for i in range(labels):
                gain = step_score(f, trans, observed, at, i, j) - own_step + (f[at, j] - truth)
                before = D[t - 1, i]
                for e in range(t + 1):
                    reach = before[e] + gain
                    here[e] = reach if reach > here[e] else here[e]


@jit
def chain_scaled_margins(f, trans, observed, y, starts, weights, slope, trans_slope):  # type: ignore[no-untyped-def]
    """The sum over sentences of weight times max over labellings of errors (1 + score minus the score of `y`).

    Adds to `slope` and `trans_slope`. Exact, by a dynamic program over the number of errors.
    """
    labels = trans.shape[0]
    longest = 0
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    D = np.empty((longest, labels, longest + 1))
    path = np.empty(y.size, np.int64)
    total = 0.0
    for s in range(starts.size - 1):
        first, stop = starts[s], starts[s + 1]
        weight = weights[s] if weights.size else 1.0
        if weight == 0.0:
            continue
        _by_errors(f, trans, observed, y, first, stop, D)
        t = stop - first - 1
        worst, errors, label = 0.0, 0, 0
        for e in range(1, t + 2):
            for j in range(labels):
                if e * (1.0 + D[t, j, e]) > worst:
                    worst, errors, label = e * (1.0 + D[t, j, e]), e, j
        if errors == 0:
            continue
        total += weight * worst
        e = errors
        while True:
            at = first + t
            path[at] = label
            e -= label != y[at]
            if t == 0:
                break
            best = -1
            top = -np.inf
            for i in range(labels):
                reach = D[t - 1, i, e] + step_score(f, trans, observed, at, i, label)
                if best < 0 or reach > top:
                    best, top = i, reach
            label = best
            t -= 1
        add_difference(observed, y, path, first, stop, weight * errors, slope, trans_slope)
    return total
