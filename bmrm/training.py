"""From settings to a solution to files: the one place that puts data, risk, regularizer and solver together.

Everything here is collective over a `Group`: every rank calls it, rank 0 solves and writes.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bmrm import fingerprint
from bmrm.beginning import Beginning, From, beginning
from bmrm.data.dataset import Dataset
from bmrm.loading import Loaded, load
from bmrm.losses import LOSSES
from bmrm.model import Model, from_plain
from bmrm.mpi.group import Group, together
from bmrm.problem import Callback, Iteration, OutputError, Start, Status
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.scaling import SCALINGS
from bmrm.scoring import check_labelled, measure, prepared_targets, scores_of
from bmrm.solvers import SOLVERS
from bmrm.solvers.interrupt import Interrupt
from bmrm.solving import ModelOf, Problem, Watch, solve


@dataclass(frozen=True)
class Outcome:
    """What a run leaves on rank 0.

    Attributes
    ----------
    status, summary, directory : as named.
    written : whether all results were; `complaints` say what was not, and why. A picture is no result.
    """

    status: Status
    summary: Mapping[str, Any]
    directory: Path
    written: bool = True
    complaints: Sequence[str] = ()


Fit = Callable[[Mapping[str, Dataset], Problem, Group, Watch], tuple[Model | None, dict[str, Any]]]
"""Collective: (parts, problem, ranks, watch) -> the model and what the summary says of how it was found."""


def fit_once(
    parts: Mapping[str, Dataset],
    problem: Problem,
    group: Group,
    watch: Watch,
    start: From = None,
    facts: fingerprint.Facts | None = None,
) -> tuple[Model | None, dict[str, Any]]:
    """One training on `parts["train"]`."""
    return solve(parts["train"], problem, group, watch, others=parts, start=start, facts=facts), {}


def train(
    settings: Mapping[str, Any], group: Group, *, quiet: bool = False, resume: bool = False, fit: Fit = fit_once
) -> Outcome | None:
    """Collective: read, solve, measure, write; the outcome on rank 0, None elsewhere.

    Parameters
    ----------
    settings : `Settings.plain()`, the same on every rank.
    group : the ranks.
    quiet : no progress and no table.
    resume : go on from what an earlier run has left in the output folder.
    fit : how the model is found; a search tries several.

    Raises
    ------
    InputError, IncompatibleError
        Before anything is written; on rank 0 with the message, `OtherRankError` elsewhere.
    """
    begin = time.perf_counter()
    facts = fingerprint.of_settings(settings)
    with together(group):
        _look_into_folder(settings["output"], facts, group, opening=True)
        problem = problem_of(settings)
    loaded = load(settings["data"], settings["seed"], group)
    facts["data"] = fingerprint.of_rows(loaded.train, group)
    found = Beginning()
    with together(group):
        _look_into_folder(settings["output"], facts, group)
        if group.rank == 0:
            found = beginning(settings, facts, resume)
            if found.words and not quiet:
                print(f"bmrm: {found.words}", file=sys.stderr)
    if group.broadcast(found.finished is not None):
        return None if found.finished is None else _finished(found.finished, settings)
    if fit is fit_once:
        fit = partial(fit_once, start=found.start, facts=facts)
    parts = {part: SCALINGS[problem.scale].rows(data) for part, data in loaded.parts.items()}
    load_seconds = time.perf_counter() - begin
    # from here on there may be a point that a Ctrl-C must not discard
    with Interrupt(around=True) if group.rank == 0 else nullcontext():
        model, search = fit(parts, problem, group, _watch(settings, facts, found.start, quiet))
        # a search may end with another loss than it was given; ranks without the model judge nothing
        metrics = measure_parts(model, problem.loss if model is None else model.loss, parts, group)
        if model is None:
            return None
        earlier = _seconds(found.start)
        seconds = {"load_seconds": load_seconds, "total_seconds": time.perf_counter() - begin + earlier}
        summary = _summary(model, loaded, metrics, facts, group, seconds)
        if search:
            summary["search"] = search
        if earlier:
            summary["resumed"] = {"seconds": earlier}
        return _write(replace(model, header={**model.header, "problem": facts}), summary, settings, quiet)


def _seconds(start: From) -> float:
    """Of the runs that this one goes on from."""
    return start.history[-1].seconds if isinstance(start, Start) and start.history else 0.0


def _finished(summary: Mapping[str, Any], settings: Mapping[str, Any]) -> Outcome:
    return Outcome(Status.CONVERGED, summary, Path(settings["output"]["directory"]))


def _look_into_folder(output: Mapping[str, Any], facts: fingerprint.Facts, group: Group, opening: bool = False) -> None:
    """On rank 0: raise InputError where results could not be written, or would replace those of another problem."""
    if group.rank != 0:
        return
    from bmrm.artifacts import refuse_others
    from bmrm.run_folder import open_folder

    directory = Path(output["directory"])
    if opening:
        open_folder(directory)
    if not output["overwrite"]:
        refuse_others(directory, facts)


def _summary(
    model: Model,
    loaded: Loaded,
    metrics: Mapping[str, Mapping[str, float | None]],
    facts: fingerprint.Facts,
    group: Group,
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    from bmrm.report import summarize

    solution = model.solution
    assert solution is not None
    return summarize(
        solution,
        **seconds,
        ranks=group.size,
        rows=loaded.rows,
        dim=solution.w.shape[0],
        nnz=loaded.nnz,
        metrics=metrics,
    ) | {"problem": facts}


def _write(model: Model, summary: Mapping[str, Any], settings: Mapping[str, Any], quiet: bool) -> Outcome:
    """Write the files of the run, if there is a point, and say how it ended."""
    from bmrm.artifacts import draw_run, write_run

    assert model.solution is not None
    status, directory = model.solution.status, Path(settings["output"]["directory"])
    trained = getattr(model.loss, "name", "") or settings["loss"]["name"]
    title = f"{trained} + {settings['regularizer']['name']} on {', '.join(settings['data']['train'])}"
    if status is Status.NON_FINITE:
        if not quiet:
            _print_end(summary, title, "no files: there is no usable point")
        return Outcome(status, summary, directory)
    try:
        complaints = write_run(directory, model, summary, settings)
        written, where = not complaints, f"files in {directory}"
        if status is Status.NOT_CONVEX:
            where += ", but no model: there is no usable point"
    except OutputError as error:
        complaints, written, where = [str(error)], False, None
    if not quiet:
        _print_end(summary, title, where)
    if where is not None:
        try:
            draw_run(directory, model, summary, settings["solver"].get("tolerance"), title)
        except OutputError as error:
            complaints.append(str(error))
    return Outcome(status, summary, directory, written, tuple(complaints))


def problem_of(settings: Mapping[str, Any]) -> Problem:
    """The plug-ins of a checked config."""
    solver = dict(settings["solver"])
    threads = solver.pop("threads")
    if "seed" in solver and solver["seed"] is None:
        solver["seed"] = settings["seed"]
    regularizer, relative = dict(settings["regularizer"]), None
    if isinstance(regularizer.get("lambda"), Mapping):
        relative, regularizer["lambda"] = regularizer["lambda"], 1.0
    return Problem(
        loss=from_plain(LOSSES, settings["loss"]),
        regularizer=from_plain(REGULARIZERS, regularizer),
        relative=relative,
        solver=from_plain(SOLVERS, solver),
        bias=settings["data"]["bias"],
        scale=settings["data"]["scale"],
        positive_label=settings["data"]["positive_label"],
        threads=threads,
    )


def measure_parts(
    model: Model | None, loss: Any, parts: Mapping[str, Dataset], group: Group
) -> dict[str, dict[str, float | None]]:
    """Collective: the loss's measures of every part; {} but on rank 0. Rows must be scaled as the model wants them."""
    labels = group.broadcast(None if model is None else model.label_codes)
    weights = group.broadcast_array(None if model is None else model.weights)
    intercept = group.broadcast_array(None if model is None else model.intercept)
    arrays = None if model is None else model.arrays
    table = {}
    for part, data in parts.items():
        y = prepared_targets(loss, data.targets, labels, f"data.{part}")
        scores = scores_of(data, weights, intercept)
        values = measure(
            scores,
            y,
            data.targets.weights,
            loss,
            len(labels),
            group,
            groups=data.targets.groups,
            arrays=arrays,
            labels=labels,
        )
        if values is not None:
            table[part] = values
    return table


def evaluate_model(model: Model, data: Dataset) -> dict[str, float | None]:
    """The measures of the model's loss on rows with targets."""
    loss = model.loss
    check_labelled(loss, data, "data")
    y = prepared_targets(loss, data.targets, model.label_codes, "data")
    scores, t = model.decision_function(data), data.targets
    labels = model.label_codes
    values = measure(scores, y, t.weights, loss, len(labels), groups=t.groups, arrays=model.arrays, labels=labels)
    assert values is not None
    return values


def _watch(settings: Mapping[str, Any], facts: fingerprint.Facts, start: From, quiet: bool) -> Watch:
    """Progress and checkpoints around the solver."""
    output = settings["output"]
    before = start.history if isinstance(start, Start) else ()
    # a search has several trainings, and a checkpoint of one of them does not say where it was
    problem = facts if settings["search"] is None else None

    @contextmanager
    def watch(model_of: ModelOf) -> Iterator[Callback]:
        from rich.console import Console

        from bmrm.artifacts import Checkpoints
        from bmrm.report import Progress

        console = Console(stderr=True)
        tolerance = math.inf if problem is None else settings["solver"].get("tolerance", 0.0)
        where, every = Path(output["directory"]), output["checkpoint_every"]
        checkpoints = Checkpoints(where, every, model_of, console, problem, settings["seed"], before, tolerance)
        with Progress(console, quiet) as show, checkpoints as save:

            def callback(line: Iteration) -> None:
                show(line)
                save(line)

            yield callback

    return watch


def _print_end(summary: Mapping[str, Any], title: str, where: str | None) -> None:
    from rich.console import Console

    from bmrm.report import summary_table

    console = Console()
    console.print(summary_table(summary, title))
    if where is not None:
        console.print(where, highlight=False, soft_wrap=True)
