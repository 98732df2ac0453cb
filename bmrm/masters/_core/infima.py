"""The least values that masters assume of the terms of the risk: known ones, and makeshift ones for linear programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bmrm.masters._core.planes import PlaneStore
from bmrm.problem import Vector


class Infima:
    """A finite infimum for every block.

    A linear program over few planes is unbounded below where an infimum is -inf. Then a makeshift infimum stands in,
    below the model's value at w = 0; while it is in use there is no lower bound, and as planes near the last w show
    that the term goes more than half-way down to it, it is put twice as deep.

    Attributes
    ----------
    values : (blocks,) finite.
    makeshift : (blocks,) bool, where the value is no property of the risk.
    """

    def __init__(self, known: Sequence[float]) -> None:
        self.makeshift = ~np.isfinite(known)
        self.values = np.where(self.makeshift, 0.0, known)
        self._start = np.full(len(known), np.nan)
        self._w, self._rest, self._seen = np.empty(0), np.zeros(len(known)), 0

    def begin(self, a: Vector, b: float, block: int) -> None:
        """Hear of a plane; the first one of a block sets its makeshift infimum."""
        if self.makeshift[block] and np.isnan(self._start[block]):
            self._start[block] = b
            self.values[block] = b - ((abs(b) + float(np.abs(a).max())) or 1.0)

    def noted(self, planes: PlaneStore, w: Vector, rest: Vector) -> None:
        """Take the solution of the master into account: weights, and the multipliers of the infima."""
        self._w, self._rest, self._seen = w, rest, int(planes.ids.max(initial=-1)) + 1

    def deepen(self, planes: PlaneStore) -> None:
        """Judge the last solution by the planes that came since."""
        for place in np.flatnonzero(planes.ids >= self._seen).tolist() if self.makeshift.any() else ():
            k = int(planes.blocks[place])
            if not (self.makeshift[k] and self._rest[k] > 0.0):
                continue
            depth = self._start[k] - self.values[k]
            height = planes.space.dot(planes.row(place), self._w) + float(planes.offsets[place])
            if height < self._start[k] - 0.5 * depth:
                self.values[k] -= depth
                self._rest[k] = 0.0
