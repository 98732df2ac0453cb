"""The variables of the simplex QP: one more of them, and multipliers put back onto the simplices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class QuadraticProgram(NamedTuple):
    """The variables, with room for N of them: G (N, N), all else (N,).

    Python hands kernels its fields, a plain `tuple` of them: of named ones numba looks up the types anew at every call.

    `diagonal` is that of G, `b` the offset and `block` the block of each variable, `alpha` the multipliers, `where` the
    place of each variable in the support, -1 outside.
    """

    G: Floats
    diagonal: Floats
    b: Floats
    block: Ints
    alpha: Floats
    where: Ints


@fast_jit
def enlarge(qp: tuple[Any, ...], j: int, row: Floats, offset: float, number: int) -> None:
    """Variable j = n comes, of block `number`; `row` ends with its product with itself, and is 0 before it begins."""
    G, diagonal, b, block, alpha, where = qp
    start = j + 1 - row.size
    taken = False
    for i in range(j):
        taken = taken or block[i] == number
    for i in range(start):
        G[j, i] = 0.0
        G[i, j] = 0.0
    for i in range(start, j + 1):
        G[j, i] = row[i - start]
        G[i, j] = row[i - start]
    diagonal[j] = G[j, j]
    b[j] = offset
    block[j] = number
    where[j] = -1
    alpha[j] = 0.0 if taken else 1.0


@fast_jit
def conclude(qp: tuple[Any, ...], blocks: int, n: int) -> tuple[int, float, float]:
    """Make alpha >= 0 with sum 1 in every block that has a variable.

    Returns the number of such blocks, b'alpha, and the largest diagonal entry in use.
    """
    _, diagonal, b, block, alpha, _ = qp
    total = np.zeros(blocks)
    first = np.empty(blocks, np.int64)
    for k in range(blocks):
        first[k] = -1
    for j in range(n):
        alpha[j] = max(alpha[j], 0.0)
        total[block[j]] += alpha[j]
        if first[block[j]] < 0:
            first[block[j]] = j
    present = 0
    for k in range(blocks):
        if first[k] >= 0:
            present += 1
            if total[k] <= 0.0:
                alpha[first[k]] = 1.0
                total[k] = 1.0
    linear = 0.0
    largest = 0.0
    for j in range(n):
        alpha[j] /= total[block[j]]
        linear += alpha[j] * b[j]
        if alpha[j] > 0.0:
            largest = max(largest, diagonal[j])
    return present, linear, largest
