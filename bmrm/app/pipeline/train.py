"""From settings to a solution to files: the only place that combines data, risk, regularizer and solver.

Everything here is collective over a `Group`: every rank calls it, rank 0 solves and writes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from bmrm.app.calibration.asked import Calibrate, checked, refuse_without_classes
from bmrm.app.config.relative import ONE_OVER_M
from bmrm.app.defaults import INTERCEPTS, default_bias, default_loss
from bmrm.app.guarded import check_rows, guard_of
from bmrm.app.measure import check_metrics
from bmrm.app.model import Model
from bmrm.app.model_file import from_plain
from bmrm.app.phases import Phases
from bmrm.app.pipeline import fingerprint
from bmrm.app.pipeline.beginning import Beginning, From, beginning, goal_of
from bmrm.app.pipeline.calibrate import Calibrating
from bmrm.app.pipeline.center import check_file
from bmrm.app.pipeline.checkpoint import ROWS
from bmrm.app.pipeline.features import Featured
from bmrm.app.pipeline.features import checked as features_of_rows
from bmrm.app.pipeline.fingerprint import LAMBDA
from bmrm.app.pipeline.follow import DETAILS, Follow, listed
from bmrm.app.pipeline.load import Loaded, load
from bmrm.app.pipeline.measuring import Measures, measure_parts
from bmrm.app.pipeline.several import TOGETHER, loss_of_columns, solve_any
from bmrm.app.pipeline.sharing import Sharing
from bmrm.app.pipeline.solve import FEW, ModelOf, Problem, Watch, lambda_of_rows
from bmrm.app.shares import are_shares, parts_of_labels
from bmrm.app.stopping import Stopping
from bmrm.app.stopping import checked as stopping_of
from bmrm.data.dataset import Dataset
from bmrm.data.features._core.rows import Features
from bmrm.kernels.compiling import COMPILING
from bmrm.kernels.workers import usable_cores
from bmrm.losses import LOSSES
from bmrm.mpi import masks
from bmrm.mpi.dealing import deal_out, resident
from bmrm.mpi.group import Alone, Group, together
from bmrm.mpi.spread import spread
from bmrm.problem import Callback, IncompatibleError, InputError, Iteration, OutputError, Start, Status, facts_of
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.scaling import SCALINGS
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.auto.rules import ALONE
from bmrm.solvers._core.interrupt import Interrupt

if TYPE_CHECKING:
    from bmrm.mpi.communicator import MpiGroup


@dataclass(frozen=True)
class Outcome:
    """The result of a run, on rank 0.

    Attributes
    ----------
    status, summary, directory : as named.
    written : whether all results were measured and written; `complaints` lists what was not, and why. The picture is
        none.
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
    return solve_any(parts["train"], problem, group, watch, others=parts, start=start, facts=facts), {}


def train(
    settings: Mapping[str, Any],
    group: Group,
    *,
    quiet: bool = False,
    table: bool | None = None,
    resume: bool = False,
    fit: Fit = fit_once,
    phases: Phases | None = None,
) -> Outcome | None:
    """Collective: read, solve, measure, write; the outcome on rank 0, None elsewhere.

    Parameters
    ----------
    settings : `Settings.plain()`, the same on every rank.
    group : the ranks.
    quiet : no progress.
    table : whether a table is printed at the end; None: unless `quiet`.
    resume : continue from the checkpoint of an earlier run in the output folder.
    fit : how the model is found; a search tries several.
    phases : the clock of the run, if it has been started already.

    Raises
    ------
    InputError, IncompatibleError
        Before anything is written; on rank 0 with the message, `OtherRankError` elsewhere.
    """
    phases = Phases() if phases is None else phases
    with _display(group, quiet, phases) as show:
        ended = _train(settings, group, quiet, resume, fit, phases, show)
    if ended is None:
        return None
    outcome, title, where = ended
    if title and (table if table is not None else not quiet):
        _print_end(outcome.summary, title, where)
    return outcome


Ended = tuple[Outcome, str, str | None]
"""The outcome, what it is the outcome of (empty where nothing was done), and where the files are, in words."""


def _train(
    settings: Mapping[str, Any],
    group: Group,
    quiet: bool,
    resume: bool,
    fit: Fit,
    phases: Phases,
    show: Callback,
) -> Ended | None:
    """Collective: the outcome of the run, on rank 0."""
    phases.started()
    guard = guard_of(settings, group)
    if group.size > 1:
        mpi: MpiGroup = group  # type: ignore[assignment]
        mpi.masks = masks.agreed(group) if guard is not None and guard.secure_sums else None
    with together(group):
        _look_into_folder(settings["output"], None, group, opening=True)
    if settings["loss"] is not None:  # what is wrong is said before rows are read
        _problem(settings, group)
    read_as, dealt = Sharing.of(settings), False
    if group.size > 1 and group.rank == 0 and not quiet:
        print(f"bmrm: {read_as.in_words()}", file=sys.stderr)
    with phases("load", ", ".join(settings["data"]["train"])):
        loaded = load(settings["data"], settings["seed"], group)
        settings, notes = with_loss(settings, loaded.train, group)
        loaded = replace(loaded, notes=(*loaded.notes, *notes))
        facts, problem = _problem(settings, group)
        if guard is not None:
            problem = replace(problem, guard=guard)
            check_rows(loaded.train, guard, group)
        problem = _for_columns(problem, settings, loaded.train, group)
        if group.size > 1:  # the first of a node compiles
            few = loaded.train.part(0, min(FEW, loaded.train.rows))
            group.first_per_node(lambda: fingerprint.of_rows(few, Alone()))
        sharing = read_as.of_rows(resident(loaded.train, group))
        problem = replace(problem, share_rows=problem.share_rows and sharing.allowed)
        facts["data"] = fingerprint.of_rows(loaded.train, group)
        if settings["search"] is not None and "validation" in loaded.parts:  # they decide
            facts["validation"] = fingerprint.of_rows(loaded.parts["validation"], group)
    stay = [sharing.in_words()] if group.size > 1 and sharing != read_as else []
    for note in (*loaded.notes, *stay) if group.rank == 0 and not quiet else ():
        print(f"bmrm: {note}", file=sys.stderr)
    with together(group):  # the same error on every rank, if any
        mapping = features_of(settings)
        if problem.relative is not None and (mapping is None or problem.relative["scale"] == "none"):
            facts[LAMBDA] = lambda_of_rows(problem, loaded.train, group)
    with together(group):
        _look_into_folder(settings["output"], facts, group)
        asked = _calibrate(settings, problem.loss)
    if sharing.dealt and group.size > 1:  # not in folds of a search, which are of rows in the order of the files
        with phases("load", "dealing out rows"):
            read = loaded
            loaded, facts = _dealt(loaded, facts, settings, resume, group)
            dealt = loaded is not read
    threads = threads_of_all(problem, group)
    _say_ranks(loaded, group, threads, quiet)
    found = Beginning()
    with together(group):
        if group.rank == 0:
            found = beginning(settings, facts, resume)
            if found.words and not quiet:
                print(f"bmrm: {found.words}", file=sys.stderr)
    if group.broadcast(found.finished is not None):
        return None if found.finished is None else (_finished(found.finished, settings, phases), "", None)
    if fit is fit_once:
        fit = partial(fit_once, start=found.start, facts=facts)
    parts = dict(loaded.parts)
    if guard is None and are_shares(loaded.train, problem.loss, group):
        parts = parts_of_labels(parts, problem.loss, group)
        problem = replace(problem, shares=True)
        if problem.relative is not None and LAMBDA in facts:  # lambda is that of the rows as they were read
            problem = replace(problem, relative=None, regularizer=_with_lambda(problem, facts[LAMBDA]))
    parts = {part: SCALINGS[problem.scale].rows(data) for part, data in parts.items()}
    featured, calibrating = None, None
    if asked is not None:
        calibrating = Calibrating.prepared(asked, parts["train"], parts.get("validation"), problem, group)
    if mapping is not None:
        with phases("load", f"features: {settings['data']['features']['name']}"):
            featured = Featured.of(mapping, parts, problem.scale, group, threads)
        parts, problem = featured.parts, featured.problem(problem)
        calibrating = None if calibrating is None else calibrating.of_features(parts)
    # from here on there may be a point that a Ctrl-C must not discard
    with Interrupt(around=True) if group.rank == 0 else nullcontext():
        watch = _watch(settings, facts, found.start, phases, show)
        model, search = fit(parts, problem, group, watch if featured is None else _of_raw_rows(watch, featured))
        if calibrating is not None:
            with phases("measure", "calibration"):
                model = calibrating.of(model, problem)
        with phases("measure"):
            # a search may end with another loss than it was given; ranks without the model judge nothing
            loss = problem.loss if model is None else model.loss
            measured = parts if guard is None else {}  # by scores
            measures = measure_parts(model, loss, measured, group, settings["output"]["metrics"], threads)
        model = model if featured is None or model is None else featured.model(model)
        alone = model is not None and ALONE in model.solution.solver
        over_ranks = _over_ranks(loaded, problem, group, alone, quiet)
        if model is None:
            return None
        earlier = _seconds(found.start)
        phases.earlier = earlier
        summary = _summary(model, loaded, measures.table, facts, group, threads, phases) | over_ranks
        if over_ranks:
            summary["row_sharing"] = sharing.plain(dealt, alone)
        if search:
            summary["search"] = search
        if DETAILS in model.solution.details:
            summary["followed"] = listed(model.solution.details[DETAILS])
        if model.calibration is not None:
            summary["calibration"] = model.calibration.header()
        if loaded.notes or measures.missing:
            summary["notes"] = [*loaded.notes, *measures.missing]
        if earlier:
            summary["resumed"] = {"seconds": earlier}
        return _write(replace(model, header={**model.header, "problem": facts}), summary, measures, settings, phases)


def _problem(settings: Mapping[str, Any], group: Group) -> tuple[fingerprint.Facts, Problem]:
    """Collective: what settings with a loss describe; InputError where it does not fit, or the folder has another."""
    facts = fingerprint.of_settings(settings)
    with together(group):
        _look_into_folder(settings["output"], facts, group)
        problem = problem_of(settings, leads=group.rank == 0 or settings["mpi"]["slices"])
        if group.rank == 0:
            check_file(problem.regularizer)
            section = settings["data"]
            loss = loss_of_columns(problem.loss, section["classes"], section["labels"], None, Alone())
            check_metrics(settings["output"]["follow"], problem.loss)
            if facts_of(loss).task != "regression":  # of which there may be several outputs
                check_metrics(settings["output"]["metrics"], loss)
    return facts, problem


def _calibrate(settings: Mapping[str, Any], loss: Any) -> Calibrate | None:
    """What is asked for; InputError where a search leaves no rows for it, IncompatibleError for the loss."""
    asked = checked(settings["calibrate"])
    if asked is None:
        return None
    refuse_without_classes(loss)
    if settings["search"] is not None and (asked.folds is not None or settings["data"]["validation"] is None):
        raise InputError("calibrate: beside a search there are no folds, expected data.validation")
    return asked


def features_of(settings: Mapping[str, Any]) -> Features | None:
    """The feature map; its seed is that of the config where it has none of its own."""
    section = settings["data"]["features"]
    if section is None:
        return None
    if "seed" in section and section["seed"] is None:
        section = {**section, "seed": settings["seed"]}
    return features_of_rows(section)


def _of_raw_rows(watch: Watch, featured: Featured) -> Watch:
    """The watch, whose models, such as those of checkpoints, take raw rows."""
    return lambda model_of: watch(lambda solution: featured.model(model_of(solution)))


def with_loss(settings: Mapping[str, Any], data: Dataset, group: Group) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Collective: the settings, with a loss by the targets where they have none, and what to say of that."""
    if settings["loss"] is not None:
        return settings, ()
    section = settings["data"]
    if section["classes"] != TOGETHER or section["labels"] != TOGETHER:
        name, found = "hinge", "two classes at a time"
    else:
        name, found = default_loss(data, group, "data.train")
    loss = LOSSES.make(name)
    bias = default_bias(loss) if section["bias"] is None else section["bias"]
    chosen = {**settings, "loss": LOSSES.describe(loss), "data": {**section, "bias": bias}}
    return chosen, (f"loss: {name} for {found}, since none is given",)


def _say_ranks(loaded: Loaded, group: Group, threads: int, quiet: bool) -> None:
    """Collective: say once how many ranks and threads there are, what each has, and which has too much."""
    if group.size == 1:
        return
    train = loaded.train
    found = spread(train.rows, train.nnz, group)
    if found is None:
        return
    warning = found.warning()
    if not quiet:
        from bmrm.app.report import in_ranks

        print(f"bmrm: ranks: {in_ranks(group.size, threads)}; {found.in_words()}", file=sys.stderr)
    if warning:
        print(f"bmrm: {warning}; `data.share_rows: true` deals rows out", file=sys.stderr)


def _over_ranks(loaded: Loaded, problem: Problem, group: Group, alone: bool, quiet: bool) -> dict[str, Any]:
    """Collective: for the summary, on rank 0, how work was spread, what was sent, and whether rows were; else {}."""
    if group.size == 1:
        return {}
    mpi: MpiGroup = group  # type: ignore[assignment]
    sent, train = mpi.so_far(), loaded.train
    found = spread(train.rows, train.nnz, group, mpi.busy)
    if found is None:
        return {}
    warning = found.warning(alone)
    if warning and not quiet:
        print(f"bmrm: {warning}", file=sys.stderr)
    counts = {"messages": sent.messages, "bytes": sent.bytes}
    return {"spread": found.plain(), "sent": counts, "share_rows": problem.share_rows}


def _dealt(
    loaded: Loaded, facts: fingerprint.Facts, settings: Mapping[str, Any], resume: bool, group: Group
) -> tuple[Loaded, fingerprint.Facts]:
    """Collective: the training rows dealt out, and the facts with their order.

    Unless the run goes on from one that has kept numbers for rows in the order of the files.
    """
    parts = {**loaded.parts, "train": deal_out(loaded.train, group, settings["seed"])}
    other = facts | {"data": fingerprint.of_rows(parts["train"], group)}
    stays = False
    with together(group):
        if group.rank == 0:
            stays = not _knows_rows(beginning(settings, other, resume)) and _knows_rows(
                beginning(settings, facts, resume)
            )
    return (loaded, facts) if group.broadcast(stays) else (replace(loaded, parts=parts), other)


def _knows_rows(found: Beginning) -> bool:
    return isinstance(found.start, Start) and any(name.startswith(ROWS) for name in found.start.state)


def _display(group: Group, quiet: bool, phases: Phases) -> AbstractContextManager[Callback]:
    """The progress display on rank 0; a callback that does nothing elsewhere."""
    if group.rank != 0:
        COMPILING.speaks = False
        return nullcontext(lambda line: None)
    from rich.console import Console

    from bmrm.app.progress import Progress

    return Progress(Console(stderr=True), quiet, phases)


def _seconds(start: From) -> float:
    """Seconds of the runs that this one continues."""
    return start.history[-1].seconds if isinstance(start, Start) and start.history else 0.0


def _finished(summary: Mapping[str, Any], settings: Mapping[str, Any], phases: Phases) -> Outcome:
    """The outcome of an earlier, finished run; its picture is drawn if the run was killed before that."""
    from bmrm.app.pipeline.run_folder import HISTORY, PICTURE, present
    from bmrm.app.pipeline.write import draw_run

    directory, complaints = Path(settings["output"]["directory"]), []
    if present(directory, (HISTORY, PICTURE)) == [HISTORY]:
        try:
            with phases("draw"):
                draw_run(directory, summary, _goal(settings, summary), _title(settings))
        except OutputError as error:
            complaints.append(str(error))
    return Outcome(Status.CONVERGED, summary, directory, complaints=complaints)


def _title(settings: Mapping[str, Any], loss: str = "") -> str:
    """What a run is of."""
    loss = loss or settings["loss"]["name"]
    return f"{loss} + {settings['regularizer']['name']} on {', '.join(settings['data']['train'])}"


def _look_into_folder(
    output: Mapping[str, Any], facts: fingerprint.Facts | None, group: Group, opening: bool = False
) -> None:
    """On rank 0: raise InputError if results could not be written, or would replace those of another problem."""
    if group.rank != 0:
        return
    from bmrm.app.pipeline.run_folder import open_folder
    from bmrm.app.pipeline.write import refuse_others

    directory = Path(output["directory"])
    if opening:
        open_folder(directory)
    if facts is not None and not output["overwrite"]:
        refuse_others(directory, facts)


def _summary(
    model: Model,
    loaded: Loaded,
    metrics: Mapping[str, Mapping[str, float | None]],
    facts: fingerprint.Facts,
    group: Group,
    threads: int,
    phases: Phases,
) -> dict[str, Any]:
    from bmrm.app.report import summarize

    solution = model.solution
    return summarize(
        solution,
        seconds=phases.seconds(),
        ranks=group.size,
        threads=threads,
        rows=loaded.rows,
        dim=solution.w.shape[0],
        nnz=loaded.nnz,
        metrics=metrics,
    ) | {
        "regularizer": model.header["regularizer"],
        "intercept": INTERCEPTS[model.header["bias"]],
        "problem": facts,
    }


def _goal(settings: Mapping[str, Any], summary: Mapping[str, Any]) -> float | None:
    """For the picture of a run: the relative gap that was wanted."""
    return None if summary["objective"] is None else goal_of(settings["solver"], summary["objective"])


def _write(
    model: Model, summary: dict[str, Any], measures: Measures, settings: Mapping[str, Any], phases: Phases
) -> Ended:
    """Write the files of the run, if there is a point."""
    from bmrm.app.pipeline.write import draw_run, write_run, write_seconds

    status, directory = model.solution.status, Path(settings["output"]["directory"])
    title = _title(settings, facts_of(model.loss).name)
    if status is Status.NON_FINITE:
        return Outcome(status, summary, directory), title, "no files: there is no usable point"
    try:
        with phases("write", str(directory)):
            complaints = [*measures.missing, *write_run(directory, model, summary, settings, measures.curves)]
    except OutputError as error:
        return Outcome(status, summary, directory, False, (str(error),)), title, None
    written, where = not complaints, f"files in {directory}"
    if status is Status.NOT_CONVEX:
        where += ", but no model: there is no usable point"
    try:
        with phases("draw"):
            draw_run(directory, summary, _goal(settings, summary), title, model.solution.history)
    except OutputError as error:
        complaints.append(str(error))
    summary["seconds"] = phases.seconds()
    write_seconds(directory, summary)
    return Outcome(status, summary, directory, written, tuple(complaints)), title, where


def problem_of(settings: Mapping[str, Any], leads: bool = True) -> Problem:
    """The plug-ins of a checked config; the solver only on the rank that leads."""
    solver = dict(settings["solver"])
    threads, stop = solver.pop("threads"), stopping_of(solver.pop("stop"))
    if "seed" in solver and solver["seed"] is None:
        solver["seed"] = settings["seed"]
    regularizer, relative = dict(settings["regularizer"]), None
    if isinstance(regularizer.get("lambda", 1.0), (Mapping, NoneType)):
        relative, regularizer["lambda"] = regularizer["lambda"] or ONE_OVER_M, 1.0
    return Problem(
        loss=from_plain(LOSSES, settings["loss"]),
        regularizer=from_plain(REGULARIZERS, regularizer),
        relative=relative,
        solver=from_plain(SOLVERS, solver) if leads else None,
        bias=settings["data"]["bias"],
        scale=settings["data"]["scale"],
        positive_label=settings["data"]["positive_label"],
        class_weight=settings["data"]["class_weight"],
        threads=threads,
        share_rows=Sharing.of(settings).allowed,
        slices=settings["mpi"]["slices"],
        follow=_follow(settings["output"], stop),
    )


def _with_lambda(problem: Problem, lam: float) -> Any:
    return replace(problem.regularizer, lam=lam)  # type: ignore[type-var]


def _for_columns(problem: Problem, settings: Mapping[str, Any], data: Dataset, group: Group) -> Problem:
    """Collective: the problem of several columns of targets, where there are some."""
    section = settings["data"]
    loss = loss_of_columns(problem.loss, section["classes"], section["labels"], data, group)
    with together(group):
        if loss is not problem.loss and settings["search"] is not None:
            raise IncompatibleError(f"{loss.title}: a search is for one problem; leave it out")
        if group.rank == 0:
            check_metrics(settings["output"]["metrics"], loss)
    return replace(problem, loss=loss)


def threads_of_all(problem: Problem, group: Group) -> int:
    """Collective: the threads of each rank; the fewest where nodes differ."""
    mine = problem.threads or group.cores_per_rank or usable_cores()
    return int(-group.max(np.array([-float(mine)]))[0])


def _follow(output: Mapping[str, Any], stop: Stopping | None) -> Follow | None:
    return Follow.of(output["follow"] or (), output["follow_every"], stop)


def _watch(settings: Mapping[str, Any], facts: fingerprint.Facts, start: From, phases: Phases, show: Callback) -> Watch:
    """Progress and checkpoints around the solver."""
    output = settings["output"]
    before = start.history if isinstance(start, Start) else ()
    # a search has several trainings, and a checkpoint of one of them does not say where it was
    problem = facts if settings["search"] is None else None

    @contextmanager
    def watch(model_of: ModelOf) -> Iterator[Callback]:
        from rich.console import Console

        from bmrm.app.pipeline.write import Checkpoints

        console = Console(stderr=True)
        where, every = Path(output["directory"]), output["checkpoint_every"]

        def finished(line: Iteration) -> bool:
            return problem is None or line.relative_gap <= goal_of(settings["solver"], line.objective)

        checkpoints = Checkpoints(where, every, model_of, console, problem, settings["seed"], before, finished)
        last: list[Iteration] = []

        def callback(line: Iteration) -> None:
            last[:] = [line]
            show(line)
            save(line)

        try:
            with phases("solve"), checkpoints as save:
                yield callback
        finally:
            phases.solved(last[0] if last else None, before[-1] if before else None)

    return watch


def _print_end(summary: Mapping[str, Any], title: str, where: str | None) -> None:
    from bmrm.app.report import summary_rows
    from bmrm.app.tables import print_pairs

    print_pairs(title, summary_rows(summary))
    if where is not None:
        print(where)
