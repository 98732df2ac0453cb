"""Compiled sweeps that several losses share: pieces of lines and parabolas in the margin or in the residual.

Each sweep comes twice: `..._kernel` fills `slope` and returns the sum, `..._along` fills `values` and `derivatives` of
the sum at `f + t step`, for each t of `ts`. Where a parabola goes on for ever, its `width` is infinite.
"""

from __future__ import annotations

from bmrm.kernels.jit import fast_jit


@fast_jit
def linear_margin_kernel(f, y, weights, slope, reach, positive, negative):  # type: ignore[no-untyped-def]
    """cost(y) max(0, reach - y f), with cost `positive` where y > 0, else `negative`."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.size):
        short = reach - y[i] * f[i]
        rate = 0.0 if short <= 0.0 else (positive if y[i] > 0.0 else negative)
        if weighted:
            rate *= weights[i]
        total += rate * (0.0 if short <= 0.0 else short)
        slope[i] = -y[i] * rate
    return total


@fast_jit
def linear_margin_along(f, step, y, weights, ts, values, derivatives, reach, positive, negative):  # type: ignore[no-untyped-def]
    """As `linear_margin_kernel`, along a step."""
    weighted = weights.size > 0
    for k in range(ts.size):
        t, total, derivative = ts[k], 0.0, 0.0
        for i in range(f.size):
            short = reach - y[i] * (f[i] + t * step[i])
            rate = 0.0 if short <= 0.0 else (positive if y[i] > 0.0 else negative)
            if weighted:
                rate *= weights[i]
            total += rate * (0.0 if short <= 0.0 else short)
            derivative -= rate * (y[i] * step[i])
        values[k], derivatives[k] = total, derivative


@fast_jit
def quadratic_margin_kernel(f, y, weights, slope, reach, width, scale):  # type: ignore[no-untyped-def]
    """scale (1/2 u^2 up to u = width, linear beyond), u = max(0, reach - y f)."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.size):
        short = reach - y[i] * f[i]
        short = 0.0 if short <= 0.0 else short
        rate = short if short <= width else width
        loss = rate * (short - 0.5 * rate)
        if weighted:
            loss *= weights[i]
            rate *= weights[i]
        total += loss
        slope[i] = -y[i] * rate * scale
    return scale * total


@fast_jit
def quadratic_margin_along(f, step, y, weights, ts, values, derivatives, reach, width, scale):  # type: ignore[no-untyped-def]
    """As `quadratic_margin_kernel`, along a step."""
    weighted = weights.size > 0
    for k in range(ts.size):
        t, total, derivative = ts[k], 0.0, 0.0
        for i in range(f.size):
            short = reach - y[i] * (f[i] + t * step[i])
            short = 0.0 if short <= 0.0 else short
            rate = short if short <= width else width
            loss = rate * (short - 0.5 * rate)
            if weighted:
                loss *= weights[i]
                rate *= weights[i]
            total += loss
            derivative -= rate * (y[i] * step[i])
        values[k], derivatives[k] = scale * total, scale * derivative


@fast_jit
def quadratic_residual_kernel(f, y, weights, slope, epsilon, width, above, below):  # type: ignore[no-untyped-def]
    """side (1/2 u^2 up to u = width, linear beyond), u = max(0, |f - y| - epsilon); side is `above` where f > y."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.size):
        miss = f[i] - y[i]
        over = abs(miss) - epsilon
        over = 0.0 if over <= 0.0 else over
        rate = over if over <= width else width
        side = above if miss > 0.0 else below
        if weighted:
            side *= weights[i]
        total += side * (rate * (over - 0.5 * rate))
        slope[i] = side * (rate if miss > 0.0 else -rate)
    return total


@fast_jit
def quadratic_residual_along(f, step, y, weights, ts, values, derivatives, epsilon, width, above, below):  # type: ignore[no-untyped-def]
    """As `quadratic_residual_kernel`, along a step."""
    weighted = weights.size > 0
    for k in range(ts.size):
        t, total, derivative = ts[k], 0.0, 0.0
        for i in range(f.size):
            miss = f[i] + t * step[i] - y[i]
            over = abs(miss) - epsilon
            over = 0.0 if over <= 0.0 else over
            rate = over if over <= width else width
            side = above if miss > 0.0 else below
            if weighted:
                side *= weights[i]
            total += side * (rate * (over - 0.5 * rate))
            derivative += side * ((rate if miss > 0.0 else -rate) * step[i])
        values[k], derivatives[k] = total, derivative
