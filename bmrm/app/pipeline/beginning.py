"""The start of a run: zero, a model, or the checkpoint of another run on the same problem."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmrm.app.model import Model
from bmrm.app.pipeline.checkpoint import Checkpoint, read_start
from bmrm.app.pipeline.fingerprint import Facts, difference
from bmrm.app.pipeline.run_folder import CHECKPOINT, MODEL, SUMMARY, present
from bmrm.problem import InputError, Start, Vector
from bmrm.problem.solution import relative_goal

From = Vector | Start | Model | None
"""Start of a run; the bound of a model is used only if it belongs to the same problem."""


@dataclass(frozen=True, eq=False)
class Beginning:
    """How a run begins.

    Attributes
    ----------
    start : the starting point.
    finished : the summary of a run that has already reached the tolerance, so that nothing is left to do.
    words : a message for the user, or none.
    """

    start: From = None
    finished: Mapping[str, Any] | None = None
    words: str = ""


def goal_of(solver: Mapping[str, Any], objective: float) -> float:
    """The relative gap at which a solver with these settings ends, where the objective is this."""
    return relative_goal(objective, solver.get("tolerance", 0.0), solver.get("absolute_tolerance", 0.0))


def beginning(settings: Mapping[str, Any], problem: Facts, resume: bool) -> Beginning:
    """The start according to config, command line and output folder.

    Raises
    ------
    InputError
        A file that cannot be read, or a checkpoint of another problem or other data; the difference is named.
    """
    directory, path = Path(settings["output"]["directory"]), settings["start"]
    if settings["search"] is not None:
        if path is not None:
            raise InputError(f"start is {path}, but a search begins its trainings itself; leave start out")
        return Beginning(words=_of_search(settings["search"], directory) if resume else "")
    if resume and present(directory, (CHECKPOINT,)):
        return _of_file(directory / CHECKPOINT, problem)
    if resume and present(directory, (MODEL,)):
        return _of_results(directory, settings["solver"], problem)
    if path is not None:
        return _of_file(Path(path), problem)
    if resume:
        return Beginning(words=f"nothing to resume in {directory}: a new run")
    left = present(directory, (CHECKPOINT,))
    return Beginning(words=f"{directory / CHECKPOINT} is left alone; --resume would go on from it" if left else "")


def _of_search(search: Mapping[str, Any], directory: Path) -> str:
    """What is said where a search is to be resumed."""
    if search["name"] == "f_measure":
        return "this search is not resumed: it begins anew"
    return f"trainings that an earlier run of this search has left in {directory / 'trials'} are not repeated"


def start_of_file(path: Path, problem: Facts) -> Start | Model:
    """A checkpoint of this problem, or a model."""
    found = read_start(path)
    return found.start_on(problem, path) if isinstance(found, Checkpoint) else found


def start_of_model(model: Model, problem: Facts, w: Vector) -> Start:
    """Start at the model's weights; its bound is used if it is of this problem."""
    bound = model.header.get("lower_bound")
    known = difference(model.header.get("problem"), problem) is None and isinstance(bound, (int, float))
    return Start(w, float(bound) if known else -math.inf)  # type: ignore[arg-type]


def _of_file(path: Path, problem: Facts) -> Beginning:
    start = start_of_file(path, problem)
    if isinstance(start, Model):
        return Beginning(start, words=f"begins with {path}")
    last = start.history[-1] if start.history else None
    where = "" if last is None else f": iteration {last.iteration}, {last.seconds:.1f} s"
    return Beginning(start, words=f"goes on from {path}{where}")


def _of_results(directory: Path, solver: Mapping[str, Any], problem: Facts) -> Beginning:
    try:
        summary = json.loads((directory / SUMMARY).read_text())
        status, gap, objective = str(summary["status"]), summary["relative_gap"], summary["objective"]
        same = difference(summary["problem"], problem) is None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{directory / SUMMARY}: not the summary of a run: {error}") from error
    if same and status == "CONVERGED" and isinstance(gap, float) and gap <= goal_of(solver, objective):
        words = f"{directory} holds the result already: {status}, relative gap {gap:.1e}; nothing is left to do"
        return Beginning(finished=summary, words=words)
    return _of_file(directory / MODEL, problem)
