"""The proximal point of a row of softmax scores: f with f - z + step (p(f) - e_y) = 0, p the probabilities.

`softmax_prox` takes Newton steps in f, whose Hessian is a diagonal and a rank-one part. The loss is self-concordant
with constant 1 in the spread of a step (Sun & Tran-Dinh, "Generalized self-concordant functions", Mathematical
Programming 178, 2019: nu = 2), so a step of spread b is shortened to log(1 + b) / b. Where that would take long, the
root is found in one number: with t = log sum exp f the shares u = step p solve log u + u = z + step e_y + log step - t,
and t is where they sum to the step. The true class's share is reckoned from the step downwards, so that long steps do
not hide the others.
"""

from __future__ import annotations

import math

import numpy as np

from bmrm.kernels.jit import jit
from bmrm.losses._core.prepared import Array, Positions
from bmrm.losses._core.smooth_rows import ROUNDING, wright

STEPS = 12
"""Newton steps after which a one-dimensional search takes over."""
NEAR = 1.0
"""Range of a step up to which it is taken in full."""
MOST = 1000
"""Most steps of the one-dimensional search, which rounding could otherwise prevent from ending."""
CLOSE = 2e-8
"""Length of a step whose square is rounding."""


@jit
def softmax_value(f, y):  # type: ignore[no-untyped-def]
    """log(sum_k exp(f_k)) - f_y of one row."""
    top = 0
    for k in range(1, f.size):
        top = k if f[k] > f[top] else top
    others = 0.0
    for k in range(f.size):
        others += math.exp(f[k] - f[top]) if k != top else 0.0
    return math.log1p(others) + (f[top] - f[y])


@jit
def softmax_prox(z, step, y, moves, work):  # type: ignore[no-untyped-def]
    """Fill `moves` = z - f; returns the loss at f, and 0.0: a change of z always moves f.

    Parameters
    ----------
    z : the scores, (K,).
    moves : (K,), at first a guess of z - f.
    work : (2, K), overwritten.
    """
    f, shares = work[0], work[1]
    for k in range(f.size):
        f[k] = z[k] - moves[k]
    for _ in range(STEPS):
        top = f[0]
        for k in range(1, f.size):
            top = max(top, f[k])
        others = 0.0
        for k in range(f.size):
            shares[k] = math.exp(f[k] - top)
            others += shares[k] if k != y else 0.0
        mass = others + shares[y]
        inverse = 1.0 / mass
        # The inverse of diag(1 + step p) - step p p' by Sherman and Morrison; sums p / (1 + step p) cannot cancel.
        gone, left = 0.0, 0.0
        for k in range(f.size):
            p = inverse * shares[k]
            rate = 1.0 / (1.0 + step * p)
            d = rate * (f[k] - z[k] + step * (p if k != y else -inverse * others))
            gone += p * d
            left += p * rate
            shares[k], moves[k] = p, d
        along = step * gone / left
        low, high = np.inf, -np.inf
        for k in range(f.size):
            d = moves[k] + along * shares[k] / (1.0 + step * shares[k])
            low, high = min(low, d), max(high, d)
            moves[k] = d
        reach = max(high, -low)
        if reach <= CLOSE:
            return _finished(z, step, y, moves, shares, top + math.log(mass) - f[y])
        wide = high - low
        length = 1.0 if wide <= NEAR else math.log1p(wide) / wide
        for k in range(f.size):
            f[k] -= length * moves[k]
    return _by_one_number(z, step, y, moves)


@jit
def softmax_offset(moves, step, y):  # type: ignore[no-untyped-def]
    """Make moves / step a slope of the loss, p - e_y for probabilities p; minus its conjugate: the entropy of p."""
    others = 0.0
    for k in range(moves.size):
        others += moves[k] if k != y else 0.0
    shrink = step / others if others > step else 1.0
    entropy, rest = 0.0, 0.0
    for k in range(moves.size):
        if k != y:
            moves[k] *= shrink
            rest += moves[k]
            p = moves[k] / step
            entropy -= p * math.log(p) if p > 0.0 else 0.0
    moves[y] = -rest
    lost = rest / step
    return entropy - ((1.0 - lost) * math.log1p(-lost) if lost < 1.0 else 0.0)


@jit
def _finished(z, step, y, moves, shares, loss):  # type: ignore[no-untyped-def]
    """Moves and loss after a last step, by Taylor's series: so the slope keeps the digits of small shares."""
    mean = 0.0
    for k in range(z.size):
        mean += shares[k] * moves[k]
    loss -= mean - moves[y]
    others = 0.0
    for k in range(z.size):
        if k != y:
            moves[k] = step * shares[k] * (1.0 - (moves[k] - mean))
            others += moves[k]
    moves[y] = -others
    return max(0.0, loss), 0.0


@jit
def _by_one_number(z, step, y, moves):  # type: ignore[no-untyped-def]
    """As `softmax_prox`, wherever it begins: Newton steps in t, which rise to the root from below."""
    scale, t, size = math.log(step), z[y], abs(z[y])
    for k in range(z.size):
        t, size = (max(t, z[k] - step) if k != y else t), max(size, abs(z[k]))
    for _ in range(MOST):
        fall = _fall(t - z[y], step)
        own = step * math.exp(-fall)
        over, rate = step * math.expm1(-fall), own / (1.0 + own)
        for k in range(z.size):
            if k != y:
                _, u = wright(z[k] - t + scale)
                moves[k] = u
                over += u
                rate += u / (1.0 + u)
        after = t + over / rate
        if not after > t + ROUNDING * max(abs(t), size):
            break
        t = after
    others = 0.0
    for k in range(z.size):
        others += moves[k] if k != y else 0.0
    moves[y] = -others
    return fall, 0.0


@jit
def _fall(above, step):  # type: ignore[no-untyped-def]
    """The root of fall + step (1 - exp(-fall)) - above, for above >= 0: concave, so Newton steps come from below."""
    fall = max(above - step, above / (1.0 + step))
    for _ in range(MOST):
        after = fall + (above - fall + step * math.expm1(-fall)) / (1.0 + step * math.exp(-fall))
        if not after > fall * (1.0 + ROUNDING):
            return fall
        fall = after
    return fall


def softmax_points(z: Array, step: Array | float, y: Positions) -> Array:
    """The proximal point of each row, (rows, K), by bisection for t; in NumPy and SciPy."""
    from scipy.special import wrightomega

    step = np.broadcast_to(np.asarray(step, np.float64), z.shape[:1])[:, None]
    own = np.zeros(z.shape)
    own[np.arange(len(y)), y] = 1.0
    positive = np.where(step > 0.0, step, 1.0)
    high = z + positive * own + np.log(positive)
    high_t = high.max(axis=1, keepdims=True) - np.log(positive)
    low_t, high_t = high_t - positive, high_t + np.log(z.shape[1])
    for _ in range(200):
        t = 0.5 * (low_t + high_t)
        much = wrightomega(high - t).sum(axis=1, keepdims=True) > positive
        low_t, high_t = np.where(much, t, low_t), np.where(much, high_t, t)
    f: Array = np.where(step > 0.0, z - (wrightomega(high - t) - positive * own), z)
    return f
