"""Which planes a master has taken, in its own order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Planes, Vector


class PlaneIndex:
    """The planes of one master, and where each stands among all planes of a `Planes`.

    Two ways to forget: `remove` puts the last plane in the place of one, `discard` closes the ranks.

    Attributes
    ----------
    ids : plane ids in the order of the master.
    b, block : offsets and blocks in the same order, views of the first `len(ids)` entries of growing arrays.
    """

    def __init__(self, planes: Planes) -> None:
        self.planes = planes
        self.ids: list[int] = []
        self._place: dict[int, int] = {}
        self._b = np.empty(64)
        self._block = np.empty(64, dtype=np.int64)
        self._ids = np.empty(64, dtype=np.int64)
        self._seen: tuple[int, ...] | None = None
        self._where = np.empty(0, dtype=np.int64)
        self._same = True

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def b(self) -> Vector:
        """Offsets."""
        return self._b[: len(self.ids)]

    @property
    def block(self) -> NDArray[np.int64]:
        """Blocks."""
        return self._block[: len(self.ids)]

    def add(self, id: int) -> tuple[Vector, float, int]:
        """Take plane `id`; returns it."""
        if id in self._place:
            raise ValueError(f"plane {id} is already in the master")
        a, b, block = self.planes.plane(id)
        n = len(self.ids)
        if n == len(self._b):
            self._b = np.concatenate([self._b, np.empty(n)])
            self._block = np.concatenate([self._block, np.empty(n, dtype=np.int64)])
            self._ids = np.concatenate([self._ids, np.empty(n, dtype=np.int64)])
        self._b[n], self._block[n], self._ids[n] = b, block, id
        self._place[id] = n
        self.ids.append(id)
        self._seen = None
        return a, b, block

    def remove(self, id: int) -> tuple[int, int]:
        """Forget plane `id`; returns its place, and the place of the last plane, which now stands there."""
        place, last = self._place.pop(id), len(self.ids) - 1
        moved = self.ids.pop()
        if place != last:
            self.ids[place] = moved
            self._place[moved] = place
            for array in (self._b, self._block, self._ids):
                array[place] = array[last]
        self._seen = None
        return place, last

    def discard(self, ids: Sequence[int]) -> NDArray[np.int64]:
        """Forget planes; the others keep their order. Returns the places where they stood, ascending."""
        places = np.array(sorted(self._place[id] for id in ids), dtype=np.int64)
        kept = np.delete(np.arange(len(self.ids)), places)
        for array in (self._b, self._block, self._ids):
            array[: len(kept)] = array[kept]
        self.ids = self._ids[: len(kept)].tolist()
        self._place = {id: place for place, id in enumerate(self.ids)}
        self._seen = None
        return places

    def pick(self, values: Vector) -> Vector:
        """Values in the order of `planes.ids`, brought into the order of the master."""
        self._locate()
        return values if self._same else values[self._where]

    def spread(self, values: Vector) -> Vector:
        """Values in the order of the master, brought into the order of `planes.ids`; 0 for planes not taken."""
        self._locate()
        if self._same:
            return values
        everything = np.zeros(len(self.planes.ids))
        everything[self._where] = values
        return everything

    def multipliers(self, alpha: Vector) -> dict[int, float]:
        """Plane id -> alpha where it is positive."""
        positive = np.flatnonzero(alpha > 0.0)
        return dict(zip(self._ids[positive].tolist(), alpha[positive].tolist()))

    def _locate(self) -> None:
        """Bring `_where` up to date with the planes at hand."""
        seen = self.planes.ids
        if seen is self._seen:
            return
        self._seen = seen
        self._same = list(seen) == self.ids
        if not self._same:
            where = {id: place for place, id in enumerate(seen)}
            self._where = np.array([where[id] for id in self.ids], dtype=np.int64)
