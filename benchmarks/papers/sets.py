"""The data of the studies: those beside the checkout, as the race reads them, and small ones that need no files."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.race import sets
from benchmarks.race.sets import signs, unit_rows, with_targets
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr

Indices = NDArray[np.int64]
TINY = "breast_cancer"
"""Of scikit-learn: 569 rows, standardised, two classes."""


def load(name: str) -> Dataset:
    """Rows by a name of the race, `breast_cancer`, or `SET=CLASS` for a class (1) against the rest (-1)."""
    if name == TINY:
        return _breast_cancer()
    base, _, positive = name.partition("=")
    data = sets.load(base)
    if not positive:
        return data
    y = data.targets.y
    return with_targets(data.X, signs(y, y == float(positive)))


def of_unit_length(data: Dataset) -> Dataset:
    """The same with rows of Euclidean length 1, rows of zeros apart."""
    if isinstance(data.X, Csr):
        return Dataset(unit_rows(data.X), data.targets)
    norms = np.maximum(np.linalg.norm(data.X, axis=1, keepdims=True), 1e-300)
    return Dataset(data.X / norms, data.targets)


def folds(rows: int, parts: int, seed: int) -> list[Indices]:
    """Rows of each part, shuffled, of sizes that differ by one at most."""
    return [np.sort(one) for one in np.array_split(np.random.default_rng(seed).permutation(rows), parts)]


def split(rows: int, share: float, seed: int) -> tuple[Indices, Indices]:
    """Training rows, that share of all, and test rows."""
    order = np.random.default_rng(seed).permutation(rows)
    cut = round(share * rows)
    return np.sort(order[:cut]), np.sort(order[cut:])


def without(rows: int, left_out: Indices) -> Indices:
    """The other rows."""
    return np.setdiff1d(np.arange(rows), left_out)


def _breast_cancer() -> Dataset:
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return with_targets((X - X.mean(axis=0)) / X.std(axis=0), signs(y, y == 1))
