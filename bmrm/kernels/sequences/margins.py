"""Margins of chains: the labeling that violates its margin most, for margins and slacks rescaled by errors.

Conventions as in `chain_marginals`. Templates call `most_violating`, which `margins_of` chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import inlined, jit, specialised
from bmrm.kernels.sequences.marginals import step_score
from bmrm.kernels.sequences.viterbi import best_labels, best_labels_observed


class Margins(NamedTuple):
    """What is given of the sentences.

    Attributes
    ----------
    observed : whether transitions have scores of their own for each token.
    y : (tokens,), true labels.
    starts : (sentences + 1,), where the tokens of each begin, and the last end.
    weights : (sentences,), empty where all are 1.
    margins, rates : (longest sentence + 1,), by the number of errors e. A labeling violates its margin by
        rates[e] (margins[e] + its score less that of the true one).
    """

    observed: bool
    y: NDArray[np.int64]
    starts: NDArray[np.int64]
    weights: NDArray[np.float64]
    margins: NDArray[np.float64]
    rates: NDArray[np.float64]


def chain_margins(f, trans, sentences, slope, trans_slope):  # type: ignore[no-untyped-def]
    """The sum over sentences of weight times the largest violation; adds to `slope` and `trans_slope`."""
    observed, y, starts, weights, margins, rates = sentences
    path = np.empty(y.size, np.int64)
    most_violating(f, trans, observed, y, starts, margins, rates, path)  # type: ignore[name-defined]  # noqa: F821
    total = 0.0
    for s in range(starts.size - 1):
        first, stop = starts[s], starts[s + 1]
        weight = weights[s] if weights.size else 1.0
        truth, found = y[first:stop], path[first:stop]
        excess, errors = excess_and_errors(f[first:stop], trans, observed, truth, found)
        value = rates[errors] * (margins[errors] + excess)
        if value > 0.0 and weight != 0.0:
            total += weight * value
            _add_difference(observed, truth, found, weight * rates[errors], slope[first:stop], trans_slope)
    return total


def chain_margins_along(f, trans, step, step_trans, sentences, ts, values, derivatives):  # type: ignore[no-untyped-def]
    """Fill the sums of `chain_margins` at f + t step, trans + t step_trans, and their derivatives, for t of `ts`."""
    observed, y, starts, weights, margins, rates = sentences
    longest = _longest(starts)
    here, path = np.empty((longest, f.shape[1])), np.empty(longest, np.int64)
    alone = np.zeros(2, np.int64)
    for q in range(ts.size):
        values[q] = derivatives[q] = 0.0
        moved = trans + ts[q] * step_trans
        for s in range(starts.size - 1):
            first, steps = starts[s], starts[s + 1] - starts[s]
            for t in range(steps):
                for k in range(f.shape[1]):
                    here[t, k] = f[first + t, k] + ts[q] * step[first + t, k]
            alone[1] = steps
            truth = y[first : first + steps]
            most_violating(here[:steps], moved, observed, truth, alone, margins, rates, path)  # type: ignore[name-defined]  # noqa: F821
            excess, errors = excess_and_errors(here[:steps], moved, observed, truth, path)
            value = rates[errors] * (margins[errors] + excess)
            if value > 0.0:
                weight = weights[s] if weights.size else 1.0
                values[q] += weight * value
                change, _ = excess_and_errors(step[first : first + steps], step_trans, observed, truth, path)
                derivatives[q] += weight * (rates[errors] * change)


@jit
def _longest(starts):  # type: ignore[no-untyped-def]
    longest = 0
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    return longest


@jit
def excess_and_errors(f, trans, observed, y, path):  # type: ignore[no-untyped-def]
    """By how much the score of `path` exceeds that of `y`, of one sentence, and how many labels differ."""
    excess, errors = 0.0, 0
    for t in range(y.size):
        excess += f[t, path[t]] - f[t, y[t]]
        errors += path[t] != y[t]
        if t > 0:
            excess += step_score(f, trans, observed, t, path[t - 1], path[t]) - step_score(
                f, trans, observed, t, y[t - 1], y[t]
            )
    return excess, errors


@inlined
def _add_difference(observed, y, path, factor, slope, trans_slope):  # type: ignore[no-untyped-def]
    """Add `factor` times (features of `path` minus those of `y`) of a sentence to the slopes."""
    labels = trans_slope.shape[0]
    for t in range(y.size):
        slope[t, path[t]] += factor
        slope[t, y[t]] -= factor
        if t > 0:
            i, j = path[t - 1], path[t]
            trans_slope[i, j] += factor
            trans_slope[y[t - 1], y[t]] -= factor
            if observed:
                slope[t, labels + i * labels + j] += factor
                slope[t, labels + y[t - 1] * labels + y[t]] -= factor


@inlined
def _worst(f, trans, observed, y, starts, path):  # type: ignore[no-untyped-def]
    best_labels(f, trans, y, 1.0, starts, path)


@inlined
def _worst_observed(f, trans, observed, y, starts, path):  # type: ignore[no-untyped-def]
    best_labels_observed(f, trans, y, 1.0, starts, path)


@inlined
def _by_score(f, trans, observed, y, starts, margins, rates, path):  # type: ignore[no-untyped-def]
    best_labels(f, trans, y, 1.0, starts, path)


@inlined
def _by_score_observed(f, trans, observed, y, starts, margins, rates, path):  # type: ignore[no-untyped-def]
    best_labels_observed(f, trans, y, 1.0, starts, path)


@jit
def _by_score_and_errors(f, trans, observed, y, starts, margins, rates, path):  # type: ignore[no-untyped-def]
    """Exact for all margins and rates, by one dynamic program over the number of errors."""
    labels, longest = trans.shape[0], _longest(starts)
    D = np.empty((longest, labels, longest + 1))
    for s in range(starts.size - 1):
        first, stop = starts[s], starts[s + 1]
        _by_errors(f, trans, observed, y, first, stop, D)
        t = stop - first - 1
        worst, errors, label = 0.0, 0, y[stop - 1]
        for e in range(1, t + 2):
            for j in range(labels):
                violation = rates[e] * (margins[e] + D[t, j, e])
                if violation > worst:
                    worst, errors, label = violation, e, j
        if errors == 0:
            for at in range(first, stop):
                path[at] = y[at]
            continue
        e = errors
        while True:
            at = first + t
            path[at] = label
            e -= label != y[at]
            if t == 0:
                break
            best, top = np.int64(0), D[t - 1, 0, e] + step_score(f, trans, observed, at, 0, label)
            for i in range(1, labels):
                reach = D[t - 1, i, e] + step_score(f, trans, observed, at, i, label)
                if reach > top:
                    best, top = i, reach
            label = best
            t -= 1


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


def oracle_of(observed: bool) -> Callable[..., None]:
    """The kernel (f, trans, observed, y, starts, path) that fills `path` with the labeling of most errors + score."""
    return _worst_observed if observed else _worst


@cache
def margins_of(observed: bool, scaled: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`chain_margins` and `chain_margins_along`.

    Unless `scaled`, margins must be the errors and rates 1, for which Viterbi's recursion is enough.
    """
    search = _by_score_and_errors if scaled else _by_score_observed if observed else _by_score
    return tuple(specialised(each, most_violating=search) for each in (chain_margins, chain_margins_along))  # type: ignore[return-value]
