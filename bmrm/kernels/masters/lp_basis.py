"""The basis of the simplex method for l1: what stays hot between solutions, how far it reaches, how it changes.

See `simplex_lp.py` for the linear program and the equations that the basis stands for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit
from bmrm.kernels.masters.dense_inverse import add_times_transposed, border, invert, replace_column, replace_row, shrink
from bmrm.kernels.products.planes import combine

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SLACK, SLACK_OF_SIZE = 1e-11, 4e-16
"""Harris' tolerance: how far a multiplier or a feature may exceed its bound for a larger pivot; the second in units of
the feature's size."""
SMALLEST = 1e-9
"""Smallest pivot, relative to the size of a feature."""
LARGE = 1e4
"""Size of features above which they may miss their bounds by proportionally more."""


class Program(NamedTuple):
    """The planes: rows (N, p), b (n,), block (n,), with N >= n; the first K are the infima, whose rows are 0.

    `size` (p,) is the largest entry of each feature in absolute value: what rounding is measured by.
    """

    rows: Floats
    size: Floats
    b: Floats
    block: Ints
    K: int
    n: int


class Basis(NamedTuple):
    """What stays hot: with s features in it, K + s planes P (room,), features S (room,) at the bounds sign (room,).

    `wherep` (N,) and `wheres` (p,) are the inverses of P and S, -1 outside; `X` (room, room) is M^-1, `alpha` (room,)
    are the multipliers of P, `columns` (N, room) the rows of all planes in the features S.
    """

    P: Ints
    S: Ints
    sign: Floats
    wherep: Ints
    wheres: Ints
    X: Floats
    alpha: Floats
    columns: Floats


class Exchange(NamedTuple):
    """Who changes places in a step, -1 where nobody does.

    Plane `enters`, or the feature at place `leaves` of S leaves its bound; the plane at place `out` of P goes, or
    feature `hit` reaches a bound.
    """

    enters: int
    leaves: int
    out: int
    hit: int


class PivotRow(NamedTuple):
    """The row of the variable that leaves the basis, as far as it is known.

    A feature that reaches its bound has the entry column[j] in plane j, and u (q,) is X times those of the planes in P;
    a plane has the column 0, and u is its own of X. `slope` is the rate at which the variable moves.
    """

    u: Floats
    column: Floats
    slope: float


@fast_jit
def times_columns(columns: Floats, n: int, s: int, x: Floats, out: Floats) -> None:
    """out[j] = <columns[j, :s], x[:s]>, four planes at a time."""
    j = 0
    while j + 4 <= n:
        r0, r1, r2, r3 = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for i in range(s):
            a += r0[i] * x[i]
            b += r1[i] * x[i]
            c += r2[i] * x[i]
            d += r3[i] * x[i]
        out[j], out[j + 1], out[j + 2], out[j + 3] = a, b, c, d
        j += 4
    while j < n:
        row = columns[j]
        a = 0.0
        for i in range(s):
            a += row[i] * x[i]
        out[j] = a
        j += 1


@fast_jit
def pull(program: Program, basis: Basis, q: int, values: Floats, scale: float, out: Floats) -> None:
    """out += scale sum_t values[t] rows[P[t]]."""
    spread = np.zeros(program.n)
    for t in range(q):
        spread[basis.P[t]] = scale * values[t]
    combine(spread, program.rows[: program.n], out)


@fast_jit
def renew(program: Program, basis: Basis, s: int) -> bool:
    """Make X anew, by way of the matrix with columns of size 1; whether M is regular."""
    K = program.K
    q = K + s
    M = np.zeros((q, q))
    for t in range(q):
        j = basis.P[t]
        M[t, program.block[j]] = 1.0
        for i in range(s):
            M[t, K + i] = basis.columns[j, i] / program.size[basis.S[i]]
    regular = invert(M, q, basis.X)
    for i in range(s):
        row = basis.X[K + i]
        for t in range(q):
            row[t] /= program.size[basis.S[i]]
    return bool(regular)


@fast_jit
def stand(program: Program, basis: Basis, s: int, r: Floats) -> tuple[float, float]:
    """Set alpha and r = A alpha from X.

    Returns how far the features in S are from their bounds, and how far others, and multipliers, are beyond theirs;
    those of large size in proportion.
    """
    q = program.K + s
    basis.alpha[:q] = 0.0
    add_times_transposed(basis.X, 0, program.K, np.ones(program.K), q, basis.alpha)
    add_times_transposed(basis.X, program.K, q, basis.sign, q, basis.alpha)
    r[:] = 0.0
    pull(program, basis, q, basis.alpha, 1.0, r)
    error = 0.0
    for i in range(s):
        feature = basis.S[i]
        error = max(error, abs(r[feature] - basis.sign[i]) / max(program.size[feature] / LARGE, 1.0))
    outside = 0.0
    for t in range(q):
        outside = max(outside, -basis.alpha[t])
    for i in range(r.size):
        if basis.wheres[i] < 0:
            outside = max(outside, (abs(r[i]) - 1.0) / max(program.size[i] / LARGE, 1.0))
    return error, outside


@fast_jit
def way(program: Program, basis: Basis, s: int, enters: int, leaves: int, fall: Floats, drift: Floats) -> None:
    """The direction alpha_P - theta fall, r + theta drift, as plane `enters` comes or place `leaves` of S lets go."""
    K, X = program.K, basis.X
    q = K + s
    if leaves >= 0:
        for t in range(q):
            fall[t] = basis.sign[leaves] * X[K + leaves, t]
        drift[:] = 0.0
    else:
        for t in range(q):
            fall[t] = X[program.block[enters], t]
        add_times_transposed(X, K, q, basis.columns[enters], q, fall)
        for i in range(drift.size):
            drift[i] = program.rows[enters, i]
    pull(program, basis, q, fall, -1.0, drift)


@fast_jit
def ratio_test(
    alpha: Floats, fall: Floats, q: int, r: Floats, drift: Floats, size: Floats, wheres: Ints, most: float
) -> tuple[float, int, int]:
    """How far to go along alpha - theta fall, r + theta drift, and what stops it.

    Returns (theta, place in P or -1, feature or -1); neither where the step is `most`. Two passes (Harris): the
    farthest that any bound allows with some slack, then the largest pivot that lies before.
    """
    farthest = most
    for t in range(q):
        if fall[t] > SMALLEST:
            farthest = min(farthest, (max(alpha[t], 0.0) + SLACK) / fall[t])
    for i in range(r.size):
        d = abs(drift[i])
        if d > SMALLEST * size[i] and wheres[i] < 0:
            room = 1.0 - r[i] if drift[i] > 0.0 else 1.0 + r[i]
            farthest = min(farthest, (max(room, 0.0) + max(SLACK, SLACK_OF_SIZE * size[i])) / d)
    largest = SMALLEST
    theta = most
    plane = -1
    feature = -1
    if farthest >= most:
        return theta, plane, feature
    for t in range(q):
        if fall[t] > largest and alpha[t] <= farthest * fall[t]:
            largest = fall[t]
            theta = max(alpha[t], 0.0) / fall[t]
            plane = t
    for i in range(r.size):
        d = abs(drift[i])
        if d > largest * size[i] and wheres[i] < 0:
            room = 1.0 - r[i] if drift[i] > 0.0 else 1.0 + r[i]
            if room <= farthest * d:
                largest = d / size[i]
                theta = max(room, 0.0) / d
                plane = -1
                feature = i
    return theta, plane, feature


@fast_jit
def put_plane(basis: Basis, t: int, plane: int, alpha: float) -> None:
    """Place t of P."""
    basis.P[t] = plane
    basis.alpha[t] = alpha
    basis.wherep[plane] = t


@fast_jit
def put_feature(basis: Basis, i: int, feature: int, sign: float, column: Floats, n: int) -> None:
    """Place i of S."""
    basis.S[i] = feature
    basis.sign[i] = sign
    basis.wheres[feature] = i
    for j in range(n):
        basis.columns[j, i] = column[j]


@fast_jit
def pivot(program: Program, basis: Basis, s: int, exchange: Exchange, fall: Floats, row: PivotRow, theta: float) -> int:
    """The new basis after the exchange, with the step `theta` for the plane that enters; the new s."""
    n, q, X = program.n, program.K + s, basis.X
    enters, leaves, out, hit = exchange
    u, column, slope = row
    side = 1.0 if slope > 0.0 else -1.0
    if out >= 0:
        basis.wherep[basis.P[out]] = -1
    if leaves >= 0:
        basis.wheres[basis.S[leaves]] = -1
    if leaves >= 0 and out >= 0:
        shrink(X, q, program.K + leaves, out)
        last = s - 1
        if leaves != last:
            kept = np.empty(n)
            for j in range(n):
                kept[j] = basis.columns[j, last]
            put_feature(basis, leaves, basis.S[last], basis.sign[last], kept, n)
        if out != q - 1:
            put_plane(basis, out, basis.P[q - 1], basis.alpha[q - 1])
        return last
    if leaves >= 0:
        replace_column(X, q, u, program.K + leaves)
        put_feature(basis, leaves, hit, side, column, n)
        return s
    if out >= 0:
        replace_row(X, q, fall, out)
        put_plane(basis, out, enters, theta)
        return s
    border(X, q, fall, u, slope)
    put_plane(basis, q, enters, theta)
    put_feature(basis, s, hit, side, column, n)
    return s + 1
