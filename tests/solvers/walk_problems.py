"""Rows and scores on which walks along lambda are tried: plain ones, and each with one trouble."""

import numpy as np

RNG = np.random.default_rng(0)


def designs():
    X = RNG.normal(size=(150, 6))
    f = X @ np.array([2.0, -1.0, 0.0, 0.0, 0.5, 0.0]) + RNG.normal(size=150)
    yield "plain", X, f
    yield "duplicates", X[:, [0, 0, 1, 3, 3, 4]], f
    yield "far from 0", X + 50.0, f
    yield "empty columns", np.hstack((X, np.zeros((150, 2)))), f
    yield "separable", X, X[:, 0] + 0.1


TALL = {name: (X, f) for name, X, f in designs()}
WIDE = RNG.normal(size=(30, 200)) + RNG.normal(size=(30, 1))
DESIGNS = TALL | {"wide": (WIDE, WIDE[:, :3].sum(axis=1) + 0.1 * RNG.normal(size=30))}


def targets_of(loss, f):
    """Targets of the loss where the scores are f."""
    if loss == "poisson":
        return np.round(np.exp(np.clip(f, -3.0, 3.0)))
    return f if loss in ("huber", "least_squares") else (f > 0.0).astype(float)
