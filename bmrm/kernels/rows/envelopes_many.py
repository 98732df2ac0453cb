"""Moreau envelopes of losses of several scores, row by row: templates for `specialised`, as `envelopes`.

They call `prox_scores_row`, `settle_scores_row` and `offset_scores_row` of a loss, see `bmrm.losses.base`.
"""

from __future__ import annotations

import numpy as np


def envelope(z, y, weights, sigma, slope, curvature, *arguments):  # type: ignore[no-untyped-def]
    """Fill `slope` = sigma (z - f), and `curvature` with sigma for scores that are free, 0 for the others; (rows, K).

    f is the proximal point: it minimises weight * loss(f) + sigma/2 ||f - z||^2. Returns the sums of weight * loss(f),
    of <slope, f> and of ||f - z||^2. The second is reckoned from the conjugate at the slope: where z is large, f has
    too few digits for the product.
    """
    width, weighted = z.shape[1], weights.size > 0
    moves, free, work = np.zeros(width), np.empty(width), np.empty((2, width))
    total, inner, square = 0.0, 0.0, 0.0
    for i in range(z.shape[0]):
        weight = weights[i] if weighted else 1.0
        step = weight / sigma
        value, _ = prox_scores_row(z[i], step, y[i], moves, work, *arguments)  # type: ignore[name-defined]  # noqa: F821
        settle_scores_row(moves, step, y[i], free)  # type: ignore[name-defined]  # noqa: F821
        if weight > 0.0:
            total += weight * value
            inner += weight * (value - offset_scores_row(moves, step, y[i], *arguments))  # type: ignore[name-defined]  # noqa: F821
        for k in range(width):
            slope[i, k] = sigma * moves[k]
            curvature[i, k] = sigma * free[k]
            square += moves[k] * moves[k]
    return total, inner, square


def envelope_along(z, step, y, weights, sigma, ts, values, derivatives, *arguments):  # type: ignore[no-untyped-def]
    """Fill `values` and `derivatives` of the sum of the envelopes at z + t step, for each t of `ts`."""
    width, weighted = z.shape[1], weights.size > 0
    here, moves, work = np.empty(width), np.zeros(width), np.empty((2, width))
    for j in range(ts.size):
        t, total, square, derivative = ts[j], 0.0, 0.0, 0.0
        for i in range(z.shape[0]):
            weight = weights[i] if weighted else 1.0
            for k in range(width):
                here[k] = z[i, k] + t * step[i, k]
            value, _ = prox_scores_row(here, weight / sigma, y[i], moves, work, *arguments)  # type: ignore[name-defined]  # noqa: F821
            total += 0.0 if weight == 0.0 else weight * value
            for k in range(width):
                square += moves[k] * moves[k]
                derivative += moves[k] * step[i, k]
        values[j] = total + 0.5 * sigma * square
        derivatives[j] = sigma * derivative
