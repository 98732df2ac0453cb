"""Runs side by side: the settings that differ, objectives with bounds, measures with intervals, seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmrm.app.config.relative import spoken
from bmrm.app.description import config_file, json_file
from bmrm.app.model import load_model
from bmrm.app.pipeline.fingerprint import LAMBDA, same
from bmrm.app.pipeline.load import seeded
from bmrm.app.pipeline.run_folder import CONFIG, MODEL, SUMMARY
from bmrm.problem import BmrmError, InputError

MEASURED = ("validation", "test")
"""Parts whose measures have intervals: the model has not been fitted to them."""
OWN = ("output.directory",)
"""Settings that differ between any two runs and are not compared."""
ABSENT = "-"


@dataclass(frozen=True)
class Run:
    """The files of a run.

    Attributes
    ----------
    folder : as it was given.
    config : the resolved config.
    summary : of summary.json.
    intervals : by part and measure the mean over folds and its interval (mean, low, high), where the rows can be read.
    """

    folder: str
    config: Mapping[str, Any]
    summary: Mapping[str, Any]
    intervals: Mapping[str, Mapping[str, tuple[float, float, float]]]


def load_run(folder: str, folds: int | None) -> Run:
    """The files of a run.

    Parameters
    ----------
    folder : `output.directory` of the run.
    folds : into which rows of validation and test are parted for intervals; None for no intervals.

    Raises
    ------
    InputError
        There is no run in the folder.
    """
    path = Path(folder)
    summary, config = json_file(path / SUMMARY), config_file(path / CONFIG)
    if summary is None or not config:
        missing = SUMMARY if summary is None else CONFIG
        raise InputError(f"{path / missing}: cannot be read; expected the folder of a run")
    value = (summary.get("problem") or {}).get(LAMBDA)
    return Run(
        folder, spoken(config, value), summary, {} if folds is None else _intervals(path, config, summary, folds)
    )


def _intervals(
    path: Path, config: Mapping[str, Any], summary: Mapping[str, Any], folds: int
) -> dict[str, dict[str, tuple[float, float, float]]]:
    found: dict[str, dict[str, tuple[float, float, float]]] = {}
    data = config.get("data") or {}
    for part in MEASURED:
        names = list((summary.get("metrics") or {}).get(part) or {})
        source = data.get(part)
        if not names or source is None:
            continue
        sources = [seeded(str(one), int(config.get("seed") or 0)) for one in _listed(source)]
        try:
            model = load_model(path / MODEL)
            rows = model.read(sources[0] if len(sources) == 1 else sources, data.get("format") or "auto", labelled=True)
        except BmrmError:  # moved since, or a loss of the user's own: there are only the numbers of the run
            continue
        found[part] = {}
        for name in names:
            try:
                one = model.evaluate_folds(rows, metrics=[name], folds=folds)[name]
            except InputError:  # not defined in some fold
                continue
            found[part][name] = (one.mean, one.low, one.high)
    return found


def _listed(source: Any) -> list[Any]:
    return source if isinstance(source, list) else [source]


def differences(configs: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The settings that are not the same in all configs, by dotted name; "-" where a config has no such setting."""
    all = [flat(config) for config in configs]
    keys = dict.fromkeys(key for one in all for key in one if key not in OWN)
    table = {key: [one.get(key, ABSENT) for one in all] for key in keys}
    return {key: values for key, values in table.items() if any(value != values[0] for value in values)}


def same_problem(runs: Sequence[Run]) -> bool:
    """Whether all runs minimise the same function of the same rows, so that their objectives can be compared."""
    return same([run.summary.get("problem") for run in runs])


def measures(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """The parts and measures that some run has."""
    pairs = ((part, name) for run in runs for part, all in (run.summary.get("metrics") or {}).items() for name in all)
    return list(dict.fromkeys(pairs))


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """The fields of nested sections by their full names; lists and empty sections stay whole."""
    if not isinstance(value, Mapping) or not value:
        return {name: value}
    fields: dict[str, Any] = {}
    for key, inside in value.items():
        fields |= flat(inside, f"{name}.{key}" if name else str(key))
    return fields
