"""Lower bounds that hold for any multipliers: a feasible dual point, evaluated with the planes themselves.

For multipliers alpha >= 0 whose sum is 1 in every block, the floor planes (0, floors[k]) included,

    J(w) >= Omega(w) + <A alpha, w> + b'alpha + floors'rest >= b'alpha + floors'rest - Omega*(-A alpha).

Masters may be as inexact as they like: their alpha is put back onto the simplices here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Vector


def onto_simplices(
    alpha: Vector, block: NDArray[np.int64], floors: Sequence[float], rest: Vector | None = None
) -> tuple[Vector, Vector]:
    """The nearest multipliers that are feasible, and what is left for the floor planes.

    Parameters
    ----------
    alpha, block : multipliers of the planes, any finite numbers, and their blocks.
    floors : -inf where the block has no floor plane.
    rest : what the engine found for the floor planes; None for one minus the sum of the others.

    Returns
    -------
    alpha : >= 0; summing with `rest` to 1 in each block that has planes or a floor.
    rest : the multipliers of the floor planes, 0 where there is none.
    """
    blocks = len(floors)
    alpha = np.maximum(alpha, 0.0)
    sums = np.bincount(block, weights=alpha, minlength=blocks)
    finite = np.isfinite(floors)
    rest = np.where(finite, np.maximum(1.0 - sums if rest is None else rest, 0.0), 0.0)
    total = sums + rest
    for k in np.flatnonzero(total <= 0.0):
        members = np.flatnonzero(block == k)
        if finite[k]:
            rest[k] = 1.0
        elif len(members):
            alpha[members] = 1.0 / len(members)
        total[k] = 1.0
    return alpha / total[block], rest / total


def covered(block: NDArray[np.int64], floors: Sequence[float]) -> bool:
    """Whether every block has a plane or a floor; without, the model is unbounded below."""
    return bool(np.all(np.isfinite(floors) | (np.bincount(block, minlength=len(floors)) > 0)))


def floor_value(rest: Vector, floors: Sequence[float]) -> float:
    """floors'rest, where a floor of -inf that is not used counts nothing."""
    return math.fsum(r * f for r, f in zip(rest.tolist(), floors) if r > 0.0)


def linear_value(alpha: Vector, b: Vector, rest: Vector, floors: Sequence[float]) -> float:
    """b'alpha + floors'rest."""
    return float(alpha @ b) + floor_value(rest, floors)
