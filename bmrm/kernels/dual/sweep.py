"""Dual coordinate ascent over rows of one score: the sweep and what goes with it, as templates for `specialised`.

Every row i has a slope u of s_i loss_i and a score g at which it is one, so that s_i loss_i(f) >= u f + (s_i
loss_i(g) - u g) for every score f. The row's own proximal map moves both: with z the score that the row would have if
its own slope were taken out, g = prox(z) and u = (z - g) / k.

The numbers of a row stand together, a cache line of `WIDTH` in the flat array `state`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual.order import shuffle_blocks
from bmrm.kernels.products.prefetch import prefetch

U = np.uint64
WIDTH = 8
"""Numbers of a row in `state`."""
SLOPE, SCORE, CURVE, TARGET, WEIGHT, SHIFT, OFFSET = range(7)
"""Places in `state` of u, g, ||x||^2 / (S l2), y, s, <x, shift> of the scaled features, and the offset: what the score
of a row has beside <x, w> and the constant. g has it, too."""
ROUNDING = 4.5e-16
LONG = 1e4
"""Ratio of a step to the score where it ends above which digits of the score may be lost."""
BESIDE = 1e-8
"""Relative accuracy of the score of a slope in that case; the error of the loss is of its square."""
OF_NO_ACCOUNT = 1e-12
"""Rounding below this share of a sum is ignored."""
STATE_AHEAD, ROW_AHEAD = 6, 3
"""Visits between the prefetch of a row's numbers, and of its entries, and the visit of the row."""

GAP, DRIFT = range(2)
"""Places in `sums` of the results of `sweep`."""
CONSTANT, BIAS, TOTAL = range(3)
"""Places in `scalars` of what `sweep` updates besides v: the constant added to all scores, the weight of a constant
feature, and the sum of all steps, by which v has still to be shifted."""
CAUTION = 4.0
"""A row is shrunk if its slope would not change if its score moved by this multiple of the root mean square change in a
sweep."""


class Shrinking(NamedTuple):
    """Room for the order of a sweep and for the rows that may still move, (rows,) each, and what outlasts a sweep.

    `margin` (1,) is that of `sweep`, `random` (1,) the state of the random numbers.
    """

    order: NDArray[np.uint32]
    kept: NDArray[np.uint32]
    margin: NDArray[np.float64]
    random: NDArray[np.uint64]


class Steps(NamedTuple):
    """How the weights move with the slopes, the same for all rows.

    Attributes
    ----------
    threshold : of `weigh`.
    step : v moves by -step * (change of u) * x.
    shares : by how much `state` understates the curvature: the number of ranks that move at once.
    has_bias : 1.0 where a constant feature 1 follows the others, else 0.0.
    moves : by how much `CONSTANT` moves with a step of 1, a row's SHIFT apart.
    extra : what a row's curvature has besides CURVE.
    """

    threshold: float
    step: float
    shares: float
    has_bias: float
    moves: float
    extra: float


class Dual(NamedTuple):
    """The dual's state and the weights, which are moved in place.

    `state` (rows * WIDTH,), `v` (columns,), `scalars` (3,); `steps` are the fields of a `Steps`; `smooth` tells whether
    losses are parabolas as far as GAP is concerned, which saves their values, and `arguments` are of the loss.
    """

    state: NDArray[np.float64]
    v: NDArray[np.float64]
    scalars: NDArray[np.float64]
    steps: tuple[float, ...]
    smooth: bool
    arguments: tuple[Any, ...]


def rounds(matrix, rows, shrinking, limit, known, sums, dual):  # type: ignore[no-untyped-def]
    """Sweeps over the `rows` that may still move until `limit` visits; returns how many are left in `kept`, and visits.

    After each the margin becomes `CAUTION` times the root mean square by which the scores have drifted. It calls
    `visit`, a compiled `sweep`. `known` tells whether rows have scores g; without them there is one sweep.
    """
    order, kept, margin, random = shrinking
    visited, count = 0, rows.size
    for k in range(count):  # an assignment of arrays compiles the words of its errors, too: seconds
        kept[k] = rows[k]
    while count and visited < limit:
        shuffle_blocks(kept[:count], order, random)
        visited += count
        left = visit(order[:count], kept, margin[0], known, sums, matrix, dual)  # type: ignore[name-defined]  # noqa: F821
        if not known:
            return left, visited
        margin[0] = CAUTION * np.sqrt(sums[DRIFT] / count)
        count = left
    return count, visited


def sweep(order, kept, margin, measure, sums, matrix, dual):  # type: ignore[no-untyped-def]
    """Visit the rows of `order` once; returns how many of them stand in `kept`, those that may still move.

    It calls `prox_row(z, step, y, *arguments)`, `value_row(f, y, *arguments)`, and `gather`, `spread`, `fetch` and
    `weigh` of `bmrm.kernels.dual.rows`.

    Parameters
    ----------
    margin : a row is shrunk where its slope did not move, and would not if its score were this much different.
    measure : whether GAP is wanted; not in a first sweep, in which rows have no g.
    sums : filled. GAP: the sum of s loss(score) - (u score + s loss(g) - u g), each as the row was found: what it
        contributed to the duality gap before its turn. DRIFT: the sum of (score - g)^2.
    """
    state, v, scalars, steps, smooth, arguments = dual
    threshold, step, shares, has_bias, moves, extra = steps
    constant, bias, total = scalars[CONSTANT], scalars[BIAS], scalars[TOTAL]
    gap, drift, count, last = 0.0, 0.0, 0, order.size - 1
    for position in range(order.size):
        soon = U(order[min(position + STATE_AHEAD, last)])
        prefetch(state, soon * U(WIDTH))
        prefetch(matrix[0], soon)
        fetch(matrix, U(order[min(position + ROW_AHEAD, last)]))  # type: ignore[name-defined]  # noqa: F821
        i = U(order[position])
        base = i * U(WIDTH)
        u, g, y = state[base], state[base + U(SCORE)], state[base + U(TARGET)]
        weight, shift = state[base + U(WEIGHT)], state[base + U(SHIFT)]
        k = shares * state[base + U(CURVE)] + extra
        score = gather(matrix, i, v, threshold)  # type: ignore[name-defined]  # noqa: F821
        score += constant + weigh(bias, threshold) - total * shift  # type: ignore[name-defined]  # noqa: F821
        score += state[base + U(OFFSET)]
        if measure and not smooth:
            rise = value_row(score, y, *arguments) - value_row(g, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
            gap += weight * rise - u * (score - g)
        drift += (score - g) ** 2
        z = score + k * u
        f, change = prox_row(z, k * weight, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
        still = abs(z - f - k * u) <= ROUNDING * (abs(z) + abs(f))
        if not still:
            new = (z - f) / k
            if measure and smooth:
                gap += 0.5 * (new - u) * (score - g) / change
            by = step * (u - new)
            spread(matrix, i, by, v)  # type: ignore[name-defined]  # noqa: F821
            bias += has_bias * by
            constant += by * (moves - shift)
            total += by
            state[base] = new
        state[base + U(SCORE)] = f
        aside = False
        if still and change == 1.0 and margin < np.inf:
            lower, at_lower = prox_row(z - margin, k * weight, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
            upper, at_upper = prox_row(z + margin, k * weight, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
            straight = abs(upper - lower - 2.0 * margin) <= 1e-9 * margin
            aside = at_lower == 1.0 and at_upper == 1.0 and straight
        if not aside:
            kept[count] = order[position]
            count += 1
    scalars[CONSTANT], scalars[BIAS], scalars[TOTAL] = constant, bias, total
    sums[GAP], sums[DRIFT] = gap, drift
    return count


def score_of(slope, y, arguments):  # type: ignore[no-untyped-def]
    """A score at which the loss has this slope, or one beside it if it has none. It calls `prox_row`.

    That is prox(z) of a step of 1 where z - prox(z) is the slope, which rises with z: bisection, after steps that
    double until they enclose it.
    """
    z, reach, lowest, highest, best, least = slope, 1.0, -np.inf, np.inf, 0.0, np.inf
    for _ in range(200):
        f, _change = prox_row(z, 1.0, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
        miss = z - f - slope
        if abs(miss) < least:
            best, least = f, abs(miss)
        if least <= ROUNDING * (abs(slope) + abs(f)) or lowest == highest:
            break
        if miss < 0.0:
            lowest = z
        else:
            highest = z
        if lowest == -np.inf or highest == np.inf:
            z = z + reach if miss < 0.0 else z - reach
            reach *= 2.0
        else:
            z = 0.5 * (lowest + highest)
    return best


def offsets(state, arguments):  # type: ignore[no-untyped-def]
    """The sum of s loss(g) - u g: minus the sum of the conjugates at u. It calls `value_row` and `prox_row`.

    A long step leaves few digits to g, so that u may be no slope there: then a score is sought at which it is. A short
    one leaves few to u, a difference of scores over k, which may be a slope at another score, as far off as the target
    is; what the rounding of the two may be at most is taken off.
    """
    total, size = 0.0, 0.0
    for i in range(state.size // WIDTH):
        base = U(i) * U(WIDTH)
        weight, g = state[base + U(WEIGHT)], state[base + U(SCORE)]
        if weight != 0.0:
            u, k, y = state[base], state[base + U(CURVE)], state[base + U(TARGET)]
            if k * abs(u) > LONG * (1.0 + abs(g)):
                slope = u / weight
                f, _ = prox_row(g + slope, 1.0, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
                if not abs(f - g) <= BESIDE * (1.0 + abs(g)):
                    g = score_of(slope, y, arguments)  # type: ignore[no-untyped-call]
            value = weight * value_row(g, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
            product = u * g
            total += value - product
            size += abs(value) + abs(product)
            if k > 0.0 and (u != 0.0 or value != 0.0):
                size += abs(g + k * u) / k * (abs(g) + abs(y))
    rounding = ROUNDING * size
    return total - rounding if rounding > OF_NO_ACCOUNT * abs(total) else total


def shifted(state, shifts, share, totals, arguments):  # type: ignore[no-untyped-def]
    """For each of `shifts` the sum of the slopes if all scores were higher by it, in `totals`. It calls `prox_row`.

    The rows keep to their proximal maps, of `share` of their curvatures, so that the slopes stay feasible; a shift of 0
    changes nothing.
    """
    for t in range(shifts.size):
        total = 0.0
        for i in range(state.size // WIDTH):
            base = U(i) * U(WIDTH)
            weight, k = state[base + U(WEIGHT)], share * state[base + U(CURVE)]
            if weight != 0.0:
                z = state[base + U(SCORE)] + k * state[base] + shifts[t]
                f, _ = prox_row(z, k * weight, state[base + U(TARGET)], *arguments)  # type: ignore[name-defined]  # noqa: F821
                total += (z - f) / k
        totals[t] = total


def near(state, scores, share, arguments):  # type: ignore[no-untyped-def]
    """Take the slopes that the proximal maps give at these scores for the present slopes. It calls `prox_row`.

    `share` is that of its curvature that a row steps with: 1 for a step of its own, little for the slope of the loss.
    """
    for i in range(scores.size):
        base = U(i) * U(WIDTH)
        weight, k = state[base + U(WEIGHT)], share * state[base + U(CURVE)]
        if weight != 0.0:
            z = scores[i] + k * state[base]
            f, _ = prox_row(z, k * weight, state[base + U(TARGET)], *arguments)  # type: ignore[name-defined]  # noqa: F821
            state[base], state[base + U(SCORE)] = (z - f) / k, f


def inverse(state, slopes, arguments):  # type: ignore[no-untyped-def]
    """Take the feasible slopes nearest to these, with scores at which they are slopes. It calls `prox_row`.

    Slopes (z - prox(z)) / k rise with z: bisection, after steps that double until they enclose the slope.
    """
    for i in range(slopes.size):
        base = U(i) * U(WIDTH)
        weight, k, y = state[base + U(WEIGHT)], state[base + U(CURVE)], state[base + U(TARGET)]
        if weight == 0.0:
            continue
        goal = k * slopes[i]
        accuracy = 1e-14 * (abs(goal) + k * weight)
        z, reach, lowest, highest = goal, max(1.0, abs(goal)), -np.inf, np.inf
        for _ in range(200):
            f, change = prox_row(z, k * weight, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
            miss = z - f - goal
            if abs(miss) <= accuracy:
                break
            if miss < 0.0:
                lowest = z
            else:
                highest = z
            if lowest == -np.inf or highest == np.inf:
                z = z + reach if miss < 0.0 else z - reach
                reach *= 2.0
            else:
                newton = z - miss / (1.0 - change) if change < 1.0 else np.inf
                middle = 0.5 * (lowest + highest)
                z = newton if lowest < newton and newton < highest else middle
            if abs(z) > 1e12:
                break
        f, change = prox_row(z, k * weight, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
        state[base], state[base + U(SCORE)] = (z - f) / k, f
