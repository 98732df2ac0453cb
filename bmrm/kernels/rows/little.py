"""Steps of Newton's method on little data, each a few compiled calls: bookkeeping would take longer than they do.

For one score per row and Omega = l2/2 ||w||^2. `direction` is the same for all losses; `fall` is
a template for `specialised`, which calls the functions of one row, see `bmrm.losses.base`. X is (rows, dim) in C order;
`weights` and `offset` are empty where all are 1, or 0; `mass` is the sum of the weights.
"""

from __future__ import annotations

import math

import numpy as np

from bmrm.kernels.jit import fast_jit

ARMIJO = 1e-4
"""Least share of the predicted fall of J with which a step is taken."""
CENTRED, CENTRING = 1e-14, 60
"""Sum of the slopes, over the mass, at which the search for a constant ends, and most of its steps."""
FLAT, SEARCHES = 0.2, 30
"""Share of the derivative that may remain after a line search on an envelope, and most trials of one."""
SINGULAR = 1e-15
"""Pivot, as a share of its diagonal, below which a matrix counts as singular."""


@fast_jit
def direction(X, u, h, w, factor, l2, free, enough, a, x, shift, H):  # type: ignore[no-untyped-def]
    """Newton's step where slopes and curvatures of rows are u and h, times `factor`.

    Filled: a = factor X'u; x, the step of w and the constant; shift, that of the scores; H, (dim + 1, dim + 1), spare.

    Parameters
    ----------
    enough : half the squared norm of the gradient over l2 for which no step is wanted.

    Returns
    -------
    The sum of slopes times `factor`, half the squared norm of the gradient over l2, ||a||^2, ||w||^2, <w, x>, ||x||^2,
    and the derivative along the step: 0 without one, and where it is not defined.
    """
    n, d = X.shape
    rows = np.empty(n + 3, np.int64)
    a[:] = 0.0
    rest, used = 0.0, 0
    for i in range(n):
        s = u[i]
        rest += s
        if s != 0.0:
            for j in range(d):
                a[j] += s * X[i, j]
        if h[i] != 0.0:
            rows[used] = i
            used += 1
    rest *= factor
    square, length, gradient = 0.0, 0.0, 0.0
    for j in range(d):
        a[j] *= factor
        v = a[j] + l2 * w[j]
        square += a[j] * a[j]
        length += w[j] * w[j]
        gradient += v * v
        x[j] = -v
    x[d] = -rest
    lacks = 0.5 * gradient / l2
    if lacks <= enough or not lacks < math.inf:
        return rest, lacks, square, length, 0.0, 0.0, 0.0
    H[:] = 0.0
    for k in range(used, used + 3):
        rows[k] = 0
    for k in range(0, used, 4):  # four rows at a time
        p, q, r, s = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        hp, hq = h[p], h[q] if k + 1 < used else 0.0
        hr, hs = h[r] if k + 2 < used else 0.0, h[s] if k + 3 < used else 0.0
        for j in range(d):
            tp, tq, tr, ts = hp * X[p, j], hq * X[q, j], hr * X[r, j], hs * X[s, j]
            for c in range(j + 1):
                H[j, c] += tp * X[p, c] + tq * X[q, c] + tr * X[r, c] + ts * X[s, c]
            H[d, j] += tp + tq + tr + ts
        H[d, d] += hp + hq + hr + hs
    size = d + 1 if free else d
    for j in range(size):  # Cholesky's factor of factor H + l2, in its place
        for k in range(j + 1):
            H[j, k] *= factor
        if j < d:
            H[j, j] += l2
        elif not H[d, d] > 0.0:  # no row is curved: the constant stays
            H[d, d] = 1.0
            x[d] = 0.0
        whole = H[j, j]
        for k in range(j):
            t = H[j, k]
            for c in range(k):
                t -= H[j, c] * H[k, c]
            t /= H[k, k]
            H[j, k] = t
            whole -= t * t
        if not whole > SINGULAR * H[j, j]:
            return rest, lacks, square, length, 0.0, 0.0, 0.0
        H[j, j] = math.sqrt(whole)
        t = x[j]
        for c in range(j):
            t -= H[j, c] * x[c]
        x[j] = t / H[j, j]
    for j in range(size - 1, -1, -1):
        t = x[j]
        for c in range(j + 1, size):
            t -= H[c, j] * x[c]
        x[j] = t / H[j, j]
    if not free:
        x[d] = 0.0
    along, step, fall = 0.0, 0.0, rest * x[d]
    for j in range(d):
        along += w[j] * x[j]
        step += x[j] * x[j]
        fall += (a[j] + l2 * w[j]) * x[j]
    for i in range(n):
        t = x[d]
        for j in range(d):
            t += X[i, j] * x[j]
        shift[i] = t
    return rest, lacks, square, length, along, step, fall


def fall(f, shift, t, most, y, weights, mass, l2, omega, J, slope, there, slopes, curvatures, *arguments):  # type: ignore[no-untyped-def]
    """The loss at f + t shift, for t, t/2, ..., until J has fallen by a share of t `slope`; at most so many.

    Parameters
    ----------
    omega : ||w||^2, <w, x> and ||x||^2, x being the step of w.
    J, slope : at t = 0; inf for the first t.

    Returns
    -------
    t, 0 for none, with J there, the sum of the absolute values of the loss, that of slopes and that of curvatures.
    """
    for _ in range(most):
        total, size, rate, bent = 0.0, 0.0, 0.0, 0.0
        for i in range(f.size):
            score = f[i] + t * shift[i]
            value, first = value_slope(score, y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
            second = curvature(score, y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
            if weights.size:
                weight = weights[i]
                value, first, second = 0.0 if weight == 0.0 else weight * value, weight * first, weight * second
            total += value
            size += abs(value)
            rate += first
            bent += second
            there[i], slopes[i], curvatures[i] = score, first, second
        new = total / mass + 0.5 * l2 * (omega[0] + t * (2.0 * omega[1] + t * omega[2]))
        if new <= J + ARMIJO * t * slope:
            return t, new, size, rate, bent
        t *= 0.5
    return 0.0, J, 0.0, 0.0, 0.0


def advance(z, f, shift, sigma, y, weights, mass, l2, omega, first, b, rise, free, slopes, curvatures, *arguments):  # type: ignore[no-untyped-def]
    """Along a step as far as the Moreau envelope falls, then to the constant at which its slopes sum to 0; in place.

    A template like `fall`, which calls `settled` of `bmrm.kernels.rows.envelopes`.

    Parameters
    ----------
    z, f : scores with and without multipliers over `sigma`.
    shift : of the scores along the step.
    omega : as of `fall`.
    first : the derivative along the step; 0 for no step.
    b, rise, free : the constant, its change along the step, and whether it may move besides.

    Returns
    -------
    How far, the constant, and of the proximal points the sums of the loss and of slope times point.
    """
    n, weighted, searching = z.size, weights.size > 0, first < 0.0
    t, lower, upper, below, above = 1.0 if searching else 0.0, 0.0, math.inf, first, 0.0
    went, trials, centred, least, most, width = 0.0, 0, 0, -math.inf, math.inf, 1.0
    while True:
        value, inner, rate, total, bent = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            weight = weights[i] if weighted else 1.0
            here = z[i] + t * shift[i]
            point, loss, slope, curvature = settled(here, weight, sigma, y[i], *arguments)  # type: ignore[name-defined]  # noqa: F821
            value += loss
            inner += slope * point
            rate += slope * shift[i]
            total += slope
            bent += curvature
            slopes[i], curvatures[i] = slope, curvature
        if searching:
            rate = rate / mass + l2 * (omega[1] + t * omega[2])
            trials += 1
            if abs(rate) > -FLAT * first and trials < SEARCHES:
                if rate < 0.0:
                    lower, below = t, rate
                else:
                    upper, above = t, rate
                if upper == math.inf:
                    t *= 2.0
                else:
                    t = lower + (upper - lower) * min(max(below / (below - above), 0.1), 0.9)
                continue
            for i in range(n):
                z[i] += t * shift[i]
                f[i] += t * shift[i]
            searching, went, t = False, t, 0.0
            b += went * rise
        if not free or abs(total) <= CENTRED * mass or centred == CENTRING:
            return went, b, value, inner
        centred += 1
        least, most = (b, most) if total < 0.0 else (least, b)
        new = b - total / bent if bent > 0.0 else math.nan
        if not least < new < most:
            if most - least < math.inf:
                new = 0.5 * (least + most)
            else:
                new = b + math.copysign(width, -total)
                width *= 4.0
        move = new - b
        if move == 0.0:
            return went, b, value, inner
        b = new
        for i in range(n):
            z[i] += move
            f[i] += move
