"""What a feature map is fitted to: rows of this rank, and what it may ask of those of all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Csr, Matrix, part_of
from bmrm.problem import Vector

BLOCK = 4096
"""Rows that are mapped at once."""


class AllRows(Protocol):
    """The training rows of all ranks; methods are collective."""

    @property
    def X(self) -> Matrix:
        """Those of this rank."""
        ...

    @property
    def total(self) -> int:
        """How many there are."""
        ...

    def drawn(self, count: int, seed: int) -> Matrix:
        """So many of them, or all: the same for the same seed, whatever their order and wherever they are."""
        ...

    def of_largest(self, values: Vector, beside: NDArray[np.float64]) -> tuple[float, Vector, NDArray[np.float64]]:
        """The largest value, its row as a dense vector, and its column of `beside`, (numbers, rows).

        `values` has one of each row of this rank.
        """
        ...

    def sum(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """The elementwise sum over ranks."""
        ...


class Mapped(Protocol):
    """A map that is fitted: a frozen dataclass."""

    @property
    def outputs(self) -> int:
        """How many features it makes."""
        ...

    def apply(self, X: Matrix) -> Matrix:
        """Of rows with the features that it was fitted to."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For the model file; InputError where the map cannot be in one."""
        ...

    @classmethod
    def from_arrays(cls, section: Mapping[str, Any], inputs: int, arrays: Mapping[str, NDArray[Any]]) -> Mapped:
        """The inverse, for the options of the map; InputError or KeyError where they are damaged."""
        ...


@runtime_checkable
class Features(Protocol):
    """A frozen dataclass of options."""

    def numbers(self, X: Matrix) -> int:
        """How many, at most, are stored of what is made of these rows; 0 where that is not known."""
        ...

    def fitted(self, rows: AllRows) -> tuple[Mapped, Matrix]:
        """Collective: the map, and what it makes of the rows of this rank."""
        ...


def blocks(X: Matrix) -> Any:
    """(place, rows) of a matrix, block by block, as scikit-learn takes them."""
    for start in range(0, X.shape[0], BLOCK):
        stop = min(start + BLOCK, X.shape[0])
        yield slice(start, stop), plain(part_of(X, start, stop))


def plain(X: Matrix) -> Any:
    """As scikit-learn takes it."""
    if isinstance(X, Csr):
        from scipy.sparse import csr_matrix

        found = csr_matrix(X.to_scipy())
        if found.nnz <= np.iinfo(np.int32).max:  # some kernels take no others
            found.indptr, found.indices = (part.astype(np.int32) for part in (found.indptr, found.indices))
        return found
    return X


def dtype_of(X: Matrix) -> Any:
    """Of what is made of such rows: float32 stays float32."""
    return np.float32 if X.dtype == np.float32 else np.float64
