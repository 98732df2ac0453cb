"""The common part of the masters of l1, linear programs: infima that keep them bounded, bounds of rough multipliers.

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
from bmrm.problem import MasterSolution, Vector

UNUSED = 1e-9
"""Multiplier of a makeshift infimum, of 1, up to which it is an engine's inexactness."""


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

    def solution(self, planes: PlaneStore, lam: float, w: Vector, alpha: Vector, rest: Vector) -> MasterSolution:
        """The weights, and what rough multipliers of planes and infima prove of `l1`; they are remembered.

        They are not those of the minimum where a makeshift infimum has a multiplier, though some bound may be proved.
        """
        alpha, rest = onto_simplices(alpha, rest, planes, len(self.values))
        exact = self.remember(planes, w, rest)
        return MasterSolution(w, planes.multipliers(alpha), l1_bound(alpha, rest, planes, lam), exact)

    def remember(self, planes: PlaneStore, w: Vector, rest: Vector) -> bool:
        """Note a solution, with multipliers on the simplices; whether it needs no makeshift infimum."""
        self._w, self._rest, self._seen = w, rest, int(planes.ids.max(initial=-1)) + 1
        return not bool(np.any(rest[self.makeshift] > UNUSED))

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
