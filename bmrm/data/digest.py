"""Digests of rows, independent of their distribution among ranks."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.labels import LabelSets
from bmrm.data.matrix import Csr, Matrix, features_of, plain_matrix
from bmrm.kernels.products import digest

Words = NDArray[np.uint64]
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
WEIGHT, GROUP, TARGET, STRUCTURE, OFFSET = (1 << bit for bit in range(40, 45))
"""Column numbers in the digest beyond those of features."""


def digests(data: Dataset) -> Words:
    """A number per row, from features, targets, weight, group, offset; independent of other rows and of their order."""
    X, targets = data.X, data.targets
    rows = np.zeros(data.rows, np.uint64)
    parts = [(0, data.rows, X)] if features_of(X).resident else features_of(X).parts()
    for start, stop, part in parts:
        _add_features(plain_matrix(features_of(part)), rows[start:stop])
    _add_columns(rows, targets.y, TARGET)
    if targets.weights is not None:
        _add_columns(rows, targets.weights - 1.0, WEIGHT)
    if targets.groups is not None:
        _add_columns(rows, targets.groups, GROUP)
    if targets.structure is not None:
        _add_columns(rows, targets.structure, STRUCTURE)
    if targets.offset is not None:
        _add_columns(rows, targets.offset, OFFSET)
    return rows


def _add_features(X: Matrix, rows: Words) -> None:
    if isinstance(X, Csr):
        values = np.ones(1) if X.values is None else X.values
        digest.sparse(X.indptr, X.indices, _bits(values), rows)
    else:
        digest.dense(_bits(X), rows)


def totals(rows: Words, first: int) -> tuple[int, int]:
    """Two numbers below 2^64: of the rows in any order, and of the rows in their order, numbered from `first`.

    Those of ranks add up, modulo 2^64.
    """
    content, order = digest.totals(rows, first)
    return int(content), int(order)


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array).view(UNSIGNED[array.dtype.itemsize])


def _add_columns(rows: Words, values: Any, column: int) -> None:
    """Add one number per row, or several."""
    if isinstance(values, LabelSets):
        words = np.zeros(values.labels.shape[0], np.uint64)
        digest.dense(_numbers(values.labels).reshape(-1, 1), words)
        sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(words)))
        values = sums[values.indptr[1:]] - sums[values.indptr[:-1]]
    table = _numbers(np.asarray(values))
    table = table[:, None] if table.ndim == 1 else table
    shift = np.arange(column, column + table.shape[1], dtype=np.uint64) * digest.STEP
    digest.dense(np.where(table == 0, np.uint64(0), table + shift), rows)


def _numbers(values: NDArray[Any]) -> Words:
    """A word per value: the bits of a float64 where that is exact, else of an integer; a digest of text."""
    if values.dtype == np.uint64:
        return values
    if values.dtype.kind in "fbiu":
        floats = values.astype(np.float64)
        exact = values.dtype.kind in "fb" or bool((np.abs(floats) < 2.0**53).all())
        return floats.view(np.uint64) if exact else values.astype(np.int64).view(np.uint64)
    if values.dtype.kind in "mM":
        return values.view(np.int64).view(np.uint64)
    known, places = np.unique(values.astype(np.str_), return_inverse=True)
    words = [int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") for text in known]
    return np.array(words, np.uint64)[places.reshape(values.shape)]
