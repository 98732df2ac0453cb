"""Moreau envelopes of losses of one score, row by row: templates for `specialised`. `weights` is empty where all are 1.

`settled`, which the others call, is `smooth` or `kinked`. These call `prox_row(z, step, y, *arguments)`, which returns
the proximal point f and its derivative in z, and `value_slope(f, y, *arguments)`. All are vectorised where these have
no branches.

A bound takes slope * f minus the loss at f for the conjugate at the slope. It is less than that where the slope is not
one of the loss at f, and in rows of little weight z - f may be all rounding.
"""

from __future__ import annotations

DIGITS = 4e-15
"""Rounding of z - f, as a share of |z| + |f|, within which a slope is that of the loss at f."""
STILL = 1e-6
"""An envelope's curvature, as a share of sigma, below which it is taken from the loss: as sigma times 1 minus the
derivative of f it has less than 10 digits."""


def smooth(z, weight, sigma, y, *arguments):  # type: ignore[no-untyped-def]
    """The proximal point f, the loss there, weight inside, the slope sigma (z - f), and its derivative in z.

    f minimises weight * loss(f) + sigma/2 (f - z)^2. The slope is that of the loss itself where the two are the same
    but for rounding, or f moves more than half as far as z.
    """
    f, change = prox_row(z, weight / sigma, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
    value, rate = value_slope(f, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
    left, rate = sigma * (z - f), weight * rate
    within = (abs(rate - left) <= sigma * (DIGITS * (abs(z) + abs(f)))) | (change > 0.5)
    slope = rate if within else left
    return f, weight * value if weight else 0.0, slope if weight else 0.0, sigma * (1.0 - change)


def kinked(z, weight, sigma, y, *arguments):  # type: ignore[no-untyped-def]
    """As `smooth`, without its last case. At a kink, where f does not move, the slope is at most as steep as at z."""
    f, change = prox_row(z, weight / sigma, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
    value, rate = value_slope(f, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
    _, steep = value_slope(z, y, *arguments)  # type: ignore[name-defined]  # noqa: F821
    left, rate, steep = sigma * (z - f), weight * rate, weight * steep
    within = abs(rate - left) <= sigma * (DIGITS * (abs(z) + abs(f)))
    left = steep if (change <= 0.0) & (abs(left) > abs(steep)) else left
    slope = rate if within else left
    return f, weight * value if weight else 0.0, slope if weight else 0.0, sigma * (1.0 - change)


def envelope(z, y, weights, sigma, slope, curvature, *arguments):  # type: ignore[no-untyped-def]
    """Fill `slope` as of `settled`, and `curvature` with its derivative in z.

    Returns the sums of weight * loss(f), of slope * f and of (f - z)^2.
    """
    total, inner, square = 0.0, 0.0, 0.0
    weighted = weights.size > 0
    for i in range(z.size):
        weight = weights[i] if weighted else 1.0
        f, value, rate, bent = settled(z[i], weight, sigma, y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
        slope[i], curvature[i] = rate, bent
        total += value
        inner += rate * f
        square += (z[i] - f) * (z[i] - f)
    return total, inner, square


def refined(z, y, weights, sigma, slopes, curvatures, *arguments):  # type: ignore[no-untyped-def]
    """Take little `curvatures` of an envelope from the loss. It calls `curvature(f, y, *arguments)`."""
    weighted = weights.size > 0
    for i in range(z.size):
        weight, bent = weights[i] if weighted else 1.0, curvatures[i]
        if bent <= STILL * sigma and weight != 0.0:
            own = curvature(z[i] - slopes[i] / sigma, y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
            curvatures[i] = weight * own * (1.0 - bent / sigma)


def envelope_along(z, step, y, weights, sigma, ts, values, derivatives, *arguments):  # type: ignore[no-untyped-def]
    """Fill `values` and `derivatives` of the sum of the envelopes at z + t step, for each t of `ts`."""
    weighted = weights.size > 0
    for k in range(ts.size):
        t, total, square, derivative = ts[k], 0.0, 0.0, 0.0
        for i in range(z.size):
            weight = weights[i] if weighted else 1.0
            here = z[i] + t * step[i]
            f, value, rate, _ = settled(here, weight, sigma, y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
            total += value
            square += (here - f) * (here - f)
            derivative += rate * step[i]
        values[k] = total + 0.5 * sigma * square
        derivatives[k] = derivative
