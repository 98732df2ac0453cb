"""From settings to a solution to files: the one place that puts data, risk, regularizer and solver together.

Everything here is collective over a `Group`: every rank calls it, rank 0 solves and writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.loading import load, positive_last
from bmrm.losses import LOSSES
from bmrm.model import ROW_SCALES, Model, from_plain, make_header
from bmrm.mpi.group import Group, together
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import merged_summary, shared_risk
from bmrm.problem import BmrmError, Callback, Regularizer, Risk, Solution, Solver, Status, Summary, Vector
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.columns import Columns
from bmrm.risk.linear import LinearRisk
from bmrm.risk.scaling import SCALINGS
from bmrm.scoring import measure, prepared_targets, scores_of
from bmrm.solvers import SOLVERS

if TYPE_CHECKING:
    from bmrm.report import Progress


@dataclass(frozen=True)
class Problem:
    """What to minimise, and how."""

    loss: Any
    regularizer: Regularizer
    solver: Solver
    bias: str = "none"
    scale: str = "none"
    positive_label: float | str | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What a run leaves on rank 0."""

    status: Status
    summary: Mapping[str, Any]
    directory: Path


def train(settings: Mapping[str, Any], group: Group, *, quiet: bool = False) -> Outcome | None:
    """Collective: read, solve, measure, write; the outcome on rank 0, None elsewhere.

    Parameters
    ----------
    settings : `Settings.plain()`, the same on every rank.
    group : the ranks.
    quiet : no progress and no table.

    Raises
    ------
    InputError, IncompatibleError
        Before anything is written; on rank 0 with the message, `OtherRankError` elsewhere.
    """
    begin = time.perf_counter()
    directory = Path(settings["output"]["directory"])
    with together(group):
        if group.rank == 0:
            from bmrm.artifacts import check_writable

            check_writable(directory)
        problem = problem_of(settings)
    loaded = load(settings["data"], settings["seed"], group)
    parts = {part: SCALINGS[problem.scale].rows(data) for part, data in loaded.parts.items()}
    load_seconds = time.perf_counter() - begin
    show = _progress(quiet) if group.rank == 0 else None
    model = solve(parts["train"], problem, group, show, others=parts)
    metrics = measure_parts(model, problem.loss, parts, group)
    if model is None:
        return None
    solution = model.solution
    assert solution is not None
    from bmrm.artifacts import write_run
    from bmrm.report import summarize

    summary = summarize(
        solution,
        load_seconds=load_seconds,
        total_seconds=time.perf_counter() - begin,
        ranks=group.size,
        rows=loaded.rows,
        dim=solution.w.shape[0],
        nnz=loaded.nnz,
        metrics=metrics,
    )
    title = f"{settings['loss']['name']} + {settings['regularizer']['name']} on {', '.join(settings['data']['train'])}"
    written = solution.status is not Status.NON_FINITE
    if written:
        write_run(directory, model, summary, settings, title)
    if not quiet:
        _print_end(summary, title, directory if written else None)
    return Outcome(solution.status, summary, directory)


def problem_of(settings: Mapping[str, Any]) -> Problem:
    """The plug-ins of a checked config."""
    solver = dict(settings["solver"])
    threads = solver.pop("threads")
    return Problem(
        loss=from_plain(LOSSES, settings["loss"]),
        regularizer=from_plain(REGULARIZERS, settings["regularizer"]),
        solver=from_plain(SOLVERS, solver),
        bias=settings["data"]["bias"],
        scale=settings["data"]["scale"],
        positive_label=settings["data"]["positive_label"],
        threads=threads,
    )


def solve(
    data: Dataset,
    problem: Problem,
    group: Group,
    progress: Progress | None = None,
    *,
    callback: Callback | None = None,
    others: Mapping[str, Dataset] | None = None,
) -> Model | None:
    """Collective: the model for the rows of all ranks; None but on rank 0.

    Parameters
    ----------
    data : this rank's rows; `data.scale: unit_norm` has been applied to them.
    problem : the same on every rank.
    progress, callback : what rank 0 calls after every iteration, one or the other.
    others : rows whose targets are checked before the work begins.
    """
    summary = merged_summary(data.targets, problem.loss, group)
    with together(group):
        summary = positive_last(summary, problem.positive_label)
        for part, rows in (others or {}).items():
            prepared_targets(problem.loss, rows.targets, summary.labels, f"data.{part}")
    with together(group):  # the same error on every rank, if any
        columns = SCALINGS[problem.scale].columns(data, group) or Columns()
    group.first_per_node(lambda: _compile(data, problem, summary, columns))
    risk = shared_risk(
        data,
        problem.loss,
        group,
        summary=summary,
        bias=problem.bias == "regularized",
        columns=columns,
        threads=problem.threads,
    )

    def work(whole: Risk) -> tuple[Solution, NDArray[np.float64], Vector]:
        with ExitStack() as stack:
            show = callback if progress is None else stack.enter_context(progress)
            return BIASES[problem.bias](whole, problem, data.features, show)

    found = lead(risk, group, work)
    if found is None:
        return None
    solution, table, intercept = found
    weights, intercept = columns.raw_weights(table, intercept if table.ndim == 2 else intercept[0])
    header = make_header(loss=problem.loss, regularizer=problem.regularizer, dimension=data.features, solution=solution)
    row_scale = problem.scale if problem.scale in ROW_SCALES else "none"
    labels: NDArray[Any] = np.array(summary.labels) if summary.labels else np.empty(0)
    return Model(weights, np.atleast_1d(intercept), labels, header, row_scale, solution, problem.loss)


def _compile(data: Dataset, problem: Problem, summary: Summary, columns: Columns) -> None:
    """Call what every rank will call, on a few rows: the first process of a node compiles, the others find it done."""
    if problem.loss.decomposes == "no" or data.rows == 0:
        return
    with suppress(BmrmError):  # the risk itself will say what is wrong, on all ranks in step
        few = LinearRisk(data.part(0, min(2, data.rows)), problem.loss, summary=summary, mass=1.0, columns=columns)
        f = few.map.scores(np.zeros(few.dim))
        few.phi.along(f, f)(np.zeros(1))
        few.value_and_subgradient(np.zeros(few.dim))


Found = tuple[Solution, NDArray[np.float64], Vector]


def _without(risk: Risk, problem: Problem, features: int, show: Callback | None) -> Found:
    solution = problem.solver.minimize(risk, problem.regularizer, callback=show)
    table = _table(solution.w, features)
    return solution, table, np.zeros(1 if table.ndim == 1 else table.shape[1])


def _regularized(risk: Risk, problem: Problem, features: int, show: Callback | None) -> Found:
    solution = problem.solver.minimize(risk, problem.regularizer, callback=show)
    table = _table(solution.w, features + 1)
    return solution, table[:-1], np.atleast_1d(table[-1]).copy()


def _free(risk: Risk, problem: Problem, features: int, show: Callback | None) -> Found:
    from bmrm.risk.intercept import FreeIntercept

    profiled = FreeIntercept(risk)
    solution = problem.solver.minimize(profiled, problem.regularizer, callback=show)
    return solution, _table(solution.w, features), profiled.intercept(solution.w)


BIASES: Mapping[str, Callable[..., Found]] = {"none": _without, "regularized": _regularized, "free": _free}


def _table(w: Vector, inputs: int) -> NDArray[np.float64]:
    """w as (inputs,), or (inputs, scores) for several scores per row."""
    return w.copy() if w.shape[0] == inputs else w.reshape(inputs, -1)


def measure_parts(
    model: Model | None, loss: Any, parts: Mapping[str, Dataset], group: Group
) -> dict[str, dict[str, float | None]]:
    """Collective: the loss's measures of every part; {} but on rank 0. Rows must be scaled as the model wants them."""
    labels = group.broadcast(None if model is None else model.labels.tolist())
    weights = group.broadcast_array(None if model is None else model.weights)
    intercept = group.broadcast_array(None if model is None else model.intercept)
    table = {}
    for part, data in parts.items():
        y = prepared_targets(loss, data.targets, labels, f"data.{part}")
        scores = scores_of(data, weights, intercept)
        values = measure(scores, y, data.targets.weights, loss, len(labels), group)
        if values is not None:
            table[part] = values
    return table


def evaluate_model(model: Model, data: Dataset) -> dict[str, float | None]:
    """The measures of the model's loss on rows with targets."""
    loss = model.loss
    y = prepared_targets(loss, data.targets, model.labels.tolist(), "data")
    values = measure(model.decision_function(data), y, data.targets.weights, loss, len(model.labels))
    assert values is not None
    return values


def _progress(quiet: bool) -> Progress:
    from rich.console import Console

    from bmrm.report import Progress

    return Progress(Console(stderr=True), quiet)


def _print_end(summary: Mapping[str, Any], title: str, directory: Path | None) -> None:
    from rich.console import Console

    from bmrm.report import summary_table

    console = Console()
    console.print(summary_table(summary, title))
    where = "no files: there is no usable point" if directory is None else f"files in {directory}"
    console.print(where, highlight=False, soft_wrap=True)
