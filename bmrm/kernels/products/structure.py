"""Whether the positions and column numbers of sparse rows may be followed."""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import jit

U = np.uint64
"""Type of positions, unsigned as in `csr.py`, so that the loop is vectorised."""


@jit
def survey(indptr, indices):  # type: ignore[no-untyped-def]
    """The first row that ends before it starts, or -1; the largest index; whether indices rise strictly in all rows.

    `indices` are unsigned, so that negative ones are the largest. Neither is looked at where a row ends too early.
    The first and the last of `indptr` must be positions in `indices`.
    """
    largest, level = indices.dtype.type(0), U(0)
    for i in range(indptr.size - 1):
        if indptr[i + 1] < indptr[i]:
            return i, largest, False
    first, last = U(indptr[0]), U(indptr[-1])
    if first < last:
        largest = indices[first]
    for k in range(first + U(1), last):
        largest = max(largest, indices[k])
        level += U(indices[k] <= indices[k - U(1)])
    for i in range(1, indptr.size - 1):  # from row to row they may fall
        start, stop = U(indptr[i]), U(indptr[i + 1])
        if first < start and start < stop:
            level -= U(indices[start] <= indices[start - U(1)])
    return -1, largest, level == U(0)
