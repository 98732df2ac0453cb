"""Cutting planes in the memory of one process."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Vector

BLOCK_BYTES = 8 << 20
"""Planes are kept in matrices of about this size; storage grows by one of them at a time."""

BLOCK_ROWS = 512
"""No matrix has more rows than this."""


class MemoryPlanes:
    """Planes `R_k(w) >= <a_j, w> + b_j` as dense float64 rows (the protocol `Planes`).

    Rows lie side by side in matrices of fixed size, so that growing copies nothing and products run in BLAS:
    memory is planes x dim x 8 bytes, plus at most one matrix of 8 MB (or one row, where that is longer). A dropped
    row is overwritten by the last one; so `ids` may change its order at `drop`, never otherwise.

    Parameters
    ----------
    dim : length of every `a`.
    floors : per block, a number that R_k never goes below; -inf when unknown.
    """

    def __init__(self, dim: int, floors: Sequence[float] = (0.0,)) -> None:
        if dim < 1 or not floors or any(math.isnan(floor) or floor == math.inf for floor in floors):
            raise ValueError(f"planes need dim >= 1 and a floor below inf per block, not dim={dim}, floors={floors}")
        self.dim = int(dim)
        self.floors = tuple(float(floor) for floor in floors)
        self._rows = max(1, min(BLOCK_ROWS, BLOCK_BYTES // (8 * self.dim)))
        self._parts: list[NDArray[np.float64]] = []
        self._ids: tuple[int, ...] = ()
        self._slot: dict[int, int] = {}
        self._block: list[int] = []
        self._b = np.empty(64)
        self._next = 0

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> tuple[int, ...]:
        """The planes at hand; the order of `products`, `combine` and `offsets`."""
        return self._ids

    @property
    def offsets(self) -> Vector:
        """b_j in the order of `ids`; a view, valid until the next `add` or `drop`."""
        return self._b[: len(self._ids)]

    @property
    def nbytes(self) -> int:
        """Bytes set aside for the rows."""
        return sum(part.nbytes for part in self._parts)

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """Keep a copy of the plane; returns its id, never used before.

        Raises ValueError for a wrong shape or block, or an entry that is not finite.
        """
        a = np.asarray(a, dtype=np.float64)
        if a.shape != (self.dim,):
            raise ValueError(f"a plane must have shape ({self.dim},), got {a.shape}")
        if not 0 <= block < len(self.floors):
            raise ValueError(f"block must be in [0, {len(self.floors)}), got {block}")
        if not (math.isfinite(b) and bool(np.isfinite(a).all())):
            raise ValueError("a plane must be finite")
        slot = len(self._ids)
        part, row = divmod(slot, self._rows)
        if part == len(self._parts):
            self._parts.append(np.empty((self._rows, self.dim)))
        self._parts[part][row] = a
        if slot == len(self._b):
            self._b = np.concatenate([self._b, np.empty(slot)])
        self._b[slot] = b
        self._block.append(int(block))
        id = self._next
        self._next += 1
        self._slot[id] = slot
        self._ids = (*self._ids, id)
        return id

    def plane(self, id: int) -> tuple[Vector, float, int]:
        """(a, b, block) of plane `id`; the array is a view that must not be changed, valid until the next `drop`."""
        slot = self._slot[id]
        return self._row(slot), float(self._b[slot]), self._block[slot]

    def products(self, a: Vector) -> Vector:
        """<a_j, a> for all planes, in the order of `ids`: a Gram row."""
        used = self._used()
        if len(used) == 1:
            return _dot(used[0], a)
        return np.concatenate([_dot(part, a) for part in used]) if used else np.empty(0)

    def combine(self, alpha: Vector) -> Vector:
        """sum_j alpha_j a_j, in the order of `ids`."""
        used = self._used()
        if len(used) == 1:
            return _dot(alpha, used[0])
        total = np.zeros(self.dim)
        start = 0
        for part in used:
            weights = alpha[start : start + len(part)]
            if weights.any():
                total += _dot(weights, part)
            start += len(part)
        return total

    def drop(self, ids: Sequence[int]) -> None:
        """Forget planes; their memory is used again, and given back where a whole matrix falls empty."""
        order = list(self._ids)
        for id in ids:
            slot = self._slot.pop(id)
            last = len(order) - 1
            if slot != last:
                self._row(slot)[:] = self._row(last)
                self._b[slot] = self._b[last]
                self._block[slot] = self._block[last]
                order[slot] = order[last]
                self._slot[order[slot]] = slot
            order.pop()
            self._block.pop()
        self._ids = tuple(order)
        del self._parts[-(-len(order) // self._rows) + 1 :]

    def _row(self, slot: int) -> NDArray[np.float64]:
        part, row = divmod(slot, self._rows)
        found: Vector = self._parts[part][row]
        return found

    def _used(self) -> list[NDArray[np.float64]]:
        """The matrices, cut to the rows in use."""
        full, rest = divmod(len(self._ids), self._rows)
        return self._parts[:full] + ([self._parts[full][:rest]] if rest else [])


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> Vector:
    """A product by BLAS, typed."""
    product: Vector = np.dot(a, b)
    return product
