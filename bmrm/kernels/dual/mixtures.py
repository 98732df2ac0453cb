"""Dual ascent for margins of structures, a group at a time, by mixtures of labelings: templates for `specialised`.

The slope of a group is its weight times (the mean of some labelings' slopes, by their shares, less that of the true
one). Lacoste-Julien, Jaggi, Schmidt & Pletscher, "Block-coordinate Frank-Wolfe optimization for structural SVMs", ICML
2013, Algorithm 4, move the mixture towards the labeling that violates its margin most, by an exact line search. Here
the labelings in use are kept, and share moves between pairs of them, too (their conclusion; Osokin et al., "Minding
the gaps for block Frank-Wolfe optimization of structured SVMs", ICML 2016): the steps in between need no features but
the products of the group's own rows.

The `terms` of a labeling's score stand among the numbers of the group: the parameters, then the scores of its rows
(`bmrm.kernels.structures.sums`). When the share of a labeling grows, the slope grows by as much at these, and the
numbers move by -`curve` times its image: in the column of a term of row t by gram[t, u] for
each row u, gram being the products of the rows; at a parameter by 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual.groups import split
from bmrm.kernels.dual.sweep import ROUNDING
from bmrm.kernels.jit import inlined, jit
from bmrm.kernels.structures.sums import add_terms, count_errors

U = np.uint64
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ORACLES, STEPS = 2, 30
"""Most searches for a labeling in a visit, and most pairwise steps after each: measured."""
LEFT, LEFT_BY_MIXING = 0.1, 0.3
"""A visit ends at this share of the group's gap; the pairwise steps after a search end at this share of the gap then
known."""


class Mixtures(NamedTuple):
    """The labelings that each group has in use, with room for more.

    Attributes
    ----------
    counts : (groups,), how many.
    room_at, path_at : (groups + 1,), where the shares and errors of each begin, and its paths.
    shares, errors : one after the other; those in use come first in the room of a group.
    paths : likewise, a label per row.
    """

    counts: Ints
    room_at: Ints
    path_at: Ints
    shares: Floats
    errors: Floats
    paths: NDArray[np.uint16]


class Room(NamedTuple):
    """What visits overwrite.

    Attributes
    ----------
    numbers, slopes : of the longest group.
    values : of the most labelings.
    line : a row of scores.
    places : (9, terms): where the terms of a labeling stand, twice, and what `Moving` has for each term.
    path : (rows,).
    """

    numbers: Floats
    slopes: Floats
    values: Floats
    line: Floats
    places: Ints
    path: Ints


class Moving(NamedTuple):
    """A group of which shares move.

    Attributes
    ----------
    gram : (rows, rows), the products of its rows.
    width : scores per row.
    curve : by how much its own scores fall.
    numbers : the parameters, then its scores, kept up to date.
    slopes : of the same shape; what moves is added.
    first : for each term where the row that it belongs to begins in `numbers`; -width for a parameter.
    row : for each term the row; -1 for a parameter.
    difference : (5, terms), which `compare` fills.
    """

    gram: Floats
    width: int
    curve: float
    numbers: Floats
    slopes: Floats
    first: Ints
    row: Ints
    difference: Ints


class Mixture(NamedTuple):
    """Labelings of one group: `paths` (n, rows), and (n,) their `shares`, `errors`, and `values`.

    Values are errors plus score.
    """

    paths: NDArray[np.uint16]
    shares: Floats
    errors: Floats
    values: Floats


def visit(order, gaps, matrix, groups, state, weights, step_rule, room):  # type: ignore[no-untyped-def]
    """Visit the groups of `order` once.

    It calls `worst` and `terms` of a structure, `read_scores` and `move_weights` of `bmrm.kernels.dual.groups`, and
    `values_of` and `mix` made for the structure.

    Parameters
    ----------
    gaps : (groups,), filled for those visited: what each contributed to the duality gap before its turn.
    groups, weights, step_rule : `Grouped`, `Weights`, which are moved in place, and `Steps`.
    state : `Mixtures`.
    """
    starts, y, masses, grams, gram_at, given = groups
    counts, room_at, path_at, mixtures, errors, paths = state
    all_numbers, all_slopes, all_values, line, places, path = room
    threshold, step, has_bias = step_rule
    width, extra, longest = line.size, weights.tail.size, path.size
    table, parameters = split(all_numbers, longest, width, weights.tail)
    slope_table, of_parameters = split(all_slopes, longest, width, weights.tail)
    for s in order:
        first, steps, n, curve = starts[s], starts[s + 1] - starts[s], counts[s], step * masses[s]
        numbers, slopes, f = all_numbers[: extra + steps * width], all_slopes[: extra + steps * width], table[:steps]
        truth, about, found = y[first : starts[s + 1]], given[first : starts[s + 1]], path[:steps]
        gram = grams[gram_at[s] : gram_at[s + 1]].reshape(steps, steps)
        mixture, wrong = mixtures[room_at[s] : room_at[s + 1]], errors[room_at[s] : room_at[s + 1]]
        own, values = paths[path_at[s] : path_at[s + 1]].reshape(mixture.size, steps), all_values[: mixture.size]
        read_scores(matrix, first, weights, threshold, f, parameters)  # type: ignore[name-defined]  # noqa: F821
        values_of(f, parameters, about, own, wrong, values[:n])  # type: ignore[no-untyped-call]
        goal, moved, moving = 0.0, False, Moving(gram, width, curve, numbers, slopes, places[2], places[3], places[4:])
        for turn in range(ORACLES):
            worst(f, parameters, about, truth, found)  # type: ignore[name-defined]  # noqa: F821
            differ, mean = count_errors(found, truth), 0.0
            for c in range(n):
                mean += mixture[c] * values[c]
            top = differ + score(found, f, parameters, about)  # type: ignore[name-defined]  # noqa: F821
            if turn == 0:
                gaps[s] = masses[s] * max(top - mean, 0.0)
                goal = max(LEFT * (top - mean), ROUNDING * steps * (1.0 + abs(top)))
            if top - mean <= goal:
                break
            if not moved:
                slopes[:] = 0.0
                moved = True
                count = terms(truth, f, parameters, about, places[0])  # type: ignore[name-defined]  # noqa: F821
                for p in range(count):
                    row = (places[0, p] - extra) // width if places[0, p] >= extra else -1
                    places[3, p] = row
                    places[2, p] = extra + row * width if row >= 0 else -width
            if not is_among(found, own[:n]):
                place = n
                if n < mixture.size:
                    mixture[n] = 0.0
                    n += 1
                else:  # the least of them gives way
                    place = np.argmin(mixture)
                    terms(found, f, parameters, about, places[0])  # type: ignore[name-defined]  # noqa: F821
                    terms(own[place], f, parameters, about, places[1])  # type: ignore[name-defined]  # noqa: F821
                    move(moving, *compare(moving, places[0], places[1], count), mixture[place])
                for t in range(steps):
                    own[place, t] = found[t]
                wrong[place] = differ
            values_of(f, parameters, about, own, wrong, values[:n])  # type: ignore[no-untyped-call]
            content = LEFT_BY_MIXING * (top - mean)
            mix(
                Mixture(own, mixture[:n], wrong, values[:n]),
                moving,
                f,
                parameters,
                about,
                content,
                STEPS,
                places,
                count,
            )  # type: ignore[no-untyped-call]
        if moved:
            move_weights(matrix, first, slope_table[:steps], of_parameters, curve, has_bias, line, weights)  # type: ignore[name-defined]  # noqa: F821
            counts[s] = drop_idle(own, mixture, wrong, n)


def values_of(f, parameters, given, paths, errors, values):  # type: ignore[no-untyped-def]
    """Fill the values of some labelings. It calls `score` of a structure."""
    for c in range(values.size):
        values[c] = errors[c] + score(paths[c], f, parameters, given)  # type: ignore[name-defined]  # noqa: F821


@inlined
def compare(group, a, b, count):  # type: ignore[no-untyped-def]
    """Fill the difference of two labelings whose terms stand at `a` and `b`; returns how many are of rows, and where
    those of parameters begin.

    For each term that differs: both places, both places in a row, and the row. Those of parameters stand at the end.
    """
    first, row, out = group.first, group.row, group.difference
    rows, last = 0, count
    for p in range(count):
        i, j = a[p], b[p]
        if i != j:
            t, begin = row[p], first[p]
            last -= t < 0
            at = rows if t >= 0 else last
            rows += t >= 0
            out[0, at], out[1, at], out[2, at], out[3, at], out[4, at] = i, j, i - begin, j - begin, t
    return rows, last, count


@inlined
def squared_distance(group, rows, last, count):  # type: ignore[no-untyped-def]
    """Of the features of two labelings that have been compared."""
    gram, (_, _, of_a, of_b, row) = group.gram, group.difference
    total = 0.0
    for p in range(rows):
        a, b, products = of_a[p], of_b[p], gram[row[p]]
        total += 2.0 * products[row[p]]
        for q in range(p):
            total += 2.0 * _alike(a, b, of_a[q], of_b[q]) * products[row[q]]
    for p in range(last, count):
        total += 2.0
        for q in range(last, p):
            total += 2.0 * _alike(of_a[p], of_b[p], of_a[q], of_b[q])
    return total


@inlined
def _alike(a, b, c, d):  # type: ignore[no-untyped-def]
    """The product of (a less b) and (c less d), unit vectors."""
    return int(a == c) + int(b == d) - int(a == d) - int(b == c)


@jit
def move(group, rows, last, count, amount):  # type: ignore[no-untyped-def]
    """Give `amount` of the share of one labeling to the other, which have been compared: numbers and slopes move."""
    gram, width, curve, numbers, slopes, _, _, (at_a, at_b, of_a, of_b, row) = group
    by, begin = curve * amount, numbers.size - gram.shape[0] * width
    for p in range(rows):
        slopes[at_a[p]] += amount
        slopes[at_b[p]] -= amount
        i, j, products = begin + of_a[p], begin + of_b[p], gram[row[p]]
        for u in range(products.size):
            numbers[i] -= by * products[u]
            numbers[j] += by * products[u]
            i, j = i + width, j + width
    for p in range(last, count):
        i, j = at_a[p], at_b[p]
        slopes[i] += amount
        slopes[j] -= amount
        numbers[i] -= by
        numbers[j] += by


def mix(mixture, group, f, parameters, given, goal, most, places, count):  # type: ignore[no-untyped-def]
    """Move share from the worst labeling in use to the best until no mixture gains above `goal`, or `most` times.

    As much of it as is best (a pairwise step of Frank and Wolfe). It calls `terms` of a structure, and `values_of`.
    """
    paths, shares, errors, values = mixture
    for _ in range(most):
        best, worst, mean = 0, -1, 0.0
        for c in range(values.size):
            mean += shares[c] * values[c]
            if values[c] > values[best]:
                best = c
            if shares[c] > 0.0 and (worst < 0 or values[c] < values[worst]):
                worst = c
        rise = values[best] - values[worst]
        if values[best] - mean <= goal or rise <= 0.0:
            break
        terms(paths[best], f, parameters, given, places[0])  # type: ignore[name-defined]  # noqa: F821
        terms(paths[worst], f, parameters, given, places[1])  # type: ignore[name-defined]  # noqa: F821
        rows, last, _ = compare(group, places[0], places[1], count)
        curvature = group.curve * squared_distance(group, rows, last, count)
        step = shares[worst] if curvature * shares[worst] <= rise else rise / curvature
        shares[worst] = shares[worst] - step if step < shares[worst] else 0.0
        shares[best] += step
        move(group, rows, last, count, step)
        values_of(f, parameters, given, paths, errors, values)  # type: ignore[no-untyped-call]


@inlined
def is_among(path, paths):  # type: ignore[no-untyped-def]
    """Whether `path` is one of `paths`."""
    for c in range(paths.shape[0]):
        t = 0
        while t < path.size and paths[c, t] == path[t]:
            t += 1
        if t == path.size:
            return True
    return False


@inlined
def drop_idle(paths, mixture, errors, n):  # type: ignore[no-untyped-def]
    """Close up the first n where shares are 0; returns how many are left."""
    kept = 0
    for c in range(n):
        if mixture[c] > 0.0:
            if kept < c:
                for t in range(paths.shape[1]):
                    paths[kept, t] = paths[c, t]
                mixture[kept], errors[kept] = mixture[c], errors[c]
            kept += 1
    return kept


def take_worst(f, parameters, groups, state, path):  # type: ignore[no-untyped-def]
    """Let each group have the labeling alone that violates its margin most. It calls `worst` of a structure.

    `path`, as long as the longest group, is overwritten.
    """
    starts, y, given = groups.starts, groups.y, groups.given
    counts, room_at, path_at, mixtures, errors, paths = state
    for s in range(counts.size):
        first, stop = starts[s], starts[s + 1]
        found, truth = path[: stop - first], y[first:stop]
        worst(f[first:stop], parameters, given[first:stop], truth, found)  # type: ignore[name-defined]  # noqa: F821
        for t in range(found.size):
            paths[path_at[s] + t] = found[t]
        counts[s], mixtures[room_at[s]], errors[room_at[s]] = 1, 1.0, count_errors(found, truth)


@jit
def take_slopes(slopes, groups, state):  # type: ignore[no-untyped-def]
    """Let each group have a mixture whose slopes of labels are about `slopes`, those of R times its mass.

    `slopes` are (rows, labels). Shares of labels alone do not tell which occur together: the largest of all rows
    are taken to, as much as all have of them, then the next.
    """
    starts, y, weights = groups.starts, groups.y, groups.weights
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
def offset(groups, state):  # type: ignore[no-untyped-def]
    """The weighted sum of the errors of the mixtures: minus that of the conjugates."""
    weights, total = groups.weights, 0.0
    counts, room_at, _, mixtures, errors, _ = state
    for s in range(counts.size):
        for c in range(room_at[s], room_at[s] + counts[s]):
            total += weights[s] * mixtures[c] * errors[c]
    return total


def slopes_of(groups, state, slope, of_parameters, path, at):  # type: ignore[no-untyped-def]
    """Shares made to sum to 1, then their slopes added to `slope` and `of_parameters`. It calls `terms` of a structure.

    `path` and `at`, as long as the longest group and its terms, are overwritten.
    """
    starts, y, weights, given = groups.starts, groups.y, groups.weights, groups.given
    counts, room_at, path_at, mixtures, _, paths = state
    flat, tail = slope.reshape(-1), of_parameters.reshape(-1)
    for s in range(counts.size):
        first, stop = starts[s], starts[s + 1]
        here, about, found = slope[first:stop], given[first:stop], path[: stop - first]
        mixture, base = mixtures[room_at[s] : room_at[s] + counts[s]], first * slope.shape[1] - tail.size
        total = 0.0
        for c in range(mixture.size):
            total += mixture[c]
        own = paths[path_at[s] : path_at[s + 1]].reshape(room_at[s + 1] - room_at[s], stop - first)
        for c in range(counts[s]):
            mixture[c] /= total
            for t in range(found.size):
                found[t] = own[c, t]
            count = terms(found, here, of_parameters, about, at)  # type: ignore[name-defined]  # noqa: F821
            add_terms(at, count, weights[s] * mixture[c], flat, tail, base)
        count = terms(y[first:stop], here, of_parameters, about, at)  # type: ignore[name-defined]  # noqa: F821
        add_terms(at, count, -weights[s], flat, tail, base)
