"""Moreau envelopes of losses of one score, row by row.

Templates for `specialised`, vectorised where the functions they call have no branches. They call
`prox_row(z, step, y, *arguments)`, which returns the proximal point f and its derivative in z, and
`value_row(f, y, *arguments)`. `weights` is empty where all are 1.
"""

from __future__ import annotations


def envelope(z, y, weights, sigma, slope, curvature, *arguments):  # type: ignore[no-untyped-def]
    """Fill `slope` = sigma (z - f) and `curvature` = its derivative in z.

    f is the proximal point: it minimises weight * loss(f) + sigma/2 (f - z)^2. Returns the sums of weight * loss(f), of
    slope * f and of (f - z)^2.
    """
    total, inner, square = 0.0, 0.0, 0.0
    weighted = weights.size > 0
    for i in range(z.size):
        weight = weights[i] if weighted else 1.0
        f, change = prox_row(z[i], weight / sigma, y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
        away = z[i] - f
        slope[i] = sigma * away
        curvature[i] = sigma * (1.0 - change)
        value = value_row(f, y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
        total += 0.0 if weight == 0.0 else weight * value
        inner += sigma * away * f
        square += away * away
    return total, inner, square


def envelope_along(z, step, y, weights, sigma, ts, values, derivatives, *arguments):  # type: ignore[no-untyped-def]
    """Fill `values` and `derivatives` of the sum of the envelopes at z + t step, for each t of `ts`."""
    weighted = weights.size > 0
    for k in range(ts.size):
        t, total, square, derivative = ts[k], 0.0, 0.0, 0.0
        for i in range(z.size):
            weight = weights[i] if weighted else 1.0
            here = z[i] + t * step[i]
            f, _ = prox_row(here, weight / sigma, y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
            away = here - f
            value = value_row(f, y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
            total += 0.0 if weight == 0.0 else weight * value
            square += away * away
            derivative += away * step[i]
        values[k] = total + 0.5 * sigma * square
        derivatives[k] = sigma * derivative
