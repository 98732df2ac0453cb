"""The files of runs as reports take them, with one message about what is missing or damaged."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bmrm.app.comparison import flat
from bmrm.app.config.fields import expected
from bmrm.app.config.marks import Document
from bmrm.app.config.relative import spoken
from bmrm.app.model import Model, load_model
from bmrm.app.pipeline.fingerprint import LAMBDA
from bmrm.app.pipeline.run_folder import CONFIG, CURVES, HISTORY, MODEL, SUMMARY
from bmrm.app.report import history_of
from bmrm.problem import InputError, Iteration, Status, shown

UNUSABLE = Status.NOT_CONVEX.name
"""Status of runs that leave no model."""
_Number = float | None
_Row = list[float]
MOST = 100_000
"""Most entries of a list that a report draws."""
_List = Annotated[list[float], Field(max_length=MOST)]


class _Part(BaseModel):
    """What is known of a file or a part of one; the rest of it is left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)


class _Tuples(_Part):
    """With tuples, which JSON has as lists."""

    model_config = ConfigDict(strict=False)


class _Open(_Part):
    """What is not known of it is kept."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=True)


class Named(_Open):
    """A plug-in with its options."""

    name: str

    @property
    def options(self) -> dict[str, Any]:
        """By name, as they stand in the file."""
        return self.model_extra or {}


class Search(_Part):
    """The trainings of a search, a row each, and the number of the one that was kept."""

    name: str
    judged_on: str = ""
    chosen: int | None = None
    table: list[dict[str, float | str | None]] = Field(default_factory=list)


class SummaryFile(_Part):
    """summary.json."""

    objective: _Number
    lower_bound: _Number
    gap: _Number
    relative_gap: _Number
    significant_figures: _Number = None
    status: str
    advice: str
    message: str = ""
    iterations: int
    passes: float
    seconds: dict[str, float]
    ranks: int
    threads: int | None = None
    rows: int
    dim: int
    nnz: int
    solver: str
    metrics: dict[str, dict[str, _Number]]
    versions: dict[str, str] = Field(default_factory=dict)
    problem: dict[str, Any] = Field(default_factory=dict)
    search: Search | None = None
    spread: dict[str, list[float]] = Field(default_factory=dict)
    sent: dict[str, int] = Field(default_factory=dict)
    row_sharing: dict[str, bool | str] = Field(default_factory=dict)
    followed: dict[str, list[_Number]] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)


class ConfigFile(_Open):
    """config.yaml."""

    data: dict[str, Any]
    loss: Named
    regularizer: Named
    solver: Named

    @property
    def fields(self) -> dict[str, Any]:
        """All that stands in the file."""
        return {**self.model_dump(), **(self.model_extra or {})}


class _Lists(_Part):
    """Lists of one length: a number per point."""

    @model_validator(mode="after")
    def _one_length(self) -> _Lists:
        lengths = {len(value) for value in dict(self).values() if isinstance(value, list)}
        if len(lengths) > 1:
            raise ValueError("lists of one length")
        return self


class Roc(_Lists):
    """Of `bmrm.metrics.curves.roc`."""

    fpr: _List
    tpr: _List


class PrecisionRecall(_Lists):
    """Of `bmrm.metrics.curves.precision_recall`."""

    recall: _List
    precision: _List
    base: float


class Reliability(_Lists):
    """Of `bmrm.metrics.curves.reliability`."""

    predicted: _List
    observed: _List
    rows: _List


class Calibration(_Lists):
    """Of `bmrm.metrics.curves.calibration`."""

    predicted: _List
    observed: _List
    low: _List
    high: _List


class Confusion(_Tuples):
    """Of `bmrm.metrics.curves.confusion`: a matrix, or the largest errors."""

    labels: list[str] = Field(default_factory=list)
    matrix: list[_Row] = Field(default_factory=list)
    errors: list[tuple[str, str, float]] | None = None

    @model_validator(mode="after")
    def _rectangular(self) -> Confusion:
        widths = {len(row) for row in self.matrix}
        if len(self.matrix) != len(self.labels) or len(widths) > 1 or max(widths, default=0) > len(self.labels):
            raise ValueError("a row and a column for each label")
        return self


class NdcgByQuery(_Part):
    """Of `bmrm.metrics.curves.ndcg_by_query`."""

    queries: int
    values: _List


class Curves(_Part):
    """Those that the run has."""

    roc: Roc | None = None
    precision_recall: PrecisionRecall | None = None
    reliability: Reliability | None = None
    calibration: Calibration | None = None
    confusion: Confusion | None = None
    ndcg_by_query: NdcgByQuery | None = None


class Interval(_Part):
    """Of a measure over parts of the rows."""

    low: float
    high: float
    folds: int


class Profile(_Tuples):
    """Of the rows of a part."""

    rows: int
    labels: list[tuple[str, int]] = Field(default_factory=list)
    classes: int = 0
    unknown: int = 0
    quantiles: _List = Field(default_factory=list)
    groups: int | None = None
    weight: _Number = None


class CurvesFile(_Part):
    """curves.json."""

    format: int = Field(ge=1, le=1)
    part: str
    data: dict[str, Profile]
    intervals: dict[str, Interval]
    curves: Curves


M = TypeVar("M", bound=BaseModel)


def read_json(path: Path, kind: type[M]) -> M:
    """The checked content of a JSON file; InputError names the file and the field."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refused)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON, or cut off: {error}") from error
    return _checked(path, value, kind)


def read_yaml(path: Path, kind: type[M]) -> M:
    """The checked content of a YAML file; InputError names the file and the field."""
    return _checked(path, Document.read(path).value, kind)


def _refused(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _checked(path: Path, value: Any, kind: type[M]) -> M:
    """One message for the first field that is wrong."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        detail = error.errors()[0]
        field = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "missing":
            raise InputError(f"{path}: {field} is missing") from error
        what = f"{field} is {shown(detail['input'])}, " if field else ""
        raise InputError(f"{path}: {what}expected {expected(detail)}") from error


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
    curves : of curves.json; None of a run that has measured no rows, or of an older version.
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
    def part(self) -> str:
        """The part of the data that the run is judged by."""
        return self.curves.part if self.curves is not None else next(reversed(self.summary.metrics), "")

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


def named(part: str) -> str:
    """A part of the data before the word rows."""
    return "training" if part == "train" else part
