"""The files of a run, results and checkpoints, and the rule for replacing older results."""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bmrm.app.model import Model
from bmrm.app.pipeline.checkpoint import Checkpoint, problem_of_file
from bmrm.app.pipeline.fingerprint import Facts, difference
from bmrm.app.pipeline.run_folder import (
    CHECKPOINT,
    CONFIG,
    CURVES,
    HISTORY,
    MODEL,
    PICTURE,
    SUMMARY,
    Writer,
    present,
    write_file,
    write_set,
)
from bmrm.problem import InputError, Iteration, OutputError, Solution, Start, Status

if TYPE_CHECKING:
    from rich.console import Console


EARLY = Status.INTERRUPTED, Status.TIME_LIMIT, Status.ITERATION_LIMIT
"""Statuses after which a run may be resumed, so that its checkpoint is kept."""


class Checkpoints:
    """A callback that saves the best point so far and the state of the solver every so many seconds.

    A context manager around the solver: if that is interrupted, the last state is saved too. A checkpoint that cannot
    be written is reported once and does not stop the run.

    Parameters
    ----------
    directory, every : the folder, and the seconds between checkpoints; None for never.
    model_of : the model of a solution.
    problem, seed : what is minimised, as of `bmrm.app.pipeline.fingerprint`; None if the run cannot be resumed.
    before : the history of the run that this one continues.
    finished : whether a run that is at this line has reached its tolerance, and needs no checkpoint.
    """

    def __init__(
        self,
        directory: Path,
        every: float | None,
        model_of: Callable[[Solution], Model],
        console: Console,
        problem: Facts | None = None,
        seed: int = 0,
        before: Sequence[Iteration] = (),
        finished: Callable[[Iteration], bool] = lambda line: True,
    ) -> None:
        self._directory, self._every, self._model_of, self._console = directory, every, model_of, console
        self._problem, self._seed, self._finished = problem, seed, finished
        self._history = list(before)
        self._line: Iteration | None = None
        self._last = time.monotonic()
        self._complained = False

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        line = self._line
        if self._every is None or line is None or self._finished(line):
            return
        if kind is None:
            self.save(line)
        elif kind is KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted at once: {self._left()}") from error

    def __call__(self, line: Iteration) -> None:
        """Save if the interval has passed."""
        self._line = line
        self._history.append(replace(line, w=None, state=None))
        if self._every is not None and time.monotonic() - self._last >= self._every:
            self.save(line)

    def save(self, line: Iteration) -> None:
        """Write the checkpoint, if there is a point."""
        if line.w is None or not math.isfinite(line.objective):
            return
        solution = Solution(
            line.w, line.objective, line.lower_bound, Status.INTERRUPTED, line.iteration, line.passes, line.seconds
        )
        try:
            write_file(self._directory, CHECKPOINT, self._writer(line, self._model_of(solution)))
        except (InputError, OSError) as error:
            if not self._complained:
                self._console.print(f"bmrm: no checkpoint: {error}", highlight=False, soft_wrap=True)
            self._complained = True
        self._last = time.monotonic()

    def _writer(self, line: Iteration, model: Model) -> Writer:
        if self._problem is None or line.w is None:
            return model.write
        state = {} if line.state is None else line.state()
        start = Start(line.w, float(state.get("proved", line.lower_bound)), tuple(self._history), state)
        checkpoint = Checkpoint(start, self._problem, self._seed)
        return lambda stream: checkpoint.write(stream, model)

    def _left(self) -> str:
        """What there is to resume from after a failed save, for the message."""
        path = self._directory / CHECKPOINT
        return f"{path} is of an earlier iteration; --resume goes on from it" if path.exists() else "nothing is written"


def refuse_others(directory: Path, problem: Facts) -> None:
    """InputError if the folder holds results of another problem, or files that are not from a run."""
    way_out = "choose another folder, or replace them with --overwrite (output.overwrite: true)"
    if present(directory, (CHECKPOINT,)):
        why = difference(problem_of_file(directory / CHECKPOINT), problem)
        if why is not None:
            raise InputError(f"output.directory {directory}: its {CHECKPOINT} is of another problem: {why}; {way_out}")
    there = present(directory)
    if not there:
        return
    if SUMMARY not in there:
        raise InputError(f"output.directory {directory}: it holds {', '.join(there)}, but no {SUMMARY}; {way_out}")
    try:
        summary = json.loads((directory / SUMMARY).read_text())
    except (OSError, ValueError):
        summary = None
    why = difference(summary.get("problem") if isinstance(summary, dict) else None, problem)
    if why is not None:
        raise InputError(f"output.directory {directory} holds the results of another problem: {why}; {way_out}")


def write_run(
    directory: Path,
    model: Model,
    summary: Mapping[str, Any],
    settings: Mapping[str, Any],
    curves: Mapping[str, Any],
) -> list[str]:
    """Write model.npz, summary.json, history.csv, config.yaml and curves.json, replacing an older run's together.

    There is no model if the run has ended with NOT_CONVEX, since its point is not usable, and no curves.json if no rows
    were measured.

    Returns the reasons if history.csv, config.yaml or curves.json could not be written.

    Raises
    ------
    OutputError
        If model or summary cannot be written; older files in the folder are then unchanged, and the message names the
        place where the model was saved.
    """
    from bmrm.app.config.config import resolved_yaml
    from bmrm.app.report import history_csv

    usable = model.solution.status is not Status.NOT_CONVEX
    needed = {
        MODEL: model.write if usable else _text(""),
        SUMMARY: _text(json.dumps(summary, indent=2, allow_nan=False) + "\n"),
    }
    more = {CONFIG: _text(resolved_yaml(settings)), HISTORY: _text(history_csv(model.solution))}
    if curves:
        more[CURVES] = _text(json.dumps(curves, allow_nan=False) + "\n")
    try:
        complaints = write_set(directory, needed, more)
    except OutputError as error:
        raise OutputError(f"{error}; {_elsewhere(model)}" if usable else str(error)) from error
    if model.solution.status not in EARLY or settings["output"]["checkpoint_every"] is None:
        with suppress(OSError):
            (directory / CHECKPOINT).unlink(missing_ok=True)
    return complaints


def _elsewhere(model: Model) -> str:
    """Save the model in a temporary folder; in words."""
    try:
        path = Path(tempfile.mkdtemp(prefix="bmrm-")) / MODEL
        model.save(path)
    except (InputError, OSError):
        return "nor can the model be written in a temporary folder"
    return f"the model is in {path}"


def draw_run(
    directory: Path,
    summary: Mapping[str, Any],
    tolerance: float | None,
    title: str,
    history: Sequence[Iteration] | None = None,
) -> None:
    """Add convergence.svg to the files of a run, drawn from its history or from history.csv.

    Raises
    ------
    OutputError
        If it cannot be drawn or written; callers only report this.
    """

    def draw(stream: IO[bytes]) -> None:
        from bmrm.app.plots import caption, convergence_svg
        from bmrm.app.report import history_of

        lines = history_of((directory / HISTORY).read_text()) if history is None else history
        words = caption(title, summary["status"], summary["relative_gap"])
        stream.write(convergence_svg(lines, title=words, tolerance=tolerance).encode())

    try:
        write_file(directory, PICTURE, draw)
    except OutputError:
        raise
    except Exception as error:  # a damaged history.csv, say
        raise OutputError(f"{directory / PICTURE}: cannot be drawn: {error}") from error


def write_seconds(directory: Path, summary: Mapping[str, Any]) -> None:
    """Rewrite summary.json with the seconds that writing and drawing took, if possible."""
    with suppress(OutputError):
        write_file(directory, SUMMARY, _json(summary))


def _json(summary: Mapping[str, Any]) -> Writer:
    return _text(json.dumps(summary, indent=2, allow_nan=False) + "\n")


def _text(text: str) -> Writer:
    return lambda stream: stream.write(text.encode())
