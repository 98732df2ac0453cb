"""Nystroem's approximation of a kernel by some rows: Williams & Seeger, NIPS 2000."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.data.features import register
from bmrm.data.features._core.kernels import OF_NAME, Kernel, KernelMap, checked_kernel
from bmrm.data.features._core.rows import AllRows, plain
from bmrm.data.matrix import Matrix
from bmrm.registry import check_parameters, parameter

LEAST = 1e-12
"""Least singular value that is divided by, as scikit-learn has it."""


@register("nystroem", map=KernelMap)
@dataclass(frozen=True)
class Nystroem:
    """k(x, P) K^(-1/2) for rows P that are drawn, K their kernels: `sklearn.kernel_approximation.Nystroem`.

    Parameters
    ----------
    rank : rows that are drawn, over all ranks; of fewer all.
    kernel : of `sklearn.metrics.pairwise.pairwise_kernels`; or `module:function` of two matrices of rows, in Python
        also the function itself.
    gamma : of kernels that have it; null for 1 / features.
    degree, coef0 : of kernels that have them.
    seed : of the rows; null = that of the config, 0 from Python.

    Raises
    ------
    InputError
        For a kernel that is unknown, or is not defined for such rows.
    """

    rank: int = parameter(500, least=1, doc="rows that are drawn", example=3)
    kernel: Any = parameter("rbf", doc=OF_NAME, example="laplacian")  # noqa: RUF009 (a field with a range)
    gamma: float | None = parameter(None, above=0.0, doc="of the kernel; null for 1 / features", example=0.7)
    degree: float = parameter(3.0, above=0.0, doc="of the kernel polynomial", example=2.0)
    coef0: float = parameter(1.0, doc="of the kernels polynomial and sigmoid", example=0.5)
    seed: int | None = parameter(None, least=0, below=2**32, doc="of the rows; null = the config's", example=1)

    def __post_init__(self) -> None:
        check_parameters(self)
        checked_kernel(self.kernel, "nystroem")

    def numbers(self, X: Matrix) -> int:
        """As of `Features`."""
        return self.rank * int(X.shape[0])

    def fitted(self, rows: AllRows) -> tuple[KernelMap, Matrix]:
        """As of `Features`."""
        pivots = rows.drawn(self.rank, self.seed or 0)
        kernel = Kernel(self.kernel, self.gamma or 1.0 / max(1, pivots.shape[1]), self.degree, self.coef0)
        left, sizes, right = np.linalg.svd(kernel.between(plain(pivots), plain(pivots)))
        root = (left / np.sqrt(np.maximum(sizes, LEAST))) @ right
        found = KernelMap(kernel, pivots, np.ascontiguousarray(root.T))
        return found, found.apply(rows.X)
