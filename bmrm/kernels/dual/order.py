"""The order in which rows are visited: a copy in a random order, then its blocks in a new order each sweep.

Rows that lie beside one another in memory are visited one after the other, which is up to twice as fast as a random
order; which rows these are was drawn once.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import fast_jit, jit
from bmrm.kernels.products.prefetch import prefetch

U = np.uint64
BLOCK = 32
"""Rows that stay together when the order is drawn anew."""
AHEAD = 2
"""Rows between the one that is copied and the one that is prefetched."""
LINE, HALF_LINE = U(16), U(8)
"""Indices, and values, in a cache line."""


@jit
def drawn(random, below):  # type: ignore[no-untyped-def]
    """A number in [0, below) from the state `random` (one uint64), which moves on (splitmix64)."""
    random[0] += U(0x9E3779B97F4A7C15)
    x = random[0]
    x = (x ^ (x >> U(30))) * U(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U(27))) * U(0x94D049BB133111EB)
    return ((x ^ (x >> U(31))) >> U(32)) * U(below) >> U(32)


@jit
def shuffle(order, random):  # type: ignore[no-untyped-def]
    """All of `order` in a random order."""
    for last in range(order.size - 1, 0, -1):
        other = drawn(random, last + 1)
        order[last], order[other] = order[other], order[last]


@jit
def shuffle_blocks(rows, out, random):  # type: ignore[no-untyped-def]
    """The blocks of `rows` in a random order, in `out`."""
    blocks = np.empty((rows.size + BLOCK - 1) // BLOCK, np.int64)
    for b in range(blocks.size):
        blocks[b] = b
    shuffle(blocks, random)
    at = 0
    for b in range(blocks.size):
        first = blocks[b] * BLOCK
        for k in range(first, min(first + BLOCK, rows.size)):
            out[at] = rows[k]
            at += 1


@fast_jit
def copy_rows(matrix, scale, order, copy, norms):  # type: ignore[no-untyped-def]
    """The rows of `order` one after the other, columns times `scale` (of size 0 for 1), and their squared norms.

    `matrix` and `copy` are `Rows`; the first row goes where copy.indptr[0] says.
    """
    indptr, indices, values = matrix
    new_indptr, new_indices, new_values = copy
    at, last, scaled = U(new_indptr[0]), order.size - 1, scale.size > 0
    for r in range(order.size):
        new_indptr[r] = at
        i, soon = U(order[r]), U(order[min(r + AHEAD, last)])
        ahead, stop = U(indptr[soon]), U(indptr[soon + U(1)])
        while ahead < stop:
            prefetch(indices, ahead)
            prefetch(values, ahead)
            prefetch(values, ahead + HALF_LINE)
            ahead += LINE
        first, norm = U(indptr[i]), 0.0
        length = U(indptr[i + U(1)]) - first
        for k in range(length):
            new_indices[at + k] = indices[first + k]
        if scaled:
            for k in range(length):
                new_values[at + k] = values[first + k] * scale[indices[first + k]]
        else:
            for k in range(length):
                new_values[at + k] = values[first + k]
        for k in range(length):
            norm += np.float64(new_values[at + k]) * new_values[at + k]
        norms[r] = norm
        at += length
    new_indptr[order.size] = at


@jit
def copy_rows_valueless(indptr, indices, order, new_indptr, new_indices, norms):  # type: ignore[no-untyped-def]
    """As `copy_rows`, where every stored value is 1 and stays it."""
    at, last = U(new_indptr[0]), order.size - 1
    for r in range(order.size):
        new_indptr[r] = at
        i, soon = U(order[r]), U(order[min(r + AHEAD, last)])
        ahead, stop = U(indptr[soon]), U(indptr[soon + U(1)])
        while ahead < stop:
            prefetch(indices, ahead)
            ahead += LINE
        first = U(indptr[i])
        length = U(indptr[i + U(1)]) - first
        for k in range(length):
            new_indices[at + k] = indices[first + k]
        norms[r] = length
        at += length
    new_indptr[order.size] = at


@fast_jit
def squared_norms(X, norms):  # type: ignore[no-untyped-def]
    """Of dense rows."""
    for i in range(norms.size):
        total = 0.0
        for j in range(X.shape[1]):
            total += np.float64(X[i, j]) * X[i, j]
        norms[i] = total
