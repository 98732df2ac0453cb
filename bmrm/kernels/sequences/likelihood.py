"""Sums over all labelings of chains: the likelihood of one labeling. Conventions as in `chain_marginals`."""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import jit
from bmrm.kernels.sequences.marginals import WIDEST, marginals_by_logarithms, scaled_marginals, score_range


@jit
def chain_likelihoods(f, trans, y, starts, weights, slope, trans_slope):  # type: ignore[no-untyped-def]
    """The sum over sentences of weight times -log(likelihood of the labels `y`), for transitions that are not observed.

    Fills `slope` (like `f`) and adds to `trans_slope` (K, K). `weights` is empty where all are 1.
    """
    labels = trans.shape[0]
    top = trans.max()
    spread = top - trans.min()
    if not spread <= WIDEST:
        return _by_logarithms(f, trans, False, y, starts, weights, slope, trans_slope)
    E = np.exp(trans - top)
    ET = E.T.copy()
    longest = 0
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    b, forward = np.empty((longest, labels)), np.empty((longest, labels))
    pairs, sums = np.zeros((labels, labels)), np.zeros((labels, labels))
    total = 0.0
    for s in range(starts.size - 1):
        first, stop = starts[s], starts[s + 1]
        weight = weights[s] if weights.size else 1.0
        if score_range(f[first:stop], labels) + spread > WIDEST:
            total += _by_logarithms(
                f[first:stop],
                trans,
                False,
                y[first:stop],
                starts[s : s + 2] - first,
                weights[s : s + 1],
                slope[first:stop],
                trans_slope,
            )
            continue
        into = sums if weight == 1.0 else pairs
        steps = stop - first
        value = scaled_marginals(f[first:stop], E, ET, slope[first:stop], forward[:steps], b[:steps], into)
        for t in range(first, stop):
            high = f[t, 0]
            for k in range(1, labels):
                high = max(high, f[t, k])
            value += high - f[t, y[t]]
            others = 0.0  # 1 less the true label's own marginal, which loses no digits where that is nearly 1
            for k in range(labels):
                others += 0.0 if k == y[t] else slope[t, k]
            slope[t, y[t]] = -others
            if t > first:
                value += top - trans[y[t - 1], y[t]]
                trans_slope[y[t - 1], y[t]] -= weight
        total += weight * max(value, 0.0)
        if weight != 1.0:
            slope[first:stop] *= weight
            for i in range(labels):
                for j in range(labels):
                    sums[i, j] += weight * pairs[i, j]
                    pairs[i, j] = 0.0
    trans_slope += sums * E
    return total


@jit
def chain_likelihoods_observed(f, trans, y, starts, weights, slope, trans_slope):  # type: ignore[no-untyped-def]
    """As `chain_likelihoods`, for observed transitions."""
    return _by_logarithms(f, trans, True, y, starts, weights, slope, trans_slope)


@jit
def _by_logarithms(f, trans, observed, y, starts, weights, slope, trans_slope):  # type: ignore[no-untyped-def]
    total = 0.0
    for s in range(starts.size - 1):
        first, stop = starts[s], starts[s + 1]
        weight = weights[s] if weights.size else 1.0
        total += weight * _likelihood(
            f[first:stop], trans, observed, y[first:stop], weight, slope[first:stop], trans_slope
        )
    return total


@jit
def _likelihood(f, trans, observed, y, weight, slope, trans_slope):  # type: ignore[no-untyped-def]
    """-log(likelihood of `y`) of one sentence, by logarithms, whatever the size of the scores.

    Fills `slope` and adds to `trans_slope`, both times `weight`.
    """
    pairs = np.zeros_like(trans)
    value = marginals_by_logarithms(f, trans, observed, y, slope, pairs)
    slope *= weight
    trans_slope += weight * pairs
    return max(value, 0.0)
