"""Chosen columns of row-wise data, and coordinate descent on them.

For a second-order model they are multiplied with the square roots of the curvatures, so that the model is that
of least squares: its residual r is all that a step changes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit, jit, specialised

U = np.uint64
Floats = NDArray[np.float64]


class Columns(NamedTuple):
    """Column q has the entries `values[starts[q]:starts[q + 1]]`, in those rows; no values where all are 1.

    Dense columns are the rows of `values`, a matrix; the others are not looked at.
    """

    starts: NDArray[np.int64]
    rows: NDArray[np.uint32]
    values: NDArray[Any]


class Model(NamedTuple):
    """What `descend` minimises, but for the columns.

    Attributes
    ----------
    sums : of root times value, per column.
    diagonal : squared norms of the columns of A, > 0.
    shifts : of the columns.
    root_sum : sum of the squared roots.
    gradient : per column.
    l1, l2 : of the regularizer.
    free : whether a multiple of the roots is minimised over.
    """

    sums: Floats
    diagonal: Floats
    shifts: Floats
    root_sum: float
    gradient: Floats
    l1: float
    l2: float
    free: bool


class StopRule(NamedTuple):
    """When `descend` has done enough.

    When no coordinate was farther than `goal` from what its subdifferential allows; when a sweep has lowered the
    objective by no more than the part `share` of what all have; after `most` sweeps.
    """

    goal: float
    share: float
    most: int


@jit
def count_entries(indptr, indices, counts):  # type: ignore[no-untyped-def]
    """counts[j] += the number of entries of column j."""
    for p in range(U(indptr[0]), U(indptr[-1])):
        counts[indices[p]] += 1


@jit
def gather_entries(indptr, indices, values, position, fill, rows, out):  # type: ignore[no-untyped-def]
    """Store the entries of the columns j with position[j] >= 0: rows, and values where there are any (else size 0).

    fill[position[j]] is where the next entry of column j goes, and moves on.
    """
    ones = values.size == 0
    for i in range(indptr.size - 1):
        for p in range(U(indptr[i]), U(indptr[i + 1])):
            at = position[indices[p]]
            if at >= 0:
                q = U(fill[at])
                rows[q] = i
                if not ones:
                    out[q] = values[p]
                fill[at] = q + U(1)


@jit
def weigh_entries(columns, chosen, roots, scale, weighed, sums, squares):  # type: ignore[no-untyped-def]
    """The `chosen` columns, entries multiplied with the root of their row and the scale of their column.

    They are stored in `weighed`, without the entries of rows of root 0. `sums` are those of root times new value,
    `squares` of squared new values.
    """
    starts, rows, values = columns
    new_starts, new_rows, new_values = weighed
    ones = values.size == 0
    count = U(0)
    for k in range(chosen.size):
        new_starts[k] = count
        factor = scale[k]
        total, square = 0.0, 0.0
        for p in range(U(starts[chosen[k]]), U(starts[chosen[k] + 1])):
            root = roots[rows[p]]
            value = root * factor if ones else root * factor * values[p]
            new_rows[count] = rows[p]
            new_values[count] = value
            total += root * value
            square += value * value
            count += U(root != 0.0)
        sums[k], squares[k] = total, square
    new_starts[chosen.size :] = count


@fast_jit
def add_dense_sums(X, chosen, weights, out):  # type: ignore[no-untyped-def]
    """out[k] += the sum of column chosen[k] of X, each entry times the weight of its row."""
    for i in range(X.shape[0]):
        for k in range(chosen.size):
            out[k] += weights[i] * X[i, chosen[k]]


@fast_jit
def weigh_dense(X, chosen, roots, scale, less, out, sums, squares):  # type: ignore[no-untyped-def]
    """out[k] = column chosen[k] of X times scale[k], less less[k], each entry times its root; as `weigh_entries`."""
    for first in range(0, X.shape[0], 64):
        last = min(first + 64, X.shape[0])
        for k in range(chosen.size):
            j, factor, shift = chosen[k], scale[k], less[k]
            for i in range(first, last):
                out[k, i] = (X[i, j] * factor - shift) * roots[i]
    for k in range(chosen.size):
        row, total, square = out[k], 0.0, 0.0
        for i in range(row.size):
            total += roots[i] * row[i]
            square += np.float64(row[i]) * row[i]
        sums[k], squares[k] = total, square


@jit
def combine_entries(columns, chosen, steps, out):  # type: ignore[no-untyped-def]
    """out += the sum over k of steps[k] times column chosen[k]."""
    starts, rows, values = columns
    ones = values.size == 0
    for k in range(chosen.size):
        step = steps[k]
        if step == 0.0:
            continue
        for p in range(U(starts[chosen[k]]), U(starts[chosen[k] + 1])):
            out[rows[p]] += step if ones else step * values[p]


@jit
def sparse_dot(columns, k, r):  # type: ignore[no-untyped-def]
    """<column k, r>."""
    starts, rows, values = columns
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    p, end = U(starts[k]), U(starts[k + 1])
    while p + U(4) <= end:
        a += values[p] * r[rows[p]]
        b += values[p + U(1)] * r[rows[p + U(1)]]
        c += values[p + U(2)] * r[rows[p + U(2)]]
        d += values[p + U(3)] * r[rows[p + U(3)]]
        p += U(4)
    while p < end:
        a += values[p] * r[rows[p]]
        p += U(1)
    return (a + b) + (c + d)


@jit
def sparse_add(columns, k, step, r):  # type: ignore[no-untyped-def]
    """R += step times column k."""
    starts, rows, values = columns
    p, end = U(starts[k]), U(starts[k + 1])
    while p + U(2) <= end:
        i, j = rows[p], rows[p + U(1)]
        at_i, at_j = r[i] + step * values[p], r[j] + step * values[p + U(1)]
        r[i], r[j] = at_i, at_j
        p += U(2)
    if p < end:
        r[rows[p]] += step * values[p]


@fast_jit
def dense_dot(columns, k, r):  # type: ignore[no-untyped-def]
    """<row k of values, r>."""
    values, total = columns.values, 0.0
    for i in range(r.size):
        total += values[k, i] * r[i]
    return total


@fast_jit
def dense_add(columns, k, step, r):  # type: ignore[no-untyped-def]
    """R += step times row k of values."""
    values = columns.values
    for i in range(r.size):
        r[i] += step * values[k, i]


column_dot, column_add = sparse_dot, sparse_add
"""Functions that the templates below call; `specialised` replaces them by the dense ones."""


def descend(columns, model, stop, w, r, state, order):  # type: ignore[no-untyped-def]
    """Minimise <gradient, d> + 1/2 <A d, A d> + l1 ||w + d||_1 + l2/2 ||w + d||^2 over d, coordinate by coordinate.

    A holds the columns, each less its shift times the roots; with `free` instead a multiple of the roots is added to
    A d, always the best one. Coordinates that are 0 and far from moving sit out until all others have settled, as in
    LIBLINEAR (Yuan, Ho & Lin 2012).

    Parameters
    ----------
    columns, model, stop : `Columns`, `Model`, `StopRule`.
    w : w + d, kept up to date.
    r : the columns times d, without the shifts, kept up to date.
    state : kept up to date: the multiple of the roots that is to be added to r; the sum of root times r; how much the
        objective has fallen, kinks apart, in all sweeps and in the last one; how many coordinates do not sit out (all
        at first), and the distance met before (inf at first).
    order : of the coordinates, those that sit out last; kept up to date.

    Returns
    -------
    The distance last met, the number of coordinates visited, and whether `goal` or `share` has ended it.
    """
    sums, diagonal, shifts, root_sum, gradient, l1, l2, free = model
    count, open_ = gradient.size, int(state[4])
    offset, level, total, fallen = state[0], state[1], state[2], state[3]
    visited, worst, before, ended = 0, 0.0, state[5], False
    for _ in range(stop.most):
        worst, kept, fallen = 0.0, 0, 0.0
        for at in range(open_):
            k = order[at]
            old = w[k]
            slope = gradient[k] + column_dot(columns, k, r) + offset * sums[k]
            if not free:
                slope -= shifts[k] * (level + offset * root_sum)
            if old == 0.0 and abs(slope) < l1 - before:
                continue
            order[at] = order[kept]
            order[kept] = k
            kept += 1
            z = diagonal[k] * old - slope
            size = max(abs(z) - l1, 0.0) / (diagonal[k] + l2)
            new = size if z > 0.0 else -size
            step = new - old
            if step == 0.0:
                continue
            worst = max(worst, (diagonal[k] + l2) * abs(step))
            fallen += 0.5 * (diagonal[k] + l2) * step * step
            w[k] = new
            column_add(columns, k, step, r)
            level += step * sums[k]
            if free:
                offset = -level / root_sum
            else:
                offset -= step * shifts[k]
        visited += open_
        total += fallen
        all_open = open_ == count
        open_, before = kept, worst
        if worst <= stop.goal:
            if all_open:
                ended = True
                break
            open_ = count
        elif fallen <= stop.share * total:
            ended = True
            break
    state[0], state[1], state[2], state[3], state[4], state[5] = offset, level, total, fallen, open_, before
    return worst, visited, ended


descend_sparse = specialised(descend, jit, column_dot=sparse_dot, column_add=sparse_add)
descend_dense = specialised(descend, jit, column_dot=dense_dot, column_add=dense_add)


def apply(columns, chosen, steps, out):  # type: ignore[no-untyped-def]
    """out += the sum over k of steps[k] times column chosen[k]."""
    for k in range(chosen.size):
        if steps[k] != 0.0:
            column_add(columns, chosen[k], steps[k], out)


def pull(columns, chosen, r, out):  # type: ignore[no-untyped-def]
    """out[k] = <column chosen[k], r>."""
    for k in range(chosen.size):
        out[k] = column_dot(columns, chosen[k], r)


apply_sparse = specialised(apply, jit, column_add=sparse_add)
apply_dense = specialised(apply, jit, column_add=dense_add)
pull_sparse = specialised(pull, jit, column_dot=sparse_dot)
pull_dense = specialised(pull, jit, column_dot=dense_dot)
