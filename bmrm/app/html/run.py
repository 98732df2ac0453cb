"""A finished run, read from its folder: all of it, or one message about what is missing or damaged."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmrm.app.config.relative import spoken
from bmrm.app.html.files import ConfigFile, CurvesFile, Named, SummaryFile, read_json, read_yaml
from bmrm.app.model import Model, load_model
from bmrm.app.pipeline.fingerprint import LAMBDA
from bmrm.app.pipeline.run_folder import CONFIG, CURVES, HISTORY, MODEL, SUMMARY
from bmrm.app.report import history_of
from bmrm.problem import InputError, Iteration, Status

UNUSABLE = Status.NOT_CONVEX.name
"""The status of runs that leave no model."""


@dataclass(frozen=True, eq=False)
class Run:
    """What the folder of a run holds.

    Attributes
    ----------
    name : how the report calls it.
    directory : the folder.
    summary, config : of summary.json and config.yaml.
    settings : config.yaml as it stands, by the full names of its fields.
    history : the lines of history.csv.
    model : None where the run has left none.
    curves : of curves.json; None of a run of an older version.
    """

    name: str
    directory: Path
    summary: SummaryFile
    config: ConfigFile
    settings: Mapping[str, Any]
    history: Sequence[Iteration]
    model: Model | None
    curves: CurvesFile | None

    @property
    def title(self) -> str:
        """What was trained on what."""
        train = self.config.data.get("train")
        files = ", ".join(map(str, train)) if isinstance(train, list) else str(train)
        return f"{self.config.loss.name} + {self.config.regularizer.name} on {files}"

    @property
    def tolerance(self) -> float | None:
        """The relative gap that was asked for."""
        value = self.config.solver.options.get("tolerance")
        return float(value) if isinstance(value, (int, float)) and math.isfinite(value) and value > 0 else None


def read_runs(folders: Sequence[Path | str]) -> list[Run]:
    """The runs of these folders, named by the shortest ends of their paths that tell them apart.

    Raises
    ------
    InputError
        Naming the first file that is missing, cut off or not of a run.
    """
    paths = [Path(folder) for folder in folders]
    return [_read(path, name) for path, name in zip(paths, _names(paths))]


def _names(paths: Sequence[Path]) -> list[str]:
    parts = [path.absolute().parts for path in paths]
    for length in range(1, max(map(len, parts), default=0) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    raise InputError("a folder is named twice, expected different runs")


def _read(directory: Path, name: str) -> Run:
    if not directory.is_dir():
        raise InputError(f"{directory}: no such folder, expected the output folder of a run")
    absent = [file for file in (SUMMARY, CONFIG, HISTORY) if not (directory / file).is_file()]
    if absent:
        raise InputError(f"{directory}: not the output folder of a finished run: it has no {', '.join(absent)}")
    summary = read_json(directory / SUMMARY, SummaryFile)
    model = None if summary.status == UNUSABLE else load_model(directory / MODEL)
    config, known = read_yaml(directory / CONFIG, ConfigFile), (directory / CURVES).is_file()
    header = {} if model is None else model.header
    value = summary.problem.get(LAMBDA, (header.get("regularizer") or {}).get("lambda"))
    regularizer = spoken({"regularizer": config.regularizer.model_dump()}, value)["regularizer"]
    config = config.model_copy(update={"regularizer": Named(**regularizer)})
    return Run(
        name,
        directory,
        summary,
        config,
        flat(config.fields),
        _history(directory / HISTORY),
        model,
        read_json(directory / CURVES, CurvesFile) if known else None,
    )


def _history(path: Path) -> list[Iteration]:
    try:
        lines = history_of(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (csv.Error, ValueError) as error:
        raise InputError(f"{path}: not the history of a run: {error}") from error
    if not lines:
        raise InputError(f"{path}: no lines, expected one per iteration")
    return lines


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """The fields of nested sections by their full names; lists and empty sections stay whole."""
    if not isinstance(value, Mapping) or not value:
        return {name: value}
    fields: dict[str, Any] = {}
    for key, inside in value.items():
        fields |= flat(inside, f"{name}.{key}" if name else str(key))
    return fields


def named(part: str) -> str:
    """A part of the data before the word rows."""
    return "training" if part == "train" else part
