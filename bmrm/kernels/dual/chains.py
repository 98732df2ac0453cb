"""Dual ascent for max-margin chains, a sentence at a time: templates for `specialised`.

The slope of a sentence is its weight times (the mean of some labelings' slopes, by their shares, less that of the true
one). Lacoste-Julien, Jaggi, Schmidt & Pletscher, "Block-coordinate Frank-Wolfe optimization for structural SVMs", ICML
2013, Algorithm 4, move the mixture towards the labeling that violates its margin most, by an exact line search. Here
the labelings in use are kept, and share moves between pairs of them, too (their conclusion; Osokin et al., "Minding
the gaps for block Frank-Wolfe optimization of structured SVMs", ICML 2016): the steps in between need no features but
the products of the sentence's own rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual.sweep import ROUNDING
from bmrm.kernels.dual.vertices import (
    Mixture,
    Moving,
    add_labeling,
    drop_idle,
    is_among,
    labeling_score,
    mix,
    move,
    values_of,
)
from bmrm.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ORACLES, STEPS = 2, 30
"""Labelings that a visit looks for at most, and moves of share at most after each: measured."""
LEFT, LEFT_BY_MIXING = 0.1, 0.3
"""Share of its gap with which a visit is content, and of the gap then known with which moves of share are."""


class Mixtures(NamedTuple):
    """The labelings that each sentence has in use, with room for more.

    Attributes
    ----------
    counts : (sentences,), how many.
    room_at, path_at : (sentences + 1,), where the shares and errors of each begin, and its paths.
    shares, errors : one after the other; those in use come first in the room of a sentence.
    paths : likewise, a label per token.
    """

    counts: Ints
    room_at: Ints
    path_at: Ints
    shares: Floats
    errors: Floats
    paths: NDArray[np.uint16]


class Room(NamedTuple):
    """What visits overwrite.

    `scores` and `slopes` of the longest sentence, `trans` and `trans_slope` (K, K), `values` of the most labelings, a
    `line` of scores.
    """

    scores: Floats
    slopes: Floats
    trans: Floats
    trans_slope: Floats
    values: Floats
    line: Floats


def visit(order, gaps, matrix, sentences, state, weights, step_rule, room):  # type: ignore[no-untyped-def]
    """Visit the sentences of `order` once.

    It calls `worst_labeling` of a loss, `read_scores` and `move_weights` of `dual_sentences`.

    Parameters
    ----------
    gaps : (sentences,), filled for those visited: what each contributed to the duality gap before its turn.
    sentences, weights, step_rule : `Sentences`, `Weights`, which are moved in place, and `Steps` of `dual_sentences`.
    state : `Mixtures`.
    """
    starts, y, masses, grams, gram_at, observed = sentences
    counts, room_at, path_at, mixtures, errors, paths = state
    all_scores, all_slopes, trans, trans_slope, all_values, line = room
    threshold, step, has_bias = step_rule
    longest = all_scores.shape[0]
    alone, path, where = np.zeros(2, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    short = np.empty(longest, paths.dtype)
    for s in order:
        first, steps, n, curve = starts[s], starts[s + 1] - starts[s], counts[s], step * masses[s]
        f, slope, truth = all_scores[:steps], all_slopes[:steps], y[first : starts[s + 1]]
        found, as_kept = path[:steps], short[:steps]
        gram = grams[gram_at[s] : gram_at[s + 1]].reshape(steps, steps)
        mixture, wrong = mixtures[room_at[s] : room_at[s + 1]], errors[room_at[s] : room_at[s + 1]]
        own = paths[path_at[s] : path_at[s + 1]].reshape(mixture.size, steps)
        values = all_values[: mixture.size]
        read_scores(matrix, first, weights, threshold, f, trans)  # type: ignore[name-defined]  # noqa: F821
        values_of(f, trans, observed, own, wrong, values[:n])
        alone[1] = steps
        sentence = Moving(gram, observed, curve, f, trans, slope, trans_slope)
        goal, moved = 0.0, False
        for turn in range(ORACLES):
            worst_labeling(f, trans, observed, truth, alone, found)  # type: ignore[name-defined]  # noqa: F821
            differ, mean = count_errors(found, truth), 0.0
            for c in range(n):
                mean += mixture[c] * values[c]
            top = labeling_score(f, trans, observed, found) + differ
            if turn == 0:
                gaps[s] = masses[s] * max(top - mean, 0.0)
                goal = max(LEFT * (top - mean), ROUNDING * steps * (1.0 + abs(top)))
            if top - mean <= goal:
                break
            if not moved:
                slope[:] = 0.0
                trans_slope[:] = 0.0
                moved = True
            for t in range(steps):
                as_kept[t] = found[t]
            if not is_among(as_kept, own[:n]):
                place = n
                if n < mixture.size:
                    mixture[n] = 0.0
                    n += 1
                else:  # the least of them gives way
                    place = np.argmin(mixture)
                    move(sentence, as_kept, own[place], mixture[place])
                for t in range(steps):
                    own[place, t] = as_kept[t]
                wrong[place] = differ
                values_of(f, trans, observed, own, wrong, values[:n])
            content = LEFT_BY_MIXING * (top - mean)
            mix(Mixture(own, mixture[:n], wrong, values[:n]), sentence, content, STEPS, where)
        if moved:
            move_weights(matrix, first, slope, trans_slope, curve, has_bias, line, weights)  # type: ignore[name-defined]  # noqa: F821
            counts[s] = drop_idle(own, mixture, wrong, n)


def take_worst(f, trans, sentences, state):  # type: ignore[no-untyped-def]
    """Let each sentence have the labeling alone that violates its margin most. It calls `worst_labeling`."""
    starts, y, observed = sentences.starts, sentences.y, sentences.observed
    counts, room_at, path_at, mixtures, errors, paths = state
    path = np.empty(y.size, np.int64)
    worst_labeling(f, trans, observed, y, starts, path)  # type: ignore[name-defined]  # noqa: F821
    for s in range(counts.size):
        found, truth = path[starts[s] : starts[s + 1]], y[starts[s] : starts[s + 1]]
        for t in range(found.size):
            paths[path_at[s] + t] = found[t]
        counts[s], mixtures[room_at[s]], errors[room_at[s]] = 1, 1.0, count_errors(found, truth)


@jit
def take_slopes(slopes, sentences, state):  # type: ignore[no-untyped-def]
    """Let each sentence have a mixture whose slopes of labels are about `slopes`, those of R times its mass.

    `slopes` are (tokens, labels). Shares of labels alone do not tell which occur together: the largest of all tokens
    are taken to, as much as all have of them, then the next.
    """
    starts, y, weights = sentences.starts, sentences.y, sentences.weights
    counts, room_at, path_at, mixtures, errors, paths = state
    for s in range(counts.size):
        first, steps, most = starts[s], starts[s + 1] - starts[s], room_at[s + 1] - room_at[s]
        if weights[s] == 0.0:
            continue
        shares = np.maximum(slopes[first : first + steps] / weights[s], 0.0)
        for t in range(steps):
            truth = y[first + t]
            shares[t, truth] = max(1.0 + slopes[first + t, truth] / weights[s], 0.0)
            total = 0.0
            for k in range(shares.shape[1]):
                total += shares[t, k]
            for k in range(shares.shape[1]):
                shares[t, k] /= max(total, 1e-300)
        own = paths[path_at[s] : path_at[s + 1]].reshape(most, steps)
        left, n = 1.0, 0
        while n == 0 or (left > 1e-12 and n < most):
            amount = left
            for t in range(steps):
                own[n, t] = np.argmax(shares[t])
                amount = min(amount, shares[t, own[n, t]])
            if n == most - 1 or amount <= 0.0:
                amount = left
            for t in range(steps):
                shares[t, own[n, t]] -= amount
            mixtures[room_at[s] + n] = amount
            errors[room_at[s] + n] = count_errors(own[n], y[first : first + steps])
            left -= amount
            n += 1
        counts[s] = n


@jit
def count_errors(path, truth):  # type: ignore[no-untyped-def]
    """The number of tokens with another label."""
    wrong = 0.0
    for t in range(path.size):
        wrong += path[t] != truth[t]
    return wrong


@jit
def offset(sentences, state):  # type: ignore[no-untyped-def]
    """The weighted sum of the errors of the mixtures: minus that of the conjugates."""
    weights, total = sentences.weights, 0.0
    counts, room_at, _, mixtures, errors, _ = state
    for s in range(counts.size):
        for c in range(room_at[s], room_at[s] + counts[s]):
            total += weights[s] * mixtures[c] * errors[c]
    return total


@jit
def slopes_of(sentences, state, slope, trans_slope):  # type: ignore[no-untyped-def]
    """Shares made to sum to 1, then their slopes added to `slope` and `trans_slope`."""
    starts, y, weights = sentences.starts, sentences.y, sentences.weights
    counts, room_at, path_at, mixtures, _, paths = state
    observed = sentences.observed
    for s in range(counts.size):
        here, steps = slope[starts[s] : starts[s + 1]], starts[s + 1] - starts[s]
        mixture = mixtures[room_at[s] : room_at[s] + counts[s]]
        total = 0.0
        for c in range(mixture.size):
            total += mixture[c]
        for c in range(mixture.size):
            mixture[c] /= total
        own = paths[path_at[s] : path_at[s + 1]].reshape(room_at[s + 1] - room_at[s], steps)
        for c in range(counts[s]):
            add_labeling(observed, own[c], weights[s] * mixture[c], here, trans_slope)
        add_labeling(observed, y[starts[s] : starts[s + 1]], -weights[s], here, trans_slope)
