"""Coordinate descent on quadratics with l1 ||w||_1 + l2/2 ||w||^2, and how far a gradient is from what that allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@fast_jit
def violations(gradient: Floats, w: Floats, l1: float, l2: float, out: Floats) -> float:
    """out[j] = the distance from 0 to the subdifferential in w[j]; returns the largest.

    `gradient` is that of the smooth part; the subdifferential is gradient + l2 w + l1 times that of |w|.
    """
    worst = 0.0
    for j in range(w.size):
        z = gradient[j] + l2 * w[j]
        if w[j] > 0.0:
            away = abs(z + l1)
        elif w[j] < 0.0:
            away = abs(z - l1)
        else:
            away = max(abs(z) - l1, 0.0)
        out[j] = away
        worst = max(worst, away)
    return worst


@fast_jit
def gram_sweeps(H: Floats, q: Floats, w: Floats, l1: float, l2: float, goal: float, most: int) -> float:
    """Minimise 1/2 w'Hw + <c, w> + l1 ||w||_1 + l2/2 ||w||^2 coordinate by coordinate, in place.

    Parameters
    ----------
    H : (n, n), symmetric with a positive diagonal.
    q : (n,), H w + c; kept up to date.
    w : (n,).
    goal : stop after a sweep in which no coordinate was farther than this from what its subdifferential allows.
    most : sweeps at most.

    Returns
    -------
    The largest distance that the last sweep met.
    """
    worst = 0.0
    for _ in range(most):
        worst = 0.0
        for j in range(w.size):
            old = w[j]
            diagonal = H[j, j] + l2
            z = diagonal * old - (q[j] + l2 * old)
            size = max(abs(z) - l1, 0.0) / diagonal
            new = size if z > 0.0 else -size
            step = new - old
            if step == 0.0:
                continue
            worst = max(worst, diagonal * abs(step))
            w[j] = new
            row = H[j]
            for k in range(q.size):
                q[k] += step * row[k]
        if worst <= goal:
            break
    return worst
