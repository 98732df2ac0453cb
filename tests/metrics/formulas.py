"""Measures once more, written apart from the code."""

import numpy as np


def at_first(relevant, f, k):
    """How many relevant rows are among the k of highest score; no two scores are equal."""
    return np.asarray(relevant)[np.argsort(-np.asarray(f))[: int(k)]].sum()


def mean_over(groups, y, f, measure):
    """The mean over queries with a relevant row."""
    values = [measure(y[groups == g], f[groups == g]) for g in np.unique(groups) if np.any(y[groups == g] > 0)]
    return np.mean(values)


def chunk_counts(truth, predicted, groups):
    """Chunks of `B-`, `I-`, `O` labels: true ones, found ones, and those in common (first and last token, type)."""
    true, found = _chunks(truth, groups), _chunks(predicted, groups)
    return len(true), len(found), len(true & found)


def _chunks(labels, groups):
    found, current = set(), None
    for t, label in enumerate([*labels, "O"]):
        new = t == len(labels) or (t > 0 and groups[t] != groups[t - 1])
        sign, _, kind = label.partition("-")
        if current is not None and (new or sign != "I" or kind != current[1]):
            found.add((current[0], t - 1, current[1]))
            current = None
        if current is None and sign != "O":
            current = (t, kind)
    return found
