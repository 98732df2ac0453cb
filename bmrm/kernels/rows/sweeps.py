"""Sums and arrays over rows, generated from the functions of one row of a loss: templates for `specialised`.

They call `value_slope(f, y, *arguments)`, `curvature(f, y, *arguments)` or `prox(z, step, y, *arguments)`, see
`bmrm.losses.base`, and are vectorised where these have no branches. `weights` is empty where all are 1; weight 0 hides
even an infinite loss. Those named `exponential_...` are for functions that take e = exp(exponent(f, y, *arguments))
after f and y.
"""

from __future__ import annotations

import math

from bmrm.kernels.rows.exponential import exponentiate


def sweep(f, y, weights, slope, *arguments):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum."""
    total = 0.0
    if weights.size:
        for i in range(f.size):
            weight = weights[i]
            value, rate = value_slope(f[i], y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
            total += 0.0 if weight == 0.0 else weight * value
            slope[i] = weight * rate
    else:
        for i in range(f.size):
            value, slope[i] = value_slope(f[i], y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
            total += value
    return total


def sweep_along(f, step, y, weights, ts, values, derivatives, *arguments):  # type: ignore[no-untyped-def]
    """Fill `values` and `derivatives` of the sum at `f + t step`, for each t of `ts`."""
    weighted = weights.size > 0
    for k in range(ts.size):
        t, total, derivative = ts[k], 0.0, 0.0
        if weighted:
            for i in range(f.size):
                weight = weights[i]
                value, rate = value_slope(f[i] + t * step[i], y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
                total += 0.0 if weight == 0.0 else weight * value
                derivative += weight * (rate * step[i])
        else:
            for i in range(f.size):
                value, rate = value_slope(f[i] + t * step[i], y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
                total += value
                derivative += rate * step[i]
        values[k], derivatives[k] = total, derivative


def value_of(f, y, *arguments):  # type: ignore[no-untyped-def]
    """The loss of one row."""
    return value_slope(f, y, *arguments)[0]  # type: ignore[name-defined]  # noqa: F821


def values_and_slopes(f, y, values, slopes, *arguments):  # type: ignore[no-untyped-def]
    """Fill `values` and `slopes` of each row."""
    for i in range(f.size):
        values[i], slopes[i] = value_slope(f[i], y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821


def curvatures(f, y, filled, *arguments):  # type: ignore[no-untyped-def]
    """Fill the second derivative of each row."""
    for i in range(f.size):
        filled[i] = curvature(f[i], y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821


def proximal_points(z, step, y, points, changes, *arguments):  # type: ignore[no-untyped-def]
    """Fill the proximal point of each row, and its derivative in z."""
    for i in range(z.size):
        points[i], changes[i] = prox(z[i], step[i], y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821


def exponential_sweep(f, y, weights, slope, *arguments):  # type: ignore[no-untyped-def]
    """As `sweep`."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.size):
        slope[i] = exponent(f[i], y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
    exponentiate(slope)
    for i in range(f.size):
        value, rate = value_slope(f[i], y[i], slope[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
        if weighted:
            weight = weights[i]
            value, rate = (0.0 if weight == 0.0 else weight * value), weight * rate
        total += value
        slope[i] = rate
    return total


def exponential_value_slope(f, y, *arguments):  # type: ignore[no-untyped-def]
    """The loss of one row and its slope, from one exponential."""
    e = math.exp(exponent(f, y, *arguments))  # type: ignore[name-defined]  # noqa: F821
    return value_slope(f, y, e, *arguments)  # type: ignore[name-defined]  # noqa: F821


def exponential_curvature(f, y, *arguments):  # type: ignore[no-untyped-def]
    """The second derivative of one row, from one exponential."""
    e = math.exp(exponent(f, y, *arguments))  # type: ignore[name-defined]  # noqa: F821
    return curvature(f, y, e, *arguments)  # type: ignore[name-defined]  # noqa: F821


def exponential_curvatures(f, y, filled, *arguments):  # type: ignore[no-untyped-def]
    """As `curvatures`."""
    for i in range(f.size):
        filled[i] = exponent(f[i], y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
    exponentiate(filled)
    for i in range(f.size):
        filled[i] = curvature(f[i], y[i], filled[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
