"""The store of cutting planes: all that masters and plane models know of slopes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.planes import combine, products
from bmrm.kernels.products.vectors import dot_and_sizes, plain
from bmrm.problem import SavedPlanes, Space, Vector

BLOCK_BYTES = 8 << 20
"""Bytes of a matrix of planes, about; storage grows by one such matrix at a time."""

BLOCK_ROWS = 512
"""Most planes in such a matrix."""


def product_and_sizes(space: Space, a: Vector, w: Vector) -> tuple[float, float, float]:
    """<a, w>, the sum of its absolute terms, and the norm of w."""
    product, size, norm = dot_and_sizes(a, w)
    if not space.whole:
        product, size, square = space.total(np.array([product, size, norm * norm])).tolist()
        norm = math.sqrt(square)
    return product, size, norm


class PlaneStore:
    """Planes `R_k(w) >= <a_j, w> + b_j` as dense float64 rows (the protocol `Planes`).

    Rows lie side by side in matrices of fixed size, so that growing copies nothing: memory is planes x dim x 8 bytes,
    plus at most one matrix of 8 MB (or one row, where that is longer). In a sliced space these are the slices of this
    rank; inner products are added up by the space.

    Parameters
    ----------
    space : of every `a`.
    infima : per block, a number that R_k never goes below; -inf when unknown.
    """

    def __init__(self, space: Space, infima: Sequence[float] = (0.0,)) -> None:
        self.space, self.dim = space, space.dim
        if self.dim < 1 or not infima or any(math.isnan(infimum) or infimum == math.inf for infimum in infima):
            raise ValueError(f"planes need weights and an infimum below inf per block, not {space}, infima={infima}")
        self.infima = tuple(float(infimum) for infimum in infima)
        self._rows = max(1, min(BLOCK_ROWS, BLOCK_BYTES // (8 * self.dim)))
        self._parts: list[NDArray[np.float64]] = []
        self._slot: dict[int, int] = {}
        self._ids = np.empty(64, np.int64)
        self._b = np.empty(64)
        self._block = np.empty(64, np.int64)
        self._next = 0

    def __len__(self) -> int:
        return len(self._slot)

    @property
    def ids(self) -> NDArray[np.int64]:
        """The planes at hand, in the order of all that follows; a view, as those two, valid until the next change."""
        return self._ids[: len(self)]

    @property
    def offsets(self) -> Vector:
        """b_j."""
        return self._b[: len(self)]

    @property
    def blocks(self) -> NDArray[np.int64]:
        """The term of the risk that each plane belongs to."""
        return self._block[: len(self)]

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
        slot, id = len(self), self._next
        part, row = divmod(slot, self._rows)
        if part == len(self._parts):
            self._parts.append(np.empty((self._rows, self.dim)))
        self._parts[part][row] = a
        if slot == len(self._b):
            self._ids, self._b, self._block = (np.concatenate([old, old]) for old in (self._ids, self._b, self._block))
        self._ids[slot], self._b[slot], self._block[slot] = id, b, block
        self._slot[id] = slot
        self._next += 1
        return id

    def row(self, place: int) -> Vector:
        """The slope at this place; a view that must not be changed, valid until planes are forgotten."""
        part, row = divmod(place, self._rows)
        found: Vector = self._parts[part][row]
        return found

    def plane(self, id: int) -> tuple[Vector, float, int]:
        """(a, b, block) of plane `id`; a is as of `row`."""
        slot = self._slot[id]
        return self.row(slot), float(self._b[slot]), int(self._block[slot])

    def products(self, a: Vector) -> Vector:
        """<a_j, a> for all planes: a Gram row."""
        a = plain(a)
        result = np.empty(len(self))
        for start, part in self._used():
            products(part, a, result[start : start + len(part)])
        found: Vector = self.space.total(result)
        return found

    def combine(self, alpha: Vector) -> Vector:
        """sum_j alpha_j a_j."""
        alpha = plain(alpha)
        total = np.zeros(self.dim)
        for start, part in self._used():
            combine(alpha[start : start + len(part)], part, total)
        return total

    def multipliers(self, alpha: Vector) -> dict[int, float]:
        """Plane id -> alpha where it is positive."""
        positive = np.flatnonzero(alpha > 0.0)
        return dict(zip(self.ids[positive].tolist(), alpha[positive].tolist(), strict=True))

    def average(self, ids: Sequence[int], alpha: Vector) -> tuple[Vector, float, int]:
        """Planes of one block, with weights `alpha` >= 0, not all 0, as one plane (a, b, block).

        An average of lower bounds is a lower bound; it is all that a minimiser needs to know of these planes.
        """
        slots = [self._slot[id] for id in ids]
        if len(set(self._block[slots].tolist())) != 1:
            raise ValueError("planes of several blocks cannot be averaged")
        weights = np.asarray(alpha, dtype=np.float64) / np.sum(alpha)
        a = np.zeros(self.dim)
        for weight, slot in zip(weights, slots, strict=True):
            a += weight * self.row(slot)
        return a, float(weights @ self._b[slots]), int(self._block[slots[0]])

    def drop(self, ids: Sequence[int]) -> NDArray[np.int64]:
        """Forget planes, in whose places the last ones then stand; where those that stay stood before, in new order."""
        gone = [self._slot.pop(id) for id in ids]
        count = len(self)
        stays = np.ones(count + len(gone), bool)
        stays[gone] = False
        order, holes = np.arange(count), np.flatnonzero(~stays[:count])
        order[holes] = count + np.flatnonzero(stays[count:])
        for place in holes.tolist():
            self.row(place)[:] = self.row(int(order[place]))
            self._slot[int(self._ids[order[place]])] = place
        for array in (self._ids, self._b, self._block):
            array[holes] = array[order[holes]]
        del self._parts[-(-count // self._rows) + 1 :]  # what has fallen empty, but for one matrix
        return order

    def alike(self, id: int, tolerance: float) -> list[int]:
        """The planes of the same block, each slope of which differs by `tolerance`, relative, at most; `id` is one."""
        a, _, block = self.plane(id)
        near = self.blocks == block
        for start, part in self._used():
            with np.errstate(over="ignore"):
                near[start : start + len(part)] &= (np.abs(part - a) <= tolerance * np.abs(a)).all(axis=1)
        near = near if self.space.whole else self.space.total(~near) == 0.0
        found: list[int] = self.ids[near].tolist()
        return found

    def rows(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """A copy of the slopes at these places."""
        slopes = np.empty((len(places), self.dim))
        for start, part in self._used():
            here = (start <= places) & (places < start + len(part))
            slopes[here] = part[places[here] - start]
        return slopes

    def saved(self, fingerprint: str) -> SavedPlanes:
        """A copy of all planes."""
        slopes = self.rows(np.arange(len(self)))
        return SavedPlanes(slopes, self.offsets.copy(), self.blocks.copy(), self.infima, fingerprint)

    def _used(self) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """The matrices, cut to the rows in use, and the number of rows before each."""
        for number, start in enumerate(range(0, len(self), self._rows)):
            yield start, self._parts[number][: len(self) - start]
