"""Sweeps over blocks of rows, whose intermediate arrays stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import dot
from bmrm.losses._core.prepared import Array
from bmrm.problem import Vector

BLOCK = 16384
"""Scores of a block."""


def block_rows(f: Array) -> int:
    """How many rows a block of scores like `f`, (rows,) or (rows, K), has at most."""
    width: int = f.shape[1] if f.ndim == 2 else 1
    rows: int = f.shape[0]
    return min(rows, max(1, BLOCK // width))


def blocks(f: Array) -> Iterator[slice]:
    """The rows of each block."""
    size = block_rows(f)
    return (slice(start, min(start + size, f.shape[0])) for start in range(0, f.shape[0], max(1, size)))


def along_by_blocks(kernel: Callable[..., float]) -> Callable[..., None]:
    """The `along_kernel` of a `kernel` for rows: block by block, so that a block is read once for all points."""

    def along(
        f: Array,
        step: Array,
        y: NDArray[Any],
        weights: Vector,
        ts: Vector,
        values: Vector,
        derivatives: Vector,
        *arguments: Any,
    ) -> None:
        values[:] = derivatives[:] = 0.0
        point, slope = np.empty((2, block_rows(f), *f.shape[1:]))
        for rows in blocks(f):
            here, along, targets, masses = f[rows], step[rows], y[rows], weights[rows]
            at, slopes = point[: here.shape[0]], slope[: here.shape[0]]
            for k, t in enumerate(ts):
                np.multiply(along, t, out=at)
                at += here
                values[k] += kernel(at, targets, masses, slopes, *arguments)
                derivatives[k] += dot(slopes, along)

    return along
