"""A model of several columns of targets: a problem for each, one after another, on rows that were read once.

What is minimised is the sum of all; so its objective, and its lower bound, are sums of those of the columns.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from bmrm.app.measure import check_labelled, prepared_targets
from bmrm.app.model import Model
from bmrm.app.model_file import COLUMNS
from bmrm.app.pipeline.beginning import From
from bmrm.app.pipeline.center import resolved
from bmrm.app.pipeline.fingerprint import Facts
from bmrm.app.pipeline.load import class_weighted, positive_last
from bmrm.app.pipeline.solve import Problem, Watch, labels_of, lambda_of_rows, scaled_columns, solve, unwatched
from bmrm.data.dataset import Dataset
from bmrm.data.files import about
from bmrm.data.labels import LabelSets
from bmrm.losses._core.per_column import EachLabel, EachOutput, OneVsRest, PerColumn, per_column
from bmrm.mpi.group import Group, together
from bmrm.mpi.shared import merged_summary
from bmrm.problem import Callback, IncompatibleError, InputError, Iteration, Solution, Status, Summary, facts_of

TOGETHER = "together"
CLASSES, LABELS = (TOGETHER, OneVsRest.kind), (TOGETHER, EachLabel.kind)
"""Values of `data.classes` and `data.labels`."""
SAID = 3
"""Columns whose messages are told."""
LEAST_SECONDS = 1e-3
"""Time limit of a column that is left none."""
ORDER = (
    Status.NON_FINITE,
    Status.NOT_CONVEX,
    Status.INTERRUPTED,
    Status.TIME_LIMIT,
    Status.ITERATION_LIMIT,
    Status.STALLED,
    Status.OWN_RULE,
    Status.CONVERGED,
)
"""Which of several statuses is that of all: the first that one of them has."""


def solve_any(
    data: Dataset,
    problem: Problem,
    group: Group,
    watch: Watch = unwatched,
    others: Mapping[str, Dataset] | None = None,
    start: From = None,
    facts: Facts | None = None,
) -> Model | None:
    """Collective: `solve`, or `solve_columns` where the loss is one for each column of targets.

    Parameters
    ----------
    data, problem, group, watch, others, start, facts : as they have them.
    """
    if isinstance(problem.loss, PerColumn):
        return solve_columns(data, problem, group, watch, others, start)
    return solve(data, problem, group, watch, others, start, facts)


def loss_of_columns(loss: Any, classes: str | None, labels: str | None, data: Dataset | None, group: Group) -> Any:
    """Collective: the loss, or one for each column of targets.

    Parameters
    ----------
    loss : of one column, or of all.
    classes : "one_vs_rest" for each class against the others.
    labels : "each" for each label of rows that may have several.
    data : this rank's rows: a loss of regression is one for each of several targets; None before they are read.
    group : the ranks.

    Raises
    ------
    InputError
        Both, or a loss of another task.
    """
    with together(group):
        if classes == OneVsRest.kind and labels == EachLabel.kind:
            raise InputError("classes: one_vs_rest and labels: each, expected one of the two")
        if classes == OneVsRest.kind or labels == EachLabel.kind:
            return per_column(OneVsRest.kind if classes == OneVsRest.kind else EachLabel.kind, loss)
    if data is None or facts_of(loss).task != "regression":
        return loss
    y = data.targets.y
    columns = 0.0 if isinstance(y, LabelSets) or y.ndim != 2 else float(y.shape[1])
    several = group.max(np.array([columns if data.rows else 0.0]))[0] > 1.0
    return per_column(EachOutput.kind, loss) if several else loss


def solve_columns(
    data: Dataset,
    problem: Problem,
    group: Group,
    watch: Watch = unwatched,
    others: Mapping[str, Dataset] | None = None,
    start: From = None,
) -> Model | None:
    """Collective: the model of all columns of targets; None but on rank 0.

    Parameters
    ----------
    data : this rank's rows; `data.scale: unit_norm` has been applied to them.
    problem : the same on every rank; its loss is a `PerColumn`.
    group : the ranks.
    watch : what surrounds the solver on rank 0.
    others : rows whose targets are checked before the work begins.
    start : a model of the same columns, whose weights they begin with.

    Raises
    ------
    InputError
        For targets that are no such columns; a starting point that is no model.
    IncompatibleError
        For measures that would be followed while the solver runs.
    """
    loss: Any = problem.loss
    with together(group):
        for part, rows in {"train": data, **(others or {})}.items():
            check_labelled(loss, rows, f"data.{part}")
        if problem.follow is not None:
            raise IncompatibleError(f"{loss.title}: follow measures one problem; leave it out")
        if start is not None and not isinstance(start, Model):
            raise InputError(f"start: expected a model, with weights of each {loss.what}")
    summary = merged_summary(data.targets, loss, group)
    with together(group):
        count = len(summary.labels) or summary.outputs
        if count < 2:
            raise InputError(f"{loss.title}: {count} {loss.what}{'' if count == 1 else 's'}, expected two or more")
        summary = positive_last(summary, problem.positive_label)
        for part, rows in (others or {}).items():
            prepared_targets(loss, rows.targets, summary.labels, f"data.{part}")
    if isinstance(loss, OneVsRest) and count == 2:  # the second against the first is all there is
        return solve(data, replace(problem, loss=loss.loss), group, watch, others=others, start=start)
    if problem.relative is not None:
        lam = lambda_of_rows(problem, data, group)
        problem = replace(problem, relative=None, regularizer=replace(problem.regularizer, lam=lam))  # type: ignore[type-var]
    with together(group):  # weights of classes do not change it
        columns = scaled_columns(problem, data, group)
    center = resolved(problem.regularizer, data, loss.loss, summary, problem.scale, group, scores=count)
    data, _ = class_weighted(data, problem.class_weight, loss, summary, group)
    inner = replace(problem, loss=loss.loss, class_weight=None, positive_label=None, columns=columns)
    models: list[Model | None] = []
    clock = Clock(problem.solver, count)
    with watch(_no_model) if group.rank == 0 else nullcontext() as callback:
        beside = Beside(callback)
        for k, targets in enumerate(loss.columns(data.targets, summary)):
            rows = replace(data, targets=targets)
            one = replace(inner, solver=clock.limited(k), center=None if center is None else center.column(k))
            begin = _column(start, summary, k) if isinstance(start, Model) else None
            with about(_named(loss, summary, k)):
                models.append(solve(rows, one, group, beside.watch, start=begin))
            beside.close(models[-1])
    found = [model for model in models if model is not None]
    return _joined(found, problem, summary, beside.history, data) if found else None


def _no_model(solution: Solution) -> Model:
    raise AssertionError("no checkpoint is written of one column")


def _named(loss: PerColumn, summary: Summary, k: int) -> str:
    name = k if not summary.labels else labels_of(summary).tolist()[k]
    return f"{loss.what} {name!r}"


class Clock:
    """The solver of each column: what is left of a time limit is shared out among the columns that are left."""

    def __init__(self, solver: Any, columns: int) -> None:
        self._solver, self._columns = solver, columns
        known = solver is not None and is_dataclass(solver) and any(f.name == "time_limit" for f in fields(solver))
        limit = solver.time_limit if known else None
        self._end = None if limit is None else time.perf_counter() + limit

    def limited(self, column: int) -> Any:
        """That of the column of this number."""
        if self._end is None:
            return self._solver
        left = (self._end - time.perf_counter()) / (self._columns - column)
        return replace(self._solver, time_limit=max(left, LEAST_SECONDS))


class Beside:
    """The callback of each column, which tells of all so far; a line of the history for each that has ended."""

    def __init__(self, callback: Callback | None) -> None:
        self._callback = callback
        self.history: list[Iteration] = []

    def watch(self, model_of: Any) -> Any:
        """The `Watch` of a column."""
        return nullcontext(None if self._callback is None else self._told)

    def _told(self, line: Iteration) -> Any:
        assert self._callback is not None
        return self._callback(self._after(line))

    def _after(self, line: Iteration) -> Iteration:
        """The line, with what the columns before have brought; no point is that of all."""
        if not self.history:
            return replace(line, w=None, iterate=None)
        last = self.history[-1]
        return replace(
            line,
            iteration=last.iteration + line.iteration,
            seconds=last.seconds + line.seconds,
            passes=last.passes + line.passes,
            objective=last.objective + line.objective,
            lower_bound=last.lower_bound + line.lower_bound,
            w=None,
            iterate=None,
        )

    def close(self, model: Model | None) -> None:
        """End a column."""
        if model is None:
            return
        solution = model.solution
        line = solution.history[-1] if solution.history else None
        if line is not None:
            line = replace(
                line,
                iteration=solution.iterations,
                objective=solution.objective,
                lower_bound=solution.lower_bound,
                seconds=solution.seconds,
                passes=solution.passes,
            )
            self.history.append(self._after(line))


def _column(start: Model, summary: Summary, k: int) -> Model:
    """What a column begins with: that of a model of all."""
    theirs, ours = start.labels.tolist(), labels_of(summary).tolist()
    if theirs != ours or start.weights.ndim != 2:
        raise InputError(f"start: the labels of the model are {theirs!s:.60}, those of the data {ours!s:.60}")
    labels = np.array([0.0, 1.0]) if ours else start.labels
    return replace(
        start, weights=start.weights[:, k].copy(), intercept=start.intercept[k : k + 1].copy(), labels=labels
    )


def _joined(
    models: Sequence[Model], problem: Problem, summary: Summary, history: Sequence[Iteration], data: Dataset
) -> Model:
    """One model with a column of weights from each."""
    loss, solutions = problem.loss, [model.solution for model in models]
    if any(model.arrays for model in models):
        raise IncompatibleError(f"{loss.title}: the loss learns more than weights, which one model has no room for")
    names = [_named(loss, summary, k) for k in range(len(models))]
    solution = _sum(solutions, history, names)
    weights = np.stack([model.weights for model in models], axis=1)
    intercept = np.concatenate([model.intercept for model in models])
    each = {
        "objective": [_finite(one.objective) for one in solutions],
        "lower_bound": [_finite(one.lower_bound) for one in solutions],
        "status": [one.status.name for one in solutions],
    }
    header = {
        **models[0].header,
        "objective": _finite(solution.objective),
        "lower_bound": _finite(solution.lower_bound),
        "status": solution.status.name,
        COLUMNS: {"kind": loss.kind, **each},
    }
    if summary.form:
        header["sets"] = {"form": summary.form, "dtype": summary.dtype}
    return replace(
        models[0],
        weights=weights,
        intercept=intercept,
        labels=labels_of(summary),
        header=header,
        layout=data.layout,
        _solution=solution,
        _loss=loss,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _sum(solutions: Sequence[Solution], history: Sequence[Iteration], names: Sequence[str]) -> Solution:
    """The solution of all columns: sums, and the status of the worst."""
    status = next(status for status in ORDER if any(one.status is status for one in solutions))
    said = [f"{name}: {one.message}" for name, one in zip(names, solutions, strict=True) if one.message]
    more = f"and of {len(said) - SAID} more columns" if len(said) > SAID else ""
    return replace(
        solutions[0],
        w=np.stack([one.w for one in solutions], axis=1).ravel(),
        objective=math.fsum(one.objective for one in solutions),
        lower_bound=math.fsum(one.lower_bound for one in solutions),
        status=status,
        iterations=sum(one.iterations for one in solutions),
        passes=math.fsum(one.passes for one in solutions),
        seconds=math.fsum(one.seconds for one in solutions),
        seconds_compiling=math.fsum(one.seconds_compiling for one in solutions),
        history=tuple(history),
        planes=None,
        details={},
        message="; ".join(filter(None, (*said[:SAID], more))),
    )
