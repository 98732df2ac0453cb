"""R(w): a dataset and a loss of its scores, as a risk that solvers can minimise."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from itertools import pairwise
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import features_of
from bmrm.kernels.products.vectors import column_sums, plain
from bmrm.kernels.workers import Workers
from bmrm.problem import Loss, PreparedLoss, Scored, Space, Summary, Vector
from bmrm.problem.abilities import (
    RESIDENT,
    AtOnce,
    Blocks,
    DualBlocks,
    Fingerprint,
    ModifiedLoss,
    ProblemSize,
    QuadraticModel,
    Rounding,
    RowParts,
    RowSample,
    RowSubsets,
)
from bmrm.problem.meter import UNMETERED, Meter, charged
from bmrm.registry import Range, checked_value
from bmrm.risk.dual.ascent import RowAscents
from bmrm.risk.dual.steps import dual_steps
from bmrm.risk.identity import identity
from bmrm.risk.linear_map import DataMap, Span
from bmrm.risk.little import at_once
from bmrm.risk.problem_size import problem_size
from bmrm.risk.products import Columns
from bmrm.risk.rounding import row_rounding
from bmrm.risk.row_abilities import ChosenParts, ChosenRows, LossVariants, drawn
from bmrm.risk.score_function import BoundLoss, LossPhi
from bmrm.risk.score_layout import TailedMap, followed

if TYPE_CHECKING:
    from bmrm.risk.quadratic import ColumnCopies

T = TypeVar("T")
Array = NDArray[np.float64]
Chunk = tuple[int, int, PreparedLoss]
"""Rows [start, stop) and the loss of their scores."""
NO_PARAMETERS = np.empty(0)


class LinearRisk:
    """The mean loss of linear scores: R(w) = (sum over rows of s_i l(y_i, <x_i, w>)) / mass.

    Parameters
    ----------
    data : examples, or one rank's part of them, possibly without rows.
    loss : the loss of a row's scores, or of all scores.
    summary : what the loss must know of all rows of all ranks; None means that `data` is all there is.
    bound : the loss with the targets of `data`, where it has been prepared already; then without `summary`.
    mass : the divisor, the sum of `local_mass` over all ranks; None for that of `data`.
    bias : whether a constant feature 1 follows the features (regularised like any other).
    columns : scale and shift of the features, applied to weights and gradients instead of the data.
    threads : at most so many threads, for large data only; None for the usable cores.

    Attributes
    ----------
    dim : (features + bias) times scores per row, and the parameters of the loss that are learned with w.
    infimum : R(w) never goes below this; with parts on several ranks, their infima add up.
    local_mass : the mass of `data`, of weights in a unit near the mean of all ranks (`in_mean_unit`); the masses of all
        ranks add up to `mass`.
    map, phi : R(w) = phi(A w).
    meter : what a run is charged to: `metered` makes a copy of the risk for it.

    Raises
    ------
    InputError
        Where targets are outside the loss's domain, or `mass` is 0.
    """

    meter: Meter = UNMETERED
    _whole: LinearRisk | None = None
    """That this one is a metered copy of; it has what is made once for all runs."""

    def __init__(
        self,
        data: Dataset,
        loss: Loss,
        *,
        summary: Summary | None = None,
        bound: BoundLoss | None = None,
        mass: float | None = None,
        bias: bool = False,
        columns: Columns | None = None,
        threads: int | None = None,
    ) -> None:
        threads = checked_value("threads", threads, (int, NoneType), Range(least=1))
        features_of(data.X).checked()
        self.data, self.loss = data, loss
        if bound is None:
            bound = BoundLoss(loss, data.targets, loss.summarise(data.targets) if summary is None else summary)
        self.bound, self.summary = bound, bound.summary
        workers = Workers(threads)
        self.scores_per_row = self.bound.whole.scores_per_row
        self.rows_map = DataMap(data.X, scores_per_row=self.scores_per_row, columns=columns, bias=bias, workers=workers)
        self.layout = self.bound.layout
        self.map = TailedMap(self.rows_map, self.layout) if self.layout.extra else self.rows_map
        self.local_mass = self.bound.whole.mass
        self.phi = LossPhi(self.bound, mass, workers)
        self.mass, self.infimum = self.phi.mass, self.phi.facts.infimum
        self.dim = self.map.dim
        self._workers = workers
        self._columns: ColumnCopies | None = None

    @cached_property
    def _plan(self) -> list[list[Chunk]]:
        return self.plan(0, self.data.rows) if self._whole is None else self._whole._plan

    def metered(self, meter: Meter) -> LinearRisk:
        """The same risk, charged to `meter`; `rows_map`, which is used within passes, is not.

        Parameters
        ----------
        meter : what counts its passes and seconds.
        """
        found = copy(self)
        found._whole, found.meter = self._whole or self, meter
        found.map, found.phi = self.map.metered(meter), self.phi.metered(meter)
        return found

    @cached_property
    def problem_size(self) -> ProblemSize:
        """How large the data are."""
        return problem_size(self.rows_map.X, self.rows_map.columns, self.rows_map.bias, self._workers.threads)

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """R(w) and a subgradient, a new array (dim,); one pass over the data.

        Parameters
        ----------
        w : (dim,), the weights; not changed.
        """
        if self.bound.divisible:
            begin = self.meter.begin()
            try:
                return self.evaluate(self._plan, w)
            finally:
                self.meter.end(begin, 1.0)
        value, slope = self.phi.value_and_slope(self.map.matvec(w))
        return value, self.map.rmatvec(slope)

    def ability(self, kind: type[T]) -> T | None:
        """What `OFFERS` has of this kind, for this loss and these data.

        Parameters
        ----------
        kind : the class of the ability, such as `Scored`.
        """
        offer = OFFERS.get(kind)
        if offer is None or (kind in RESIDENT and not self.rows_map.X.resident):
            return None
        found: T | None = offer(self)
        return found

    def raw_weights(self, w: Vector) -> tuple[Array, Vector]:
        """Weights (features,) or (features, K) and intercept (K,) for raw features, `columns` and bias folded in.

        Parameters
        ----------
        w : (dim,), as solvers have them.
        """
        return self.map.raw_weights(w)

    def plan(self, start: int, stop: int) -> list[list[Chunk]]:
        """The rows [start, stop) as chunks that fit the cache, a list of them per thread.

        Parameters
        ----------
        start, stop : numbers of rows, from 0.
        """
        whole, rows_map = self.bound.whole_groups, self.rows_map
        return [
            [(a, b, self.bound.part(a, b)) for a, b in whole(rows_map.chunks(*span))]
            for span in whole(rows_map.spans(start, stop))
        ]

    def evaluate(self, plan: list[list[Chunk]], w: Vector) -> tuple[float, Vector]:
        """The part of R(w) that the rows of `plan` make up, and its subgradient.

        Scores, slopes and their product with the data are computed chunk by chunk, while a chunk is in the cache.

        Parameters
        ----------
        plan : as `plan` returned it.
        w : (dim,), the weights; not changed.
        """
        weights, parameters = self.map.split(w) if isinstance(self.map, TailedMap) else (w, NO_PARAMETERS)
        rows_map, layout, extra = self.rows_map, self.layout, self.layout.extra
        v, offset = rows_map.inward(weights)
        products, some = rows_map.products, bool(v.any())

        def work(chunks: list[Chunk]) -> tuple[float, Array, Array, Array]:
            value, gradient, total = 0.0, rows_map.zeros(extra), NO_PARAMETERS
            if rows_map.needs_total:
                total = np.zeros(layout.shape(1)[1:])
            of_parameters = np.zeros(extra) if extra else NO_PARAMETERS
            for start, stop, prepared in chunks:
                f = layout.new(stop - start, parameters)
                if some:
                    products.scores(start, stop, v, offset, layout.table(f))
                else:  # where most solvers begin
                    layout.table(f)[:] = offset
                with self.bound.quiet():
                    loss, slope = prepared.value_and_slope(f)
                if extra:  # w is long, and a chunk in the cache
                    slope /= self.mass
                    of_parameters += layout.parameters(slope)
                table = plain(layout.table(slope))
                products.add_rmatvec(start, stop, table, gradient)
                value += loss
                if rows_map.needs_total:
                    total += column_sums(table)
            return value, gradient, total, of_parameters

        (value, gradient, total, tail), *others = self._workers.map(work, plan)
        for more, *arrays in others:
            value += more
            for array, part in zip((gradient, total, tail), arrays, strict=True):
                array += part
        subgradient = rows_map.outward(gradient, total)
        if extra:
            subgradient = followed(subgradient, tail)
        else:
            subgradient /= self.mass
        return self.bound.told(value / self.mass), subgradient


class RowBlocks:
    """The ability to give a value and a subgradient per block of consecutive rows."""

    def __init__(self, risk: LinearRisk) -> None:
        self.risk, self.meter = risk, risk.meter
        self._plans: dict[int, list[list[list[Chunk]]]] = {}

    @charged(1.0)
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
        return self.risk.bound.whole_groups(list(pairwise(edges)), keep_empty=True)


def _row_subsets(risk: LinearRisk) -> ChosenRows | None:
    if risk.loss.decomposes != "rows":
        return None
    return ChosenRows(risk.map, risk.bound, risk.mass, risk.meter)


def _dual_steps(risk: LinearRisk) -> RowAscents | None:
    bound = risk.bound
    steps = dual_steps(risk.loss, bound.bare, risk.rows_map, risk.mass, risk.infimum, bound.offset)
    return None if steps is None else steps.metered(risk.meter)


def _column_copies(risk: LinearRisk) -> ColumnCopies | None:
    if not risk.phi.facts.separable or risk.layout.extra:
        return None
    whole = risk._whole or risk
    if whole._columns is None:  # once, for all lambdas
        from bmrm.risk.quadratic import ColumnCopies

        whole._columns = ColumnCopies(risk.rows_map.X, risk.map.columns, risk.map.bias)
    return whole._columns if risk is whole else whole._columns.metered(risk.meter)


def _row_parts(risk: LinearRisk) -> ChosenParts | None:
    if risk.loss.decomposes != "rows" or risk.layout.extra:
        return None
    map_of = risk.rows_map.metered(risk.meter).alike
    return ChosenParts(risk.rows_map.X, risk.bound, map_of, risk.mass, risk._workers, risk.meter)


def _row_sample(risk: LinearRisk) -> RowSample | None:
    if risk.loss.decomposes != "rows":
        return None
    map, total, threads = risk.rows_map, risk.data.rows, risk._workers.threads

    def sample(rows: int, seed: int) -> LinearRisk:
        data = risk.data.select(drawn(total, rows, seed), risk.meter.check)
        return LinearRisk(data, risk.loss, summary=risk.summary, bias=map.bias, columns=map.columns, threads=threads)

    return RowSample(total, sample)


OFFERS: dict[type, Callable[[LinearRisk], Any]] = {
    Scored: lambda risk: Scored(risk.map, risk.phi),
    Space: lambda risk: Space(risk.rows_map.inputs, risk.scores_per_row, risk.layout.extra),
    ProblemSize: lambda risk: (risk._whole or risk).problem_size,
    Fingerprint: lambda risk: identity(risk.data, risk.loss, risk.summary, risk.map.columns, risk.map.bias),
    Blocks: lambda risk: RowBlocks(risk) if risk.bound.divisible else None,
    RowSubsets: _row_subsets,
    RowParts: _row_parts,
    RowSample: _row_sample,
    DualBlocks: _dual_steps,
    QuadraticModel: _column_copies,
    Rounding: lambda risk: row_rounding(risk.loss, risk.map, risk.phi, risk.layout),
    AtOnce: at_once,
    ModifiedLoss: lambda risk: (
        LossVariants(risk.bound, risk.rows_map.offset, risk.meter) if risk.loss.decomposes == "rows" else None
    ),
}
"""Constructors of the abilities, by kind; they return None where this loss or these data lack one."""
