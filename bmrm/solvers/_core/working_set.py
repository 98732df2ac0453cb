"""Working sets for l1: the coordinates that matter, those in use and those that violate optimality the most.

Johnson & Guestrin 2015 (Blitz); Massias, Gramfort & Salmon 2018 (Celer).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.masters.soft_descent import violations
from bmrm.problem import Vector

Columns = NDArray[np.int64]

GROWTH = 4
"""Size of a working set, in multiples of the columns in use."""


def violation(gradient: Vector, w: Vector, l1: float, l2: float) -> tuple[Vector, float]:
    """Per coordinate the distance from 0 to gradient + l2 w + l1 times the subdifferential of |w|; and the largest."""
    out = np.empty(w.size)
    return out, float(violations(gradient, w, l1, l2, out))


def chosen(
    away: Vector, w: Vector, size: int, zeros: NDArray[np.bool_] | None = None, most: int | None = None
) -> Columns:
    """At most `size` columns of the largest violations, with all that are in use; increasing.

    All columns where they are no more than `size`, but for those of `zeros` that are not in use. Never more than
    `most`: where so many are in use, those of the largest violations.
    """
    used = w != 0.0
    if zeros is not None:
        away = np.where(zeros, 0.0, away)
    if most is not None and w.size > most:
        if np.count_nonzero(used) >= most:
            return np.sort(np.argpartition(away, w.size - most)[w.size - most :])
        size = min(size, most)
    if w.size <= size:
        return np.arange(w.size) if zeros is None else np.flatnonzero(used | ~zeros)
    others = np.flatnonzero((away > 0.0) & ~used)
    room = max(0, size - int(np.count_nonzero(used)))
    if others.size > room:
        others = others[np.argpartition(away[others], others.size - room)[others.size - room :]] if room else others[:0]
    used[others] = True
    return np.flatnonzero(used)
