"""Losses over groups of rows that are labelled together: a structure, times margin, slack or log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import inlined, jit, made
from bmrm.kernels.products.vectors import plain
from bmrm.kernels.structures import sums
from bmrm.kernels.structures.sums import Groups
from bmrm.losses._core import domain
from bmrm.losses._core.prepared import NO_WEIGHTS, Array, Curve, Positions
from bmrm.losses.base import Labels, LossBase
from bmrm.problem import Hessian, InputError, PreparedLoss, Summary, Targets, Vector

Function = Callable[..., Any]
Given = NDArray[np.int64]


def compiled(function: Function) -> Function:
    """A function of one group, compiled when it is first called: a static method of a structure.

    Parameters
    ----------
    function : with the arguments that `Structure` tells.
    """
    return jit(function)


class Structure:
    """What the labelings of a group of rows are worth, and how the best of them is found.

    A labeling gives each row a label, 0 to K - 1. Its score is a sum of terms, numbers among the scores `f` of the
    rows, (rows, scores per row), and the `parameters` of the loss, an array; the first K scores of a row are those of
    its labels. Compiled functions of one group (`compiled`), `given` being what `Targets.structure` says of its rows:

    `terms(path, f, parameters, given, at) -> count`
        Fill `at` with where the terms of the labeling `path` stand in the `parameters` followed by `f`, both in C
        order. The n-th term of every labeling belongs to the same row, or is a parameter.
    `best(f, parameters, given, path)`
        Fill `path` with the labeling of the highest score. For margin, and for predictions.
    `marginals(f, parameters, given, shares, of_parameters) -> log of the sum over labelings of exp(score)`
        Fill the derivatives of that. For log.
    `violating(f, parameters, given, truth, margins, rates, path)`
        Fill `path` with the labeling of the largest rates[e] (margins[e] + score - that of the truth), e being its
        errors. For slack.

    Three more are made from these, unless they are written as well: `worst(f, parameters, given, truth, path)`, the
    labeling of most errors + score; `score(path, f, parameters, given)`; and `log_partition(f, parameters, given)`,
    what `marginals` returns alone. A labeling has at most four terms for each row of a group.
    """

    numbers: ClassVar[int] = 0
    """Numbers that `Targets.structure` must have for each row."""
    parameters: ClassVar[str] = "transitions"
    """The name of the parameters in a model."""
    terms: ClassVar[Function]
    best: ClassVar[Function]
    marginals: ClassVar[Function | None] = None
    violating: ClassVar[Function | None] = None
    curvatures: Function | None = None
    """Where it is known, (f, parameters, step, step of parameters, groups, slope, of parameters): fill `slope` with the
    second derivative of the sum of -log(likelihood) times the step, and add that of the parameters to the last."""

    @property
    def worst(self) -> Function:
        """The labeling of most errors + score."""
        return made(sums.worst_by_best, best=self.best)

    @property
    def score(self) -> Function:
        """The score of a labeling."""
        return made(sums.score_by_terms, terms=self.terms)

    @property
    def log_partition(self) -> Function:
        """What `marginals` returns, alone."""
        assert self.marginals is not None
        return made(sums.log_partition_by_marginals, marginals=self.marginals)

    def scores(self, labels: int) -> int:
        """Scores per row.

        Parameters
        ----------
        labels : K.
        """
        return labels

    def shape(self, labels: int) -> tuple[int, ...]:
        """Of the parameters; (0,) for none.

        Parameters
        ----------
        labels : K.
        """
        return (labels, labels)

    def check(self, given: Given, starts: Positions, title: str) -> None:
        """Raise InputError where what is given of the rows is no such structure.

        Parameters
        ----------
        given : (rows, numbers).
        starts : (groups + 1,), where the rows of each group begin, and the last end.
        title : who asks, for messages.
        """

    def likelihoods(self, f: Array, parameters: Array, groups: Groups, slope: Array, of_parameters: Array) -> float:
        """The sum over groups of weight times -log(likelihood).

        Parameters
        ----------
        f : (rows, scores per row).
        parameters : of the structure.
        groups : the rows.
        slope : like `f`, is filled.
        of_parameters : like `parameters`, is added to.
        """
        assert self.marginals is not None
        total = made(sums.likelihoods, terms=self.terms, marginals=self.marginals)
        return float(total(f, parameters, groups, room_of(groups), np.empty_like(parameters), slope, of_parameters))


def room_of(groups: Groups) -> NDArray[np.int64]:
    """For the terms of two labelings of the longest group."""
    return np.empty((2, sums.MOST_TERMS * int(np.diff(groups.starts).max(initial=0))), np.int64)


class PreparedGroups(PreparedLoss):
    """Some groups of rows, ready to be evaluated.

    Attributes
    ----------
    structure : of the groups.
    groups : the rows, see `Groups`.
    labels : K.
    """

    infimum = 0.0

    def __init__(self, loss: Any, groups: Groups, labels: int) -> None:
        self.loss, self.groups, self.labels = loss, groups, labels
        self.structure: Structure = loss.structure
        self.scores_per_row = self.structure.scores(labels)
        self.shape = self.structure.shape(labels)
        self.extra_dim = int(np.prod(self.shape))
        weights = groups.weights
        self.mass = float(weights.sum()) if weights.size else float(groups.starts.size - 1)

    def _require(self, name: str, function: Function | None) -> None:
        if function is None:
            raise InputError(f"{self.loss.title}: the structure {type(self.structure).__name__} has no {name}")

    def part(self, start: int, stop: int) -> PreparedGroups:
        """The rows [start, stop), whole groups."""
        given, y, starts, weights = self.groups
        first, last = np.searchsorted(starts, (start, stop))
        if starts[first] != start or starts[last] != stop:
            raise InputError(f"{self.loss.title}: the rows {start} to {stop} part a {self.loss.group}")
        own = Groups(given[start:stop], y[start:stop], starts[first : last + 1] - start, weights[first:last])
        return type(self)(self.loss, own, self.labels)

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The weighted sum over the groups, and its slope, like `f`."""
        f = plain(f)
        slope = np.zeros_like(f)
        return float(self._add_up(*self.split(f), *self.split(slope))), slope

    def _add_up(self, f: Array, parameters: Array, slope: Array, of_parameters: Array) -> float:
        """The weighted sum; the slopes, which are 0, are filled."""
        raise TypeError(f"{type(self).__name__} defines no sum over groups")

    def split(self, f: Array) -> tuple[Array, Array]:
        """The scores of the rows, and the parameters behind them, views."""
        flat = f.reshape(-1)
        border = flat.size - self.extra_dim
        return flat[:border].reshape(-1, self.scores_per_row), flat[border:].reshape(self.shape)


class LogGroups(PreparedGroups):
    """log(sum over labelings of exp(score)) - the score of the truth."""

    smooth = True

    def __init__(self, loss: Any, groups: Groups, labels: int) -> None:
        super().__init__(loss, groups, labels)
        self._require("marginals", self.structure.marginals)
        self.hessian: Hessian = "none" if self.structure.curvatures is None else "product"

    def _add_up(self, f: Array, parameters: Array, slope: Array, of_parameters: Array) -> float:
        return self.structure.likelihoods(f, parameters, self.groups, slope, of_parameters)

    def hessian_product(self, f: Array, step: Array) -> Array:
        """The second derivative of the weighted sum times a step; a new array like it.

        Parameters
        ----------
        f : scores and parameters, where it is taken.
        step : like `f`.
        """
        assert self.structure.curvatures is not None
        f, step = plain(f), plain(step)
        product = np.zeros_like(f)
        self.structure.curvatures(*self.split(f), *self.split(step), self.groups, *self.split(product))
        return product


class MarginGroups(PreparedGroups):
    """max over labelings of (errors + score) - the score of the truth: the margin is rescaled by the errors."""

    smooth = False

    @property
    def _violating(self) -> Function:
        return made(sums.violating_by_worst, inlined, worst=self.structure.worst)

    @cached_property
    def tables(self) -> tuple[Array, Array]:
        """Margins and rates by the number of errors, 0, 1 and so on."""
        errors = np.arange(1.0 + np.diff(self.groups.starts).max(initial=0))
        return errors, np.ones_like(errors)

    def _sum(self, template: Function, *scores: Array) -> Function:
        """A sum over groups at these scores; what is left of its arguments comes when it is called."""
        total = made(template, terms=self.structure.terms, violating=self._violating)
        room = np.empty((2, sums.MOST_TERMS * (self.tables[0].size - 1)), np.int64)
        return partial(total, *scores, self.groups, *self.tables, room)

    def _add_up(self, f: Array, parameters: Array, slope: Array, of_parameters: Array) -> float:
        total: float = self._sum(sums.violations, f, parameters)(slope, of_parameters)
        return total

    def along(self, f: Array, step: Array) -> Curve:
        """The function t -> (sum at f + t step, its derivative in t), for a vector of t; no slope is formed.

        Parameters
        ----------
        f : scores and parameters.
        step : like `f`.
        """
        at, towards = self.split(plain(f)), self.split(plain(step))

        def curve(ts: Vector) -> tuple[Vector, Vector]:
            ts = np.array(ts, np.float64)
            values, derivatives = np.empty_like(ts), np.empty_like(ts)
            self._sum(sums.violations_along, *at, *towards)(ts, values, derivatives)
            return values, derivatives

        return curve


class SlackGroups(MarginGroups):
    """max over labelings of rate (margin + score - the score of the truth), both a table of the errors (`rescaled`)."""

    def __init__(self, loss: Any, groups: Groups, labels: int) -> None:
        super().__init__(loss, groups, labels)
        self._require("violating", self.structure.violating)
        _ = self.tables  # which refuses powers that are not finite

    @property
    def _violating(self) -> Function:
        assert self.structure.violating is not None
        return self.structure.violating

    @cached_property
    def tables(self) -> tuple[Array, Array]:
        """As of `MarginGroups`, of the loss."""
        return self.loss.rescaled(super().tables[0])  # type: ignore[no-any-return]


MARGIN, SLACK, LOG = MarginGroups, SlackGroups, LogGroups
"""The three forms of a loss of a structure."""


def group_starts(groups: NDArray[np.int64] | None, rows: int, loss: Any) -> Positions:
    """(groups + 1,) int64: the first row of each run of equal groups, then the number of rows."""
    if groups is None and rows:
        raise InputError(f"{loss.title}: no groups, expected the number of its {loss.group} for each {loss.member}")
    inner = np.empty(0, np.int64) if groups is None else np.flatnonzero(np.diff(groups)) + 1
    ends = [0, rows] if rows else [0]
    return np.concatenate((ends[:1], inner, ends[1:])).astype(np.int64)


def group_weights(weights: Vector | None, starts: Positions, loss: Any) -> Vector:
    """(groups,): the weight that all rows of a group share; empty for 1 each."""
    if weights is None:
        return NO_WEIGHTS
    each = weights[starts[:-1]]
    other = np.flatnonzero(weights != np.repeat(each, np.diff(starts)))
    if other.size:
        raise InputError(
            f"{loss.title}: the weight of row {other[0]} differs from that of the rest of its {loss.group}"
        )
    return each


@dataclass(frozen=True)
class StructuredLoss(LossBase):
    """A label per row, those of a group of consecutive rows depending on one another: `structure` times `form`.

    R is the mean over groups, by weight; all rows of a group have one weight. The parameters of the structure are
    learned and regularized with the weights.
    """

    structure: ClassVar[Any]
    """A `Structure`, or a property that makes one from the parameters of the loss."""
    form: ClassVar[type[PreparedGroups]]
    """MARGIN, SLACK or LOG."""
    group: ClassVar[str] = "group"
    """What a group is called in messages, and `member` a row."""
    member: ClassVar[str] = "row"
    by_structure: ClassVar[bool] = False
    task: ClassVar[str] = "sequence"
    instead_of_intercept: ClassVar[str] = "the parameters of the structure tell how frequent labels are"
    decomposes: ClassVar[Literal["rows", "groups", "no"]] = "groups"
    by_group = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "form" in vars(cls):
            cls.smooth = bool(cls.form.smooth)
        if isinstance(vars(cls).get("structure"), Structure):
            cls.by_structure = cls.structure.numbers > 0

    def summarise(self, targets: Targets) -> Summary:
        """The labels of these rows and how many have each.

        Parameters
        ----------
        targets : of the rows.
        """
        return domain.summary_of_labels(targets, self.title)

    def prepare(self, targets: Targets, summary: Summary) -> PreparedGroups:
        """Bind to some groups; InputError without groups, or with less than two labels over all rows.

        Parameters
        ----------
        targets : of the rows of these groups.
        summary : of all rows.
        """
        if len(summary.labels) < 2:
            found = (
                f"only one label: {domain.listed(summary.labels)}" if summary.labels else f"no labelled {self.member}s"
            )
            raise InputError(f"{self.title}: {found}, expected at least two labels")
        y = domain.label_positions(targets, summary.labels, self.title)
        starts = group_starts(targets.groups, targets.rows, self)
        weights = group_weights(domain.checked_weights(targets, self.title), starts, self)
        given = self._given(targets.structure, targets.rows, starts)
        return self.form(self, Groups(given, y, starts, weights), len(summary.labels))

    def _given(self, structure: Given | None, rows: int, starts: Positions) -> Given:
        """What is given of the rows, checked."""
        wanted = self.structure.numbers
        if not wanted:
            return np.empty((rows, 0), np.int64)
        if structure is None or structure.shape != (rows, wanted):
            found = "no structure" if structure is None else f"a structure of shape {structure.shape}"
            raise InputError(f"{self.title}: {found}, expected ({rows}, {wanted}) integers")
        self.structure.check(structure, starts, self.title)
        return np.ascontiguousarray(structure, np.int64)

    def rescaled(self, errors: Array) -> tuple[Array, Array]:
        """Margins and rates by the number of errors, for the form SLACK: 1, and the errors.

        Parameters
        ----------
        errors : 0, 1 and so on.
        """
        return np.minimum(errors, 1.0), errors

    def extra_parameters(self, labels: int) -> int:
        """The number of parameters that are learned with the weights.

        Parameters
        ----------
        labels : K.
        """
        return int(np.prod(self.structure.shape(labels)))

    def named_parameters(self, parameters: Array, labels: int) -> dict[str, Array]:
        """As a model keeps them, by the names that `predict` gives them.

        Parameters
        ----------
        parameters : of the structure, flat.
        labels : K.
        """
        shape = self.structure.shape(labels)
        return {self.structure.parameters: parameters.reshape(shape).copy()} if np.prod(shape) else {}

    def predict(
        self,
        f: Array,
        labels: Labels,
        parameters: Array | None = None,
        groups: NDArray[np.int64] | None = None,
        structure: Given | None = None,
        **named: Array,
    ) -> NDArray[Any]:
        """The labels of each group's best labeling, (rows,).

        Parameters
        ----------
        f : (rows, scores per row).
        labels : K of them, in score order.
        parameters : of the structure.
        named : the parameters by their name, in their place.
        groups : (rows,), equal and consecutive within a group.
        structure : (rows, numbers), where the structure asks for some.
        """
        shape = self.structure.shape(len(labels))
        found = named.get(self.structure.parameters, np.empty(shape)) if parameters is None else parameters
        rows = self._rows(f.shape[0], groups, structure)
        made(sums.labelings, best=self.structure.best)(
            plain(f), plain(found).reshape(shape), rows.given, rows.starts, rows.y
        )
        chosen: NDArray[Any] = np.array(labels)[rows.y]
        return chosen

    def label_marginals(
        self, f: Array, parameters: Array, groups: NDArray[np.int64] | None = None, structure: Given | None = None
    ) -> Array:
        """How probable each label of each row is, (rows, K): the `probabilities` of a loss of form LOG.

        Parameters
        ----------
        f : (rows, scores per row).
        parameters : (K, K), of the structure.
        groups : (rows,), equal and consecutive within a group.
        structure : (rows, numbers), where the structure asks for some.
        """
        rows, slope, other = self._rows(f.shape[0], groups, structure), np.zeros(f.shape), np.zeros(parameters.shape)
        self.structure.likelihoods(plain(f), plain(parameters), rows, slope, other)
        shares: Array = slope[:, : parameters.shape[0]].copy()
        shares[:, 0] += 1.0  # the slope is the marginals less the labels, here the first
        return shares

    def _rows(self, rows: int, groups: NDArray[np.int64] | None, structure: Given | None) -> Groups:
        """Rows without labels: the first for each."""
        starts = group_starts(groups, rows, self)
        return Groups(self._given(structure, rows, starts), np.zeros(rows, np.int64), starts, NO_WEIGHTS)
