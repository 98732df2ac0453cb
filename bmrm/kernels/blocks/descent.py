"""Block coordinate descent on quadratics with a penalty that is a sum over blocks: on columns, or on a Gram matrix.

A block of few coordinates is minimised exactly, where it has a norm and no l1 (`exact`), else by proximal steps on its
own Gram matrix, so that its columns are read twice however many these are; a larger one moves by one such step with a
bound of its largest eigenvalue (Tseng & Yun 2009).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blocks.exact import LAZY, group_minimum, has_minimum
from bmrm.kernels.blocks.separable import distance_block, prox_block, slack_at_0
from bmrm.kernels.jit import fast_jit, jit, specialised
from bmrm.kernels.products.columns import dense_add, dense_dot, sparse_add, sparse_dot

Floats = NDArray[np.float64]

INNER = 30
"""Most proximal steps for a block at a time."""
ENOUGH = 0.05
"""Length of a proximal step, over that of the first one, at which a block is left."""


class BlockQuadratic(NamedTuple):
    """What `descend_blocks` minimises, but for the columns and the penalty.

    Attributes
    ----------
    sums : of root times value, per column.
    shifts : of the columns.
    root_sum : sum of the squared roots.
    gradient : per column.
    free : whether a multiple of the roots is minimised over.
    """

    sums: Floats
    shifts: Floats
    root_sum: float
    gradient: Floats
    free: bool


class History(NamedTuple):
    """Where sweeps leave what they have reached.

    Attributes
    ----------
    points, states : (sweeps + 1, columns) and (sweeps + 1, size of r); the first row is where they began.
    constants : (sweeps + 1, 2), the first two numbers of `state`.
    """

    points: Floats
    states: Floats
    constants: Floats


@fast_jit
def gram_dot(columns, k, r):  # type: ignore[no-untyped-def]
    """Of a Gram matrix: r is the gradient itself."""
    return r[k]


column_dot, column_add = sparse_dot, sparse_add
"""Functions that the templates below call; `specialised` replaces them."""


@jit
def block_minimum(block, w, grams, penalty, slope, v, at, after):  # type: ignore[no-untyped-def]
    """at_b = argmin over x_b of <slope_b, x_b - w_b> + 1/2 <x_b - w_b, G (x_b - w_b)> + penalty of the block, nearly.

    Vectors are whole, v and `after` for work. Returns the distance from optimality at w, which is the length of the
    first proximal step times the curvature, and a lower bound of the decrease.
    """
    starts, coordinates = penalty[0], penalty[1]
    first, last = starts[block], starts[block + 1]
    size, base, largest = last - first, grams.starts[block], grams.largest[block]
    known = grams.starts[block + 1] > base and size > 1
    for p in range(first, last):
        at[coordinates[p]] = w[coordinates[p]]
    away, fallen = 0.0, 0.0
    for step in range(INNER if known else 1):
        for p in range(size):
            j = coordinates[first + p]
            rise = slope[j]
            if step > 0:
                for q in range(size):
                    i = coordinates[first + q]
                    rise += grams.values[base + p * size + q] * (at[i] - w[i])
            v[j] = at[j] - rise / largest
        prox_block(block, v, 1.0 / largest, penalty, after)
        square = 0.0
        for p in range(first, last):
            j = coordinates[p]
            moved = after[j] - at[j]
            square += moved * moved
            at[j] = after[j]
        fallen += 0.5 * largest * square
        length = largest * math.sqrt(square)
        if step == 0:
            away = length
        if length <= ENOUGH * away:
            break
    return away, fallen


@jit
def block_moved(block, w, grams, penalty, goal, slope, v, at, after):  # type: ignore[no-untyped-def]
    """As of `block_minimum`, exactly where that is possible; a decrease of 0 where the block is left as it is."""
    if has_minimum(block, grams, penalty):
        away = distance_block(block, w, v, penalty)
        if away <= LAZY * goal:
            return away, 0.0
        less = group_minimum(block, w, slope, grams, penalty, v, at, after)
        if less >= 0.0:
            return away, less
    return block_minimum(block, w, grams, penalty, slope, v, at, after)


def descend_blocks(columns, model, stop, penalty, grams, w, r, state, order, work, history):  # type: ignore[no-untyped-def]
    """Minimise <gradient, d> + 1/2 <A d, A d> + Omega(w + d) over d, block by block.

    A holds the columns, each less its shift times the roots; with `free` instead a multiple of the roots is added to
    A d, always the best one. Blocks that are 0 and far from moving sit out until all others have settled.

    Parameters
    ----------
    columns, model, stop : `Columns`, `BlockQuadratic`, `StopRule` of `kernels.products.columns`.
    penalty, grams : tuple of a `BlockPenalty` whose coordinates are the columns, and `BlockGrams`.
    w, r, state : as of `descend`; state[4] blocks do not sit out.
    order : of the blocks, those that sit out last; kept up to date.
    work : (4, columns).
    history : of as many sweeps as `stop` allows; kept.

    Returns
    -------
    The distance last met, the number of columns visited, whether `goal` or `share` has ended it, and the sweeps.
    """
    sums, shifts, root_sum, gradient, free = model
    starts, coordinates = penalty[0], penalty[1]
    slope, v, at, after = work[0], work[1], work[2], work[3]
    blocks, open_ = order.size, int(state[4])
    offset, level, total, fallen = state[0], state[1], state[2], state[3]
    visited, worst, before, ended, sweeps = 0, 0.0, state[5], False, 0
    history.points[0] = w
    history.states[0] = r
    history.constants[0, 0], history.constants[0, 1] = offset, level
    while sweeps < stop.most:
        worst, kept, fallen = 0.0, 0, 0.0
        for place in range(open_):
            block = order[place]
            first, last = starts[block], starts[block + 1]
            visited += last - first
            zero = True
            for p in range(first, last):
                k = coordinates[p]
                rise = gradient[k] + column_dot(columns, k, r) + offset * sums[k]
                if not free:
                    rise -= shifts[k] * (level + offset * root_sum)
                slope[k] = rise
                v[k] = -rise
                zero &= w[k] == 0.0
            if zero and slack_at_0(block, v, penalty) > before:
                continue
            order[place] = order[kept]
            order[kept] = block
            kept += 1
            away, less = block_moved(block, w, grams, penalty, stop.goal, slope, v, at, after)
            worst = max(worst, away)
            if less == 0.0:
                continue
            fallen += less
            for p in range(first, last):
                k = coordinates[p]
                step = at[k] - w[k]
                if step == 0.0:
                    continue
                w[k] = at[k]
                column_add(columns, k, step, r)
                level += step * sums[k]
                if free:
                    offset = -level / root_sum
                else:
                    offset -= step * shifts[k]
        sweeps += 1
        history.points[sweeps] = w
        history.states[sweeps] = r
        history.constants[sweeps, 0], history.constants[sweeps, 1] = offset, level
        total += fallen
        all_open = open_ == blocks
        open_, before = kept, worst
        if worst <= stop.goal:
            if all_open:
                ended = True
                break
            open_ = blocks
        elif fallen <= stop.share * total:
            ended = True
            break
    state[0], state[1], state[2], state[3], state[4], state[5] = offset, level, total, fallen, open_, before
    return worst, visited, ended, sweeps


descend_blocks_sparse = specialised(descend_blocks, jit, column_dot=sparse_dot, column_add=sparse_add)
descend_blocks_dense = specialised(descend_blocks, jit, column_dot=dense_dot, column_add=dense_add)
descend_blocks_gram = specialised(descend_blocks, jit, column_dot=gram_dot, column_add=dense_add)


def block_grams(columns, penalty, starts, r, out):  # type: ignore[no-untyped-def]
    """The Gram matrices of the columns of the blocks, no shifts, where `starts` leaves room; r is 0, and will be."""
    borders, coordinates = penalty[0], penalty[1]
    for block in range(borders.size - 1):
        first, size = borders[block], borders[block + 1] - borders[block]
        if starts[block + 1] == starts[block] or size == 1:  # a single column has its square
            continue
        for p in range(size):
            column_add(columns, coordinates[first + p], 1.0, r)
            for q in range(p, size):
                product = column_dot(columns, coordinates[first + q], r)
                out[starts[block] + p * size + q] = product
                out[starts[block] + q * size + p] = product
            column_add(columns, coordinates[first + p], -1.0, r)


block_grams_sparse = specialised(block_grams, jit, column_dot=sparse_dot, column_add=sparse_add)
block_grams_dense = specialised(block_grams, jit, column_dot=dense_dot, column_add=dense_add)


@jit
def parts_of_gram(H, penalty, starts, out):  # type: ignore[no-untyped-def]
    """The same, cut out of a Gram matrix."""
    borders, coordinates = penalty[0], penalty[1]
    for block in range(borders.size - 1):
        first, size = borders[block], borders[block + 1] - borders[block]
        if starts[block + 1] == starts[block]:
            continue
        for p in range(size):
            for q in range(size):
                out[starts[block] + p * size + q] = H[coordinates[first + p], coordinates[first + q]]


@jit
def survey(w, v, penalty, away, used):  # type: ignore[no-untyped-def]
    """away[b] = the distance of v_b from the subdifferential at w_b, used[b] whether w_b is not 0; the largest away."""
    starts, coordinates = penalty[0], penalty[1]
    worst = 0.0
    for block in range(away.size):
        away[block] = distance_block(block, w, v, penalty)
        worst = max(worst, away[block])
        used[block] = False
        for p in range(starts[block], starts[block + 1]):
            used[block] |= w[coordinates[p]] != 0.0
    return worst


@jit
def proved_zeros(v, radius, norms, penalty, margin, out):  # type: ignore[no-untyped-def]
    """out[b] |= whether the block is 0 in every minimiser; those are within `radius` times norms[b] of v_b.

    `margin` is relative to the numbers compared.
    """
    starts, coordinates, strengths, l1 = penalty[0], penalty[1], penalty[2], penalty[3]
    for block in range(out.size):
        slack = slack_at_0(block, v, penalty)
        size = strengths[block]
        for p in range(starts[block], starts[block + 1]):
            size = max(size, abs(v[coordinates[p]]), l1[coordinates[p]])
        out[block] |= slack > radius * norms[block] + margin * size
