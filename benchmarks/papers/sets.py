"""The data of the studies: those beside the checkout, as the race reads them, and small ones that need no files."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.race import sets
from benchmarks.race.sets import named, shared, signs, with_targets
from bmrm.data.dataset import Dataset
from bmrm.data.generators import Links
from bmrm.data.matrix import Csr

Indices = NDArray[np.int64]
TINY = "breast_cancer"
"""Of scikit-learn: 569 rows, standardised, two classes."""


def load(name: str) -> Dataset:
    """Rows by name.

    A name of the race, `breast_cancer`, `SET=CLASS` for a class (1) against the rest (-1), or `SET~N` for its first N
    singular vectors.
    """
    if "~" in name:
        return _compressed(name)
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
        return Dataset(data.X.of_norm_one(), data.targets)
    norms = np.maximum(np.linalg.norm(data.X, axis=1, keepdims=True), 1e-300)
    return Dataset(data.X / norms, data.targets)


def scipy_of(data: Dataset) -> Any:
    """The rows as SciPy or NumPy has them, with the short indices that scikit-learn wants."""
    if not isinstance(data.X, Csr):
        return data.X
    X = data.X.own.to_scipy()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def with_bias(data: Dataset) -> Dataset:
    """The same with a constant feature 1 behind the others."""
    ones = np.ones((data.rows, 1))
    X = scipy_of(data)
    wide = sparse.hstack([X, ones], "csr") if sparse.issparse(X) else np.hstack([X, ones])
    return Dataset.from_arrays(wide, data.targets.y)


def two_thirds(name: str, seed: int) -> tuple[Dataset, Dataset]:
    """Training and test rows of Euclidean length 1, as the PROBE paper divides its small corpora."""
    data = of_unit_length(load(name))
    train, test = split(data.rows, 2.0 / 3.0, seed)
    return data.select(train), data.select(test)


def mean_norm_squared(data: Dataset) -> float:
    """X of the PROBE paper: the square of the rows' mean Euclidean length."""
    X = scipy_of(data)
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else (X * X).sum(axis=1)
    return float(np.mean(np.sqrt(np.asarray(squares)))) ** 2


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


@named("links", generated=True)
def _links() -> Dataset:
    """The generator's own numbers of rows and objects."""
    data = Links().make()
    return with_targets(data.X, signs(data.targets.y, data.targets.y == data.targets.y.max()))


@lru_cache(maxsize=2)
def _compressed(name: str) -> Dataset:
    """The rows times singular vectors, as the thesis' dense sets."""
    from sklearn.decomposition import TruncatedSVD

    base, _, count = name.partition("~")
    data = load(base)
    X = TruncatedSVD(int(count), random_state=0).fit_transform(scipy_of(data))
    return Dataset.from_arrays(np.ascontiguousarray(X), data.targets.y)


@named("rcv1_small")
def _rcv1_small() -> Dataset:
    """The 1,000 training and the 500 test documents together."""
    parts = [shared(f"rcv1_small.{part}") for part in ("train", "test")]
    columns = max(part.X.shape[1] for part in parts)
    X = sparse.vstack([part.X.with_columns(columns).to_scipy() for part in parts], "csr")  # type: ignore[union-attr]
    y = np.concatenate([part.targets.y for part in parts])
    return Dataset.from_arrays(X, signs(y, y == y.max()))


def _breast_cancer() -> Dataset:
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return with_targets((X - X.mean(axis=0)) / X.std(axis=0), signs(y, y == 1))
