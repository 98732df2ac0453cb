"""Random Fourier features of the kernel rbf: Rahimi & Recht, NIPS 2007."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.features import register
from bmrm.data.features._core.rows import AllRows, blocks, dtype_of
from bmrm.data.matrix import Matrix
from bmrm.problem import InputError, Vector
from bmrm.registry import check_parameters, parameter


@dataclass(frozen=True, eq=False)
class FourierMap:
    """sqrt(2 / rank) cos(x V + b), V (features, rank), b (rank,)."""

    frequencies: NDArray[np.float64]
    offsets: Vector

    @property
    def outputs(self) -> int:
        """As of `Mapped`."""
        return len(self.offsets)

    def apply(self, X: Matrix) -> Matrix:
        """As of `Mapped`."""
        found, size = np.empty((X.shape[0], self.outputs), dtype_of(X)), np.sqrt(2.0 / self.outputs)
        for place, block in blocks(X):
            found[place] = size * np.cos(block @ self.frequencies + self.offsets)
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As of `Mapped`."""
        return dict(vars(self))

    @classmethod
    def from_arrays(cls, section: Mapping[str, Any], inputs: int, arrays: Mapping[str, NDArray[Any]]) -> FourierMap:
        """As of `Mapped`."""
        found = cls(arrays["frequencies"], arrays["offsets"])
        if found.frequencies.shape != (inputs, found.outputs) or found.frequencies.dtype != np.float64:
            raise InputError(f"its feature map has frequencies {found.frequencies.shape} for {inputs} features")
        return found


@register("random_fourier", map=FourierMap)
@dataclass(frozen=True)
class RandomFourier:
    """Cosines of random directions, whose products are near exp(-gamma ||x - y||^2): scikit-learn's `RBFSampler`.

    Parameters
    ----------
    rank : features.
    gamma : of the kernel; null for 1 / features.
    seed : of the directions; null = that of the config, 0 from Python.
    """

    rank: int = parameter(500, least=1, doc="features", example=3)
    gamma: float | None = parameter(None, above=0.0, doc="of the kernel; null for 1 / features", example=0.7)
    seed: int | None = parameter(None, least=0, below=2**32, doc="of the directions; null = the config's", example=1)

    def __post_init__(self) -> None:
        check_parameters(self)

    def numbers(self, X: Matrix) -> int:
        """As of `Features`."""
        return self.rank * int(X.shape[0])

    def fitted(self, rows: AllRows) -> tuple[FourierMap, Matrix]:
        """As of `Features`."""
        from sklearn.kernel_approximation import RBFSampler

        inputs = max(1, rows.X.shape[1])
        sampler = RBFSampler(gamma=self.gamma or 1.0 / inputs, n_components=self.rank, random_state=self.seed or 0)
        sampler.fit(np.zeros((1, inputs)))
        found = FourierMap(sampler.random_weights_, sampler.random_offset_)
        return found, found.apply(rows.X)
