"""Sums over groups of rows that are labelled together, whatever the structure: templates for `specialised`.

A labeling gives each row of a group a label. Its score is a sum of terms, numbers among the scores `f` of the group's
rows, (rows, scores per row), and the `parameters` of the loss. What a structure brings is compiled functions of one
group; `given` is what `Targets.structure` says of its rows:

    terms(path, f, parameters, given, at) -> count     fill `at` with where the terms of the labeling `path` stand in
                                                       the `parameters` followed by `f`, both in C order; the n-th term
                                                       of every labeling belongs to the same row, or is a parameter
    score(path, f, parameters, given) -> score         made from `terms`
    best(f, parameters, given, path)                   fill `path` with the labeling of the highest score
    worst(f, parameters, given, truth, path)           likewise of the most errors + score; made from `best`
    violating(f, parameters, given, truth, margins, rates, path)   of the largest rates[e] (margins[e] + score - that of
                                                       the truth), e being the number of errors
    marginals(f, parameters, given, shares, of_parameters) -> log of the sum over labelings of exp(score); fills the
                                                       derivatives of that, like `f` and `parameters`
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import inlined, jit

MOST_TERMS = 4
"""Most terms of a labeling's score for each row of a group."""


class Groups(NamedTuple):
    """What is given of the groups.

    Attributes
    ----------
    given : (rows, numbers), of `Targets.structure`.
    y : (rows,), true labels.
    starts : (groups + 1,), where the rows of each begin, and the last end.
    weights : (groups,), empty where all are 1.
    """

    given: NDArray[np.int64]
    y: NDArray[np.int64]
    starts: NDArray[np.int64]
    weights: NDArray[np.float64]


def worst_by_best(f, parameters, given, truth, path):  # type: ignore[no-untyped-def]
    """The labeling of most errors + score. It calls `best`, of scores in which every right label has lost 1."""
    moved = f.copy()
    for t in range(truth.size):
        moved[t, truth[t]] -= 1.0
    best(moved, parameters, given, path)  # type: ignore[name-defined]  # noqa: F821


def score_by_terms(path, f, parameters, given):  # type: ignore[no-untyped-def]
    """The score of a labeling. It calls `terms`."""
    at, flat, own = np.empty(MOST_TERMS * path.size, np.int64), f.reshape(-1), parameters.reshape(-1)
    total = 0.0
    for n in range(terms(path, f, parameters, given, at)):  # type: ignore[name-defined]  # noqa: F821
        total += own[at[n]] if at[n] < own.size else flat[at[n] - own.size]
    return total


def log_partition_by_marginals(f, parameters, given):  # type: ignore[no-untyped-def]
    """What `marginals` returns, alone. It calls `marginals`."""
    return marginals(f, parameters, given, np.empty_like(f), np.empty_like(parameters))  # type: ignore[name-defined]  # noqa: F821


def violating_by_worst(f, parameters, given, truth, margins, rates, path):  # type: ignore[no-untyped-def]
    """The labeling that violates its margin most where margins are the errors and rates 1. It calls `worst`."""
    worst(f, parameters, given, truth, path)  # type: ignore[name-defined]  # noqa: F821


def labelings(f, parameters, given, starts, path):  # type: ignore[no-untyped-def]
    """Fill `path` (rows,) with the best labeling of each group. It calls `best`."""
    for s in range(starts.size - 1):
        first, stop = starts[s], starts[s + 1]
        best(f[first:stop], parameters, given[first:stop], path[first:stop])  # type: ignore[name-defined]  # noqa: F821


@jit
def count_errors(path, truth):  # type: ignore[no-untyped-def]
    """The number of rows with another label."""
    wrong = 0
    for t in range(truth.size):
        wrong += path[t] != truth[t]
    return wrong


@inlined
def _excess(f, parameters, base, at, of, count):  # type: ignore[no-untyped-def]
    """The sum of the terms at `at`, less those at `of`.

    `f` and `parameters` are flat; `base` is where `f` begins for the group, less the number of parameters.
    """
    total, border = 0.0, parameters.size
    for n in range(count):
        i, j = at[n], of[n]
        total += parameters[i] - parameters[j] if i < border else f[base + i] - f[base + j]  # both stand alike
    return total


@inlined
def _flat(f, parameters, slope, of_parameters):  # type: ignore[no-untyped-def]
    return f.reshape(-1), parameters.reshape(-1), slope.reshape(-1), of_parameters.reshape(-1)


@inlined
def _move_terms(at, of, count, amount, slope, of_parameters, base):  # type: ignore[no-untyped-def]
    """Add `amount` to the terms at `at` of the flat slopes, and take it from those at `of`; `base` as of `_excess`."""
    border = of_parameters.size
    for n in range(count):
        i, j = at[n], of[n]
        if i < border:
            of_parameters[i] += amount
            of_parameters[j] -= amount
        else:
            slope[base + i] += amount
            slope[base + j] -= amount


@inlined
def add_terms(at, count, amount, slope, of_parameters, base):  # type: ignore[no-untyped-def]
    """Add `amount` to the terms at `at` of the flat slopes; `base` as of `_excess`."""
    border = of_parameters.size
    for n in range(count):
        if at[n] < border:
            of_parameters[at[n]] += amount
        else:
            slope[base + at[n]] += amount


def violations(f, parameters, groups, margins, rates, at, slope, of_parameters):  # type: ignore[no-untyped-def]
    """The sum over groups of weight times the largest violation; adds to the slopes.

    It calls `violating` and `terms`; `at` (2, terms of the longest group) is overwritten.
    """
    given, y, starts, weights = groups
    flat, own, flat_slope, tail_slope = _flat(f, parameters, slope, of_parameters)
    total, path, theirs, true, width = 0.0, np.empty(y.size, np.int64), at[0], at[1], f.shape[1]
    for s in range(starts.size - 1):
        first, stop = starts[s], starts[s + 1]
        here, about, truth, found = f[first:stop], given[first:stop], y[first:stop], path[first:stop]
        weight = weights[s] if weights.size else 1.0
        violating(here, parameters, about, truth, margins, rates, found)  # type: ignore[name-defined]  # noqa: F821
        errors, base = count_errors(found, truth), first * width - own.size
        if errors == 0 or weight == 0.0:
            continue
        count = terms(found, here, parameters, about, theirs)  # type: ignore[name-defined]  # noqa: F821
        terms(truth, here, parameters, about, true)  # type: ignore[name-defined]  # noqa: F821
        value = rates[errors] * (margins[errors] + _excess(flat, own, base, theirs, true, count))
        if value > 0.0:
            total += weight * value
            _move_terms(theirs, true, count, weight * rates[errors], flat_slope, tail_slope, base)
    return total


def violations_along(f, parameters, step, step_parameters, groups, margins, rates, at, ts, values, derivatives):  # type: ignore[no-untyped-def]
    """Fill the sums of `violations` at f + t step, and their derivatives, for t of `ts`; parameters move likewise."""
    given, y, starts, weights = groups
    theirs, true, width, longest = at[0], at[1], f.shape[1], 0
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    room, path = np.empty((longest, width)), np.empty(longest, np.int64)
    flat, flat_step, tail_step = room.reshape(-1), step.reshape(-1), step_parameters.reshape(-1)
    for q in range(ts.size):
        values[q] = derivatives[q] = 0.0
        moved = parameters + ts[q] * step_parameters
        tail = moved.reshape(-1)
        for s in range(starts.size - 1):
            first, stop = starts[s], starts[s + 1]
            here, about, truth, found = room[: stop - first], given[first:stop], y[first:stop], path[: stop - first]
            for t in range(stop - first):
                for k in range(width):
                    here[t, k] = f[first + t, k] + ts[q] * step[first + t, k]
            violating(here, moved, about, truth, margins, rates, found)  # type: ignore[name-defined]  # noqa: F821
            errors, base = count_errors(found, truth), first * width - tail.size
            if errors == 0:
                continue
            count = terms(found, here, moved, about, theirs)  # type: ignore[name-defined]  # noqa: F821
            terms(truth, here, moved, about, true)  # type: ignore[name-defined]  # noqa: F821
            value = rates[errors] * (margins[errors] + _excess(flat, tail, -tail.size, theirs, true, count))
            if value > 0.0:
                weight = weights[s] if weights.size else 1.0
                values[q] += weight * value
                change = _excess(flat_step, tail_step, base, theirs, true, count)
                derivatives[q] += weight * (rates[errors] * change)


def likelihoods(f, parameters, groups, at, shares, slope, of_parameters):  # type: ignore[no-untyped-def]
    """The sum over groups of weight times -log(likelihood of the labels `y`); fills `slope`, adds to `of_parameters`.

    It calls `marginals` and `terms`; `at`, and `shares`, like `parameters`, are overwritten.
    """
    given, y, starts, weights = groups
    flat, own, flat_slope, tail_slope = _flat(f, parameters, slope, of_parameters)
    total, true, of_group, width = 0.0, at[0], shares.reshape(-1), f.shape[1]
    for s in range(starts.size - 1):
        first, stop = starts[s], starts[s + 1]
        here, about, base = f[first:stop], given[first:stop], first * width - own.size
        weight = weights[s] if weights.size else 1.0
        value = marginals(here, parameters, about, slope[first:stop], shares)  # type: ignore[name-defined]  # noqa: F821
        count = terms(y[first:stop], here, parameters, about, true)  # type: ignore[name-defined]  # noqa: F821
        for n in range(count):
            value -= own[true[n]] if true[n] < own.size else flat[base + true[n]]
        total += weight * max(value, 0.0)
        for i in range(first * width, stop * width):
            flat_slope[i] *= weight
        for i in range(own.size):
            tail_slope[i] += weight * of_group[i]
        add_terms(true, count, -weight, flat_slope, tail_slope, base)
    return total
