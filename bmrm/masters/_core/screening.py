"""Which features can have a weight at all, where Omega has a kink at 0; and the planes in those alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.masters._core.planes import PlaneStore
from bmrm.problem import Vector


class ScreenedRows:
    """The planes of a master as dense rows over the features in which they are steep enough to matter.

    Where Omega has l1 ||w||_1 in it, w_i = 0 as long as the sum over blocks of max_j |a_ji| is at most l1, whatever the
    multipliers. So a master holds columns for few features where dim is large. The rows of planes come after
    some of zeros, for the infima.

    Parameters
    ----------
    planes : of the master; `add` is called after one has joined them, `keep` after some have left.
    blocks : of the planes.
    l1 : the slope of Omega at 0.
    first : number of rows of zeros.
    unit : what the rows are divided by.

    Attributes
    ----------
    matrix : (capacity, width); the rows and columns that are not in use are 0.
    columns : the feature of each of its first columns, in the order in which they passed; none ever leaves.
    """

    def __init__(self, planes: PlaneStore, blocks: int, l1: float, first: int, unit: float = 1.0) -> None:
        self._planes = planes
        self._l1 = l1
        self._largest = np.zeros((blocks, planes.space.dim))
        self._first = first
        self._unit = unit
        self.columns: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._known = np.zeros(planes.space.dim, dtype=np.bool_)
        self.matrix = np.zeros((16 + first, 0))

    def add(self, a: Vector, block: int) -> None:
        """The last plane, and the columns that it lets pass."""
        n = len(self._planes) - 1
        row = self._largest[block]
        np.maximum(row, np.abs(a), out=row)
        total = self._largest[0] if len(self._largest) == 1 else self._largest.sum(axis=0)
        fresh = np.flatnonzero((total > self._l1) & ~self._known)
        if fresh.size:
            self._known[fresh] = True
            self.columns = np.concatenate([self.columns, fresh])
            self._widen(n, fresh)
        if self._first + n == len(self.matrix):
            self.matrix = np.concatenate([self.matrix, np.zeros_like(self.matrix)])
        self.matrix[self._first + n, : len(self.columns)] = a[self.columns] / self._unit

    def sizes(self) -> Vector:
        """The largest entry that each column of `matrix` has had, in absolute value; 1 for those not in use."""
        sizes = np.ones(self.matrix.shape[1])
        sizes[: len(self.columns)] = self._largest[:, self.columns].max(axis=0) / self._unit
        return sizes

    def keep(self, order: NDArray[np.int64]) -> None:
        """Planes have left, and the others stand as `PlaneStore.drop` says."""
        places = np.flatnonzero(order != np.arange(len(order)))
        self.matrix[self._first + places] = self.matrix[self._first + order[places]]

    def spread(self, values: Vector) -> Vector:
        """Values of the columns as a vector of all features."""
        everything = np.zeros(self._planes.space.dim)
        everything[self.columns] = values[: len(self.columns)]
        return everything

    def _widen(self, n: int, fresh: NDArray[np.int64]) -> None:
        p, planes = len(self.columns), self._planes
        if p > self.matrix.shape[1]:
            wide = np.zeros((len(self.matrix), min(p + p // 4 + 16, planes.space.dim)))
            wide[:, : self.matrix.shape[1]] = self.matrix
            self.matrix = wide
        for place in range(n):
            self.matrix[self._first + place, p - len(fresh) : p] = planes.row(place)[fresh] / self._unit
