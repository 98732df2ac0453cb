"""The worst rival of the true class, for losses that are the largest violation over the classes."""

from __future__ import annotations

import numpy as np

from bmrm.losses._core.prepared import Array, Positions


def worst_rivals(violations: Array, y: Positions) -> Positions:
    """(rows,) the first class of the largest violation in (rows, K); the true one, `y`, where none is above 0."""
    return np.where(violations.max(axis=1) > 0.0, violations.argmax(axis=1), y)


def towards(rivals: Positions, y: Positions, classes: int, rates: Array | float = 1.0) -> Array:
    """(rows, classes): in each row its rate at the rival and minus it at the true class, 0 where they are the same."""
    rows, slope = np.arange(len(y)), np.zeros((len(y), classes))
    slope[rows, rivals] += rates
    slope[rows, y] -= rates
    return slope


def above_own(f: Array, y: Positions) -> Array:
    """f_k - f_y for each row and class k."""
    return f - f[np.arange(len(y)), y][:, None]
