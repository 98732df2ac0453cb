"""Linear maps of rows to a few features: x V."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.features._core.rows import blocks, dtype_of
from bmrm.data.matrix import Matrix
from bmrm.problem import InputError


@dataclass(frozen=True, eq=False)
class ProjectionMap:
    """x V, V (features, rank)."""

    directions: NDArray[np.float64]

    @property
    def outputs(self) -> int:
        """As of `Mapped`."""
        return int(self.directions.shape[1])

    def apply(self, X: Matrix) -> Matrix:
        """As of `Mapped`."""
        found = np.empty((X.shape[0], self.outputs), dtype_of(X))
        for place, block in blocks(X):
            found[place] = block @ self.directions
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As of `Mapped`."""
        return dict(vars(self))

    @classmethod
    def from_arrays(cls, section: Mapping[str, Any], inputs: int, arrays: Mapping[str, NDArray[Any]]) -> ProjectionMap:
        """As of `Mapped`."""
        found = cls(arrays["directions"])
        if found.directions.ndim != 2 or len(found.directions) != inputs or found.directions.dtype != np.float64:
            raise InputError(f"its feature map has directions {found.directions.shape} for {inputs} features")
        return found
