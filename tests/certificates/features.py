"""Features as users bring them: odd in shape, scale and storage."""

import numpy as np
from scipy.sparse import csr_array

ODD = {
    "duplicate rows": 0.12,
    "duplicate columns": 0.12,
    "constant column": 0.12,
    "zero column": 0.1,
    "zero rows": 0.1,
    "far row": 0.08,
    "collinear": 0.08,
    "offset": 0.1,
}
"""What may be odd, and how often it is."""
WIDEST = 8.0
"""Scales reach from 10^-8 to 10^8."""


def shape_of(rng, rows, wide):
    """The number of features for so many rows: few, or more than rows."""
    return int(rng.integers(rows + 1, rows + 30)) if wide else int(rng.integers(1, 13))


def plain_features(rng, rows, columns):
    """Normal, sparse, whole or one-valued numbers, (rows, columns), and a word for them."""
    kind = rng.choice(["normal", "sparse", "whole", "ones"], p=[0.45, 0.25, 0.15, 0.15])
    X = rng.normal(size=(rows, columns))
    if kind == "whole":
        X = np.round(2.0 * X)
    elif kind == "ones":
        X = (rng.random((rows, columns)) < 0.4).astype(float)
    elif kind == "sparse":
        X *= rng.random((rows, columns)) < 0.3
    return X, str(kind)


def made_odd(rng, X):
    """`X` with some of the oddities, and their names."""
    names = [name for name, share in ODD.items() if rng.random() < share]
    rows, columns = X.shape
    for name in names:
        one, other = rng.integers(rows, size=2), rng.integers(columns, size=2)
        if name == "duplicate rows":
            X[one[0]] = X[one[1]]
            X[: rows // 3] = X[rows - rows // 3 :]
        elif name == "duplicate columns":
            X[:, other[0]] = X[:, other[1]]
        elif name == "constant column":
            X[:, other[0]] = rng.choice([1.0, -0.1, 7.3])
        elif name == "zero column":
            X[:, other[0]] = 0.0
        elif name == "zero rows":
            X[one] = 0.0
        elif name == "far row":
            X[one[0]] *= 10.0 ** rng.uniform(1.0, 4.0)
        elif name == "collinear":
            X[:, other[0]] = X @ rng.normal(size=columns)
        elif name == "offset":
            X[:, other] += 10.0 ** rng.uniform(0.0, 4.0)
    return X, names


def scaled(rng, X):
    """`X` with all or some features in another unit, and a word for it."""
    kind = rng.choice(["none", "all", "some", "each"], p=[0.55, 0.15, 0.15, 0.15])
    columns = X.shape[1]
    factors = np.ones(columns)
    if kind == "all":
        factors[:] = 10.0 ** rng.uniform(-WIDEST, WIDEST)
    elif kind == "some":
        factors[rng.integers(columns)] = 10.0 ** rng.uniform(-WIDEST, WIDEST)
    elif kind == "each":
        factors = 10.0 ** rng.uniform(-WIDEST / 2, WIDEST / 2, size=columns)
    return X * factors, [] if kind == "none" else [f"scale {kind} {factors.min():.0e}..{factors.max():.0e}"]


def stored(rng, X):
    """`X` dense or as sparse rows, in float64 or float32, the numbers that it then holds, and words for it."""
    names = []
    if rng.random() < 0.2:
        X, names = X.astype(np.float32), ["float32"]
    exact = X.astype(np.float64)
    if rng.random() < (0.75 if np.mean(exact != 0.0) < 0.6 else 0.2):
        return csr_array(X), exact, [*names, "csr"]
    return X, exact, names
