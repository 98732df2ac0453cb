"""X' diag(weights) X for sparse rows, as the lower triangle of a dense matrix.

Four entries of a row at a time are multiplied with all before them: one index and one value are loaded for four
products, each an addition into the matrix. Columns rise strictly within a row, so that the four rows of the matrix
differ, and only the lower triangle is filled. Indices come as uint32 views, see csr.py.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import inlined, jit

U = np.uint64


@inlined
def _add_ones(columns, start, stop, weight, width, flat):  # type: ignore[no-untyped-def]
    """Add weight to the entries of the matrix for each pair of the columns at [start, stop)."""
    r = start
    while r + U(4) <= stop:
        a, b = U(columns[r]) * width, U(columns[r + U(1)]) * width
        c, d = U(columns[r + U(2)]) * width, U(columns[r + U(3)]) * width
        for s in range(start, r + U(1)):
            k = U(columns[s])
            in_a, in_b, in_c, in_d = (
                flat[a + k] + weight,
                flat[b + k] + weight,
                flat[c + k] + weight,
                flat[d + k] + weight,
            )
            flat[a + k], flat[b + k], flat[c + k], flat[d + k] = in_a, in_b, in_c, in_d
        k = U(columns[r + U(1)])
        flat[b + k] += weight
        flat[c + k] += weight
        flat[d + k] += weight
        k = U(columns[r + U(2)])
        flat[c + k] += weight
        flat[d + k] += weight
        flat[d + U(columns[r + U(3)])] += weight
        r += U(4)
    while r < stop:
        a = U(columns[r]) * width
        for s in range(start, r + U(1)):
            flat[a + U(columns[s])] += weight
        r += U(1)


@inlined
def _add_products(columns, values, start, stop, weight, width, flat):  # type: ignore[no-untyped-def]
    """As `_add_ones`, weight times both values."""
    r = start
    while r + U(4) <= stop:
        a, b = U(columns[r]) * width, U(columns[r + U(1)]) * width
        c, d = U(columns[r + U(2)]) * width, U(columns[r + U(3)]) * width
        x, y = weight * values[r], weight * values[r + U(1)]
        z, q = weight * values[r + U(2)], weight * values[r + U(3)]
        for s in range(start, r + U(1)):
            k, v = U(columns[s]), np.float64(values[s])
            in_a, in_b, in_c, in_d = flat[a + k] + x * v, flat[b + k] + y * v, flat[c + k] + z * v, flat[d + k] + q * v
            flat[a + k], flat[b + k], flat[c + k], flat[d + k] = in_a, in_b, in_c, in_d
        k, v = U(columns[r + U(1)]), np.float64(values[r + U(1)])
        flat[b + k] += y * v
        flat[c + k] += z * v
        flat[d + k] += q * v
        k, v = U(columns[r + U(2)]), np.float64(values[r + U(2)])
        flat[c + k] += z * v
        flat[d + k] += q * v
        flat[d + U(columns[r + U(3)])] += q * values[r + U(3)]
        r += U(4)
    while r < stop:
        a, x = U(columns[r]) * width, weight * values[r]
        for s in range(start, r + U(1)):
            flat[a + U(columns[s])] += x * values[s]
        r += U(1)


@jit
def lengths(indptr, weights):  # type: ignore[no-untyped-def]
    """Of the rows whose weight is not 0: the sum of their numbers of entries, and of the squares of these."""
    entries, squares = 0, 0.0
    for i in range(weights.size):
        if weights[i] != 0.0:
            length = indptr[i + 1] - indptr[i]
            entries += length
            squares += np.float64(length) * np.float64(length)
    return entries, squares


@jit
def add_gram_valueless(indptr, indices, weights, out):  # type: ignore[no-untyped-def]
    """out += sum over rows of weight x x', on and below the diagonal, where every stored value is 1."""
    width, flat = U(out.shape[1]), out.reshape(-1)
    for i in range(weights.size):
        if weights[i] != 0.0:
            _add_ones(indices, U(indptr[i]), U(indptr[i + 1]), weights[i], width, flat)


@jit
def add_gram(indptr, indices, values, weights, out):  # type: ignore[no-untyped-def]
    """out += sum over rows of weight x x', on and below the diagonal."""
    width, flat = U(out.shape[1]), out.reshape(-1)
    for i in range(weights.size):
        if weights[i] != 0.0:
            _add_products(indices, values, U(indptr[i]), U(indptr[i + 1]), weights[i], width, flat)


@jit
def add_gram_of_columns(indptr, indices, values, ones, weights, position, out):  # type: ignore[no-untyped-def]
    """As `add_gram`, for the columns j with position[j] >= 0 alone, which stand there in `out`, in the same order.

    With `ones` every stored value is 1, whatever `values` are.
    """
    width, flat = U(out.shape[1]), out.reshape(-1)
    columns, kept = np.empty(out.shape[0] + 1, np.uint32), np.ones(out.shape[0] + 1)
    for i in range(weights.size):
        if weights[i] == 0.0:
            continue
        count = U(0)
        for p in range(U(indptr[i]), U(indptr[i + 1])):  # a column that is not wanted is overwritten by the next
            at = position[indices[p]]
            columns[count] = at
            if not ones:
                kept[count] = values[p]
            count += U(at >= 0)
        _add_products(columns, kept, U(0), count, weights[i], width, flat)


@jit
def mirror(out):  # type: ignore[no-untyped-def]
    """Make the entries above the diagonal those below."""
    for i in range(out.shape[0]):
        for j in range(i):
            out[j, i] = out[i, j]


@jit
def densify(indptr, indices, values, ones, active, out):  # type: ignore[no-untyped-def]
    """out[k] = row active[k], in full."""
    for k in range(active.size):
        i = active[k]
        row = out[k]
        row[:] = 0.0
        for p in range(U(indptr[i]), U(indptr[i + 1])):
            row[indices[p]] = 1.0 if ones else values[p]
