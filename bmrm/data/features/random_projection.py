"""Random directions, which nearly keep distances: Johnson & Lindenstrauss 1984."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.data.features import register
from bmrm.data.features._core.linear import ProjectionMap
from bmrm.data.features._core.rows import AllRows
from bmrm.data.matrix import Matrix
from bmrm.registry import check_parameters, parameter


@register("random_projection", map=ProjectionMap)
@dataclass(frozen=True)
class RandomProjection:
    """x V with independent normal numbers of variance 1 / rank: `sklearn.random_projection.GaussianRandomProjection`.

    Parameters
    ----------
    rank : features.
    seed : of the directions; null = that of the config, 0 from Python.
    """

    rank: int = parameter(10, least=1, doc="features", example=3)
    seed: int | None = parameter(None, least=0, below=2**32, doc="of the directions; null = the config's", example=1)

    def __post_init__(self) -> None:
        check_parameters(self)

    def numbers(self, X: Matrix) -> int:
        """As of `Features`."""
        return self.rank * (int(X.shape[0]) + int(X.shape[1]))

    def fitted(self, rows: AllRows) -> tuple[ProjectionMap, Matrix]:
        """As of `Features`."""
        from sklearn.random_projection import GaussianRandomProjection

        maker = GaussianRandomProjection(self.rank, random_state=self.seed or 0)
        maker.fit(np.zeros((1, max(1, rows.X.shape[1]))))
        found = ProjectionMap(np.ascontiguousarray(maker.components_.T))
        return found, found.apply(rows.X)
