"""Full rows: an array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix.features import (
    Array,
    Features,
    Places,
    blocks_of,
    pieces,
    squares_differ,
    units_of,
    weighted_square,
)
from bmrm.problem import Check, Vector, unchecked
from bmrm.problem.meter import FULL_SPEED

if TYPE_CHECKING:
    from bmrm.data.matrix.products import Products

LONGEST = 1_000_000
"""Narrow rows between two checks of the clock: about a tenth of a second."""
NARROW = 24
"""Most columns for which our kernel is faster than BLAS: measured."""
BYTES = 1 << 20
"""Bytes of absolute values that are held at once."""


@dataclass(frozen=True, eq=False)
class Dense(Features):
    """The rows of a C-contiguous float32 or float64 array."""

    array: NDArray[Any]
    resident = True

    @property
    def shape(self) -> tuple[int, int]:
        """As of `Features`."""
        return int(self.array.shape[0]), int(self.array.shape[1])

    @property
    def nnz(self) -> int:
        """As of `Features`."""
        return int(self.array.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """As of `Features`."""
        return self.array.dtype

    @property
    def described(self) -> str:
        """As of `Features`."""
        return f"dense {self.dtype}"

    @property
    def longest_row(self) -> int:
        """As of `Features`."""
        return self.shape[1]

    @property
    def table(self) -> NDArray[Any]:  # type: ignore[override]
        """As of `Features`."""
        return self.array

    def part(self, start: int, stop: int) -> Dense:
        """As of `Features`."""
        return Dense(self.array[start:stop])

    def select(self, rows: NDArray[np.integer[Any]], check: Check = unchecked) -> Dense:
        """As of `Features`."""
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        for some in pieces(len(out), out.size, check):
            np.take(self.array, rows[some], axis=0, out=out[some], mode="clip")
        return Dense(out)

    def block(self, rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """As of `Features`."""
        found: NDArray[Any] = self.array[rows]
        return found

    def arrays(self) -> Iterator[NDArray[Any]]:
        """As of `Features`."""
        yield self.array

    def products(self, scores_per_row: int) -> Products:
        """As of `Features`."""
        from bmrm.data.matrix.products import DenseManyProducts, DenseProducts

        return (DenseProducts if scores_per_row == 1 else DenseManyProducts)(self.array)

    def gram(self, weights: Vector, kept: Places | None, check: Check) -> tuple[Array, Vector | None]:
        """As of `Features`."""
        from bmrm.kernels.products import csr, gram, gram_dense

        X, size = self.array, self.shape[1] if kept is None else kept.size
        raw, sums, active = np.zeros((size, size)), None, csr.active_rows(weights)
        if kept is None and size <= NARROW:
            sums = np.zeros(size)
            for first in range(0, active.size, LONGEST):
                check()
                gram_dense.add_gram(X, weights, active[first : first + LONGEST], raw, sums)
        else:
            for rows in blocks_of(active, self.shape[1]):
                check()
                # A slice of the rows is a view, a list of them a copy.
                near = slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] + 1 == rows.size else rows
                chosen = X[near] if kept is None else X[near][:, kept]
                raw += weighted_square(np.asarray(chosen, np.float64), weights[near])
        gram.mirror(raw)
        return raw, sums

    def full_columns(self, kept: Places) -> Array:
        """As of `Features`."""
        return np.asarray(self.array[:, kept], np.float64)

    def gram_work(self, weights: Vector, share: float) -> float:
        """As of `Features`."""
        width = share * float(self.shape[1])
        return float(np.count_nonzero(weights)) * width * (width + 1.0) / 2.0 / FULL_SPEED

    def squared(self, shift: Vector | None = None) -> Dense:
        """As of `Features`."""
        exact = np.asarray(self.array, np.float64)
        return Dense(np.asarray(exact if shift is None else exact - shift) ** 2)

    def absolute_parts(self) -> Iterator[tuple[int, int, Dense]]:
        """As of `Features`: one array for all parts, since the pages of fresh ones cost more than what is computed."""
        X, width = self.array, self.shape[1]
        kept = np.empty((max(1, BYTES // max(1, width * X.itemsize)), width), X.dtype)
        for start, stop in self.ranges(len(kept)):
            yield start, stop, Dense(np.abs(X[start:stop], out=kept[: stop - start]))

    def times(self, factors: Vector) -> Dense:
        """As of `Features`."""
        return Dense(self.array * factors)

    def less(self, shift: Vector) -> Dense:
        """As of `Features`."""
        return Dense((self.array - shift).astype(self.dtype))

    def of_norm_one(self) -> Dense:
        """As of `Features`."""
        sizes = np.abs(self.array).max(axis=1, initial=0.0).astype(np.float64)
        table = self.array / units_of(sizes)[:, None] if squares_differ(sizes) else self.array
        norms = np.sqrt(np.einsum("ij,ij->i", table, table, dtype=np.float64))
        return Dense((table / np.where(norms > 0.0, norms, 1.0)[:, None]).astype(self.dtype))

    def everywhere(self) -> NDArray[np.bool_]:
        """As of `Features`."""
        return np.ones(self.shape[1], bool)

    def touched(self, rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        """As of `Features`."""
        return np.asarray(np.count_nonzero(self.array[rows], axis=0), np.int64)

    def largest(self) -> Vector:
        """As of `Features`."""
        return np.asarray(np.abs(self.array).max(axis=0, initial=0.0), np.float64)

    def ends(self, chosen: NDArray[np.bool_]) -> tuple[Vector, Vector]:
        """As of `Features`."""
        table = self.array[:, chosen]
        return table.max(axis=0, initial=-np.inf), table.min(axis=0, initial=np.inf)

    def squares_around(self, mean: Vector, weights: Vector, units: Vector) -> Vector:
        """As of `Features`."""
        total, middle = np.zeros(self.shape[1]), mean / units
        for start, stop in self.ranges(4096):
            total += weights[start:stop] @ (self.array[start:stop] / units - middle) ** 2
        return total

    def far_entry(self) -> tuple[int, int, float] | None:
        """As of `Features`."""
        values = self.array.reshape(-1)
        with np.errstate(over="ignore"):
            if self.dtype == np.float32 or np.isfinite(values @ values):
                return None
        at = int(np.argmax(np.abs(values)))
        return at // self.shape[1], at % self.shape[1], float(values[at])

    def mean_norm(self, few: Places, scale: Vector | None) -> float:
        """As of `Features`; squares that overflow are avoided."""
        entries = self.array[few].astype(np.float64) * (1.0 if scale is None else scale)
        largest = float(np.abs(entries).max(initial=0.0)) or 1.0
        norms = np.sqrt(((entries / largest) ** 2).sum(axis=1))
        return largest * float(norms.mean())

    def compact(self) -> tuple[Array, NDArray[np.integer[Any]] | slice]:
        """As of `Features`."""
        return np.asarray(self.array, np.float64), slice(None)

    def tiny(self) -> list[Features]:
        """As of `Features`."""
        return [Dense(np.ones((2, 2), self.dtype))]
