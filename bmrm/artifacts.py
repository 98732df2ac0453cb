"""The files of a run: all of them appear in the output folder, or none."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from bmrm.data.files import whole_file
from bmrm.model import Model
from bmrm.problem import InputError


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
    except OSError as error:
        raise InputError(f"output.directory {directory}: cannot be written: {error.strerror}") from error
    except InputError as error:
        raise InputError(str(error).replace(str(staging), str(directory))) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _text(text: str) -> Callable[[IO[bytes]], Any]:
    return lambda stream: stream.write(text.encode())
