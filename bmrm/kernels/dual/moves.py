"""Moves of weights that ranks add up: what of them is sent, and what becomes of what the others have sent.

A list has places and moves of the weights that have moved, in turn; those who list them let them be what they were.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import fast_jit

U = np.uint64
BLOCK = 16
"""Weights that are looked at together: nearly all blocks of a long vector have not moved."""


@fast_jit
def moved(local, weights, factor, move):  # type: ignore[no-untyped-def]
    """Write (local - weights) / factor into `move`; its square, and how many weights have moved."""
    square, count = 0.0, 0
    for p in range(weights.size):
        step = (local[p] - weights[p]) / factor
        move[p] = step
        square += step * step
        count += step != 0.0
    return square, count


@fast_jit
def merged(move, weights, local):  # type: ignore[no-untyped-def]
    """Add a move to the weights, and let `local` be them again; the square of the move."""
    square = 0.0
    for p in range(weights.size):
        step = move[p]
        weights[p] += step
        local[p] = weights[p]
        square += step * step
    return square


@fast_jit
def listed(first, local, weights, factor, pairs, square, count):  # type: ignore[no-untyped-def]
    """List the weights from `first` that have moved; their squares and number besides those given.

    Where room may be short, -1 less the number of those that are listed.
    """
    most, scale = pairs.size // 2, 1.0 / factor
    for begin in range(first, weights.size, BLOCK):
        end = min(begin + BLOCK, weights.size)
        others = 0
        for p in range(begin, end):
            others += local[p] != weights[p]
        if others == 0:
            continue
        if count + BLOCK > most:
            return square, -1 - count
        for p in range(begin, end):
            step = scale * (local[p] - weights[p])
            pairs[2 * count], pairs[2 * count + 1] = p, step
            local[p] = weights[p]
            square += step * step
            count += step != 0.0
    return square, count


@fast_jit
def listed_rows(rows, indptr, indices, width, dim, local, weights, factor, pairs):  # type: ignore[no-untyped-def]
    """As `listed`, where only these rows have moved weights of the first `dim` columns, `width` of each.

    Without a branch in the loop: which weights have moved is hard to foresee.
    """
    square, count, most, scale = 0.0, 0, pairs.size // 2, 1.0 / factor
    for row in rows:
        begin, end = U(indptr[row]), U(indptr[row + U(1)])
        if count + int(end - begin) * width > most:
            return square, -1 - count
        for q in range(begin, end):
            first = U(indices[q]) * U(width)
            for p in range(first, first + U(width)):
                step = scale * (local[p] - weights[p])
                pairs[2 * count], pairs[2 * count + 1] = p, step
                local[p] = weights[p]
                square += step * step
                count += step != 0.0
    return listed(dim * width, local, weights, factor, pairs, square, count)


@fast_jit
def merged_lists(messages, told, weights, local):  # type: ignore[no-untyped-def]
    """Add what all ranks have listed to the weights, in rank order; the square of the sum, -1 where one is not whole.

    Parameters
    ----------
    messages : (ranks, ...), of each numbers that add up, the last of them the length of its list, below 0 where
        not all is in it; then its list.
    told : filled with the sums of the first numbers.
    weights, local : (dim,), the same before, and after.
    """
    head, square = told.size, 0.0
    for rank in range(messages.shape[0]):
        if messages[rank, head - 1] < 0.0:
            return -1.0
    told[:] = 0.0
    for rank in range(messages.shape[0]):
        for k in range(head):
            told[k] += messages[rank, k]
        for k in range(head, head + 2 * int(messages[rank, head - 1]), 2):
            p, step = int(messages[rank, k]), messages[rank, k + 1]
            square += step * (step + 2.0 * (weights[p] - local[p]))
            weights[p] += step
    for rank in range(messages.shape[0]):
        for k in range(head, head + 2 * int(messages[rank, head - 1]), 2):
            p = int(messages[rank, k])
            local[p] = weights[p]
    return max(square, 0.0)
