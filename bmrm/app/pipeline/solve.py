"""From rows and plug-ins to a model: intercept, scaling and ranks are added around a solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.app.config.relative import lambda_of
from bmrm.app.measure import check_labelled, prepared_targets, scores_of
from bmrm.app.model import Model
from bmrm.app.model_file import OFFSET, ROW_SCALES, SHARES, make_header
from bmrm.app.pipeline.beginning import From, start_of_model
from bmrm.app.pipeline.center import Center, has_center, names_of, plain, resolved, with_scores_of
from bmrm.app.pipeline.fingerprint import Facts
from bmrm.app.pipeline.folding import as_folded, without_common
from bmrm.app.pipeline.follow import Follow, Follower, check_followed
from bmrm.app.pipeline.load import class_weighted, positive_last
from bmrm.app.pipeline.nothing_learned import nothing_learned, targets_differ, zeros_are_as_good
from bmrm.app.pipeline.unattained import unattained
from bmrm.checks import sample
from bmrm.data.class_weights import ClassWeight
from bmrm.data.dataset import Dataset
from bmrm.data.label_types import restored, shown_label
from bmrm.data.layout import Layout
from bmrm.kernels.blas_threads import one_thread
from bmrm.losses._core.domain import listed
from bmrm.mpi.group import Alone, Group, together
from bmrm.mpi.guard import Guard, Guarding, Rounded
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import merged_summary, shared_risk
from bmrm.problem import (
    BmrmError,
    Callback,
    IncompatibleError,
    InputError,
    Regularizer,
    Risk,
    Scored,
    Solution,
    Solver,
    Start,
    Status,
    Summary,
    Vector,
    ability,
    bound,
    facts_of,
    lacking,
    provides,
)
from bmrm.problem.loss import HasParameters, HasThreshold
from bmrm.problem.regularizer import FeatureColumns, OfFeatures, Rescalable
from bmrm.problem.risk import ROUNDING
from bmrm.risk.linear import LinearRisk
from bmrm.risk.linear_map import DataMap
from bmrm.risk.offset import refuse_offset
from bmrm.risk.products import Columns
from bmrm.risk.room import VECTORS, WIDE, refuse_mostly_empty, refuse_too_wide
from bmrm.risk.scaling import SCALINGS, far_columns, moved, refuse_overflow, within_range
from bmrm.solvers import SOLVERS

Table = NDArray[np.float64]
"""Weights (features,) or (features, scores per row)."""
ModelOf = Callable[[Solution], Model]
Watch = Callable[[ModelOf], AbstractContextManager["Callback | None"]]
"""From a function that makes models of solutions, a context manager around the solver that provides its callback."""
HARMLESS = 100.0
"""Decimal exponents of targets, up and down, within which their squares, and products of those, are finite and not
0."""
FEW = 100
"""Rows of the first calls that compile kernels."""
CONSTANT = "intercept"
"""Key, in the details of a solution, of the best free intercept of one score, where its solver knows it."""


@dataclass(frozen=True)
class Problem:
    """What to minimise, and how."""

    loss: Any
    regularizer: Regularizer
    solver: Solver | None
    """None on ranks that only answer."""
    bias: str = "none"
    scale: str = "none"
    positive_label: float | str | None = None
    class_weight: ClassWeight = None
    """Factors of the weights of rows by their class; lambda and the scaling of features do not depend on them."""
    shares: bool = False
    """Whether the rows stand for shares of labels, see `bmrm.app.shares`."""
    threads: int | None = None
    share_rows: bool = False
    """Whether ranks may give rows to rank 0."""
    relative: Mapping[str, Any] | None = None
    """For a lambda relative to the data: the checked rule of `bmrm.app.config.relative`."""
    follow: Follow | None = None
    """What is measured of the validation rows while the solver runs."""
    columns: Columns | None = None
    """Of the scaling, where they are known already."""
    mapped: bool = False
    """Whether the rows are what a feature map has made of scaled ones."""
    center: Center | None = None
    """That of the regularizer, where it is known already."""
    slices: bool = False
    """Whether each rank runs the solver on a slice of the features."""
    guard: Guard | None = None
    """What ranks hold back of their rows; None for nothing, and in one process."""


def unwatched(model_of: ModelOf) -> AbstractContextManager[Callback | None]:
    """The `Watch` that does nothing."""
    return nullcontext()


def _asked_for(data: Dataset) -> bool:
    """Whether the number of features was stated, or follows from hashing."""
    layout = data.layout
    if layout is None or layout.stated:
        return layout is not None
    return layout.text is not None and layout.text.vocabulary.hash_bits is not None


def _held(problem: Problem, group: Group) -> tuple[int, str]:
    """The vectors of weights that the solver of this rank holds at its peak, and its name; few where there is none.

    With slices those are divided; what is whole in a pass comes in addition.
    """
    solver = problem.solver
    entry = SOLVERS.entry_of(solver)
    if entry is None:
        return VECTORS, "a solver" if solver is None else type(solver).__name__
    held = int(entry.facts.get("vectors", VECTORS))
    return -(-held // group.size) + VECTORS if problem.slices and group.size > 1 else held, entry.name


def solve(
    data: Dataset,
    problem: Problem,
    group: Group,
    watch: Watch = unwatched,
    others: Mapping[str, Dataset] | None = None,
    start: From = None,
    facts: Facts | None = None,
) -> Model | None:
    """Collective: the model for the rows of all ranks; None but on rank 0.

    Parameters
    ----------
    data : this rank's rows; `data.scale: unit_norm` has been applied to them.
    problem : the same on every rank.
    watch : what surrounds the solver on rank 0.
    others : rows whose targets are checked before the work begins; `problem.follow` follows those of `validation`.
    start : starting point, in the solver's units (scaled features, a constant feature last) or as a model of any
        problem with these features and labels; only that of rank 0 is used.
    facts : description of the problem, see `bmrm.app.pipeline.fingerprint`, if the bound of a model may belong to it.
    """
    with one_thread(problem.threads or group.cores_per_rank):
        ready = prepared(data, problem, group, others)
        problem, bias = ready.problem, BIASES[problem.bias]
        follower = None
        if problem.follow is not None:
            rows = (others or {})["validation"]
            follower = Follower(problem.follow, rows, problem.loss, group, ready.risk, ready.threads)
        minimise = _minimiser(ready, group)

        def work(whole: Risk) -> Model:
            assert problem.solver is not None
            minimised: Any = bias.wrap(whole)
            omega = bound(problem.regularizer, minimised)

            def model_of(solution: Solution) -> Model:
                return ready.model(minimised, solution, problem.regularizer)

            first: Any = start
            if isinstance(start, Model):
                w = weights_of(start, problem, ready.summary, ready.columns, data.features, ready.own, ready.center)
                first = start_of_model(start, facts or {}, w) if facts is not None else w
            with watch(model_of) as callback:
                if follower is not None:
                    callback = follower.beside(callback, model_of)
                solution = minimise(minimised, first, callback)
            model = model_of(solution)
            if ready.moved_back is not None and model.weights.ndim > 1 and not ready.own:
                other = model_of(without_common(solution, minimised, omega, model.weights.shape[1]))
                if other.solution.objective < model.solution.objective:  # type: ignore[union-attr]
                    model = other
            said = ready.said(minimised, omega, model)
            if said:
                found = model.solution
                message = "; ".join(filter(None, (found.message, said)))
                model = model_of(replace(found, message=message))
            if follower is None:
                return model
            return follower.finished(model, model_of, lambda w: minimised.value_and_subgradient(w)[0] + omega.value(w))

        model = lead(ready.risk, group, work)
    return with_threshold(model, data, problem.loss, ready.summary, group, ready.threads)


def _minimiser(ready: Prepared, group: Group) -> Callable[[Risk, From, Callback | None], Solution]:
    """Collective: what minimises on rank 0, there; with slices on all ranks at once."""
    problem = ready.problem

    def minimise(risk: Risk, start: Any, callback: Callback | None) -> Solution:
        return solved(cast(Solver, problem.solver), risk, bound(problem.regularizer, risk), start, callback)

    if not problem.slices or isinstance(group, Alone):
        return minimise
    from bmrm.mpi.sliced_run import Slices
    from bmrm.solvers._core.monitor import starting_point

    slices = Slices(cast(Any, ready.risk), BIASES[problem.bias].wrap, minimise)

    def in_slices(risk: Risk, start: Any, callback: Callback | None) -> Solution:
        if start is not None:
            starting_point(risk, start)
        return slices.solution(risk, start, callback)

    return in_slices


@dataclass(frozen=True)
class Prepared:
    """Rows that were read and scaled once, and their risk, for one solver or several.

    Attributes
    ----------
    data : this rank's rows.
    problem : its regularizer knows the features.
    group : the ranks.
    summary : of the targets of all ranks.
    risk : of all rows; rank 0 minimises it with the intercept of `BIASES[problem.bias]` around it.
    ranged, inner : the rows within the range of the numbers, and what the risk does to their columns.
    columns : what was done to the columns, to be folded back into weights.
    far : means of columns that lie far from 0; None where none do.
    own : parameters of the loss at the end of w.
    differ : whether targets differ.
    threads : at most so many here.
    asked : the regularizer as it was asked for, where that of `problem` has no factors, features being divided by them
        (`Rescalable`), or no center; else None.
    center : of the weights, in the units of the solver, (inputs, scores), which is 0 to it; None for 0.
    notes : what is to be said of every model.
    """

    data: Dataset
    problem: Problem
    group: Group
    summary: Summary
    risk: Risk
    ranged: Dataset
    inner: Columns
    columns: Columns
    far: Vector | None
    own: int
    differ: bool
    threads: int | None
    asked: Any = None
    center: Table | None = None
    notes: str = ""

    @property
    def moved_back(self) -> Vector | None:
        """Means that a free intercept takes up; None where there are none."""
        return self.far if self.problem.bias == "free" else None

    def of_features(self, regularizer: Any) -> Any:
        """Another regularizer, its options read for these features."""
        found = _of_features(plain(regularizer), self.ranged, self.inner)
        rescaled = _rescaled(found)
        return found if rescaled is None else rescaled[1]  # `inner` has it already

    def model(self, minimised: Any, solution: Solution, regularizer: Regularizer) -> Model:
        """The model of a solution, for raw features.

        Parameters
        ----------
        minimised : the risk with its intercept.
        solution : where the regularizer has weights of the solver's units.
        regularizer : that it was found with.
        """
        told: Any = regularizer
        if self.asked is not None:
            told = replace(self.asked, lam=told.lam)
        problem, w = self.problem, solution.w
        if told is not problem.regularizer:
            problem = replace(problem, regularizer=told)
        bias, own, columns, data = BIASES[problem.bias], self.own, self.columns, self.data
        inputs = _table(w[: w.size - own], data.features + bias.constant_feature)
        known = solution.details.get(CONSTANT)
        if known is None:
            omega = bound(regularizer, minimised).value(w)
            table, intercept = bias.read(minimised, w, inputs, solution.objective, omega)
        else:
            table, intercept = inputs, np.array([float(known)])
        if self.center is not None:
            around = self.center.reshape(len(self.center), *table.shape[1:])
            table = table + around[: data.features]
            if bias.constant_feature:
                intercept = intercept + np.atleast_1d(around[-1])
        moved_back = self.moved_back
        if moved_back is not None and table.ndim > 1:  # of one score J is that before the intercept is rounded
            assert problem.solver is not None
            raw, folded = columns.raw_weights(table, intercept)
            solution = as_folded(solution, minimised, omega, folded, raw, moved_back, problem.solver)
        arrays = bias.learned(minimised, w)
        if own:
            arrays |= problem.loss.named_parameters(w[w.size - own :], len(self.summary.labels))
        has_offset = data.targets.offset is not None
        return _model(problem, self.summary, columns, solution, table, intercept, arrays, data.layout, has_offset)

    def said(self, minimised: Any, omega: Regularizer, model: Model) -> str:
        """What is to be said of a model: that nothing was learned, why there is no minimum, what went wrong.

        Parameters
        ----------
        minimised, omega : the risk with its intercept, and the regularizer bound to it.
        """
        problem, said = self.problem, [self.notes]
        solution, loss_facts = model.solution, facts_of(problem.loss)
        if self.differ and self.center is None:
            no_better = zeros_are_as_good(minimised, omega, model.weights, solution)
            said.append(nothing_learned(loss_facts, omega, model.weights, solution, no_better))
        if problem.guard is None:  # which looks at scores
            said.append(unattained(loss_facts, self.ranged, self.summary, minimised, omega, solution, problem.bias))
        if self.far is not None and solution.status is not Status.CONVERGED:
            said.append(_far_feature(self.data, self.far, problem.bias == "free"))
        if solution.status is Status.NON_FINITE and loss_facts.task == "regression":
            said.append(_extreme_target(self.data))
        return "; ".join(filter(None, said))


def prepared(data: Dataset, problem: Problem, group: Group, others: Mapping[str, Dataset] | None = None) -> Prepared:
    """Collective: rows and problem checked, features scaled, and the risk made; parameters as of `solve`."""
    with together(group):
        sample.check_declared("loss", problem.loss)
        sample.check_declared("regularizer", problem.regularizer)
        for part, rows in {"train": data, **(others or {})}.items():
            check_labelled(problem.loss, rows, f"data.{part}")
        if problem.follow is not None and group.rank == 0:
            check_followed(problem.follow, problem.loss)
    summary = merged_summary(data.targets, problem.loss, group)
    if data.features > WIDE and not _asked_for(data):
        entries = int(group.sum(np.array([float(data.nnz)]))[0])
    else:
        entries = data.features
    with together(group):
        _refuse_third_label(problem.loss, data, summary)
        if problem.bias == "free":
            _refuse_free_intercept(problem.loss)
        summary = positive_last(summary, problem.positive_label)
        _refuse_offset(problem.loss, summary, data, others or {})
        by_label = facts_of(problem.loss).task in ("multiclass", "multilabel", "ontology", "sequence")
        refuse_too_wide(data.features, max(1, len(summary.labels)) if by_label else 1, *_held(problem, group))
        refuse_mostly_empty(data.features, entries)
        for part, rows in (others or {}).items():
            prepared_targets(problem.loss, rows.targets, summary.labels, f"data.{part}")
    wanted, constant = problem.center, BIASES[problem.bias].constant_feature
    if wanted is None:
        wanted = resolved(problem.regularizer, data, problem.loss, summary, problem.scale, group)
    threads = problem.threads or group.cores_per_rank
    with one_thread(threads):  # a user's loss is tried where the risk is made
        with together(group):  # the same error on every rank, if any
            columns = problem.columns or scaled_columns(problem, data, group) or Columns()
            refuse_overflow(data, columns)
            ranged, inner = within_range(data, columns)
            far = far_columns(ranged, group) if problem.scale == "none" and problem.guard is None else None
            if far is not None and problem.bias == "free":
                ranged, columns = moved(ranged, far), Columns(None, far)
            if problem.relative is not None:
                lam = lambda_of(problem.relative, ranged, inner, group)
                problem = replace(problem, regularizer=replace(problem.regularizer, lam=lam))  # type: ignore[type-var]
            given: Any = problem.regularizer
            equal = _of_features(plain(given), ranged, inner)
            rescaled = _rescaled(equal)
            asked = given if rescaled is not None or has_center(given) else None
            if rescaled is not None:
                by, equal = rescaled
                columns, inner = columns.divided(by), inner.divided(by)
            if equal is not given:
                problem = replace(problem, regularizer=equal)
            center = None if wanted is None else wanted.scaled(columns, constant)
            if center is not None:
                ranged = with_scores_of(ranged, center, inner, constant, problem.loss, threads)
        ranged, summary = class_weighted(ranged, problem.class_weight, problem.loss, summary, group)
        if group.size > 1:
            group.first_per_node(lambda: warm_up_ranks(ranged, problem, summary, inner))
        differ = problem.guard is None and targets_differ(facts_of(problem.loss), data.targets, summary, group)
        risk = shared_risk(
            ranged,
            problem.loss,
            group,
            summary=summary,
            bias=constant,
            columns=inner,
            threads=problem.threads,
            share_rows=problem.share_rows,
            guarding=None if problem.guard is None else Guarding(problem.guard, problem.regularizer),
        )
    own = _own_parameters(problem.loss, len(summary.labels))
    found = Prepared(data, problem, group, summary, risk, ranged, inner, columns, far, own, differ, threads, asked)
    return found if wanted is None else replace(found, center=center, notes=wanted.said)


def _of_features(regularizer: Any, data: Dataset, columns: Columns) -> Any:
    """The regularizer, its options read for these features; InputError for those that are not there."""
    if not provides(regularizer, OfFeatures):
        return regularizer
    scale = columns.scale
    units = None if scale is None else np.divide(1.0, scale, out=np.ones_like(scale), where=scale != 0.0)
    return regularizer.with_features(FeatureColumns(data.features, names_of(data), units))


def _rescaled(regularizer: Any) -> tuple[Vector, Any] | None:
    """As of `Rescalable`."""
    return regularizer.rescaled() if provides(regularizer, Rescalable) else None


def lambda_of_rows(problem: Problem, data: Dataset, group: Group) -> float:
    """Collective: the lambda that follows from the training rows as they were read."""
    assert problem.relative is not None
    if problem.relative["scale"] == "none":
        return lambda_of(problem.relative, data, Columns(), group)
    scaled = SCALINGS[problem.scale].rows(data)
    return lambda_of(problem.relative, scaled, scaled_columns(problem, scaled, group) or Columns(), group)


def scaled_columns(problem: Problem, data: Dataset, group: Group) -> Columns | None:
    """Collective: scale and shift of the features; beside a guard maxima are rounded, so that they tell of no row."""
    return SCALINGS[problem.scale].columns(data, group if problem.guard is None else Rounded(group))


def _far_feature(data: Dataset, far: Vector, centred: bool) -> str:
    which = int(np.argmax(np.abs(far)))
    name = which if data.feature_names is None else repr(data.feature_names[which])
    if centred:
        return f"feature {name} lies around {far[which]:.4g}; it is centred, but not scaled: take scale: standardize"
    return (
        f"feature {name} lies around {far[which]:.4g} and varies by less than a thousandth of that, which takes digits "
        "from all scores: take scale: standardize, or bias: free"
    )


def _extreme_target(data: Dataset) -> str:
    """The largest target, or the smallest one above 0 where that is farther from 1; "" for those that do no harm."""
    sizes = np.abs(np.asarray(data.targets.y, np.float64))
    logarithms = np.abs(np.log10(np.where(sizes > 0.0, sizes, 1.0)))
    row = int(np.argmax(logarithms)) if len(sizes) else 0
    if not len(sizes) or logarithms[row] < HARMLESS:
        return ""
    return f"the target of row {row} is {data.targets.y[row]:.4g}, whose loss overflows: take targets nearer to 1"


def _refuse_offset(loss: Any, summary: Summary, data: Dataset, others: Mapping[str, Dataset]) -> None:
    """Raise where the loss takes no offset, or some rows have one and others none."""
    there = data.targets.offset is not None
    if there:
        refuse_offset(facts_of(loss), _own_parameters(loss, len(summary.labels)))
    for part, rows in others.items():
        if rows.rows and (rows.targets.offset is not None) != there:
            one, other = ("", "none") if there else ("no ", "one")
            raise InputError(
                f"data.{part}: {other} of its rows has an offset, the training rows have {one or 'an '}offset"
            )


def _refuse_third_label(loss: Any, data: Dataset, summary: Summary) -> None:
    """Raise InputError if the loss has two classes and these rows have a label beside the two most frequent ones."""
    if facts_of(loss).task != "binary" or len(summary.labels) <= 2:
        return
    frequent = sorted(range(len(summary.labels)), key=lambda k: -summary.counts[k])
    others = np.array(summary.labels)[sorted(frequent[2:])]
    there = np.isin(data.targets.y, others)
    if data.targets.weights is not None:
        there &= np.asarray(data.targets.weights) != 0.0
    if not there.any():
        return
    row = int(np.argmax(there))
    label = shown_label(data.targets.y[row].item(), summary.dtype)
    instead = facts_of(loss).multiclass
    raise InputError(
        f"{loss.title}: {len(summary.labels)} labels: {listed(summary.labels, summary.dtype)}; expected two classes"
        f"{f' ({instead} takes more)' if instead else ''}; {data.source_of(row)} has the label {label}"
    )


def with_threshold(
    model: Model | None, data: Dataset, loss: Any, summary: Summary, group: Group, threads: int | None
) -> Model | None:
    """Collective: the model with the threshold by which a loss over sets of labels predicts them."""
    if not provides(loss, HasThreshold):
        return model
    usable = group.broadcast(model is not None and bool(np.isfinite(model.weights).all()))
    if not usable:
        return model
    weights = group.broadcast_array(None if model is None else model.weights)
    intercept = group.broadcast_array(None if model is None else model.intercept)
    scores = scores_of(data, weights, intercept, threads)
    moments = group.sum(loss.moments(scores, data.targets, summary.labels))
    return None if model is None else replace(model, arrays={**model.arrays, "threshold": loss.threshold(moments)})


def solved(
    solver: Solver, risk: Risk, regularizer: Regularizer, start: Vector | Start | None, callback: Callback | None
) -> Solution:
    """The solver's result, for a regularizer that is bound to the risk; a user's one, and a user's solver, are checked.

    Raises
    ------
    InputError
        The regularizer violates a law on a sample, or the solver returns no `Solution`, or one of another problem.
    """
    sample.sample_regularizer(regularizer, risk.dim)
    from bmrm.solvers._core.monitor import IterativeSolver

    name = type(solver).__name__
    if any(lacking(solver, ("minimize",))):
        raise InputError(f"solver {name} has no `minimize`, see bmrm.problem.Solver")
    first: Any = start.w if isinstance(start, Start) and not isinstance(solver, IterativeSolver) else start
    solution: Any = solver.minimize(risk, regularizer, start=first, callback=callback)
    if not isinstance(solution, Solution):
        found = "nothing" if solution is None else f"a {type(solution).__name__}"
        raise InputError(f"solver {name}: minimize returned {found}, expected a bmrm.Solution")
    if np.shape(solution.w) != (risk.dim,):
        raise InputError(f"solver {name}: w of the solution has shape {np.shape(solution.w)}, expected ({risk.dim},)")
    return solution


def weights_of(
    model: Model,
    problem: Problem,
    summary: Summary,
    columns: Columns,
    features: int,
    own: int,
    center: Table | None = None,
) -> Vector:
    """A model's weights in the units of the solver, less the center, as of `Prepared`: the inverse of its `model`.

    Raises
    ------
    InputError
        If the model has other features, labels or scores; the difference is named.
    """
    if model.dim != features:
        raise InputError(f"start: the model has {model.dim} features, the data have {features}")
    theirs, ours = model.labels.tolist(), labels_of(summary).tolist()
    if theirs != ours:
        raise InputError(f"start: the labels of the model are {theirs!s:.60}, those of the data {ours!s:.60}")
    table, intercept = columns.scaled_weights(model.weights, model.intercept)
    if BIASES[problem.bias].constant_feature:
        table = np.concatenate((table, intercept.reshape(1, *table.shape[1:])))
    if center is not None:
        table = table - center.reshape(table.shape)
    parameters = np.concatenate([np.ravel(array) for array in model.arrays.values()]) if own else np.empty(0)
    if parameters.size != own:
        raise InputError(f"start: the model has {parameters.size} parameters of the loss, expected {own}")
    return np.concatenate((table.ravel(), parameters))


def _refuse_free_intercept(loss: Any) -> None:
    why = facts_of(loss).no_free_intercept
    if why:
        raise IncompatibleError(
            f"{loss.title}: a free intercept has no meaning: {why}; use data.bias: regularized or none"
        )


def _own_parameters(loss: Any, labels: int) -> int:
    """The number of parameters of the loss at the end of w."""
    return loss.extra_parameters(labels) if provides(loss, HasParameters) else 0


def _model(
    problem: Problem,
    summary: Summary,
    columns: Columns,
    solution: Solution,
    table: Table,
    intercept: Vector,
    arrays: Mapping[str, NDArray[np.float64]],
    layout: Layout | None,
    has_offset: bool = False,
) -> Model:
    """The model for raw features: the scaling is folded into weights and intercept."""
    weights, shifted = columns.raw_weights(table, intercept if table.ndim == 2 else intercept[0])
    header = make_header(
        loss=problem.loss,
        regularizer=problem.regularizer,
        dimension=weights.shape[0],
        solution=solution,
        bias=problem.bias,
    )
    if problem.shares:
        header |= {SHARES: True}
    if has_offset:
        header |= {OFFSET: (layout.offset if layout is not None else None) or OFFSET}
    if summary.form:
        header |= {"sets": {"form": summary.form, "dtype": summary.dtype}}
    row_scale = problem.scale if problem.scale in ROW_SCALES else "none"
    intercepts, labels = np.atleast_1d(shifted), labels_of(summary)
    return Model(
        weights.copy(), intercepts, labels, header, row_scale, arrays, layout, _solution=solution, _loss=problem.loss
    )


def labels_of(summary: Summary) -> NDArray[Any]:
    """As models have them."""
    return restored(summary.labels, summary.dtype if summary.form in ("", "sets") else "int64")


def warm_up_ranks(data: Dataset, problem: Problem, summary: Summary, columns: Columns) -> None:
    """Call what every rank will call, on a few rows: the first process of a node compiles, the others load."""
    if data.rows == 0:
        return
    from bmrm.risk.warm_up import warm_up, warm_up_map

    few = data.part(0, min(FEW, data.rows))
    bias = BIASES[problem.bias].constant_feature
    if problem.loss.decomposes == "no":
        warm_up_map(DataMap(few.X, columns=columns, bias=bias))
        return
    with suppress(BmrmError):  # the risk itself will say what is wrong, on all ranks in step
        risk = LinearRisk(few, problem.loss, summary=summary, mass=1.0, bias=bias, columns=columns)
        warm_up(risk, problem.regularizer)


class Bias:
    """A way to have an intercept; this is to have none."""

    constant_feature = False
    """Whether the risk gets a feature 1 after the others."""

    def wrap(self, risk: Risk) -> Risk:
        """The risk that is minimised."""
        return risk

    def read(self, risk: Any, w: Vector, table: Table, objective: float, omega: float) -> tuple[Table, Vector]:
        """Weights of the features, and the intercept (scores per row,), from a point of the risk that `wrap` gave.

        `table` is w by input, without parameters of the loss; `objective` is J and `omega` Omega there.
        """
        return table, np.zeros(1 if table.ndim == 1 else table.shape[1])

    def learned(self, risk: Risk, w: Vector) -> dict[str, NDArray[np.float64]]:
        """Parameters that the loss minimises out, such as cut points; {} for most losses, and beside an intercept."""
        scored = ability(risk, Scored)
        if scored is None:
            return {}
        map = scored.map
        return scored.phi.learned(lambda: map.matvec(w))


class _Regularized(Bias):
    constant_feature = True

    def read(self, risk: Any, w: Vector, table: Table, objective: float, omega: float) -> tuple[Table, Vector]:
        return table[:-1], np.atleast_1d(table[-1])


class _Free(Bias):
    def wrap(self, risk: Risk) -> Risk:
        from bmrm.risk.intercept import FreeIntercept

        return FreeIntercept(risk)

    def learned(self, risk: Risk, w: Vector) -> dict[str, NDArray[np.float64]]:
        return {}

    def read(self, risk: Any, w: Vector, table: Table, objective: float, omega: float) -> tuple[Table, Vector]:
        from bmrm.risk.intercept import FreeIntercept

        phi, settled = risk.phi.phi, risk.settled.of(w, objective)
        if settled is not None:
            scores = risk.map.matvec(w)
            value = phi.value_and_slope(scores + phi.constant(settled))[0]
            if omega + value <= objective + ROUNDING * abs(objective):
                return table, settled
        # A search that remembers nothing: a model depends on w alone, not on what was evaluated before.
        return table, FreeIntercept(risk.risk).intercept(w)


BIASES: Mapping[str, Bias] = {"none": Bias(), "regularized": _Regularized(), "free": _Free()}
"""Treatment of the intercept, by the value of `data.bias`."""


def _table(w: Vector, inputs: int) -> Table:
    """w as (inputs,), or (inputs, scores) for several scores per row."""
    return w if w.shape[0] == inputs else w.reshape(inputs, -1)
