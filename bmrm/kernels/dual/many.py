"""Dual coordinate ascent over rows of several scores: templates for `specialised`, as `bmrm.kernels.dual.sweep`.

A row has K slopes u of s loss, and o, minus the conjugate of s loss at u, so that s loss(f) >= <u, f> + o for all
scores f. `offset_scores_row` of a loss reckons o from u: it is s loss(g) - <u, g> for scores g at which u is the slope,
too, but where steps are long these have too few digits left. The weights v are (columns, K). Slopes are in a table of
their own, `slopes`; the other numbers of a row stand in `state`, as there.

Rows are read through `span`, `column` and `entry` of `bmrm.kernels.dual.rows`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual.rows import column, entry, span
from bmrm.kernels.dual.sweep import (
    CURVE,
    DRIFT,
    GAP,
    ROUNDING,
    ROW_AHEAD,
    SHIFT,
    STATE_AHEAD,
    TARGET,
    WEIGHT,
    WIDTH,
)
from bmrm.kernels.products.prefetch import prefetch

U = np.uint64
VALUE, SEEN = 0, 1
"""Places in `state` of minus the conjugate, and of one of the scores g, by which drift is measured."""
FEW = U(5)
"""Number of classes up to which their columns are always updated one by one."""
CONSTANT, BIAS, TOTAL = range(3)
"""Rows of `sums`, of K numbers each, as in `dual.sweep`."""
Z, SCORES, MOVES, CHANGE, SPARE = range(5)
"""Rows of the working memory of a row; from SPARE on two for the proximal map."""


def gather(matrix, i, v, threshold, out):  # type: ignore[no-untyped-def]
    """The products of row i with the columns of the weights, in `out`; calls `weigh` of `dual_rows`.

    Four entries at a time, so that `out` is read and written once for them.
    """
    p, end = span(matrix, i)
    width = U(out.size)
    for k in range(width):
        out[k] = 0.0
    while p + U(4) <= end:
        q, r, s = p + U(1), p + U(2), p + U(3)
        x_p, x_q, x_r, x_s = entry(matrix, i, p), entry(matrix, i, q), entry(matrix, i, r), entry(matrix, i, s)
        j_p, j_q, j_r, j_s = column(matrix, p), column(matrix, q), column(matrix, r), column(matrix, s)
        for k in range(width):
            first = x_p * weigh(v[j_p, k], threshold) + x_q * weigh(v[j_q, k], threshold)  # type: ignore[name-defined]  # noqa: F821
            second = x_r * weigh(v[j_r, k], threshold) + x_s * weigh(v[j_s, k], threshold)  # type: ignore[name-defined]  # noqa: F821
            out[k] += first + second
        p += U(4)
    while p < end:
        x_p, j_p = entry(matrix, i, p), column(matrix, p)
        for k in range(width):
            out[k] += x_p * weigh(v[j_p, k], threshold)  # type: ignore[name-defined]  # noqa: F821
        p += U(1)


def spread(matrix, i, change, v):  # type: ignore[no-untyped-def]
    """Column k of v += change[k] times row i; the many 0 of margin losses cost little."""
    start, end = span(matrix, i)
    width, used = U(change.size), U(0)
    for k in range(width):
        used += U(change[k] != 0.0)
    if used > FEW and U(4) * used > width:
        for p in range(start, end):
            value, j = entry(matrix, i, p), column(matrix, p)
            for k in range(width):
                v[j, k] += value * change[k]
        return
    for k in range(width):
        by = change[k]
        if by != 0.0:
            p = start
            # Two at a time, which the compiler may not do: only we know that the columns of a row differ.
            while p + U(2) <= end:
                j_p, j_q = column(matrix, p), column(matrix, p + U(1))
                at_p, at_q = v[j_p, k] + entry(matrix, i, p) * by, v[j_q, k] + entry(matrix, i, p + U(1)) * by
                v[j_p, k], v[j_q, k] = at_p, at_q
                p += U(2)
            if p < end:
                v[column(matrix, p), k] += entry(matrix, i, p) * by


class Dual(NamedTuple):
    """As in `dual_sweep`, with slopes (rows, K), v (columns, K), and vectors (3, K) for scalars.

    `added` (rows, K) are the offsets of all rows, or (0, K) without; `held` (rows, K) are the scores g, or (0, K) where
    they are not wanted; `room` (SPARE + 2, K) is overwritten.
    """

    state: NDArray[np.float64]
    slopes: NDArray[np.float64]
    v: NDArray[np.float64]
    vectors: NDArray[np.float64]
    steps: tuple[float, ...]
    added: NDArray[np.float64]
    held: NDArray[np.float64]
    room: NDArray[np.float64]
    arguments: tuple[Any, ...]


def sweep(order, kept, margin, measure, sums, matrix, dual):  # type: ignore[no-untyped-def]
    """Visit the rows of `order` once; returns how many of them stand in `kept`, those that may still move.

    Parameters are those of `dual_sweep.sweep`. It calls `prox_scores_row`, `offset_scores_row` and `value_scores_row`
    of a loss, `gather_row` and `spread_row`, and `weigh` and `fetch` of `dual_rows`.
    """
    state, slopes, v, vectors, steps, added, held, room, arguments = dual
    threshold, step, shares, has_bias, moves, extra = steps
    constant, bias, total = vectors[CONSTANT], vectors[BIAS], vectors[TOTAL]
    z, scores, away, change, spare = room[Z], room[SCORES], room[MOVES], room[CHANGE], room[SPARE:]
    width, gap, drift, count, last, holds = z.size, 0.0, 0.0, 0, order.size - 1, held.shape[0] > 0
    adds = added.shape[0] > 0
    for position in range(order.size):
        soon = U(order[min(position + STATE_AHEAD, last)])
        prefetch(state, soon * U(WIDTH))
        prefetch(matrix[0], soon)
        fetch(matrix, U(order[min(position + ROW_AHEAD, last)]))  # type: ignore[name-defined]  # noqa: F821
        i = U(order[position])
        base = i * U(WIDTH)
        u, y, looked = slopes[i], int(state[base + U(TARGET)]), i % U(width)
        weight, shift = state[base + U(WEIGHT)], state[base + U(SHIFT)]
        k = shares * state[base + U(CURVE)] + extra
        gather_row(matrix, i, v, threshold, scores)  # type: ignore[name-defined]  # noqa: F821
        product = 0.0
        if adds:
            for c in range(width):
                scores[c] += added[i, c]
        for c in range(width):
            scores[c] += constant[c] + weigh(bias[c], threshold) - total[c] * shift  # type: ignore[name-defined]  # noqa: F821
            product += u[c] * scores[c]
            away[c] = k * u[c]
            z[c] = scores[c] + away[c]
        if measure:
            gap += weight * value_scores_row(scores, y, *arguments) - product - state[base + U(VALUE)]  # type: ignore[name-defined]  # noqa: F821
        drift += (scores[looked] - state[base + U(SEEN)]) ** 2
        _, free = prox_scores_row(z, k * weight, y, away, spare, *arguments)  # type: ignore[name-defined]  # noqa: F821
        offset = offset_scores_row(away, k * weight, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
        moved, size = 0.0, 0.0
        for c in range(width):
            moved = max(moved, abs(away[c] - k * u[c]))
            size = max(size, abs(z[c]))
        still = moved <= ROUNDING * 2.0 * size
        if not still:
            for c in range(width):
                new = away[c] / k
                by = step * (u[c] - new)
                u[c], change[c] = new, by
                bias[c] += has_bias * by
                constant[c] += by * (moves - shift)
                total[c] += by
            spread_row(matrix, i, change, v)  # type: ignore[name-defined]  # noqa: F821
            state[base + U(VALUE)] = weight * offset
        state[base + U(SEEN)] = z[looked] - away[looked]
        if holds:
            for c in range(width):
                held[i, c] = z[c] - away[c]
        if not (still and free > margin):
            kept[count] = order[position]
            count += 1
    sums[GAP], sums[DRIFT] = gap, drift
    return count


def near(state, slopes, scores, curves, held, room, arguments):  # type: ignore[no-untyped-def]
    """Take the slopes that the proximal maps give at these scores for the present slopes.

    `curves` is the curvature that each row steps with; `scores` may be `held`. It calls `prox_scores_row` and
    `offset_scores_row`.
    """
    z, away, spare, holds = room[Z], room[MOVES], room[SPARE:], held.shape[0] > 0
    for i in range(scores.shape[0]):
        base, k = U(i) * U(WIDTH), curves[i]
        weight = state[base + U(WEIGHT)]
        if weight == 0.0:
            continue
        for c in range(z.size):
            away[c] = k * slopes[i, c]
            z[c] = scores[i, c] + away[c]
        y = int(state[base + U(TARGET)])
        prox_scores_row(z, k * weight, y, away, spare, *arguments)  # type: ignore[name-defined]  # noqa: F821
        state[base + U(VALUE)] = weight * offset_scores_row(away, k * weight, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
        looked = U(i) % U(z.size)
        for c in range(z.size):
            slopes[i, c] = away[c] / k
        state[base + U(SEEN)] = z[looked] - away[looked]
        if holds:
            for c in range(z.size):
                held[i, c] = z[c] - away[c]


def shifted(state, slopes, held, shift, share, total, room, arguments):  # type: ignore[no-untyped-def]
    """The sum of the slopes if all scores were higher by `shift` (K,), in `total`. It calls `prox_scores_row`.

    The rows keep to their proximal maps, of `share` of their curvatures; a shift of 0 changes nothing.
    """
    z, away, spare = room[Z], room[MOVES], room[SPARE:]
    total[:] = 0.0
    for i in range(held.shape[0]):
        base = U(i) * U(WIDTH)
        weight, k = state[base + U(WEIGHT)], share * state[base + U(CURVE)]
        if weight != 0.0:
            for c in range(z.size):
                away[c] = k * slopes[i, c]
                z[c] = held[i, c] + away[c] + shift[c]
            prox_scores_row(z, k * weight, int(state[base + U(TARGET)]), away, spare, *arguments)  # type: ignore[name-defined]  # noqa: F821
            for c in range(z.size):
                total[c] += away[c] / k


def evened(state, slopes, kept, given, total, room, arguments):  # type: ignore[no-untyped-def]
    """Replace slopes s (p - e_y), p shares of classes: `kept` of the shares of each, the rest as `given`; both (K,).

    Their sums are in `total`, (K,). It calls `offset_scores_row`.
    """
    new = room[MOVES]
    total[:] = 0.0
    for i in range(slopes.shape[0]):
        base, u = U(i) * U(WIDTH), slopes[i]
        weight, y = state[base + U(WEIGHT)], int(state[base + U(TARGET)])
        if weight == 0.0:
            continue
        taken = 0.0
        for c in range(u.size):
            whole = u[c] + weight if c == y else u[c]
            taken += (1.0 - kept[c]) * whole
            new[c] = kept[c] * whole - (weight if c == y else 0.0)
        for c in range(u.size):
            new[c] += taken * given[c]
        state[base + U(VALUE)] = weight * offset_scores_row(new, weight, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
        for c in range(u.size):
            u[c] = new[c]
            total[c] += u[c]
