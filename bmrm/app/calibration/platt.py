"""Platt's sigmoid: logistic regression in one feature, the score, on smoothed targets.

Platt, "Probabilistic outputs for support vector machines", 1999; Newton's method of Lin, Lin & Weng, "A note on Platt's
probabilistic outputs for support vector machines", Machine Learning 68, 2007. Since no target is 0 or 1, the minimum is
attained whatever the scores are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Vector

STEPS = 100
"""Newton steps at most; ten are many."""
ENOUGH = 1e-14
"""Decrease of the mean log-loss, as Newton's model promises it, below which no more is looked for: some 50 roundoffs of
a loss of 1."""
RIDGE = 1e-12
"""Share of the curvature in the scores that is added to it: equal scores tell no slope."""
HALVINGS = 60


def smoothed(positive: NDArray[np.bool_], weights: Vector) -> Vector:
    """The targets of rows: (P + 1) / (P + 2) of positive ones, 1 / (N + 2) of others, P and N their weights."""
    of_positive, of_others = weights[positive].sum(), weights[~positive].sum()
    found: Vector = np.where(positive, (of_positive + 1.0) / (of_positive + 2.0), 1.0 / (of_others + 2.0))
    return found


def fitted_line(f: Vector, positive: NDArray[np.bool_], weights: Vector) -> Vector:
    """Slope a and offset b that minimise the log loss of 1 / (1 + exp(-(a f + b))) on smoothed targets; (2,)."""
    target, center = smoothed(positive, weights), float(weights @ f / weights.sum())
    unit = float(np.abs(f - center).max()) or 1.0
    z = (f - center) / unit
    share = float(weights @ target / weights.sum())
    line = np.array([0.0, np.log(share / (1.0 - share))])
    value = _loss(line, z, target, weights)
    for _ in range(STEPS):
        p = _probability(line[0] * z + line[1])
        rest, curvature = weights * (p - target), weights * p * (1.0 - p)
        gradient = np.array([rest @ z, rest.sum()])
        mixed = curvature @ z
        hessian = np.array([[curvature @ (z * z) + RIDGE * weights.sum(), mixed], [mixed, curvature.sum()]])
        step = np.linalg.solve(hessian, -gradient)
        promised = -float(gradient @ step)
        if not promised > ENOUGH * weights.sum():
            break
        t = 1.0
        for _ in range(HALVINGS):
            there = _loss(line + t * step, z, target, weights)
            if there <= value - 1e-4 * t * promised:
                break
            t *= 0.5
        else:
            break
        line, value = line + t * step, there
    return np.array([line[0] / unit, line[1] - line[0] * center / unit])


def _loss(line: Vector, z: Vector, target: Vector, weights: Vector) -> float:
    f = line[0] * z + line[1]
    return float(weights @ (np.maximum(f, 0.0) - target * f + np.log1p(np.exp(-np.abs(f)))))


def _probability(f: Vector) -> Vector:
    e = np.exp(-np.abs(f))
    found: Vector = np.where(f >= 0.0, 1.0, e) / (1.0 + e)
    return found


def on_line(line: Vector, f: Vector) -> Vector:
    """1 / (1 + exp(-(a f + b))) for the line (a, b)."""
    return _probability(line[0] * f + line[1])
