"""Second derivative of the likelihood of chains, times a step, as the adjoint of what measures the step's spread.

The second derivative is the covariance of the probabilities of labelings, so its product with a step has with that step
the scalar product V, the variance of the step-score (the score of a labeling with the step in place of the scores).
Read from the left, labels are a Markov chain, and V is the sum over tokens of the mean square of

    D[t, i, j] = a[t, i, j] - the mean of a[t, i, :] under the probabilities of what follows i,
    a[t, i, j] = the step-scores of the transition i -> j into t and of j, and what is expected behind j:

by how much the label j at t, after i, changes the expected step-score. D is linear in the step; the product is the
transposed map at probability times D. So it has a sum of squares as its scalar product with the step, and is exactly 0
where one labeling has all the probability, whatever the size of the step. Conventions as in
`bmrm.kernels.sequences.marginals`.
"""

from __future__ import annotations

import math

import numpy as np

from bmrm.kernels.jit import fast_jit, jit
from bmrm.kernels.products.vectors import inner
from bmrm.kernels.sequences.marginals import WIDEST, extremes, largest, score_range, step_score


@jit
def chain_curvatures(f, trans, observed, step, step_trans, starts, weights, product, product_trans):  # type: ignore[no-untyped-def]
    """Fill `product` and add to `product_trans`: the second derivative at (f, trans) times (step, step_trans).

    `weights` of sentences is empty where all are 1.
    """
    labels = trans.shape[0]
    least, top = extremes(trans)
    spread = top - least
    E = np.empty((labels, labels))
    for i in range(labels):
        for j in range(labels):
            E[i, j] = math.exp(trans[i, j] - top)
    longest = 0
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    after, deviation = np.empty((longest, labels, labels)), np.empty((longest, labels, labels))
    for s in range(starts.size - 1):
        first, stop = starts[s], starts[s + 1]
        weight = weights[s] if weights.size else 1.0
        scores = f[first:stop]
        if observed or not score_range(scores, labels) + spread <= WIDEST:
            _probabilities_by_logarithms(scores, trans, observed, after)
        else:
            _probabilities(scores, E, after)
        _deviations(after, observed, step[first:stop], step_trans, deviation)
        _transposed(after, deviation, observed, weight, product[first:stop], product_trans)


@fast_jit
def _probabilities(f, E, after):  # type: ignore[no-untyped-def]
    """Fill after[t, i, j]: the probability of label j at t given i at t - 1; after[0, 0, j]: that of j at the start."""
    steps, labels = f.shape[0], E.shape[0]
    backward, potential = np.ones(labels), np.empty(labels)
    for back in range(steps):
        t = steps - 1 - back
        high, mass = largest(f[t]), 0.0
        for j in range(labels):
            potential[j] = math.exp(f[t, j] - high) * backward[j]
            mass += potential[j]
        for j in range(labels):
            potential[j] /= mass
        if t == 0:
            for j in range(labels):
                after[0, 0, j] = potential[j]
            break
        for i in range(labels):
            row, total = after[t, i], 0.0
            for j in range(labels):
                row[j] = E[i, j] * potential[j]
                total += row[j]
            inverse = 1.0 / total
            for j in range(labels):
                row[j] *= inverse
            backward[i] = total


@jit
def _probabilities_by_logarithms(f, trans, observed, after):  # type: ignore[no-untyped-def]
    """As `_probabilities`, whatever the size of the scores."""
    steps, labels = f.shape[0], trans.shape[0]
    backward = np.zeros(labels)
    for back in range(steps - 1):
        t = steps - 1 - back
        for i in range(labels):
            for j in range(labels):
                after[t, i, j] = step_score(f, trans, observed, t, i, j) + f[t, j] + backward[j]
        for i in range(labels):
            backward[i] = _normalised(after[t, i])
        high = largest(backward)
        for i in range(labels):
            backward[i] -= high
    for j in range(labels):
        after[0, 0, j] = f[0, j] + backward[j]
    _normalised(after[0, 0])


@jit
def _normalised(logarithms):  # type: ignore[no-untyped-def]
    """Overwrite logarithms with their exponentials divided by the sum of these; returns the logarithm of the sum."""
    high = largest(logarithms)
    total = 0.0
    for k in range(logarithms.size):
        logarithms[k] = math.exp(logarithms[k] - high)
        total += logarithms[k]
    for k in range(logarithms.size):
        logarithms[k] /= total
    return high + math.log(total)


@jit
def _deviations(after, observed, step, step_trans, deviation):  # type: ignore[no-untyped-def]
    """Fill `deviation` like `after` with D."""
    steps, labels = step.shape[0], after.shape[2]
    to_come = np.zeros(labels)
    for back in range(steps - 1):
        t = steps - 1 - back
        for j in range(labels):
            to_come[j] += step[t, j]
        for i in range(labels):
            for j in range(labels):
                deviation[t, i, j] = step_score(step, step_trans, observed, t, i, j) + to_come[j]
        for i in range(labels):
            to_come[i] = _centred(after[t, i], deviation[t, i])
        # Only differences matter; without this they would drown in long sentences.
        origin = to_come[0]
        for i in range(labels):
            to_come[i] -= origin
    for j in range(labels):
        deviation[0, 0, j] = step[0, j] + to_come[j]
    _centred(after[0, 0], deviation[0, 0])


@jit
def _centred(probabilities, values):  # type: ignore[no-untyped-def]
    """Take the mean from `values` and return it; exact to the last digits where one has nearly all the probability."""
    likely = 0
    for j in range(values.size):
        # One at most; no branch, so that the loop is vectorised.
        likely += j * (probabilities[j] > 0.75)
    origin = values[likely]
    for j in range(values.size):
        values[j] -= origin
    mean = inner(probabilities, values)
    for j in range(values.size):
        values[j] -= mean
    return origin + mean


@fast_jit
def _transposed(after, deviation, observed, weight, product, product_trans):  # type: ignore[no-untyped-def]
    """The product of one sentence, times `weight`: the transpose of `_deviations` at probability times D."""
    steps, labels = product.shape[0], after.shape[2]
    probability, following = np.empty(labels), np.empty(labels)
    product[:] = 0.0
    for j in range(labels):
        probability[j] = weight * after[0, 0, j]
    kept = inner(after[0, 0], deviation[0, 0])
    for j in range(labels):
        product[0, j] = probability[j] * (deviation[0, 0, j] - kept)
    for t in range(1, steps):
        for j in range(labels):
            following[j] = 0.0
        for i in range(labels):
            probabilities, changes = after[t, i], deviation[t, i]
            own = probability[i]
            for j in range(labels):
                following[j] += own * probabilities[j]
            # What the label before was given, less what stays with its own transitions: 0 but for rounding.
            share = product[t - 1, i] - own * inner(probabilities, changes)
            sums, into = product[t], product_trans[i]
            for j in range(labels):
                change = probabilities[j] * (own * changes[j] + share)
                sums[j] += change
                into[j] += change
                if observed:
                    sums[labels + i * labels + j] = change
        for j in range(labels):
            probability[j] = following[j]
