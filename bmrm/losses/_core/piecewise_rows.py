"""Values and proximal points of a row, for losses of lines and parabolas in the margin or in the residual.

The proximal point f of z minimises step * loss(f) + 1/2 (f - z)^2. `..._value` and `..._prox` take one row and are
compiled, the latter returns f and its derivative in z; they select rather than branch, so that a loop over rows is
vectorised. `..._points` is the same as `..._prox` for arrays, in NumPy. Where a parabola goes on for ever, its `width`
is infinite. Points are reckoned from the near end of their piece, z or the target, so that neither long steps nor short
ones lose digits; and they stay on the piece that moved them, which rounding of a long step might leave.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses._core.prepared import Array

Points = tuple[Array, Array]


@fast_jit
def linear_margin_value(f, y, reach, positive, negative):  # type: ignore[no-untyped-def]
    """cost(y) max(0, reach - y f), with cost `positive` where y > 0, else `negative`."""
    short = reach - y * f
    return (positive if y > 0.0 else negative) * (0.0 if short <= 0.0 else short)


@fast_jit
def linear_margin_prox(z, step, y, reach, positive, negative):  # type: ignore[no-untyped-def]
    """Towards the kink by step * cost, to the kink itself where that is less far."""
    short, far = reach - y * z, step * (positive if y > 0.0 else negative)
    inside = (short > 0.0) & (short < far)
    moved = z + y * (0.0 if short <= 0.0 else far)
    beyond = (short > 0.0) & (y * moved > reach)
    return y * reach if inside | beyond else moved, 0.0 if inside else 1.0


def linear_margin_points(
    z: Array, step: Array | float, y: Array, reach: float, positive: float, negative: float
) -> Points:
    """As `linear_margin_prox`."""
    short, far = reach - y * z, step * np.where(y > 0.0, positive, negative)
    kept = (short <= 0.0) | (short >= far)
    f = np.where(short <= 0.0, z, np.where(short >= far, y * np.minimum(y * (z + y * far), reach), y * reach))
    return f, np.where(kept, 1.0, 0.0)


@fast_jit
def quadratic_margin_value(f, y, reach, width, scale):  # type: ignore[no-untyped-def]
    """scale (1/2 u^2 up to u = width, linear beyond), u = max(0, reach - y f)."""
    short = reach - y * f
    short = 0.0 if short <= 0.0 else short
    rate = short if short <= width else width
    return scale * rate * (short - 0.5 * rate)


@fast_jit
def quadratic_margin_prox(z, step, y, reach, width, scale):  # type: ignore[no-untyped-def]
    """Towards the reach: u shrinks to u / (1 + step * scale), by step * scale * width at most."""
    short, pull = reach - y * z, step * scale
    rate = 1.0 / (1.0 + pull)
    left = 0.0 if short <= 0.0 else rate * short
    inside = (left > 0.0) & (left <= width)
    moved = z + y * (pull * (left if left <= width else width))
    beyond = (left > width) & (y * moved > reach - width)
    near = reach - (width if beyond else left)
    return y * near if beyond | (inside & (pull > 1.0)) else moved, rate if inside else 1.0


def quadratic_margin_points(
    z: Array, step: Array | float, y: Array, reach: float, width: float, scale: float
) -> Points:
    """As `quadratic_margin_prox`."""
    pull = np.asarray(step * scale)
    left = np.maximum(0.0, reach - y * z) / (1.0 + pull)
    inside = (left > 0.0) & (left <= width)
    moved = z + y * (pull * np.minimum(left, width))
    moved = np.where(left > width, y * np.minimum(y * moved, reach - width), moved)
    return np.where(inside & (pull > 1.0), y * (reach - left), moved), np.where(inside, 1.0 / (1.0 + pull), 1.0)


@fast_jit
def linear_residual_value(f, y, epsilon, above, below):  # type: ignore[no-untyped-def]
    """side max(0, |f - y| - epsilon); side is `above` where f > y."""
    miss = f - y
    over = abs(miss) - epsilon
    return (above if miss > 0.0 else below) * (0.0 if over <= 0.0 else over)


@fast_jit
def linear_residual_prox(z, step, y, epsilon, above, below):  # type: ignore[no-untyped-def]
    """Towards the tube by step * side, to its border where that is less far."""
    miss = z - y
    over, far, border = abs(miss) - epsilon, step * (above if miss > 0.0 else below), epsilon
    inside = (over >= 0.0) & (over < far)
    move = 0.0 if over < 0.0 else far
    move, border = (move, border) if miss > 0.0 else (-move, -border)
    moved, end = z - move, y + border
    beyond = (over >= 0.0) & ((moved < end) if miss > 0.0 else (moved > end))
    return end if inside | beyond else moved, 0.0 if inside else 1.0


def linear_residual_points(
    z: Array, step: Array | float, y: Array, epsilon: float, above: float, below: float
) -> Points:
    """As `linear_residual_prox`."""
    over, sign = np.abs(z - y) - epsilon, np.where(z > y, 1.0, -1.0)
    far = step * np.where(z > y, above, below)
    inside = (over >= 0.0) & (over < far)
    moved, end = z - sign * np.where(over < 0.0, 0.0, far), y + sign * epsilon
    beyond = (over >= 0.0) & (sign * moved < sign * end)
    return np.where(inside | beyond, end, moved), np.where(inside, 0.0, 1.0)


@fast_jit
def quadratic_residual_value(f, y, epsilon, width, above, below):  # type: ignore[no-untyped-def]
    """side (1/2 u^2 up to u = width, linear beyond), u = max(0, |f - y| - epsilon); side is `above` where f > y."""
    miss = f - y
    over = abs(miss) - epsilon
    over = 0.0 if over <= 0.0 else over
    rate = over if over <= width else width
    return (above if miss > 0.0 else below) * rate * (over - 0.5 * rate)


@fast_jit
def quadratic_residual_prox(z, step, y, epsilon, width, above, below):  # type: ignore[no-untyped-def]
    """Towards the tube: u shrinks to u / (1 + step * side), by step * side * width at most."""
    miss = z - y
    over, sign, pull = abs(miss) - epsilon, 1.0 if miss > 0.0 else -1.0, step * (above if miss > 0.0 else below)
    rate = 1.0 / (1.0 + pull)
    left = 0.0 if over <= 0.0 else rate * over
    inside = (over >= 0.0) & (left <= width)
    moved = z - sign * (pull * (left if left <= width else width))
    beyond = (left > width) & (sign * moved < sign * y + (epsilon + width))
    near = epsilon + (width if beyond else left)
    return y + sign * near if beyond | (inside & (pull > 1.0)) else moved, rate if inside else 1.0


def quadratic_residual_points(
    z: Array, step: Array | float, y: Array, epsilon: float, width: float, above: float, below: float
) -> Points:
    """As `quadratic_residual_prox`."""
    over, sign = np.abs(z - y) - epsilon, np.where(z > y, 1.0, -1.0)
    pull = step * np.where(z > y, above, below)
    left = np.maximum(0.0, over) / (1.0 + pull)
    inside = (over >= 0.0) & (left <= width)
    moved, end = z - sign * (pull * np.minimum(left, width)), y + sign * (epsilon + width)
    moved = np.where((left > width) & (sign * moved < sign * end), end, moved)
    f = np.where(inside & (pull > 1.0), y + sign * (epsilon + left), moved)
    return f, np.where(inside, 1.0 / (1.0 + pull), 1.0)
