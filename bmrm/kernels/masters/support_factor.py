"""The Cholesky factor of a support's part of a matrix, as variables join it and leave; see `simplex_qp`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit, inlined
from bmrm.kernels.masters.simplex_variables import QuadraticProgram

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RIDGE = 1e-14
"""Damping of the diagonal, as a share of it."""


class Factor(NamedTuple):
    """The support (room,), of which the first s entries count, and what is known of its part of the Hessian H.

    `L` (room, room) is the Cholesky factor of H, `U` (blocks, room) is (L^-1 E)' with E the indicator of blocks.
    """

    support: Ints
    L: Floats
    U: Floats


@inlined
def lower_solve(L: Floats, s: int, y: Floats) -> None:
    """y <- L^-1 y for the leading s rows."""
    for i in range(s):
        row = L[i]
        total = y[i]
        for k in range(i):
            total -= row[k] * y[k]
        y[i] = total / row[i]


@inlined
def upper_solve(L: Floats, s: int, y: Floats) -> None:
    """y <- L^-T y for the leading s rows."""
    for i in range(s - 1, -1, -1):
        row = L[i]
        value = y[i] / row[i]
        y[i] = value
        for k in range(i):
            y[k] -= value * row[k]


@inlined
def append(qp: QuadraticProgram, factor: Factor, s: int, shift: float, j: int) -> None:
    """Variable j joins the support as number s; `shift` is added to G within blocks."""
    G, block = qp.G, qp.block
    support, L, U = factor
    row = L[s]
    for p in range(s):
        row[p] = G[j, support[p]]
        if block[support[p]] == block[j]:
            row[p] += shift
    lower_solve(L, s, row)
    diagonal = (G[j, j] + shift) * (1.0 + RIDGE)
    pivot = diagonal
    for p in range(s):
        pivot -= row[p] * row[p]
    pivot = np.sqrt(max(pivot, RIDGE * diagonal))
    row[s] = pivot
    for k in range(len(U)):
        u = U[k]
        total = 0.0
        for p in range(s):
            total += row[p] * u[p]
        u[s] = ((1.0 if block[j] == k else 0.0) - total) / pivot
    support[s] = j
    qp.where[j] = s


@fast_jit
def join(qp: QuadraticProgram, factor: Factor, s: int, shift: float, j: int) -> float:
    """Variable j joins the support as number s; the factor is made anew where another shift suits it. The shift."""
    G, support = qp.G, factor.support
    largest: float = G[j, j]
    for p in range(s):
        largest = max(largest, G[support[p], support[p]])
    kept = largest <= 0.0 or 1e-6 * largest <= shift <= 1e3 * largest
    support[s] = j
    for p in range(s if kept else 0, s + 1):
        append(qp, factor, p, shift if kept else largest, support[p])
    return shift if kept else largest


@inlined
def delete(where: Ints, factor: Factor, s: int, p: int, cosine: Floats, sine: Floats) -> None:
    """Number p of s leaves the support; plane rotations, for which there is room, make the factor triangular again."""
    support, L, U = factor
    where[support[p]] = -1
    for r in range(p, s - 1):
        old = L[r + 1]
        new = L[r]
        carry = old[p]
        for i in range(p, r):
            after = old[i + 1]
            new[i] = cosine[i] * carry + sine[i] * after
            carry = cosine[i] * after - sine[i] * carry
        for i in range(p):
            new[i] = old[i]
        last = old[r + 1]
        radius = np.sqrt(carry * carry + last * last)
        cosine[r] = carry / radius
        sine[r] = last / radius
        new[r] = radius
        for k in range(len(U)):
            upper, lower = U[k, r], U[k, r + 1]
            U[k, r] = cosine[r] * upper + sine[r] * lower
            U[k, r + 1] = cosine[r] * lower - sine[r] * upper
        support[r] = support[r + 1]
        where[support[r]] = r


@inlined
def small_solve(M: Floats, x: Floats, k: int) -> None:
    """x <- M^-1 x for a symmetric positive definite k x k matrix, which is overwritten; rows of zeros give 0."""
    for i in range(k):
        if M[i, i] <= 0.0:
            x[i] = 0.0
            M[i, i] = 1.0
    for i in range(k):
        for j in range(i + 1, k):
            factor = M[j, i] / M[i, i]
            for q in range(i, k):
                M[j, q] -= factor * M[i, q]
            x[j] -= factor * x[i]
    for i in range(k - 1, -1, -1):
        for q in range(i + 1, k):
            x[i] -= M[i, q] * x[q]
        x[i] /= M[i, i]
