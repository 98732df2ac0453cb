"""Digests of rows: equal rows have equal ones, different rows almost never."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import inlined, jit

Words = NDArray[np.uint64]
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
STEP = np.uint64(0x9E3779B97F4A7C15)


@inlined
def stirred(x: Any) -> Any:
    """A permutation of the 64-bit words whose every bit depends on all (Steele, Lea & Flood 2014, SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


@jit
def dense(bits: Any, digests: Words) -> None:
    """Add to `digests` those of the rows of a matrix of unsigned integers, the bits of its numbers; zeros add none."""
    for i in range(bits.shape[0]):
        total = digests[i]
        for j in range(bits.shape[1]):
            word = np.uint64(bits[i, j])
            if word:
                total += stirred(word + STEP * np.uint64(j + 1))
        digests[i] = total


@jit
def sparse(indptr: Any, indices: Any, bits: Any, digests: Words) -> None:
    """The same for sparse rows; `bits` may be a single number, that of all entries."""
    single = bits.shape[0] == 1
    for i in range(indptr.shape[0] - 1):
        total = digests[i]
        for k in range(indptr[i], indptr[i + 1]):
            word = np.uint64(bits[0 if single else k])
            if word:
                total += stirred(word + STEP * np.uint64(indices[k] + 1))
        digests[i] = total


@jit
def totals(digests: Words, first: int) -> Any:
    """The sum over rows of their stirred digests, and one that depends on the order; rows count from `first`."""
    content, order = np.uint64(0), np.uint64(0)
    for i in range(digests.shape[0]):
        word = stirred(digests[i])
        content += word
        order += stirred(word + STEP * np.uint64(first + i + 1))
    return content, order
