"""The least values that masters assume of the terms of the risk: known ones, and makeshift ones for linear programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bmrm.masters._core.planes import MemoryPlanes
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

    def begin(self, a: Vector, b: float, block: int) -> bool:
        """Hear of a plane; the first one of a block sets its makeshift infimum. Returns whether it did."""
        if not self.makeshift[block] or not np.isnan(self._start[block]):
            return False
        self._start[block] = b
        self.values[block] = b - ((abs(b) + float(np.abs(a).max())) or 1.0)
        return True

    def deepen(self, planes: MemoryPlanes, w: Vector, first: int, rest: Vector) -> bool:
        """Judge the last w by the planes that came since (from `first` on); returns whether an infimum has changed."""
        changed = False
        for place in range(first, len(planes)):
            a, b, k = planes.row(place), float(planes.offsets[place]), int(planes.blocks[place])
            depth = self._start[k] - self.values[k]
            if self.makeshift[k] and rest[k] > 0.0 and float(a @ w) + b < self._start[k] - 0.5 * depth:
                self.values[k] -= depth
                rest[k] = 0.0
                changed = True
        return changed
