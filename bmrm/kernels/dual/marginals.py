"""Dual ascent for likelihoods of structures, a group at a time, by its marginals: templates for `specialised`.

The slope of a group is its weight times (the marginals of the terms of scores under potentials of its own, less the
true labeling), and minus its conjugate that weight times the entropy of those marginals. A visit moves the potentials
towards those at which the dual would be highest if all other groups stayed, scores - curve * (products of the rows with
the change of marginals): the exponentiated gradient of Collins, Globerson, Koo, Carreras & Bartlett,
"Exponentiated gradient algorithms for conditional random fields and max-margin Markov networks", JMLR 9, 2008, section
5, by steps that make the dual rise along the group (they keep those of a schedule). Steps look at the features of a
group's rows but for their products once before and once after.

Numbers of a group stand in one flat array each: of the parameters, then of its rows. Templates call `marginals`,
`log_partition` and `terms` of a structure (`bmrm.kernels.structures.sums`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual.groups import split
from bmrm.kernels.dual.sweep import ROUNDING
from bmrm.kernels.jit import fast_jit, jit
from bmrm.kernels.products.vectors import inner
from bmrm.kernels.sequences.marginals import times
from bmrm.kernels.structures.sums import add_terms

Floats = NDArray[np.float64]

EPSILON = float(np.finfo(np.float64).eps)
TRIALS = 12
"""Most step lengths tried in a visit."""
ENOUGH = 0.7
"""Constant of the curvature (strong Wolfe) condition: largest share of the slope along a step that may be left."""
SHORTER, LONGER = 0.1, 4.0
"""Least and largest factor by which a step length changes."""
FIRST_LENGTH = 0.3
"""First step length of a group."""
DOUBTS, SMALLER = 12, 0.7
"""Most potentials of the true labels tried at a group's first visit, and the factor by which the next group starts with
a smaller one."""


class Potentials(NamedTuple):
    """Those of all groups, one after the other, and what follows from them.

    Attributes
    ----------
    at : (groups + 1,), where the numbers of each begin, and the last end.
    potentials, marginals : of rows and parameters.
    entropies, lengths : (groups,), of the marginals, and of the next step.
    begun : (groups,); before it has begun, the marginals of a group are the true labeling.
    """

    at: NDArray[np.int64]
    potentials: Floats
    marginals: Floats
    entropies: Floats
    lengths: Floats
    begun: NDArray[np.bool_]


class Room(NamedTuple):
    """What visits overwrite.

    `numbers` are seven rows for those of the longest group, `line` a row of scores.
    """

    numbers: Floats
    line: Floats


class Point(NamedTuple):
    """Potentials of one group, the marginals there, and what the potentials lack."""

    potentials: Floats
    marginals: Floats
    left: Floats


class Local(NamedTuple):
    """The dual of one group: scores and marginals before the visit, products of its rows, by how much scores fall.

    `given` and `parameters`, of the right shape, are for the structure; `change` is room for a change of marginals.
    """

    scores: Floats
    old: Floats
    gram: Floats
    curve: float
    given: NDArray[np.int64]
    parameters: Floats
    change: Floats


def visit(order, gaps, matrix, groups, state, weights, step_rule, room):  # type: ignore[no-untyped-def]
    """Visit the groups of `order` once.

    It calls `read_scores` and `move_weights` of `bmrm.kernels.dual.groups`, `log_partition`, and `begin` and `ascend`
    made for the structure. Parameters are those of `bmrm.kernels.dual.mixtures.visit`, but for `state`, which is
    `Potentials`, and the `Room`.
    """
    starts, y, masses, grams, gram_at, given = groups
    at, all_potentials, all_marginals, entropies, lengths, begun = state
    numbers, line = room
    threshold, step, has_bias = step_rule
    extra = 1.0
    for s in order:
        first, steps, size, curve = starts[s], starts[s + 1] - starts[s], at[s + 1] - at[s], step * masses[s]
        gram = grams[gram_at[s] : gram_at[s + 1]].reshape(steps, steps)
        potentials, old = all_potentials[at[s] : at[s + 1]], all_marginals[at[s] : at[s + 1]]
        scores, now, left = numbers[0, :size], numbers[1, :size], numbers[2, :size]
        point, spare = Point(potentials, now, left), Point(numbers[3, :size], numbers[4, :size], numbers[5, :size])
        f, parameters = split(scores, steps, line.size, weights.tail)
        about = given[first : starts[s + 1]]
        read_scores(matrix, first, weights, threshold, f, parameters)  # type: ignore[name-defined]  # noqa: F821
        log_normalizer = log_partition(f, parameters, about)  # type: ignore[name-defined]  # noqa: F821
        entropy, length = entropies[s], lengths[s]
        value = entropy + inner(scores, old)
        gaps[s] = masses[s] * max(log_normalizer - value, 0.0)
        least = ROUNDING * steps * (1.0 + abs(log_normalizer))
        noise = 64.0 * least
        if not log_normalizer - value > least:
            continue
        local = Local(scores, old, gram, curve, about, weights.tail, numbers[6, :size])
        if begun[s]:
            copy(old, now)
            subtract(scores, potentials, left)
        else:
            truth = y[first : starts[s + 1]]
            extra, entropy, value = begin(point, local, truth, value, noise, extra)  # type: ignore[no-untyped-call]
            begun[s] = np.isfinite(value)
            if not begun[s]:
                continue
            length = FIRST_LENGTH
        entropies[s], lengths[s] = ascend(point, local, entropy, value, length, noise, spare)  # type: ignore[no-untyped-call]
        subtract(now, old, spare.potentials)
        copy(now, old)
        slope, of_parameters = split(spare.potentials, steps, line.size, weights.tail)
        move_weights(matrix, first, slope, of_parameters, curve, has_bias, line, weights)  # type: ignore[name-defined]  # noqa: F821


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


def begin(point, local, truth, value, noise, extra):  # type: ignore[no-untyped-def]
    """The scores with `extra` for each true label as potentials, doubled until the dual is no lower than `value`.

    Fills the point; returns the next group's `extra`, entropy and value, -inf where none was found. It calls
    `evaluate`.
    """
    width = (point.potentials.size - local.parameters.size) // truth.size
    for _ in range(DOUBTS):
        copy(local.scores, point.potentials)
        own, _ = split(point.potentials, truth.size, width, local.parameters)
        for t in range(truth.size):
            own[t, truth[t]] += extra
        entropy, found = evaluate(point, local)  # type: ignore[no-untyped-call]
        if found >= value - noise:
            return SMALLER * extra, entropy, found
        extra = 1.0 + 2.0 * extra
    return 1.0, 0.0, -np.inf


def ascend(point, local, entropy, value, length, noise, spare):  # type: ignore[no-untyped-def]
    """Steps along what the potentials lack until little of the slope is left; the point moves.

    A length is taken back where the dual falls, by the secant of the slopes; returns entropy and the next length.
    `value` is the part of the dual that the group moves, `spare` room for another point. It calls `evaluate`.
    """
    potentials, now, left = point
    trial, found, later = spare
    for _ in range(TRIALS):
        for i in range(trial.size):
            trial[i] = potentials[i] + length * left[i]
        next_entropy, reached = evaluate(spare, local)  # type: ignore[no-untyped-call]
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


def evaluate(point, local):  # type: ignore[no-untyped-def]
    """Fill the marginals at the potentials, and what these lack; returns the entropy, and the part of the dual.

    It calls `marginals` of a structure.
    """
    potentials, found, left = point
    scores, old, gram, curve, given, parameters, change = local
    steps = gram.shape[0]
    width = (potentials.size - parameters.size) // steps
    f, tail = split(potentials, steps, width, parameters)
    shares, of_tail = split(found, steps, width, parameters)
    log_normalizer = marginals(f, tail, given, shares, of_tail)  # type: ignore[name-defined]  # noqa: F821
    entropy = log_normalizer - inner(potentials, found)
    subtract(found, old, change)
    table, _ = split(change, steps, width, parameters)
    here, _ = split(left, steps, width, parameters)
    lost = shortfall(potentials, scores, gram, curve, change, left, table, here)
    return entropy, entropy + inner(scores, found) - 0.5 * lost


@fast_jit
def shortfall(potentials, scores, gram, curve, change, left, table, here):  # type: ignore[no-untyped-def]
    """Fill `left`: scores - curve * products with `change` - potentials; returns curve * the square of that.

    `table` and `here` are the parts of `change` and `left` that belong to the rows.
    """
    square = 0.0
    for t in range(gram.shape[0]):
        times(gram[t], table, here[t])
    for i in range(left.size - here.size):
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


def take_scores(f, parameters, groups, state):  # type: ignore[no-untyped-def]
    """Let each group have the marginals at the scores `f` and these parameters. It calls `marginals` of a structure."""
    starts, given = groups.starts, groups.given
    at, potentials, shares, entropies, _, begun = state
    for s in range(begun.size):
        rows, own, here = starts[s + 1] - starts[s], potentials[at[s] : at[s + 1]], shares[at[s] : at[s + 1]]
        table, tail = split(own, rows, f.shape[1], parameters)
        copy(f[starts[s] : starts[s + 1]].reshape(-1), table.reshape(-1))
        copy(parameters.reshape(-1), tail.reshape(-1))
        found, of_tail = split(here, rows, f.shape[1], parameters)
        log_normalizer = marginals(table, tail, given[starts[s] : starts[s + 1]], found, of_tail)  # type: ignore[name-defined]  # noqa: F821
        entropies[s] = log_normalizer - inner(own, here)
        begun[s] = True


def take_truth(groups, width, parameters, at, marginals, places):  # type: ignore[no-untyped-def]
    """Add the true labeling of each group to its marginals. It calls `terms` of a structure.

    `parameters` tell their shape; `places`, as long as the terms of the longest group, are overwritten.
    """
    starts, y, given = groups.starts, groups.y, groups.given
    for s in range(at.size - 1):
        first, stop = starts[s], starts[s + 1]
        table, tail = split(marginals[at[s] : at[s + 1]], stop - first, width, parameters)
        count = terms(y[first:stop], table, tail, given[first:stop], places)  # type: ignore[name-defined]  # noqa: F821
        add_terms(places, count, 1.0, table.reshape(-1), tail.reshape(-1), -tail.size)


@jit
def rounding_of_entropies(groups, state):  # type: ignore[no-untyped-def]
    """How much too high the weighted sum of entropies may be: they are differences of numbers like the potentials."""
    starts, weights = groups.starts, groups.weights
    at, potentials, marginals = state.at, state.potentials, state.marginals
    total = 0.0
    for s in range(at.size - 1):
        size = 0.0
        for i in range(at[s], at[s + 1]):
            size += abs(potentials[i]) * marginals[i]
        total += weights[s] * (starts[s + 1] - starts[s]) * size
    return EPSILON * total


def slopes_of(groups, state, slope, of_parameters, places):  # type: ignore[no-untyped-def]
    """The weights of groups times (marginals less the true labeling), added to `slope` and `of_parameters`.

    It calls `terms` of a structure; `places` as of `take_truth`.
    """
    starts, y, weights, given = groups.starts, groups.y, groups.weights, groups.given
    at, marginals = state.at, state.marginals
    for s in range(at.size - 1):
        first, stop = starts[s], starts[s + 1]
        own, others = split(marginals[at[s] : at[s + 1]], stop - first, slope.shape[1], of_parameters)
        here = slope[first:stop]
        here += weights[s] * own
        of_parameters += weights[s] * others
        count = terms(y[first:stop], here, of_parameters, given[first:stop], places)  # type: ignore[name-defined]  # noqa: F821
        add_terms(places, count, -weights[s], here.reshape(-1), of_parameters.reshape(-1), -of_parameters.size)
