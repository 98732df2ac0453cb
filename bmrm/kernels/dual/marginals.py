"""Dual ascent for the likelihood of chains, a sentence at a time: templates for `specialised`.

The slope of a sentence is its weight times (the marginals of labels and transitions under potentials of its own, less
the true labeling), and minus its conjugate that weight times the entropy of those marginals. A visit moves the
potentials towards those at which the dual would be highest if all other sentences stayed, scores - curve * (products of
the rows with the change of marginals): the exponentiated gradient of Collins, Globerson, Koo, Carreras & Bartlett,
"Exponentiated gradient algorithms for conditional random fields and max-margin Markov networks", JMLR 9, 2008, section
5, by steps that make the dual rise along the sentence (they keep those of a schedule). Steps look at the features of a
sentence's rows but for their products once before and once after.

Numbers of a sentence stand in one flat array each: of its tokens, then of the transitions, which for marginals are
summed over its tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual.sweep import ROUNDING
from bmrm.kernels.dual.vertices import add_labeling
from bmrm.kernels.jit import fast_jit, jit
from bmrm.kernels.products.vectors import inner
from bmrm.kernels.sequences.marginals import labeling_marginals, log_partition, times

Floats = NDArray[np.float64]

EPSILON = float(np.finfo(np.float64).eps)
TRIALS = 12
"""Steps tried in a visit at most."""
ENOUGH = 0.7
"""Constant of the curvature (strong Wolfe) condition: largest share of the slope along a step that may be left."""
SHORTER, LONGER = 0.1, 4.0
"""Bounds of what a length is changed by."""
FIRST_LENGTH = 0.3
"""Of a sentence's first step."""
DOUBTS, SMALLER = 12, 0.7
"""Potentials of the true labels tried at a sentence's first visit, and by how much less the next sentence begins with.
"""


class Potentials(NamedTuple):
    """Those of all sentences, one after the other, and what follows from them.

    Attributes
    ----------
    at : (sentences + 1,), where the numbers of each begin, and the last end.
    potentials, marginals : of tokens and transitions.
    entropies, lengths : (sentences,), of the marginals, and of the next step.
    begun : (sentences,); before it has begun, the marginals of a sentence are the true labeling.
    """

    at: NDArray[np.int64]
    potentials: Floats
    marginals: Floats
    entropies: Floats
    lengths: Floats
    begun: NDArray[np.bool_]


class Room(NamedTuple):
    """What visits overwrite.

    `numbers` are seven rows for those of the longest sentence, `line` a row of scores, `tables` what
    `labeling_marginals` wants.
    """

    numbers: Floats
    line: Floats
    tables: tuple[Floats, ...]


class Point(NamedTuple):
    """Potentials of one sentence, the marginals there, and what the potentials lack."""

    potentials: Floats
    marginals: Floats
    left: Floats


class Local(NamedTuple):
    """The dual of one sentence: scores and marginals before the visit, products of its rows, by how much scores fall.

    `change` is room for a change of marginals.
    """

    scores: Floats
    old: Floats
    gram: Floats
    curve: float
    observed: bool
    change: Floats


def visit(order, gaps, matrix, sentences, state, weights, step_rule, room):  # type: ignore[no-untyped-def]
    """Visit the sentences of `order` once. It calls `read_scores` and `move_weights` of `dual_sentences`.

    Parameters are those of `dual_chains.visit`, but for `state`, which is `Potentials`, and the `Room`.
    """
    starts, y, masses, grams, gram_at, observed = sentences
    at, all_potentials, all_marginals, entropies, lengths, begun = state
    numbers, line, tables = room
    threshold, step, has_bias = step_rule
    labels, extra = weights.tail.shape[0], 1.0
    for s in order:
        first, steps, size, curve = starts[s], starts[s + 1] - starts[s], at[s + 1] - at[s], step * masses[s]
        gram = grams[gram_at[s] : gram_at[s + 1]].reshape(steps, steps)
        potentials, old = all_potentials[at[s] : at[s + 1]], all_marginals[at[s] : at[s + 1]]
        scores, now, left = numbers[0, :size], numbers[1, :size], numbers[2, :size]
        point, spare = Point(potentials, now, left), Point(numbers[3, :size], numbers[4, :size], numbers[5, :size])
        f, trans = parts(scores, steps, labels)
        read_scores(matrix, first, weights, threshold, f, trans)  # type: ignore[name-defined]  # noqa: F821
        log_normalizer = log_partition(f, trans, observed, tables)
        entropy, length = entropies[s], lengths[s]
        value = entropy + inner(scores, old)
        gaps[s] = masses[s] * max(log_normalizer - value, 0.0)
        least = ROUNDING * steps * (1.0 + abs(log_normalizer))
        noise = 64.0 * least
        if not log_normalizer - value > least:
            continue
        local = Local(scores, old, gram, curve, observed, numbers[6, :size])
        if begun[s]:
            copy(old, now)
            subtract(scores, potentials, left)
        else:
            truth = y[first : starts[s + 1]]
            extra, entropy, value = begin(point, local, truth, value, noise, extra, tables)
            begun[s] = np.isfinite(value)
            if not begun[s]:
                continue
            length = FIRST_LENGTH
        entropies[s], lengths[s] = ascend(point, local, entropy, value, length, noise, spare, tables)
        subtract(now, old, spare.potentials)
        copy(now, old)
        slope, trans_slope = parts(spare.potentials, steps, labels)
        move_weights(matrix, first, slope, trans_slope, curve, has_bias, line, weights)  # type: ignore[name-defined]  # noqa: F821


@jit
def parts(flat, steps, labels):  # type: ignore[no-untyped-def]
    """The numbers of the tokens and of the transitions, views."""
    border = flat.size - labels * labels
    return flat[:border].reshape(steps, border // steps), flat[border:].reshape(labels, labels)


@jit
def copy(source, target):  # type: ignore[no-untyped-def]
    """target = source."""
    for i in range(target.size):
        target[i] = source[i]


@jit
def subtract(a, b, out):  # type: ignore[no-untyped-def]
    """out = a - b."""
    for i in range(out.size):
        out[i] = a[i] - b[i]


@jit
def begin(point, local, truth, value, noise, extra, tables):  # type: ignore[no-untyped-def]
    """The scores with `extra` for each true label as potentials, doubled until the dual is no lower than `value`.

    Fills the point; returns the next sentence's `extra`, entropy and value, -inf where none was found.
    """
    labels = tables[0].shape[0]
    for _ in range(DOUBTS):
        copy(local.scores, point.potentials)
        own, _ = parts(point.potentials, truth.size, labels)
        for t in range(truth.size):
            own[t, truth[t]] += extra
        entropy, found = evaluate(point, local, tables)
        if found >= value - noise:
            return SMALLER * extra, entropy, found
        extra = 1.0 + 2.0 * extra
    return 1.0, 0.0, -np.inf


@jit
def ascend(point, local, entropy, value, length, noise, spare, tables):  # type: ignore[no-untyped-def]
    """Steps along what the potentials lack until little of the slope is left; the point moves.

    A length is taken back where the dual falls, by the secant of the slopes; returns entropy and the next length.
    `value` is the part of the dual that the sentence moves, `spare` room for another point.
    """
    potentials, now, left = point
    trial, found, later = spare
    for _ in range(TRIALS):
        for i in range(trial.size):
            trial[i] = potentials[i] + length * left[i]
        next_entropy, reached = evaluate(spare, local, tables)
        slope, end = slopes(found, now, left, later)
        zero = length * slope / max(slope - end, 1e-300)
        if not reached >= value - noise:
            if not slope > 0.0:
                break
            length = min(max(zero, SHORTER * length), 0.5 * length)
            continue
        done = end <= ENOUGH * slope or length >= 1.0
        copy(trial, potentials)
        copy(found, now)
        copy(later, left)
        entropy, value = next_entropy, reached
        length = min(max(zero, 0.5 * length), LONGER * length, 1.0)
        if done:
            break
    return entropy, length


@jit
def evaluate(point, local, tables):  # type: ignore[no-untyped-def]
    """Fill the marginals at the potentials, and what these lack; returns the entropy, and the part of the dual."""
    potentials, marginals, left = point
    scores, old, gram, curve, observed, change = local
    steps, labels = gram.shape[0], tables[0].shape[0]
    pieces = parts(marginals, steps, labels)
    log_normalizer = labeling_marginals(*parts(potentials, steps, labels), observed, *pieces, tables)
    entropy = log_normalizer - inner(potentials, marginals)
    subtract(marginals, old, change)
    lost = shortfall(potentials, scores, gram, curve, change, left, labels)
    return entropy, entropy + inner(scores, marginals) - 0.5 * lost


@fast_jit
def shortfall(potentials, scores, gram, curve, change, left, labels):  # type: ignore[no-untyped-def]
    """Fill `left`: scores - curve * products with `change` - potentials; returns curve * the square of that."""
    square = 0.0
    table, _ = parts(change, gram.shape[0], labels)
    here, _ = parts(left, gram.shape[0], labels)
    for t in range(gram.shape[0]):
        times(gram[t], table, here[t])
    for i in range(here.size, left.size):
        left[i] = change[i]
    for i in range(left.size):
        square += left[i] * change[i]
        left[i] = scores[i] - potentials[i] - curve * left[i]
    return curve * square


@fast_jit
def slopes(found, now, left, later):  # type: ignore[no-untyped-def]
    """The products of the change of marginals with what potentials lack before and after a step."""
    first = last = 0.0
    for i in range(found.size):
        change = found[i] - now[i]
        first += change * left[i]
        last += change * later[i]
    return first, last


@jit
def take_scores(f, trans, sentences, state, tables):  # type: ignore[no-untyped-def]
    """Let each sentence have the marginals at the scores `f`, those of transitions `trans`."""
    starts, observed = sentences.starts, sentences.observed
    at, potentials, marginals, entropies, _, begun = state
    for s in range(begun.size):
        steps, own = starts[s + 1] - starts[s], potentials[at[s] : at[s + 1]]
        table, between = parts(own, steps, trans.shape[0])
        copy(f[starts[s] : starts[s + 1]].reshape(-1), table.reshape(-1))
        copy(trans.reshape(-1), between.reshape(-1))
        here = marginals[at[s] : at[s + 1]]
        found, pairs = parts(here, steps, trans.shape[0])
        entropies[s] = labeling_marginals(table, between, observed, found, pairs, tables) - inner(own, here)
        begun[s] = True


@jit
def take_truth(y, starts, labels, observed, at, marginals):  # type: ignore[no-untyped-def]
    """Add the true labeling of each sentence to its marginals."""
    for s in range(at.size - 1):
        table, pairs = parts(marginals[at[s] : at[s + 1]], starts[s + 1] - starts[s], labels)
        add_labeling(observed, y[starts[s] : starts[s + 1]], 1.0, table, pairs)


@jit
def rounding_of_entropies(sentences, state):  # type: ignore[no-untyped-def]
    """How much too high the weighted sum of entropies may be: they are differences of numbers like the potentials."""
    starts, weights = sentences.starts, sentences.weights
    at, potentials, marginals = state.at, state.potentials, state.marginals
    whole = 0.0
    for s in range(at.size - 1):
        size = 0.0
        for i in range(at[s], at[s + 1]):
            size += abs(potentials[i]) * marginals[i]
        whole += weights[s] * (starts[s + 1] - starts[s]) * size
    return EPSILON * whole


@jit
def slopes_of(sentences, state, slope, trans_slope):  # type: ignore[no-untyped-def]
    """The weights of sentences times (marginals less the true labeling), added to `slope` and `trans_slope`."""
    starts, y, weights = sentences.starts, sentences.y, sentences.weights
    at, marginals, labels, observed = state.at, state.marginals, trans_slope.shape[0], sentences.observed
    for s in range(at.size - 1):
        here, pairs = parts(marginals[at[s] : at[s + 1]], starts[s + 1] - starts[s], labels)
        mine, truth = slope[starts[s] : starts[s + 1]], y[starts[s] : starts[s + 1]]
        mine += weights[s] * here
        trans_slope += weights[s] * pairs
        add_labeling(observed, truth, -weights[s], mine, trans_slope)
