"""Where weights along lambdas presumably go: a polynomial in the logarithm of lambda through the last ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bmrm.problem import Vector

ORDER, FARTHEST = 3, 2.0
"""Points through which weights are extrapolated, and how far, in multiples of the least distance of two."""


def predicted(places: Sequence[tuple[float, Vector]], at: float, kinked: bool) -> Vector:
    """The weights at a place, by the polynomial through those at the last ones; the last where these are too near.

    Parameters
    ----------
    places : up to `ORDER` different numbers with the weights there, the last nearest to `at`.
    at : another place; nan for none.
    kinked : whether weights that are 0 stay so, and none changes its sign.
    """
    (last, w), *before = places[::-1]
    steps = [abs(one - last) for one, _ in before]
    if not before or not 0.0 < abs(at - last) <= FARTHEST * min(steps):
        return w
    found = np.zeros_like(w)
    for k, (here, weights) in enumerate(places):
        others = [there for j, (there, _) in enumerate(places) if j != k]
        found += math.prod((at - there) / (here - there) for there in others) * weights
    return np.where(found * w > 0.0, found, 0.0) if kinked else found
