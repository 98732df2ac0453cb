"""Sums over all labelings of chains: the likelihood of one labeling. Conventions as in `chain_marginals`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import jit
from bmrm.kernels.sequences.marginals import WIDEST, extremes, marginals_by_logarithms, scaled_marginals, score_range

Array = NDArray[np.float64]
Positions = NDArray[np.int64]


def chain_likelihoods(
    f: Array,
    trans: Array,
    observed: bool,
    y: Positions,
    starts: Positions,
    weights: Array,
    slope: Array,
    trans_slope: Array,
) -> float:
    """The sum over sentences of weight times -log(likelihood of the labels `y`).

    Fills `slope` (like `f`), adds to `trans_slope` (K, K); `weights` is empty where all are 1. By sums of exponentials,
    and by logarithms where transitions are observed or scores of a sentence differ too much.
    """
    total, left = 0.0, np.ones(starts.size - 1, np.bool_)
    if not observed:
        labels, longest = trans.shape[0], int(np.diff(starts).max(initial=0))
        room = np.zeros((4, labels, labels)), np.empty((2, longest, labels))
        total = by_sums(f, trans, y, starts, weights, slope, trans_slope, left, *room)
    if left.any():
        total += by_logarithms(f, trans, observed, y, starts, np.flatnonzero(left), weights, slope, trans_slope)
    return float(total)


@jit
def by_sums(f, trans, y, starts, weights, slope, trans_slope, left, matrices, tables):  # type: ignore[no-untyped-def]
    """As `chain_likelihoods`, of the sentences whose scores allow it; `left` tells of the others.

    Room, which is overwritten: four `matrices` (K, K), the last two 0 on entry, and two `tables` as long as the longest
    sentence. Compiled code that makes arrays itself takes much longer to compile.
    """
    labels = trans.shape[0]
    least, top = extremes(trans)
    E, ET, pairs, sums = matrices[0], matrices[1], matrices[2], matrices[3]
    b, forward = tables[0], tables[1]
    for i in range(labels):
        for j in range(labels):
            E[i, j] = ET[j, i] = math.exp(trans[i, j] - top)
    total = 0.0
    for s in range(starts.size - 1):
        first, stop = starts[s], starts[s + 1]
        here, filled, steps = f[first:stop], slope[first:stop], stop - first
        weight = weights[s] if weights.size else 1.0
        left[s] = not score_range(here, labels) + (top - least) <= WIDEST
        if left[s]:
            continue
        into = sums if weight == 1.0 else pairs
        value = scaled_marginals(here, E, ET, filled, forward[:steps], b[:steps], into)
        for t in range(steps):
            truth, high = y[first + t], here[t, 0]
            for k in range(1, labels):
                high = max(high, here[t, k])
            value += high - here[t, truth]
            others = 0.0  # 1 less the true label's own marginal, which loses no digits where that is nearly 1
            for k in range(labels):
                others += 0.0 if k == truth else filled[t, k]
            filled[t, truth] = -others
            if t > 0:
                before = y[first + t - 1]
                value += top - trans[before, truth]
                trans_slope[before, truth] -= weight
        total += weight * max(value, 0.0)
        if weight != 1.0:
            for t in range(steps):
                for k in range(labels):
                    filled[t, k] *= weight
            for i in range(labels):
                for j in range(labels):
                    sums[i, j] += weight * pairs[i, j]
                    pairs[i, j] = 0.0
    for i in range(labels):
        for j in range(labels):
            trans_slope[i, j] += sums[i, j] * E[i, j]
    return total


@jit
def by_logarithms(f, trans, observed, y, starts, chosen, weights, slope, trans_slope):  # type: ignore[no-untyped-def]
    """As `chain_likelihoods`, of the `chosen` sentences, whatever the size of the scores."""
    total = 0.0
    pairs = np.empty(trans.shape)
    for s in chosen:
        first, stop = starts[s], starts[s + 1]
        weight, filled = weights[s] if weights.size else 1.0, slope[first:stop]
        pairs[:] = 0.0
        value = marginals_by_logarithms(f[first:stop], trans, observed, y[first:stop], filled, pairs)
        for t in range(filled.shape[0]):
            for k in range(filled.shape[1]):
                filled[t, k] *= weight
        for i in range(trans.shape[0]):
            for j in range(trans.shape[0]):
                trans_slope[i, j] += weight * pairs[i, j]
        total += weight * max(value, 0.0)
    return total
