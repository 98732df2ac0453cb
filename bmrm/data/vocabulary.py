"""Features that are text: which column each name has, by a dictionary or by hashing."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Csr
from bmrm.problem import InputError

Ids = NDArray[np.int64]
MOST_HASH_BITS = 30


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The columns of a matrix of named features.

    Attributes
    ----------
    names : of the columns in their order; empty where names are hashed.
    hash_bits : with hashing, names are mapped to 2**hash_bits columns by the CRC-32 of their UTF-8 bytes; collisions
        are possible.
    """

    names: tuple[str, ...] = ()
    hash_bits: int | None = None

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.names) if self.hash_bits is None else 1 << self.hash_bits

    def columns_of(self, names: Sequence[str]) -> Ids:
        """The column of each name, -1 for one that is not known."""
        if self.hash_bits is not None:
            mask = self.size - 1
            return np.array([zlib.crc32(name.encode()) & mask for name in names], np.int64)
        table = {name: column for column, name in enumerate(self.names)}
        return np.array([table.get(name, -1) for name in names], np.int64)

    def arrays(self) -> dict[str, NDArray]:
        """The dictionary as plain arrays for a model file: UTF-8 bytes of all names, and where each ends."""
        text, ends = packed(self.names)
        return {"feature_bytes": text, "feature_ends": ends}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray], hash_bits: int | None) -> Vocabulary:
        """The inverse of `arrays`; InputError for invalid arrays."""
        names = unpacked(arrays["feature_bytes"], arrays["feature_ends"])
        return cls(names, hash_bits)


def packed(names: Sequence[str]) -> tuple[NDArray[np.uint8], Ids]:
    """The UTF-8 bytes of all names, and where each ends."""
    pieces = [name.encode() for name in names]
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    return np.frombuffer(b"".join(pieces), np.uint8), ends


def unpacked(text: NDArray[Any], ends: NDArray[Any]) -> tuple[str, ...]:
    """The inverse of `packed`; InputError for invalid arrays."""
    fits = text.dtype == np.uint8 and ends.dtype == np.int64 and text.ndim == ends.ndim == 1
    borders = [0, *ends.tolist()] if fits else [0]
    if not fits or borders[-1] != text.size or any(b < a for a, b in pairwise(borders)):
        raise InputError("the dictionary of features is damaged")
    content = text.tobytes()
    try:
        return tuple(content[a:b].decode() for a, b in pairwise(borders))
    except UnicodeDecodeError as error:
        raise InputError("the dictionary of features is damaged") from error


@dataclass(frozen=True, eq=False)
class NamedColumns:
    """The names of a matrix's columns, before there is a vocabulary, and how it is to be made.

    Attributes
    ----------
    names : of the columns, all different.
    min_count : number of rows that must have a feature for it to get a column; 1 for all. It has no effect with
        hashing.
    hash_bits : as of `Vocabulary`.
    format : `{name: ..., option: value}`, how to read other files in the same way; refers to no file.
    """

    names: tuple[str, ...]
    min_count: int = 1
    hash_bits: int | None = None
    format: Mapping[str, Any] = field(default_factory=dict)

    def vocabulary(self, counts: Iterable[tuple[Sequence[str], Sequence[int]]]) -> Vocabulary:
        """The columns for features that occur in so many rows of each rank: frequent ones first, then by name."""
        if self.hash_bits is not None:
            return Vocabulary((), self.hash_bits)
        total: dict[str, int] = {}
        for names, numbers in counts:
            for name, number in zip(names, numbers, strict=True):
                total[name] = total.get(name, 0) + number
        kept = [name for name, number in total.items() if number >= self.min_count]
        if not kept:
            raise InputError(f"no feature occurs in {self.min_count} rows, expected a smaller min_count")
        return Vocabulary(tuple(sorted(kept, key=lambda name: (-total[name], name))))


def counts_of(X: Csr) -> list[int]:
    """The number of rows that have each column."""
    counted: list[int] = np.bincount(X.own.indices, minlength=X.columns).tolist()
    return counted


def renumbered(X: Csr, columns: Ids, size: int) -> Csr:
    """The matrix with column j moved to `columns[j]`, left out if -1; equal columns are merged, their values added."""
    X = X.own
    new = columns[X.indices]
    keys = (np.repeat(np.arange(X.rows), np.diff(X.indptr)) * np.int64(size) + new)[new >= 0]
    values = None
    if X.values is not None:
        order = np.argsort(keys, kind="stable")
        values, keys = X.values[new >= 0][order], keys[order]
    else:
        keys = np.sort(keys)  # np.unique would hash, which is many times slower here
    first = np.append(True, keys[1:] != keys[:-1]) if keys.size else np.zeros(0, bool)
    if values is not None and keys.size:
        values = np.add.reduceat(values, np.flatnonzero(first))
    keys = keys[first]
    indptr = np.searchsorted(keys, np.arange(X.rows + 1) * np.int64(size)).astype(np.int64)
    return Csr(indptr, (keys % size).astype(np.int32), values, size)
