"""How the scores of rows, and parameters of the loss that are learned with the weights, lie in one array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import InputError, LinearMap, Vector
from bmrm.problem.meter import Meter
from bmrm.risk.linear_map import DataMap

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ScoreLayout:
    """(rows,) or (rows, K) without such parameters; with them one flat array: the rows in C order, then the parameters.

    A flat array keeps linear combinations of scores, and so line searches and ranks, as simple as without.
    """

    scores_per_row: int
    extra: int = 0

    def shape(self, rows: int) -> tuple[int, ...]:
        """Of the scores of `rows` rows without the parameters."""
        return (rows,) if self.scores_per_row == 1 else (rows, self.scores_per_row)

    def new(self, rows: int, parameters: Array) -> Array:
        """Scores with room for `rows` rows, the parameters filled in."""
        if not self.extra:
            return np.empty(self.shape(rows))
        f = np.empty(rows * self.scores_per_row + self.extra)
        f[f.size - self.extra :] = parameters
        return f

    def table(self, f: Array) -> Array:
        """The scores of the rows, a view."""
        if not self.extra:
            return f
        rows = (f.size - self.extra) // self.scores_per_row
        return f[: f.size - self.extra].reshape(self.shape(rows))

    def parameters(self, f: Array) -> Array:
        """The parameters, a view; (extra,)."""
        return f.reshape(-1)[f.size - self.extra :]

    def part(self, f: Array, rows: slice) -> Array:
        """The scores of some rows, with the parameters."""
        if not self.extra:
            return f[rows]
        return np.concatenate((self.table(f)[rows].ravel(), self.parameters(f)))

    def joined(self, slopes: list[Array]) -> Array:
        """The slope of all rows from those of parts: parameters are the same in all parts, so their slopes add up."""
        if len(slopes) == 1:
            return slopes[0]
        if not self.extra:
            return np.concatenate(slopes)
        parameters = np.sum([self.parameters(slope) for slope in slopes], axis=0)
        return np.concatenate([*(self.table(slope).ravel() for slope in slopes), parameters])


class TailedMap(LinearMap):
    """The map of a loss with parameters of its own: w is the weights of `rows_map`, then the parameters."""

    def __init__(self, rows_map: DataMap, layout: ScoreLayout) -> None:
        self.rows_map, self.layout = rows_map, layout
        self.dim = rows_map.dim + layout.extra
        self.columns, self.bias = rows_map.columns, rows_map.bias
        self.meter = rows_map.meter

    def metered(self, meter: Meter) -> TailedMap:
        """The same map, whose products are charged to `meter`."""
        return TailedMap(self.rows_map.metered(meter), self.layout)

    def matvec(self, w: Vector) -> Array:
        """The scores of the rows and the parameters, a new flat array."""
        weights, parameters = self.split(w)
        return np.concatenate((self.rows_map.matvec(weights).ravel(), parameters))

    def rmatvec(self, slope: Array) -> Vector:
        """A' slope, a new array (dim,)."""
        raw = self.rows_map.rmatvec(self.layout.table(slope))
        return np.concatenate((raw, self.layout.parameters(slope)))

    def rmatvec_parts(self, slope: Array, parts: int) -> Iterator[tuple[slice, Vector]]:
        """A' slope in consecutive pieces, the parameters last."""
        yield from self.rows_map.rmatvec_parts(self.layout.table(slope), parts)
        yield slice(self.rows_map.dim, self.dim), self.layout.parameters(slope).copy()

    def raw_weights(self, w: Vector) -> tuple[Array, Vector]:
        """As of `DataMap`; the parameters are left out."""
        return self.rows_map.raw_weights(self.split(w)[0])

    def split(self, w: Vector) -> tuple[Vector, Vector]:
        """Weights of the features, and parameters; views."""
        w = np.asarray(w, np.float64)
        if w.shape != (self.dim,):
            raise InputError(f"w has shape {w.shape}, expected ({self.dim},)")
        return w[: self.rows_map.dim], w[self.rows_map.dim :]


def followed(vector: Vector, more: Vector) -> Vector:
    """`vector` with `more` behind it; in its own memory where that has room for just so many numbers, else copied."""
    whole = vector.base
    room = isinstance(whole, np.ndarray) and whole.shape == (vector.size + more.size,) and whole.dtype == vector.dtype
    if not room or whole.ctypes.data != vector.ctypes.data:  # type: ignore[union-attr]
        return np.concatenate((vector, more))
    whole[vector.size :] = more  # type: ignore[index]
    return whole  # type: ignore[return-value]
