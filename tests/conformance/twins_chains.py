"""Losses of sequences from their formulas: every labeling of every sentence."""

import itertools

import numpy as np


def sentences(loss, targets, scores):
    """For each sentence: for every labeling how far its score is above the true one's, and its errors."""
    y = [int(label) for _, label in targets]
    labels = max(y) + 1
    width = labels + (labels * labels if loss.transitions == "observed" else 0)
    table = np.array(scores[: len(y) * width]).reshape(len(y), width)
    trans = np.array(scores[len(y) * width :]).reshape(labels, labels)
    first = 0
    for _, group in itertools.groupby(targets, key=lambda row: row[0]):
        steps = len(list(group))
        rows, truth = table[first : first + steps], np.array(y[first : first + steps])
        first += steps
        every = np.array(list(itertools.product(range(labels), repeat=steps)))
        excess = np.zeros(len(every))
        for t in range(steps):
            excess += rows[t, every[:, t]] - rows[t, truth[t]]
            if t:
                step = trans + (rows[t, labels:].reshape(labels, labels) if width > labels else 0.0)
                excess += step[every[:, t - 1], every[:, t]] - step[truth[t - 1], truth[t]]
        yield excess, (every != truth).sum(axis=1)


def _over_sentences(formula):
    def total(loss, targets, scores):
        return sum(formula(loss, *sentence) for sentence in sentences(loss, targets, scores))

    return total


def _likelihood(loss, excess, errors):
    return excess.max() + np.log(np.exp(excess - excess.max()).sum())


def _scaled_margin(loss, excess, errors):
    margins = 1.0 if loss.margin == "one" else errors
    return np.where(errors == 0, 0.0, errors**loss.beta * (margins + excess)).max()


FORMULAS = {
    "chain_crf": _likelihood,
    "chain_margin": lambda loss, excess, errors: (excess + errors).max(),
    "chain_scaled_margin": _scaled_margin,
}
"""For one sentence."""
TWINS = {name: _over_sentences(formula) for name, formula in FORMULAS.items()}
