"""Compiled functions of one row, for losses of lines and parabolas in the margin or in the residual.

The proximal point f of z minimises step * loss(f) + 1/2 (f - z)^2; `..._prox` returns it and its derivative in z. All
select rather than branch, so that a loop over rows is vectorised. Where a parabola goes on for ever, its `width` is
infinite. Points are reckoned from the near end of their piece, z or the target, so that neither long steps nor short
ones lose digits; and they stay on the piece that moved them, which rounding of a long step might leave.
"""

from __future__ import annotations

from bmrm.kernels.jit import inlined

ZERO_IS_BEST = "scores of 0 cost nothing, so weights of 0 are optimal with any intercept"


@inlined
def linear_margin_prox(z: float, step: float, y: float, reach: float, cost: float) -> tuple[float, float]:
    """Of cost max(0, reach - y f): towards the kink by step * cost, to the kink itself where that is less far."""
    short, far = reach - y * z, step * cost
    inside = (short > 0.0) & (short < far)
    moved = z + y * (0.0 if short <= 0.0 else far)
    beyond = (short > 0.0) & (y * moved >= reach)
    kink = inside | (beyond & (short > far))
    return y * reach if inside | beyond else moved, 0.0 if kink else 1.0


@inlined
def quadratic_margin(f: float, y: float, reach: float, width: float, scale: float) -> tuple[float, float]:
    """scale (1/2 u^2 up to u = width, linear beyond), u = max(0, reach - y f); its slope in f."""
    short = reach - y * f
    short = 0.0 if short <= 0.0 else short
    rate = short if short <= width else width
    return scale * (rate * (short - 0.5 * rate)), -y * rate * scale


@inlined
def quadratic_margin_prox(
    z: float, step: float, y: float, reach: float, width: float, scale: float
) -> tuple[float, float]:
    """Towards the reach: u shrinks to u / (1 + step * scale), by step * scale * width at most."""
    short, pull = reach - y * z, step * scale
    rate = 1.0 / (1.0 + pull)
    left = 0.0 if short <= 0.0 else rate * short
    inside = (left > 0.0) & (left <= width)
    moved = z + y * (pull * (left if left <= width else width))
    beyond = (left > width) & (y * moved > reach - width)
    near = reach - (width if beyond else left)
    return y * near if beyond | (inside & (pull > 1.0)) else moved, rate if inside else 1.0


@inlined
def linear_residual(f: float, y: float, epsilon: float, above: float, below: float) -> tuple[float, float]:
    """side max(0, |f - y| - epsilon), side is `above` where f > y; its slope in f."""
    miss = f - y
    over = abs(miss) - epsilon
    rate = 0.0 if over <= 0.0 else (above if miss > 0.0 else below)
    return rate * (0.0 if over <= 0.0 else over), rate if miss > 0.0 else -rate


@inlined
def linear_residual_prox(
    z: float, step: float, y: float, epsilon: float, above: float, below: float
) -> tuple[float, float]:
    """Towards the tube by step * side, to its border where that is less far."""
    miss = z - y
    over, far, border = abs(miss) - epsilon, step * (above if miss > 0.0 else below), epsilon
    inside = (over >= 0.0) & (over < far)
    move = 0.0 if over < 0.0 else far
    move, border = (move, border) if miss > 0.0 else (-move, -border)
    moved, end = z - move, y + border
    beyond = (over >= 0.0) & ((moved <= end) if miss > 0.0 else (moved >= end))
    kink = inside | (beyond & (over > far) & (far > 0.0))
    return end if inside | beyond else moved, 0.0 if kink else 1.0


@inlined
def quadratic_residual(
    f: float, y: float, epsilon: float, width: float, above: float, below: float
) -> tuple[float, float]:
    """side (1/2 u^2 up to u = width, linear beyond), u = max(0, |f - y| - epsilon); its slope in f.

    `side` is `above` where f > y.
    """
    miss = f - y
    over = abs(miss) - epsilon
    over = 0.0 if over <= 0.0 else over
    rate = over if over <= width else width
    side = above if miss > 0.0 else below
    return side * (rate * (over - 0.5 * rate)), side * (rate if miss > 0.0 else -rate)


@inlined
def quadratic_residual_prox(
    z: float, step: float, y: float, epsilon: float, width: float, above: float, below: float
) -> tuple[float, float]:
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
