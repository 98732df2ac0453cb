"""R(w): a dataset and a loss of its scores, as a risk that solvers can minimise."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.kernels.vectors import plain
from bmrm.kernels.workers import Workers
from bmrm.problem import Blocks, Identity, InputError, Loss, PreparedLoss, RowSubsets, Scored, Summary, Vector
from bmrm.risk.columns import Columns
from bmrm.risk.identity import DataIdentity
from bmrm.risk.linear_map import DataMap, Span, added
from bmrm.risk.score_function import BoundLoss, LossPhi

T = TypeVar("T")
Array = NDArray[np.float64]
Chunk = tuple[int, int, PreparedLoss]
"""Rows [start, stop) and the loss of their scores."""


class LinearRisk:
    """The mean loss of linear scores: R(w) = (sum over rows of s_i l(y_i, <x_i, w>)) / mass.

    Parameters
    ----------
    data : examples, or one rank's part of them, possibly without rows.
    loss : the loss of a row's scores, or of all scores.
    summary : what the loss must know of all rows of all ranks; None means that `data` is all there is.
    mass : the divisor, the mass of all ranks; None for that of `data`.
    bias : whether a constant feature 1 follows the features (regularised like any other).
    columns : scale and shift of the features, applied to weights and gradients instead of the data.
    threads : at most so many threads, for large data only; None for the usable cores.

    Attributes
    ----------
    dim : (features + bias) times scores per row.
    infimum : R(w) never goes below this; with parts on several ranks, their infima add up.
    local_mass : the mass of `data`; the masses of all ranks add up to `mass`.
    map, phi : R(w) = phi(A w).

    Raises
    ------
    InputError
        Where targets are outside the loss's domain, or `mass` is 0.
    """

    def __init__(
        self,
        data: Dataset,
        loss: Loss,
        *,
        summary: Summary | None = None,
        mass: float | None = None,
        bias: bool = False,
        columns: Columns | None = None,
        threads: int | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise InputError(f"threads is {threads}, expected at least 1")
        self.data, self.loss = data, loss
        self.summary = loss.summarise(data.targets) if summary is None else summary
        self.bound = BoundLoss(loss, data.targets, self.summary)
        workers = Workers(threads)
        self.scores_per_row = self.bound.whole.scores_per_row
        self.map = DataMap(data.X, scores_per_row=self.scores_per_row, columns=columns, bias=bias, workers=workers)
        self.local_mass = self.bound.whole.mass
        self.phi = LossPhi(self.bound, mass, workers)
        self.mass, self.infimum = self.phi.mass, self.phi.infimum
        self.dim = self.map.dim
        self._workers = workers
        self._plan = self.plan(0, data.rows) if self.bound.divisible else []

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """R(w) and a subgradient, a new array (dim,); one pass over the data."""
        if self.bound.divisible:
            return self.evaluate(self._plan, w)
        value, slope = self.phi.value_and_slope(self.map.scores(w))
        return value, self.map.pull_back(slope)

    def ability(self, kind: type[T]) -> T | None:
        """`Scored` and `Identity` always; `RowSubsets` and `Blocks` where the loss is a sum over rows."""
        offered: Any = None
        if kind is Scored:
            offered = Scored(self.map, self.phi)
        elif kind is Identity:
            offered = DataIdentity(self.data, self.loss, self.summary, self.map.columns, self.map.bias)
        elif kind is RowSubsets and self.bound.divisible:
            offered = ChosenRows(self)
        elif kind is Blocks and self.bound.divisible:
            offered = RowBlocks(self)
        return offered  # type: ignore[no-any-return]

    def raw_weights(self, w: Vector) -> tuple[Array, Vector]:
        """Weights (features,) or (features, K) and intercept (K,) for raw features, `columns` and bias folded in."""
        return self.map.raw_weights(w)

    def plan(self, start: int, stop: int) -> list[list[Chunk]]:
        """The rows [start, stop) as chunks that fit the cache, a list of them per thread."""
        return [
            [(a, b, self.bound.part(a, b)) for a, b in self.map.chunks(*span)] for span in self.map.spans(start, stop)
        ]

    def evaluate(self, plan: list[list[Chunk]], w: Vector) -> tuple[float, Vector]:
        """The part of R(w) that the rows of `plan` make up, and its subgradient.

        Scores, slopes and their product with the data are computed chunk by chunk, while a chunk is in the cache.
        """
        v, offset = self.map.inward(w)
        products = self.map.products
        tail = () if self.scores_per_row == 1 else (self.scores_per_row,)

        def work(chunks: list[Chunk]) -> tuple[float, Array, Array]:
            value, gradient, total = 0.0, self.map.zeros(), np.zeros(tail)
            for start, stop, prepared in chunks:
                f = np.empty((stop - start, *tail))
                products.scores(start, stop, v, offset, f)
                loss, slope = prepared.value_and_slope(f)
                products.add_pull_back(start, stop, plain(slope), gradient)
                value += loss
                if self.map.needs_total:
                    total += slope.sum(axis=0)
            return value, gradient, total

        results = self._workers.map(work, plan)
        gradient = added([gradient for _, gradient, _ in results])
        subgradient = self.map.outward(gradient, added([total for _, _, total in results]))
        subgradient /= self.mass
        return sum(value for value, _, _ in results) / self.mass, subgradient


class ChosenRows:
    """The ability to evaluate chosen rows of a risk that is a sum over rows.

    The mean over `rows` is scaled so that its expectation over rows drawn uniformly is R(w), weights included.
    """

    def __init__(self, risk: LinearRisk) -> None:
        self.risk = risk
        self.rows = risk.data.rows

    def value_and_subgradient_of(self, rows: NDArray[np.int64], w: Vector) -> tuple[float, Vector]:
        """(number of rows / number of chosen ones) times their part of R(w), and a subgradient."""
        risk = self.risk
        rows = np.asarray(rows, np.int64)
        if not rows.size or rows.min() < 0 or rows.max() >= self.rows:
            raise InputError(f"rows must be some of 0 ... {self.rows - 1}")
        X = risk.data.X
        chosen = X.select(rows) if isinstance(X, Csr) else X[rows]
        part = DataMap(
            chosen,
            scores_per_row=risk.scores_per_row,
            columns=risk.map.columns,
            bias=risk.map.bias,
            workers=risk.map.workers,
        )
        value, slope = risk.bound.take(rows).value_and_slope(part.scores(w))
        factor = self.rows / rows.size / risk.mass
        return value * factor, part.pull_back(slope) * factor


class RowBlocks:
    """The ability to give a value and a subgradient per block of consecutive rows."""

    def __init__(self, risk: LinearRisk) -> None:
        self.risk = risk
        self._plans: dict[int, list[list[list[Chunk]]]] = {}

    def values_and_subgradients(self, w: Vector, blocks: int) -> tuple[Vector, NDArray[np.float64]]:
        """Values (blocks,) and subgradients (blocks, dim) of the blocks' parts of R(w), in one pass."""
        results = [self.risk.evaluate(plan, w) for plan in self._plans_of(blocks)]
        return np.array([value for value, _ in results]), np.array([subgradient for _, subgradient in results])

    def infima(self, blocks: int) -> Vector:
        """A lower bound of each block's part, (blocks,)."""
        bounds = [self.risk.bound.part(*span).infimum for span in self._spans(blocks)]
        return np.array(bounds) / self.risk.mass

    def _plans_of(self, blocks: int) -> list[list[list[Chunk]]]:
        if blocks not in self._plans:
            self._plans[blocks] = [self.risk.plan(*span) for span in self._spans(blocks)]
        return self._plans[blocks]

    def _spans(self, blocks: int) -> list[Span]:
        rows = self.risk.data.rows
        edges = [rows * k // blocks for k in range(blocks + 1)]
        return list(pairwise(edges))
