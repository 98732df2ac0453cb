"""A penalty that is a sum over blocks of coordinates: value, slope, proximal map and conjugate, block by block.

    Omega(w) = sum_j [ l1_j |w_j| + l2_j/2 (w_j - center_j)^2 + (0 if lower_j <= w_j <= upper_j else inf) ]
               + sum over blocks b of strength_b ||w_b||

A kernel gets the arrays of `BlockPenalty` as a tuple `penalty`. In a block of positive strength there are no bounds,
and l2 is one number, so that all that follows has a closed form. Sums are rounded as they stand (`jit`, not
`fast_jit`): whether a point is in the domain of the conjugate must not depend on who asks.
"""

from __future__ import annotations

import math

import numpy as np

from bmrm.kernels.jit import inlined, jit

SLACK = 1e-14
"""Relative excess of a dual norm over its strength that counts as rounding: a unit vector has length 1 up to it."""
TINY, CLEAR = 1e-200, 1e-9
"""Least square that is compared as it is; and by what share of it sums of squares are less where no more is asked."""


@inlined
def soft(v, threshold):  # type: ignore[no-untyped-def]
    """sign(v) max(|v| - threshold, 0)."""
    if v > threshold:
        return v - threshold
    if v < -threshold:
        return v + threshold
    return 0.0


@jit
def block_length(block, w, penalty):  # type: ignore[no-untyped-def]
    """||w_b||."""
    starts, coordinates = penalty[0], penalty[1]
    largest = 0.0
    for p in range(starts[block], starts[block + 1]):
        largest = max(largest, abs(w[coordinates[p]]))
    if largest == 0.0 or not largest < np.inf:
        return largest
    total = 0.0
    for p in range(starts[block], starts[block + 1]):
        part = w[coordinates[p]] / largest  # squares may overflow or vanish
        total += part * part
    return largest * math.sqrt(total)


@jit
def block_value(block, w, penalty):  # type: ignore[no-untyped-def]
    """The penalty of the block at w, which is the whole vector; +inf outside the bounds."""
    starts, coordinates, strengths, l1, l2, center, lower, upper = penalty
    total = 0.0
    for p in range(starts[block], starts[block + 1]):
        j = coordinates[p]
        x = w[j]
        if x < lower[j] or x > upper[j]:
            return np.inf
        if l1[j] > 0.0:
            total += l1[j] * abs(x)
        if l2[j] > 0.0:
            away = x - center[j]
            total += 0.5 * l2[j] * away * away
    if strengths[block] > 0.0:
        total += strengths[block] * block_length(block, w, penalty)
    return total


@jit
def value(w, penalty):  # type: ignore[no-untyped-def]
    """Omega(w)."""
    total = 0.0
    for block in range(penalty[2].size):
        total += block_value(block, w, penalty)
    return total


@jit
def subgradient(w, penalty, out):  # type: ignore[no-untyped-def]
    """A subgradient at w: |.|, a norm and a bound add nothing where w is 0, or at the bound."""
    starts, coordinates, strengths, l1, l2, center = penalty[:6]
    for block in range(strengths.size):
        length = block_length(block, w, penalty) if strengths[block] > 0.0 else 0.0
        for p in range(starts[block], starts[block + 1]):
            j = coordinates[p]
            x = w[j]
            slope = l2[j] * (x - center[j]) if l2[j] > 0.0 else 0.0
            if x > 0.0:
                slope += l1[j]
            elif x < 0.0:
                slope -= l1[j]
            if length > 0.0:
                slope += strengths[block] * (x / length)
            out[j] = slope


@jit
def line(w, step, t, penalty, values, slopes):  # type: ignore[no-untyped-def]
    """values[k] = Omega(w + t[k] step) and slopes[k] its derivative in t, where 0 and bounds count as of `subgradient`.

    Outside the bounds the value is +inf, and the slope points back inside.
    """
    starts, coordinates, strengths, l1, l2, center, lower, upper = penalty
    values[:] = 0.0
    slopes[:] = 0.0
    for block in range(strengths.size):
        for k in range(t.size):
            at = t[k]
            largest, total, slope = 0.0, 0.0, 0.0
            for p in range(starts[block], starts[block + 1]):
                j = coordinates[p]
                s = step[j]
                x = w[j] + at * s
                if x < lower[j] or x > upper[j]:
                    total = np.inf
                    slope += np.inf if (s > 0.0) == (x > upper[j]) else -np.inf
                    continue
                if l1[j] > 0.0:
                    total += l1[j] * abs(x)
                    slope += l1[j] * s if x > 0.0 else (-l1[j] * s if x < 0.0 else 0.0)
                if l2[j] > 0.0:
                    away = x - center[j]
                    total += 0.5 * l2[j] * away * away
                    slope += l2[j] * away * s
                largest = max(largest, abs(x))
            if strengths[block] > 0.0 and largest > 0.0:
                square, product = 0.0, 0.0
                for p in range(starts[block], starts[block + 1]):
                    j = coordinates[p]
                    x = (w[j] + at * step[j]) / largest
                    square += x * x
                    product += x * step[j]
                length = math.sqrt(square)
                total += strengths[block] * largest * length
                slope += strengths[block] * (product / length)
            values[k] += total
            slopes[k] += slope


@jit
def prox_block(block, v, step, penalty, out):  # type: ignore[no-untyped-def]
    """out_b = argmin over w_b of step * penalty of the block + 1/2 ||w_b - v_b||^2; v and out are whole vectors.

    In a block of positive strength the thresholds of single coordinates come first, then that of the block.
    """
    starts, coordinates, strengths, l1, l2, center, lower, upper = penalty
    first, last = starts[block], starts[block + 1]
    for p in range(first, last):
        j = coordinates[p]
        if lower[j] == upper[j]:
            out[j] = lower[j]
        elif l2[j] > 0.0:
            shrink = 1.0 + step * l2[j]
            x = soft(v[j] + step * l2[j] * center[j], step * l1[j]) / shrink
            out[j] = min(max(x, lower[j]), upper[j])
        else:
            out[j] = min(max(soft(v[j], step * l1[j]), lower[j]), upper[j])
    if strengths[block] > 0.0 and last > first:
        threshold = step * strengths[block] / (1.0 + step * l2[coordinates[first]])
        length = block_length(block, out, penalty)
        factor = 1.0 - threshold / length if length > threshold else 0.0
        for p in range(first, last):
            out[coordinates[p]] *= factor


@jit
def prox(v, step, penalty, out):  # type: ignore[no-untyped-def]
    """Out = argmin over w of step * Omega(w) + 1/2 ||w - v||^2."""
    for block in range(penalty[2].size):
        prox_block(block, v, step, penalty, out)


@jit
def project(w, penalty, out):  # type: ignore[no-untyped-def]
    """The nearest point where Omega is finite; whether it is another one."""
    lower, upper = penalty[6], penalty[7]
    moved = False
    for j in range(w.size):
        out[j] = min(max(w[j], lower[j]), upper[j])
        moved |= out[j] != w[j]
    return moved


@jit
def block_excess(block, v, scale, penalty):  # type: ignore[no-untyped-def]
    """||soft(scale v_b + l2 center_b, l1)||, to be compared with the strength; and the largest |scale v_j| in it."""
    starts, coordinates, _, l1, l2, center = penalty[:6]
    largest, most = 0.0, 0.0
    for p in range(starts[block], starts[block + 1]):
        j = coordinates[p]
        x = scale * v[j]
        if l2[j] > 0.0:
            x += l2[j] * center[j]
        largest = max(largest, abs(x))
        most = max(most, abs(soft(x, l1[j])))
    if most == 0.0 or not most < np.inf:
        return most, largest
    total = 0.0
    for p in range(starts[block], starts[block + 1]):
        j = coordinates[p]
        x = scale * v[j]
        if l2[j] > 0.0:
            x += l2[j] * center[j]
        part = soft(x, l1[j]) / most
        total += part * part
    return most * math.sqrt(total), largest


@jit
def inside(block, v, scale, penalty):  # type: ignore[no-untyped-def]
    """Whether ||scale v_b|| is clearly less than a strength without curvature, as it is of most blocks; no roots."""
    starts, coordinates, strengths, _, l2 = penalty[:5]
    most, total = strengths[block] * strengths[block], 0.0
    if not TINY < most < np.inf or l2[coordinates[starts[block]]] > 0.0:
        return False
    for p in range(starts[block], starts[block + 1]):
        x = v[coordinates[p]]
        total += x * x
    return total * scale * scale <= (1.0 - CLEAR) * most


@jit
def conjugate_block(block, v, penalty):  # type: ignore[no-untyped-def]
    """The maximum over w_b of <v_b, w_b> - penalty of the block; +inf where there is none."""
    starts, coordinates, strengths, l1, l2, center, lower, upper = penalty
    total = 0.0
    if strengths[block] > 0.0:
        if inside(block, v, 1.0, penalty):
            return 0.0
        excess, largest = block_excess(block, v, 1.0, penalty)
        curvature = l2[coordinates[starts[block]]]
        if curvature == 0.0:
            return 0.0 if excess <= strengths[block] + SLACK * (strengths[block] + largest) else np.inf
        for p in range(starts[block], starts[block + 1]):
            j = coordinates[p]
            total -= 0.5 * curvature * center[j] * center[j]
        over = max(0.0, excess - strengths[block])
        return total + 0.5 * over * over / curvature
    for p in range(starts[block], starts[block + 1]):
        j = coordinates[p]
        if l2[j] > 0.0:
            x = soft(v[j] + l2[j] * center[j], l1[j]) / l2[j]
            x = min(max(x, lower[j]), upper[j])
            away = x - center[j]
            total += x * v[j] - l1[j] * abs(x) - 0.5 * l2[j] * away * away
            continue
        if v[j] > l1[j]:
            x = upper[j]
        elif v[j] < -l1[j]:
            x = lower[j]
        else:
            x = min(max(0.0, lower[j]), upper[j])
        if x == 0.0:
            continue
        if not abs(x) < np.inf:
            return np.inf
        total += x * v[j] - l1[j] * abs(x)
    return total


@jit
def conjugate(v, penalty):  # type: ignore[no-untyped-def]
    """Omega*(v) = max over w of <v, w> - Omega(w)."""
    total = 0.0
    for block in range(penalty[2].size):
        total += conjugate_block(block, v, penalty)
        if total == np.inf:
            return total
    return total


@jit
def feasible_block(block, v, penalty):  # type: ignore[no-untyped-def]
    """The largest s in [0, 1] at which the conjugate of the block is finite at s v.

    In a block of strength t that is where ||soft(s v_b, l1)|| = t: a convex increasing function of s, so that Newton's
    steps from s = 1 come down to it. Rounding ends below it.
    """
    starts, coordinates, strengths, l1, l2, _, lower, upper = penalty
    scale = 1.0
    if strengths[block] > 0.0:
        if l2[coordinates[starts[block]]] > 0.0:
            return 1.0
        strength = strengths[block]
        for _ in range(200):
            excess, _largest = block_excess(block, v, scale, penalty)
            if excess <= strength:
                return scale
            rise, taken = 0.0, 0.0
            for p in range(starts[block], starts[block + 1]):
                j = coordinates[p]
                part = soft(scale * v[j], l1[j]) / excess
                rise += part * v[j]
                taken += abs(part) * l1[j]
            after = (strength + taken) / rise  # as excess = scale rise - taken: nothing cancels
            scale = after if 0.0 <= after < scale else scale * (1.0 - 2.0**-52)
        return 0.0
    for p in range(starts[block], starts[block + 1]):
        j = coordinates[p]
        if l2[j] > 0.0:
            continue
        if (v[j] > l1[j] and upper[j] == np.inf) or (v[j] < -l1[j] and lower[j] == -np.inf):
            s = min(scale, l1[j] / abs(v[j]))
            if s * abs(v[j]) > l1[j]:
                s = s * (1.0 - 2.0**-52)
            scale = min(scale, s)
    return scale


@jit
def feasible(v, penalty):  # type: ignore[no-untyped-def]
    """The largest s in [0, 1] with Omega*(s v) finite."""
    scale = 1.0
    for block in range(penalty[2].size):
        if not inside(block, v, scale, penalty):
            scale = min(scale, feasible_block(block, v, penalty))
    return scale


@jit
def distance_block(block, w, v, penalty):  # type: ignore[no-untyped-def]
    """How far v_b is from the subdifferential of the block's penalty at w_b: 0 where w_b is optimal for the slope -v_b.

    w is within its bounds.
    """
    starts, coordinates, strengths, l1, l2, center, lower, upper = penalty
    length = block_length(block, w, penalty) if strengths[block] > 0.0 else 0.0
    if strengths[block] > 0.0 and length == 0.0:
        if inside(block, v, 1.0, penalty):
            return 0.0
        return max(0.0, block_excess(block, v, 1.0, penalty)[0] - strengths[block])
    total = 0.0
    for p in range(starts[block], starts[block + 1]):
        j = coordinates[p]
        x = w[j]
        rest = v[j]
        if l2[j] > 0.0:
            rest -= l2[j] * (x - center[j])
        if length > 0.0:
            rest -= strengths[block] * (x / length)
        low, high = rest - l1[j], rest + l1[j]  # rest less the subdifferential of l1 |.|
        if x > 0.0:
            high = low
        elif x < 0.0:
            low = high
        if x >= upper[j]:  # the normal cone of the bounds adds any positive number
            low = -np.inf
        if x <= lower[j]:
            high = np.inf
        away = low if low > 0.0 else (high if high < 0.0 else 0.0)
        total += away * away
    return math.sqrt(total)


@jit
def slack_at_0(block, v, penalty):  # type: ignore[no-untyped-def]
    """How far v_b may move, in the Euclidean norm, while 0 minimises the block's penalty less <v_b, w_b>.

    Negative where it does not; -inf where 0 is outside the bounds. For screening: the block is 0 in every minimiser
    where minus the slope of the risk is at most this far from v.
    """
    starts, coordinates, strengths, l1, l2, center, lower, upper = penalty
    if strengths[block] > 0.0:
        return strengths[block] - block_excess(block, v, 1.0, penalty)[0]
    slack = np.inf
    for p in range(starts[block], starts[block + 1]):
        j = coordinates[p]
        if lower[j] > 0.0 or upper[j] < 0.0:
            return -np.inf
        x = v[j] + l2[j] * center[j] if l2[j] > 0.0 else v[j]
        if upper[j] > 0.0:
            slack = min(slack, l1[j] - x)
        if lower[j] < 0.0:
            slack = min(slack, l1[j] + x)
    return slack
