"""The threshold on scores that is best for an F-measure."""

from __future__ import annotations

import numpy as np

from bmrm.problem import Vector


def f_beta_at(y: Vector, f: Vector, weights: Vector | None, beta: float, threshold: float) -> float:
    """F-beta of calling rows positive whose score exceeds `threshold`; 0 where there is no true positive."""
    w = np.ones(len(y)) if weights is None else weights
    called = f > threshold
    hits, alarms, positives = w[called & (y == 1)].sum(), w[called].sum(), w[y == 1].sum()
    return float((1.0 + beta**2) * hits / (beta**2 * positives + alarms)) if hits > 0.0 else 0.0


def best_threshold(y: Vector, f: Vector, weights: Vector | None, beta: float) -> tuple[float, float]:
    """The threshold of largest F-beta, and that F-beta; of several such the one nearest to 0.

    Parameters
    ----------
    y : (rows,) 1 for positive rows, else 0.
    f : (rows,) scores.
    weights : (rows,) or None.
    beta : of `(1 + beta^2) precision recall / (beta^2 precision + recall)`.

    Notes
    -----
    Thresholds lie midway between neighbouring scores, so that rows of one score stay together; and below all.
    """
    w = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    order = np.argsort(-f, kind="stable")
    scores, hits = f[order], np.cumsum((w * (y == 1))[order])
    alarms = np.cumsum(w[order])
    last = np.append(scores[1:] < scores[:-1], True)
    values = (1.0 + beta**2) * hits[last] / np.maximum(beta**2 * hits[-1] + alarms[last], np.finfo(np.float64).tiny)
    edges = scores[last]
    # a score that has no neighbour below: any threshold further down does
    below = np.append(edges[1:], edges[-1] - 2.0 * max(1.0, abs(edges[-1])))
    middles = below + 0.5 * (edges - below)
    # where two scores are neighbours among floats the middle is one of them
    middles = np.where(middles < edges, middles, below)
    inside = (below <= 0.0) & (edges > 0.0)
    thresholds = np.where(inside, 0.0, middles)
    equal = np.flatnonzero(values >= values.max() * (1.0 - 1e-12))
    chosen = equal[np.argmin(np.abs(thresholds[equal]))]
    return float(thresholds[chosen]), float(values[chosen])
