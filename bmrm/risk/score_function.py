"""phi: the normalised loss of all scores, R(w) = phi(A w)."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import column_sizes, column_sums, dot
from bmrm.kernels.workers import Workers
from bmrm.problem import (
    Facts,
    IncompatibleError,
    InputError,
    Loss,
    LossFacts,
    MoreauEnvelope,
    PreparedLoss,
    ScoreFunction,
    Summary,
    Targets,
    Vector,
    facts_of,
)
from bmrm.problem.loss import completed
from bmrm.problem.meter import UNMETERED, Meter, timed, timed_curve
from bmrm.problem.results import is_own
from bmrm.risk.linear_map import Span
from bmrm.risk.offset import OffsetLoss, fitting, refuse_offset
from bmrm.risk.score_layout import ScoreLayout

Array = NDArray[np.float64]
T = TypeVar("T")
Curve = Callable[[Vector], tuple[Vector, Vector]]

ROWS_PER_THREAD = 50_000
"""Least rows of a thread: with fewer another thread costs more than it saves."""


class BoundLoss:
    """A loss with its targets: prepared for all the rows, and for parts of them.

    Parameters
    ----------
    loss, targets, summary : as `Loss.prepare` takes them; `summary` is over all ranks.
    bare : the loss prepared for `targets` but for their offset; None to do it here.
    facts : of the loss; None to read them here.
    scaled : whether `targets` are those of another `BoundLoss`, whose weights are in the unit of all rows already.

    Attributes
    ----------
    targets : with weights in a unit near their mean, see `in_mean_unit`; so are sums of values and masses.
    bare : the loss of scores that have the offset of the targets.
    offset : that, in the shape of the scores; None without.
    whole : the loss of scores to which the offset is added.
    layout : how scores lie in an array.
    divisible : whether the loss is a sum over rows, or over groups of rows.
    """

    def __init__(
        self,
        loss: Loss,
        targets: Targets,
        summary: Summary,
        bare: PreparedLoss | None = None,
        facts: LossFacts | None = None,
        scaled: bool = False,
    ) -> None:
        if bare is None and not scaled and _weighs_by_us(loss):
            targets = in_mean_unit(targets, summary)
        self.loss, self.targets, self.summary = loss, targets, summary
        self.rows, self.divisible = targets.rows, loss.decomposes != "no"
        self._own = is_own(loss)
        self.bare: PreparedLoss = completed(loss.prepare(targets, summary) if bare is None else bare)
        self.facts = facts_of(loss) if facts is None else facts
        self.offset: Array | None = None
        if targets.offset is not None:
            refuse_offset(self.facts, self.bare.extra_dim)
            self.offset = fitting(targets.offset, self.bare.scores_per_row, self.facts)
        self.whole = self._with_offset(self.bare, slice(None))
        self.layout = ScoreLayout(self.whole.scores_per_row, self.whole.extra_dim)

    def _with_offset(self, bare: PreparedLoss, rows: slice | NDArray[np.int64]) -> PreparedLoss:
        return bare if self.offset is None else OffsetLoss(bare, self.offset[rows])

    @property
    def learns(self) -> bool:
        """Whether the loss minimises something out besides an intercept."""
        return type(self.bare).learned is not PreparedLoss.learned or "learned" in vars(self.bare)

    def told(self, value: float) -> float:
        """A value of the loss; +inf for nan, which is left where the differences of scores are beyond float64.

        That of a user's loss is left as it is, for others to tell.
        """
        return math.inf if math.isnan(value) and self._own else value

    def quiet(self) -> AbstractContextManager[object]:
        """Where the package's own losses evaluate scores that may be beyond float64: the value says so, no warning."""
        return np.errstate(over="ignore", invalid="ignore") if self._own else nullcontext()

    def whole_groups(self, spans: list[Span], keep_empty: bool = False) -> list[Span]:
        """Consecutive spans of rows, their borders moved behind the groups that they would part.

        Spans that this empties are left out (but for one), unless `keep_empty`.
        """
        if self.loss.decomposes == "rows":
            return spans
        starts = self._borders

        def moved(border: int) -> int:
            return int(starts[np.searchsorted(starts, border)])

        whole = [(moved(a), moved(b)) for a, b in spans]
        return whole if keep_empty else [(a, b) for a, b in whole if b > a] or whole[:1]

    @cached_property
    def _borders(self) -> NDArray[np.int64]:
        """The rows at which no group is parted, the first and the one behind the last among them."""
        groups = self.targets.groups
        if groups is None or not groups.size:
            return np.array([0, self.rows])
        starts = np.flatnonzero(np.diff(groups)) + 1
        if self.facts.scattered_groups:
            names, number = np.unique(groups, return_inverse=True)
            last = np.zeros(len(names), np.int64)
            np.maximum.at(last, number, np.arange(self.rows))
            starts = starts[np.maximum.accumulate(last[number])[starts - 1] < starts]
        return np.concatenate(([0], starts, [self.rows]))

    def part(self, start: int, stop: int) -> PreparedLoss:
        """The loss of the rows [start, stop), which part no group."""
        if (start, stop) == (0, self.rows):
            return self.whole
        found = self.bare.part(start, stop)
        if found is None:
            found = completed(self.loss.prepare(self.targets.part(start, stop), self.summary))
        return self._with_offset(found, slice(start, stop))

    def take(self, rows: NDArray[np.int64]) -> PreparedLoss:
        """The loss of the chosen rows, repetition allowed."""
        return self._with_offset(self._taken(rows), rows)

    def _taken(self, rows: NDArray[np.int64]) -> PreparedLoss:
        found = self.bare.take(rows)
        return completed(self.loss.prepare(self.targets.take(rows), self.summary)) if found is None else found

    def some(self, rows: NDArray[np.int64]) -> BoundLoss:
        """The loss with the targets of the chosen rows."""
        return BoundLoss(self.loss, self.targets.take(rows), self.summary, self._taken(rows), self.facts)


def _weighs_by_us(loss: Loss) -> bool:
    """Whether the package binds the loss to weights, by which J does not depend on their unit."""
    return type(loss).prepare.__module__.partition(".")[0] == __name__.partition(".")[0]


def in_mean_unit(targets: Targets, summary: Summary) -> Targets:
    """The targets with weights divided by the power of two nearest to the mean weight of all rows of all ranks.

    J stays what it is, to the last digit; and numbers that solvers compare with weights, or take products of, are of
    the size of those of plain rows.
    """
    mean = min(summary.weight, sys.float_info.max) / max(1, summary.rows)
    if targets.weights is None or not mean > 0.0:
        return targets
    weights = np.ldexp(np.asarray(targets.weights, np.float64), -round(math.log2(mean)))
    return replace(targets, weights=weights)


class LossPhi(ScoreFunction):
    """The loss of rows as a function of their scores, divided by the total mass.

    Parameters
    ----------
    bound : the loss with its targets.
    mass : the mass of all rows on all ranks; None for that of these rows.
    workers : threads for many rows, used where the loss is a sum over rows; None for none.
    """

    meter: Meter = UNMETERED

    def __init__(self, bound: BoundLoss, mass: float | None = None, workers: Workers | None = None) -> None:
        self.bound, whole = bound, bound.whole
        self.mass = whole.mass if mass is None else mass
        if not self.mass > 0.0:
            raise InputError(whole.nothing)
        self.facts = Facts(
            scores_per_row=whole.scores_per_row,
            mass=self.mass,
            infimum=whole.infimum / self.mass,
            smooth=whole.smooth,
            hessian=whole.hessian,
            hessian_total=whole.totals,
            hessian_bound=bound.facts.hessian_bound,
            quadratic=bound.facts.quadratic,
            prox=whole.prox,
            shift_invariant=bound.facts.shift_invariant,
            structured_max=whole.structured_max,
            piecewise_linear=whole.piecewise_linear,
        )
        self._workers = Workers(1) if workers is None else workers
        count = min(self._workers.threads, bound.rows // ROWS_PER_THREAD) if bound.divisible else 1
        edges = [bound.rows * k // max(1, count) for k in range(max(1, count) + 1)]
        self._layout = bound.layout
        spans = bound.whole_groups(list(pairwise(edges)))
        self._parts = [(slice(a, b), bound.part(a, b)) for a, b in spans]

    def metered(self, meter: Meter) -> LossPhi:
        """The same, whose calls are timed."""
        found = copy(self)
        found.meter = meter
        return found

    @timed
    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """phi(f) and a subgradient, a new array like `f`."""
        (value, slope), *others = self._of_parts(self._evaluated, f)
        if others:
            for part, _ in others:
                value += part
            slope = self._layout.joined([slope, *(part for _, part in others)])
        slope /= self.mass
        return self.bound.told(value / self.mass), slope

    def _of_parts(self, function: Callable[..., T], *scores: Array) -> list[T]:
        """Of the loss of each part and its piece of the scores."""
        if len(self._parts) == 1:
            return [function(self.bound.whole, *scores)]
        return self._workers.map(lambda pieces: function(*pieces), self._pieces(*scores))

    def _pieces(self, *scores: Array) -> list[tuple[Any, ...]]:
        """The loss of each part, with its pieces of the scores."""
        if len(self._parts) == 1:
            return [(self.bound.whole, *scores)]
        return [(part, *(self._layout.part(f, rows) for f in scores)) for rows, part in self._parts]

    def _evaluated(self, part: PreparedLoss, f: Array) -> tuple[float, Array]:
        with self.bound.quiet():
            return part.value_and_slope(f)

    @timed_curve
    def along(self, f: Array, step: Array) -> Curve:
        """The function t -> (phi(f + t step), its derivative in t), for a vector of t."""
        with self.bound.quiet():
            return self._joined([part.along(*pieces) for part, *pieces in self._pieces(f, step)])

    @timed
    def breakpoints(self, f: Array, step: Array) -> tuple[float, Array]:
        """As of `ScoreFunction`; IncompatibleError where the loss is not piecewise linear."""
        if not self.facts.piecewise_linear:
            raise self._lacks("breakpoints: it is not piecewise linear in one score per row", "search: bracket")
        found = self._of_parts(lambda part, *pieces: part.breakpoints(*pieces), f, step)
        table = np.concatenate([points for _, points in found])
        table[:, 1] /= self.mass
        return sum(slope for slope, _ in found) / self.mass, table

    def _joined(self, curves: list[Curve]) -> Curve:
        """The sum of the parts' curves, divided by the mass."""

        def curve(ts: Vector) -> tuple[Vector, Vector]:
            ts = np.asarray(ts, np.float64)
            values, derivatives = self._at(curves[0], ts) if len(curves) == 1 else self._sums(curves, ts)
            values = values / self.mass
            if np.isnan(values).any():
                values = np.array([self.bound.told(float(value)) for value in values])
            return values, derivatives / self.mass

        return curve

    def _at(self, curve: Curve, ts: Vector) -> tuple[Vector, Vector]:
        with self.bound.quiet():
            return curve(ts)

    def _sums(self, curves: list[Curve], ts: Vector) -> tuple[Vector, Vector]:
        values, derivatives = np.array(self._workers.map(lambda each: self._at(each, ts), curves)).sum(axis=0)
        return values, derivatives

    @timed
    def hessian_product(self, f: Array, step: Array) -> Array:
        """phi''(f) step, a new array like `f`; IncompatibleError where the loss has no second derivative."""
        if not self.facts.curved:
            raise self._lacks("second derivative", "bundle or lbfgs")
        product = self._layout.joined(self._of_parts(lambda part, *pieces: part.hessian_product(*pieces), f, step))
        product /= self.mass
        return product

    @timed
    def hessian_diagonal(self, f: Array) -> Array:
        """The diagonal of phi''(f), a new array like `f`; IncompatibleError where it is not known."""
        if not self.facts.diagonal:
            raise self._lacks("second derivative row by row", "lbfgs or irls")
        curvature = self._layout.joined(self._of_parts(lambda part, piece: part.hessian_diagonal(piece), f))
        curvature /= self.mass
        return curvature

    @timed
    def hessian_shares(self, f: Array) -> Array:
        """c with phi''(f) = diag(c) - c c' / sum(c) in each row, like `f`; IncompatibleError where it is not so."""
        if not self.facts.shared:
            raise self._lacks("second derivative by shares", "lbfgs or irls")
        shares = self._layout.joined(self._of_parts(lambda part, piece: part.hessian_shares(piece), f))
        shares /= self.mass
        return shares

    @timed
    def hessian_total(self, f: Array) -> Array:
        """The second derivative in constants added to all rows, (K, K); IncompatibleError where it is not known."""
        if not self.facts.hessian_total:
            raise self._lacks("second derivative in constants at once", "bundle or lbfgs")
        sums = self._of_parts(lambda part, piece: part.hessian_total(piece), f)
        return np.asarray(sum(sums) / self.mass)

    @timed
    def moreau(self, z: Array, sigma: float) -> MoreauEnvelope:
        """The Moreau envelope at `z`; IncompatibleError where the loss has no proximal map."""
        if not self.facts.prox:
            raise self._lacks("proximal map", "line_search_bundle or lbfgs")
        results = self._of_parts(lambda part, piece: part.moreau(piece, sigma), z)
        if len(results) == 1:
            (loss, product, square), slope, curvature = results[0]
        else:
            sums, slopes, curvatures = map(list, zip(*results, strict=True))
            loss, product, square = np.sum(sums, axis=0)
            slope, curvature = self._layout.joined(slopes), self._layout.joined(curvatures)
        slope /= self.mass
        curvature /= self.mass
        return MoreauEnvelope((loss + 0.5 * sigma * square) / self.mass, slope, curvature, (product - loss) / self.mass)

    @timed_curve
    def moreau_along(self, z: Array, step: Array, sigma: float) -> Curve:
        """The function t -> (the envelope at z + t step, its derivative in t), for a vector of t."""
        if not self.facts.prox:
            raise self._lacks("proximal map", "line_search_bundle or lbfgs")
        return self._joined([part.moreau_along(*pieces, sigma) for part, *pieces in self._pieces(z, step)])

    def hessian_most(self) -> Array | None:
        """h with phi''(f) <= diag(h) at all scores f; None where it is not known."""
        most, weights = self.facts.hessian_bound / self.mass, self.bound.targets.weights
        if not (self.facts.separable and self.facts.smooth and math.isfinite(most)):
            return None
        return np.full(self.bound.rows, most) if weights is None else weights * most

    def _lacks(self, what: str, instead: str) -> IncompatibleError:
        return IncompatibleError(
            f"{self.bound.facts.title} has no {what}; use a solver that needs none, such as {instead}"
        )

    def learned(self, scores: Callable[[], Array]) -> dict[str, Array]:
        """What the loss has minimised out at some scores, by name (cut points); {} for most losses."""
        return self.bound.whole.learned(scores()) if self.bound.learns else {}

    @timed
    def constant(self, b: Vector) -> Array:
        """The scores whose every row is `b`, shape (scores per row,)."""
        f = self._layout.new(self.bound.rows, np.zeros(self._layout.extra))
        self._layout.table(f)[:] = b
        return f

    @timed
    def total(self, scores: Array) -> Vector:
        """The sum over all rows, (scores per row,)."""
        return np.atleast_1d(column_sums(self._layout.table(scores)))

    @timed
    def product(self, slope: Array, f: Array) -> float:
        """<slope, f>, parameters of the loss among them."""
        return dot(slope, f)

    @timed
    def magnitude(self, scores: Array) -> Vector:
        """The sum of absolute values over all rows, (scores per row,)."""
        return np.atleast_1d(column_sizes(self._layout.table(scores)))
