"""Base classes of losses: a loss gives a formula for one row or for arrays of rows, and the rest is derived.

A loss is a frozen dataclass of its parameters. With one score per row it may be a compiled function of one row:

    @register("hinge", task="binary")
    @dataclass(frozen=True)
    class Hinge(MarginLoss):
        @row
        def value_slope(f, y):
            short = 1.0 - y * f
            return (0.0, 0.0) if short <= 0.0 else (short, -y)

or two lines of NumPy on arrays, `value(f, y)` and `slope(f, y)`:

        def value(self, f, y):
            return np.maximum(0.0, 1.0 - y * f)

        def slope(self, f, y):
            return np.where(y * f < 1.0, -y, 0.0)

`register` is needed only for a name in configs. Functions of one row take the parameters of the loss last, as numbers
in the order of the fields; sums over rows and along lines, envelopes and array functions are generated from them. A
loss with one exponential also gives `exponent(f, y)` as a `row` function: then `value_slope` and `curvature` take e =
exp(exponent) after f and y, and the exponentials of many rows are vectorised. Optional members, as `row` functions or
on arrays:

`curvature(f, y)` : second derivatives, (rows,), for Newton-type solvers. With several scores per row they need
    `hessian_product`; a `curvature`, then the diagonal, (rows, K), is a preconditioner for it.
`prox(z, step, y)` : the minimiser f of step * loss(f) + 1/2 (f - z)^2 and its derivative in z (0 at kinks), (rows,)
    each, for augmented Lagrangian solvers, and for dual ones where it is a `row` function beside `value_slope`.
`prox_scores(z, step, y)` : the same for several scores per row, (rows, K), without the derivative. Compiled for a row:
    `prox_scores_row(z, step, y, moves, work, *arguments) -> (value, room)` fills `moves` = z - f, on entry a guess of
    it, and returns the loss at f and the least change of scores that could change `moves` (0 where any does); `work` is
    (2, K). `value_scores_row(f, y, *arguments)` is the loss. `offset_scores_row(moves, step, y, *arguments)` makes
    moves / step a slope that the loss has, whatever rounding has left of it, and returns minus its conjugate: the
    height at scores of 0 of the plane that bounds are made of. For Newton's method on envelopes
    `settle_scores_row(moves, step, y, free)` fills `free` with 1 for each score that takes part where the slope changes
    with scores, else 0: the derivative of moves is diag(free) - free free' / sum(free). It clips `moves` to the
    subdifferential of the loss.
`prox_shares(moves, step, y)` : for many rows c, (rows, K), with diag(c) - c c' / sum(c) the derivative of `moves`, so
    that dual steps with a free intercept need no differences. `hessian_total(f, weights)` : the sum of the rows' second
    derivatives, (K, K), for the same with Newton's method.
`hessian_bound` : a number that second derivatives never exceed, for screening rules. `quadratic` : whether they are the
    same everywhere. `floor(y)` : a lower bound of each
row's loss, where it depends on the target. `kernel(f, y, weights, slope, *arguments) -> value` : a hand-written sweep
    over rows, which fills `slope` and returns the weighted sum; `weights` is empty if all are 1. `arguments` are the
    loss's parameters.
`probabilities(f)` : of the labels, (rows, labels), where the loss is a likelihood. `multiclass` : the name of the loss
    that takes its place for more than two classes.
`along_kernel(f, step, y, weights, ts, values, derivatives, *arguments)` : fills the sums and their derivatives at
    `f + t step`, for each t of `ts`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.losses._core import domain
from bmrm.losses._core.prepared import PREPARED, Array, PreparedRows, SharedRows
from bmrm.losses._core.proximal_scores import ProximalScoresRows
from bmrm.losses._core.row import Pair, Row, Scalar, generate, row, strict_row
from bmrm.problem import InputError, Summary, Targets, lacking, provides
from bmrm.problem.loss import HasRowCurvature, HasRowHessian, HasRowProx, HasRowShares
from bmrm.registry import check_parameters

__all__ = [
    "Array",
    "Labels",
    "MarginLoss",
    "MulticlassLoss",
    "OneScoreLoss",
    "Pair",
    "RegressionLoss",
    "Scalar",
    "row",
    "strict_row",
]

Labels = Sequence[float | str]


class LossBase:
    """Facts about a loss that tables show, and checked parameters."""

    name: ClassVar[str] = ""
    task: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    """Per row unless stated otherwise; f score, y target."""
    source: ClassVar[str] = ""
    decomposes: ClassVar[Literal["rows", "groups", "no"]] = "rows"
    smooth: ClassVar[bool] = False
    """Differentiable everywhere, with a gradient that is Lipschitz on bounded sets."""
    shift_invariant: ClassVar[bool] = False
    """Whether the loss is invariant to adding a number to all scores of a row."""
    metrics: ClassVar[tuple[str, ...]] = ()
    """Names of the measures to report for this loss, from `bmrm.metrics`."""
    scattered_groups: ClassVar[bool] = False
    """Rows with equal group numbers are one group wherever they are; if False, a group is a run of consecutive rows."""
    weighted: ClassVar[bool] = True
    """A weight acts as repetition of the row; if False, weights other than 1 are refused."""
    by_group: ClassVar[bool] = False
    """`predict` takes `groups=`: the predictions of a group's rows depend on one another."""
    only_ranks: ClassVar[bool] = False
    """`predict` gives scores, which order rows but are no targets."""
    needs_targets: ClassVar[bool] = True
    """Whether rows must have labels or numbers; if False they are ignored."""
    no_free_intercept: ClassVar[str] = ""
    """Why an intercept that the regularizer does not touch has no meaning; empty where it has one."""
    instead_of_intercept: ClassVar[str] = ""
    """What serves as an intercept, so that a free one is there only where it is asked for; empty for most losses."""
    takes_shares: ClassVar[bool] = False
    """Whether targets may be shares of labels, for a negative log likelihood."""
    multiclass: ClassVar[str] = ""
    """The loss that takes its place where there are more than two classes; empty where there is none."""

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def at_zero(self) -> str:
        """What helps where the minimum is at w = 0, beside a smaller lambda."""
        return ""

    @property
    def title(self) -> str:
        """The name for messages: the registered one, else that of the class."""
        return self.name or type(self).__name__


class RowLoss(LossBase):
    """A loss that is a sum over rows."""

    least: ClassVar[float] = 0.0
    """A lower bound of the loss of a row; -inf if unknown."""
    kernel: ClassVar[Callable[..., float] | None] = None
    along_kernel: ClassVar[Callable[..., None] | None] = None
    prox_row: ClassVar[Callable[..., tuple[float, float]] | None] = None
    value_row: ClassVar[Callable[..., float] | None] = None
    prox_scores_row: ClassVar[Callable[..., tuple[float, float]] | None] = None
    value_scores_row: ClassVar[Callable[..., float] | None] = None
    offset_scores_row: ClassVar[Callable[..., float] | None] = None
    settle_scores_row: ClassVar[Callable[..., None] | None] = None

    def value(self, f: Array, y: Any) -> Array:
        """The loss of each row, (rows,), at scores `f`."""
        raise TypeError(f"{self.title} does not define value(f, y)")

    def slope(self, f: Array, y: Any) -> Array:
        """A subgradient of each row's loss with respect to its scores, like `f`."""
        raise TypeError(f"{self.title} does not define slope(f, y)")

    def floor(self, y: Any) -> Array | float:
        """A lower bound of each row's loss, (rows,) or one number for all."""
        return self.least

    def kinks(self, y: Any) -> Array | None:
        """The scores at which the slope of each row jumps, ascending, (rows, kinks), if it is constant between them.

        None where it is not, or there are several scores: then there is no exact line search.
        """
        return None

    def cancelled(self, f: Array, y: Any) -> Array | float:
        """Absolute values of terms that cancel inside each row's loss, (rows,), if value and slope do not show them."""
        return 0.0

    def arguments(self, summary: Summary) -> tuple[Any, ...]:
        """What the kernels take after the arrays: the parameters, in the order of the fields."""
        return self.scalars

    @cached_property
    def scalars(self) -> tuple[float, ...]:
        """The parameters, in the order of the fields."""
        cls: Any = type(self)
        return tuple([float(getattr(self, name)) for name in _fields_of(cls)])

    def _prepared(self, targets: Targets, y: NDArray[Any], scores_per_row: int, summary: Summary) -> PreparedRows:
        compiled = (self.kernel, self.along_kernel, self.prox_row)
        arguments = () if compiled == (None, None, None) else self.arguments(summary)
        return _prepared_as(self)(self, y, domain.checked_weights(targets, self.title), scores_per_row, arguments)


class OneScoreLoss(RowLoss):
    """One score per row; a `curvature(f, y)` gives the second derivative of each row's loss."""

    value_slope: ClassVar[Row | None] = None
    generated_kernel: ClassVar[Callable[..., float] | None] = None
    """The `kernel` generated from `value_slope`, for a hand-written `kernel` that passes some cases to it."""
    shown_target: ClassVar[float] = 0.0
    """The target for which figures show the loss."""

    @property
    def hessian_bound(self) -> float:
        """An upper bound of the second derivative of a row's loss; inf if it is unbounded or unknown."""
        return math.inf

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        generate(cls)
        if [*lacking(cls, ("curvature", "hessian_product"))] == ["hessian_product"]:
            setattr(cls, "hessian_product", _diagonal_product)  # noqa: B010 (optional, so that the class has none)

    def value(self, f: Array, y: Any) -> Array:
        """The loss of each row, (rows,), at scores `f`."""
        return super().value(f, y) if self.value_slope is None else self.value_slope(f, y)[0]

    def slope(self, f: Array, y: Any) -> Array:
        """Its slope in f."""
        return super().slope(f, y) if self.value_slope is None else self.value_slope(f, y)[1]


def _diagonal_product(self: Any, f: Array, y: Any, step: Array) -> Array:
    product: Array = np.multiply(self.curvature(f, y), step)
    return product


class MarginLoss(OneScoreLoss):
    """Two classes; `y` is -1.0 or 1.0. The last of the two labels in sort order is the positive one."""

    task: ClassVar[str] = "binary"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "auc")
    shown_target = 1.0

    def summarise(self, targets: Targets) -> Summary:
        """The labels of these rows and how many have each.

        Parameters
        ----------
        targets : of the rows of this rank.
        """
        return domain.summary_of_labels(targets, self.title)

    def prepare(self, targets: Targets, summary: Summary) -> PreparedRows:
        """Bind to some rows; InputError unless there are exactly two labels over all rows.

        Parameters
        ----------
        targets : of the rows of this rank.
        summary : of all rows: those of `summarise`, added up over ranks.
        """
        return self._prepared(targets, signs(targets, summary, self.title), 1, summary)

    def predict(self, f: Array, labels: Labels) -> NDArray[Any]:
        """The positive label where f > 0, else the negative one; (rows,).

        Parameters
        ----------
        f : the scores, (rows,), or (rows, labels) where there are several.
        labels : all of them, in the order of scores; empty for regression.
        """
        return np.array(labels)[(f > 0.0).astype(np.intp)]

    def targets01(self, y: Array) -> Array:
        """1.0 for the positive label, 0.0 for the negative one; (rows,).

        Parameters
        ----------
        y : (rows,), the targets as `prepare` has them.
        """
        return 0.5 * (y + 1.0)


class RegressionLoss(OneScoreLoss):
    """A number per row; `y` is float64."""

    task: ClassVar[str] = "regression"
    metrics: ClassVar[tuple[str, ...]] = ("r2", "mae")

    def summarise(self, targets: Targets) -> Summary:
        """Number of rows and their weight.

        Parameters
        ----------
        targets : of the rows of this rank.
        """
        return domain.summary_of_rows(targets, self.title)

    def prepare(self, targets: Targets, summary: Summary) -> PreparedRows:
        """Bind to some rows; InputError if a target is not a finite number.

        Parameters
        ----------
        targets : of the rows of this rank.
        summary : of all rows: those of `summarise`, added up over ranks.
        """
        return self._prepared(targets, domain.numbers(targets, self.title), 1, summary)

    def predict(self, f: Array, labels: Labels) -> NDArray[Any]:
        """The score itself, (rows,).

        Parameters
        ----------
        f : the scores, (rows,), or (rows, labels) where there are several.
        labels : all of them, in the order of scores; empty for regression.
        """
        return f

    def targets01(self, y: Array) -> Array:
        """The targets.

        Parameters
        ----------
        y : (rows,), the targets as `prepare` has them.
        """
        return y


class MulticlassLoss(RowLoss):
    """K >= 2 classes with a score each; `f` is (rows, K), `y` the position of the label, int64.

    A `hessian_product(f, y, step)` gives the product of each row's second derivative with its row of `step`.
    """

    task: ClassVar[str] = "multiclass"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    def summarise(self, targets: Targets) -> Summary:
        """The labels of these rows and how many have each.

        Parameters
        ----------
        targets : of the rows of this rank.
        """
        return domain.summary_of_labels(targets, self.title)

    def prepare(self, targets: Targets, summary: Summary) -> PreparedRows:
        """Bind to some rows; InputError unless there are at least two labels over all rows.

        Parameters
        ----------
        targets : of the rows of this rank.
        summary : of all rows: those of `summarise`, added up over ranks.
        """
        if len(summary.labels) < 2:
            raise InputError(f"{self.title}: {_too_few(summary)}, expected at least two classes")
        y = domain.label_positions(targets, summary.labels, self.title)
        return self._prepared(targets, y, len(summary.labels), summary)

    def predict(self, f: Array, labels: Labels) -> NDArray[Any]:
        """The label of the largest score, (rows,).

        Parameters
        ----------
        f : the scores, (rows,), or (rows, labels) where there are several.
        labels : all of them, in the order of scores; empty for regression.
        """
        chosen: NDArray[Any] = np.array(labels)[np.argmax(f, axis=1)]
        return chosen


_KINDS: dict[type, type[PreparedRows]] = {}


def _prepared_as(loss: RowLoss) -> type[PreparedRows]:
    """The class of rows prepared for a loss, by what its class has; looked up once for each."""
    found = _KINDS.get(type(loss))
    if found is None:
        known = provides(loss, HasRowHessian), provides(loss, HasRowCurvature), provides(loss, HasRowProx)
        found = SharedRows if provides(loss, HasRowShares) else PREPARED[known]
        if loss.settle_scores_row is not None and loss.offset_scores_row is not None:
            found = ProximalScoresRows
        _KINDS[type(loss)] = found
    return found


@cache
def _fields_of(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cast("Any", cls)))


def signs(targets: Targets, summary: Summary, loss: str) -> Array:
    """1.0 for rows of the second label and -1.0 for the first; InputError unless `summary` has exactly two."""
    count = len(summary.labels)
    if count < 2:
        raise InputError(f"{loss}: {_too_few(summary)}, expected two classes")
    if count > 2:
        listed = domain.listed(summary.labels, summary.dtype)
        raise InputError(f"{loss}: {count} labels: {listed}; expected two classes")
    return np.where(domain.label_positions(targets, summary.labels, loss) == 1, 1.0, -1.0)


def _too_few(summary: Summary) -> str:
    if not summary.labels:
        return "no labelled rows"
    return f"only one class: {domain.listed(summary.labels, summary.dtype)}"
