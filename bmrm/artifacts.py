"""The files of a run: all of them appear in the output folder, or none."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bmrm.data.files import whole_file
from bmrm.model import Model
from bmrm.problem import InputError, Iteration, Solution, Status

if TYPE_CHECKING:
    from rich.console import Console


CHECKPOINT = "checkpoint.npz"
"""The best model so far of a run that has not ended; gone when it has."""


class Checkpoints:
    """A callback that saves the best point so far every so many seconds, as a model file.

    A checkpoint that cannot be written is said once and does not stop the run.
    """

    def __init__(
        self, directory: Path, every: float | None, model_of: Callable[[Solution], Model], console: Console
    ) -> None:
        self._path = directory / CHECKPOINT
        self._every = every
        self._model_of = model_of
        self._console = console
        self._last = time.monotonic()
        self._complained = False

    def __call__(self, line: Iteration) -> None:
        """Save, if it is time."""
        due = self._every is not None and time.monotonic() - self._last >= self._every
        if not due or line.w is None or not math.isfinite(line.objective):
            return
        solution = Solution(
            line.w, line.objective, line.lower_bound, Status.INTERRUPTED, line.iteration, line.passes, line.seconds
        )
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._model_of(solution).save(self._path)
        except (InputError, OSError) as error:
            if not self._complained:
                self._console.print(f"bmrm: no checkpoint: {error}", highlight=False, soft_wrap=True)
            self._complained = True
        self._last = time.monotonic()


def check_writable(directory: Path) -> None:
    """Raise InputError unless files can be made in the folder, or the folder itself can; leaves no trace."""
    nearest = directory
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    try:
        if not nearest.is_dir():
            raise NotADirectoryError(0, f"{nearest} is not a folder")
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise InputError(f"output.directory {directory}: cannot be written: {error.strerror}") from error


def write_run(
    directory: Path, model: Model, summary: Mapping[str, Any], settings: Mapping[str, Any], title: str
) -> None:
    """Write model.npz, summary.json, history.csv, config.yaml and convergence.png.

    They are first written in a hidden folder beside their places and moved only when all are complete.

    Raises
    ------
    InputError
        When writing fails; older files in the folder then stay as they are.
    """
    from bmrm.config import resolved_yaml
    from bmrm.plots import convergence, save_convergence
    from bmrm.report import history_csv

    solution = model.solution
    assert solution is not None
    gap = summary["relative_gap"]
    caption = f"{title}: {summary['status']}" + ("" if gap is None else f", relative gap {gap:.1e}")
    figure = convergence(solution.history, title=caption, tolerance=settings["solver"].get("tolerance"))
    contents: dict[str, Callable[[IO[bytes]], Any]] = {
        "model.npz": model.write,
        "summary.json": _text(json.dumps(summary, indent=2, allow_nan=False) + "\n"),
        "history.csv": _text(history_csv(solution)),
        "config.yaml": _text(resolved_yaml(settings)),
        "convergence.png": lambda stream: save_convergence(figure, stream),
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=directory))
    except OSError as error:
        raise InputError(f"output.directory {directory}: cannot be written: {error.strerror}") from error
    try:
        for name, write in contents.items():
            with whole_file(staging / name) as stream:
                write(stream)
        for name in contents:
            os.replace(staging / name, directory / name)
        (directory / CHECKPOINT).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"output.directory {directory}: cannot be written: {error.strerror}") from error
    except InputError as error:
        raise InputError(str(error).replace(str(staging), str(directory))) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _text(text: str) -> Callable[[IO[bytes]], Any]:
    return lambda stream: stream.write(text.encode())
