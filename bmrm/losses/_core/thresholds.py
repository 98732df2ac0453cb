"""How many of a row's best labels it has: a threshold that is a linear function of the row's scores.

Elisseeff & Weston (2001): for each training row the threshold that mistakes the fewest labels, the middle one where
several do; then least squares of these on the scores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.losses._core.prepared import Array
from bmrm.problem import Vector

MOST_LABELS = 1000
"""With more labels the threshold is one number: its least squares would take a matrix of labels by labels."""
BEYOND = 0.5
"""How far a threshold lies beyond the best or the worst score of a row that has no label, or all."""


def best_thresholds(f: Array, relevant: NDArray[np.bool_]) -> Vector:
    """For each row the threshold with the fewest labels on the wrong side, (rows,); the middle of several."""
    rows, labels = f.shape
    order = np.argsort(-f, axis=1, kind="stable")
    ranked = np.take_along_axis(f, order, axis=1)
    hits = np.cumsum(np.take_along_axis(relevant, order, axis=1), axis=1)
    taken = np.arange(1, labels + 1)
    wrong = np.concatenate([hits[:, -1:], hits[:, -1:] - hits + (taken - hits)], axis=1)
    cuts = np.concatenate(
        [ranked[:, :1] + BEYOND, 0.5 * (ranked[:, 1:] + ranked[:, :-1]), ranked[:, -1:] - BEYOND], axis=1
    )
    best = wrong == wrong.min(axis=1, keepdims=True)
    middle = (best.cumsum(axis=1) > (best.sum(axis=1, keepdims=True) - 1) // 2).argmax(axis=1)
    chosen: Vector = cuts[np.arange(rows), middle]
    return chosen


def threshold_moments(f: Array, relevant: NDArray[np.bool_], weights: Vector | None) -> Array:
    """The sums of which least squares are made, over rows: (n + 1, n + 1), n = labels + 1 (1 where there are many)."""
    columns = [f] if f.shape[1] <= MOST_LABELS else []
    wanted = best_thresholds(f, relevant) if f.shape[0] else np.zeros(0)
    table = np.column_stack([*columns, np.ones(f.shape[0]), wanted])
    moments: Array = table.T @ (table if weights is None else weights[:, None] * table)
    return moments


def fitted_threshold(moments: Array) -> Vector:
    """The coefficients of the scores, then the constant; the smallest where several do equally well."""
    return np.asarray(np.linalg.lstsq(moments[:-1, :-1], moments[:-1, -1], rcond=1e-10)[0], np.float64)


def label_thresholds(f: Array, threshold: Vector) -> Vector:
    """The threshold of each row, (rows,)."""
    return np.asarray(threshold[-1] + (f @ threshold[:-1] if threshold.size > 1 else np.zeros(f.shape[0])))
