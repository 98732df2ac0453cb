"""Cutting planes in the memory of one process."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.planes import combine, products
from bmrm.kernels.products.vectors import plain
from bmrm.problem import SavedPlanes, Vector

BLOCK_BYTES = 8 << 20
"""Planes are kept in matrices of about this size; storage grows by one of them at a time."""

BLOCK_ROWS = 512
"""No matrix has more rows than this."""


class MemoryPlanes:
    """Planes `R_k(w) >= <a_j, w> + b_j` as dense float64 rows (the protocol `Planes`).

    Rows lie side by side in matrices of fixed size, so that growing copies nothing: memory is planes x dim x 8 bytes,
    plus at most one matrix of 8 MB (or one row, where that is longer). A dropped row is overwritten by the last one; so
    `ids` may change its order at `drop`, never otherwise.

    Parameters
    ----------
    dim : length of every `a`.
    infima : per block, a number that R_k never goes below; -inf when unknown.
    """

    def __init__(self, dim: int, infima: Sequence[float] = (0.0,)) -> None:
        if dim < 1 or not infima or any(math.isnan(infimum) or infimum == math.inf for infimum in infima):
            raise ValueError(f"planes need dim >= 1 and an infimum below inf per block, not dim={dim}, infima={infima}")
        self.dim = int(dim)
        self.infima = tuple(float(infimum) for infimum in infima)
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
        if not 0 <= block < len(self.infima):
            raise ValueError(f"block must be in [0, {len(self.infima)}), got {block}")
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
        a = plain(a)
        result = np.empty(len(self._ids))
        for start, part in self._used():
            products(part, a, result[start : start + len(part)])
        return result

    def combine(self, alpha: Vector) -> Vector:
        """sum_j alpha_j a_j, in the order of `ids`."""
        alpha = plain(alpha)
        total = np.zeros(self.dim)
        for start, part in self._used():
            combine(alpha[start : start + len(part)], part, total)
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

    def fold(self, ids: Sequence[int], alpha: Vector) -> int:
        """Replace planes of one block by their average with weights `alpha` >= 0, not all 0; returns its id.

        An average of lower bounds is a lower bound; it is all that a minimiser needs to know of the planes folded.
        """
        slots = [self._slot[id] for id in ids]
        if len({self._block[slot] for slot in slots}) != 1:
            raise ValueError("planes of several blocks cannot be folded into one")
        weights = np.asarray(alpha, dtype=np.float64) / np.sum(alpha)
        a = np.zeros(self.dim)
        for weight, slot in zip(weights, slots, strict=True):
            a += weight * self._row(slot)
        folded = self.add(a, float(weights @ self._b[slots]), self._block[slots[0]])
        self.drop(ids)
        return folded

    def saved(self, fingerprint: str) -> SavedPlanes:
        """A copy of all planes."""
        slopes = np.empty((len(self._ids), self.dim))
        for start, part in self._used():
            slopes[start : start + len(part)] = part
        blocks = np.array(self._block, dtype=np.int64)
        return SavedPlanes(slopes, self.offsets.copy(), blocks, self.infima, fingerprint)

    def _row(self, slot: int) -> NDArray[np.float64]:
        part, row = divmod(slot, self._rows)
        found: Vector = self._parts[part][row]
        return found

    def _used(self) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """The matrices, cut to the rows in use, and the number of rows before each."""
        count = len(self._ids)
        for number, start in enumerate(range(0, count, self._rows)):
            yield start, self._parts[number][: count - start]
