"""Second derivative of the likelihood of chains, times a step: how the chances of labels and transitions change.

Along a step, the chance of anything changes by itself times (the expected step-score of labellings that have it, less
that of all), where the step-score of a labelling is its score with the step in place of the scores. Conventions as in
`bmrm.kernels.chains`.
"""

from __future__ import annotations

import math

import numpy as np

from bmrm.kernels.chains import WIDEST, score_range, step_score
from bmrm.kernels.jit import jit


@jit
def chain_curvatures(f, trans, observed, step, step_trans, starts, weights, product, product_trans):  # type: ignore[no-untyped-def]
    """Fill `product` and add to `product_trans`: the second derivative at (f, trans) times (step, step_trans).

    `weights` of sentences is empty where all are 1.
    """
    labels = trans.shape[0]
    top = trans.max()
    spread = top - trans.min()
    E = np.exp(trans - top) if spread <= WIDEST else trans
    longest = 0
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    before, behind = np.empty((longest, labels, labels)), np.empty((longest, labels, labels))
    chance = np.empty((longest, labels))
    for s in range(starts.size - 1):
        first, stop = starts[s], starts[s + 1]
        weight = weights[s] if weights.size else 1.0
        scores = f[first:stop]
        if observed or not score_range(scores, labels) + spread <= WIDEST:
            _conditionals_by_logarithms(scores, trans, observed, before, behind, chance)
        else:
            _conditionals(scores, E, before, behind, chance)
        _changes(
            before, behind, chance, observed, step[first:stop], step_trans, weight, product[first:stop], product_trans
        )


@jit
def _conditionals(f, E, before, behind, chance):  # type: ignore[no-untyped-def]
    """Chances of labels; before[t, i, j]: of i at t - 1 given j at t; behind[t, i, j]: of j at t given i at t - 1."""
    steps, labels = f.shape[0], E.shape[0]
    potential, forward, backward = np.empty((steps, labels)), np.empty((steps, labels)), np.ones(labels)
    for t in range(steps):
        high = f[t].max()
        mass = 0.0
        for j in range(labels):
            potential[t, j] = math.exp(f[t, j] - high)
            reach = 1.0
            if t:
                reach = 0.0
                for i in range(labels):
                    before[t, i, j] = forward[t - 1, i] * E[i, j]
                    reach += before[t, i, j]
                for i in range(labels):
                    before[t, i, j] /= reach
            forward[t, j] = reach * potential[t, j]
            mass += forward[t, j]
        for j in range(labels):
            forward[t, j] /= mass
            potential[t, j] /= mass
    for back in range(steps):
        t = steps - 1 - back
        for j in range(labels):
            chance[t, j] = forward[t, j] * backward[j]
            potential[t, j] *= backward[j]
        for i in range(labels):
            total = 0.0
            for j in range(labels):
                behind[t, i, j] = E[i, j] * potential[t, j]
                total += behind[t, i, j]
            for j in range(labels):
                behind[t, i, j] /= total
            backward[i] = total


@jit
def _conditionals_by_logarithms(f, trans, observed, before, behind, chance):  # type: ignore[no-untyped-def]
    """As `_conditionals`, whatever the size of the scores."""
    steps, labels = f.shape[0], trans.shape[0]
    forward, backward = np.empty((steps, labels)), np.zeros(labels)
    for t in range(steps):
        for j in range(labels):
            reach = 0.0
            if t:
                for i in range(labels):
                    before[t, i, j] = forward[t - 1, i] + step_score(f, trans, observed, t, i, j)
                reach = _normalised(before[t, :, j])
            forward[t, j] = reach + f[t, j]
    for back in range(steps):
        t = steps - 1 - back
        for j in range(labels):
            chance[t, j] = forward[t, j] + backward[j]
        _normalised(chance[t])
        if t == 0:
            break
        for i in range(labels):
            for j in range(labels):
                behind[t, i, j] = step_score(f, trans, observed, t, i, j) + f[t, j] + backward[j]
        for i in range(labels):
            backward[i] = _normalised(behind[t, i])


@jit
def _normalised(logarithms):  # type: ignore[no-untyped-def]
    """Overwrite logarithms with their exponentials divided by the sum of these; returns the logarithm of the sum."""
    high = logarithms.max()
    total = 0.0
    for k in range(logarithms.size):
        logarithms[k] = math.exp(logarithms[k] - high)
        total += logarithms[k]
    for k in range(logarithms.size):
        logarithms[k] /= total
    return high + math.log(total)


@jit
def _changes(before, behind, chance, observed, step, step_trans, weight, product, product_trans):  # type: ignore[no-untyped-def]
    """The product of one sentence, times `weight`."""
    steps, labels = step.shape[0], chance.shape[1]
    so_far, to_come = np.empty((steps, labels)), np.zeros((steps, labels))
    for t in range(steps):
        for j in range(labels):
            expected = 0.0
            if t:
                for i in range(labels):
                    expected += before[t, i, j] * (so_far[t - 1, i] + step_score(step, step_trans, observed, t, i, j))
            so_far[t, j] = expected + step[t, j]
    for back in range(1, steps):
        t = steps - back
        for i in range(labels):
            expected = 0.0
            for j in range(labels):
                ahead = step_score(step, step_trans, observed, t, i, j) + step[t, j] + to_come[t, j]
                expected += behind[t, i, j] * ahead
            to_come[t - 1, i] = expected
    mean = 0.0
    for k in range(labels):
        mean += chance[steps - 1, k] * so_far[steps - 1, k]
    product[:] = 0.0
    for t in range(steps):
        for j in range(labels):
            product[t, j] = weight * chance[t, j] * (so_far[t, j] + to_come[t, j] - mean)
            if t == 0:
                continue
            for i in range(labels):
                ahead = step_score(step, step_trans, observed, t, i, j) + step[t, j] + to_come[t, j]
                change = weight * chance[t, j] * before[t, i, j] * (so_far[t - 1, i] + ahead - mean)
                product_trans[i, j] += change
                if observed:
                    product[t, labels + i * labels + j] = change
