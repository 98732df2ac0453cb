"""The lower bound of L1 for any multipliers: a feasible dual point, evaluated with the planes themselves.

For multipliers alpha >= 0 whose sum is 1 in every block, those of the lower-bound planes (0, infima[k]) included,

    J(w) >= lambda ||w||_1 + <A alpha, w> + b'alpha + infima'rest >= b'alpha + infima'rest   if |A alpha| <= lambda.

An engine may be as inexact as it likes: what it found is put onto the simplices here, then shrunk towards the infimum
planes until the condition holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bmrm.masters._core.planes import PlaneStore
from bmrm.problem import Vector


def onto_simplices(alpha: Vector, rest: Vector, planes: PlaneStore, blocks: int) -> tuple[Vector, Vector]:
    """The multipliers alpha of planes and rest of infima, clipped to >= 0 and scaled to sum 1 per block."""
    alpha, rest = np.maximum(alpha, 0.0), np.maximum(rest, 0.0)
    total = np.bincount(planes.blocks, weights=alpha, minlength=blocks) + rest
    rest = np.where(total > 0.0, rest, 1.0)
    total = np.where(total > 0.0, total, 1.0)
    return alpha / total[planes.blocks], rest / total


def l1_bound(alpha: Vector, rest: Vector, planes: PlaneStore, lam: float) -> float:
    """The bound of multipliers that `onto_simplices` made; -inf where none can be had.

    Blocks without an infimum must carry all weight on planes, and cannot shrink: they give no bound unless A alpha is
    flat enough as it is, the weight of a makeshift infimum being spread over the planes.
    """
    infima = np.array(planes.infima)
    without = ~np.isfinite(infima)
    if np.any(rest[without] > 0.5):
        return -math.inf
    scale = np.where(without, 1.0 / (1.0 - np.minimum(rest, 0.5)), 1.0)
    alpha = alpha * scale[planes.blocks]
    largest = float(np.abs(planes.combine(alpha)).max())
    if not largest <= lam:
        if without.any():
            return -math.inf
        alpha = alpha * math.nextafter(lam / largest, 0.0)
    share = np.bincount(planes.blocks, weights=alpha, minlength=len(infima))
    terms = [(1.0 - s) * f for s, f in zip(share.tolist(), infima.tolist()) if math.isfinite(f)]
    return math.fsum([float(np.dot(alpha, planes.offsets)), *terms])


def flatter(lam: float, infima: Sequence[float], margin: float) -> float:
    """The lambda to solve for: less by the relative `margin` where multipliers cannot be shrunk afterwards."""
    return lam if all(map(math.isfinite, infima)) else lam * (1.0 - margin)
