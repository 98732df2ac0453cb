"""What a model is, from its file and the files of its run: certificate, largest weights by name, transitions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app.model import Model
from bmrm.app.model_file import named
from bmrm.app.pipeline.run_folder import CONFIG, SUMMARY
from bmrm.app.profile import text_of
from bmrm.app.report import finite, rule_of_lambda
from bmrm.data.layout import Layout
from bmrm.problem import Status, relative_gap

MOST_VALUES = 20
"""Most numbers of a learned array that are shown; of larger ones the shape."""


@dataclass(frozen=True)
class Weight:
    """A weight.

    Attributes
    ----------
    name : of the feature, or of the transition.
    value : the number.
    """

    name: str
    value: float


def feature_names(model: Model) -> Sequence[str] | None:
    """The names of the features in the order of the weights; None where they have none or are hashed."""
    if model.features is not None:
        return model.features.names
    if model.reader is not None:
        return model.reader.vocabulary.names or None
    return model.feature_names


def feature_name(model: Model, names: Sequence[str] | None, column: int) -> str:
    """The name of a feature, or its number in the training file: of a column from 0, of svmlight as it counts."""
    if names is not None:
        return names[column]
    layout = model.layout or Layout()
    place = _column_of(layout, column)
    return f"feature {column + bool(layout.one_based)}" if place is None else f"column {place}"


def _column_of(layout: Layout, feature: int) -> int | None:
    """The position of a feature in a file whose columns have no names; None where features are not columns."""
    if layout.format is None or layout.places is None:
        return None
    ignored = {int(key) for key in layout.format.get("ignore") or () if str(key).removeprefix("-").isdecimal()}
    stated = [key for name in ("weight", "group") if type(key := layout.format.get(name)) is int]
    width = (layout.features or 0) + len({*layout.places, *stated}) + len(ignored)
    kept = [k for k in range(width) if not {k, k - width} & ignored]
    taken = {*layout.places, *(key if key >= 0 else kept[key] for key in stated if -len(kept) <= key)}
    features = [k for k in kept if k not in taken]
    return features[feature] if len(features) == layout.features else None


def label_names(model: Model) -> list[str]:
    """The labels as text, in score order."""
    times = model.labels.dtype.kind in "mM"
    return [str(label) if times else text_of(label) for label in (model.labels if times else model.labels.tolist())]


def score_names(model: Model) -> list[str]:
    """What each column of scores speaks for: the positive label of two, each label of several, transitions."""
    labels, scores = label_names(model), 1 if model.weights.ndim == 1 else model.weights.shape[1]
    if scores == 1:
        return [labels[-1] if len(labels) == 2 else "score"]
    if scores == len(labels):
        return labels
    if scores == len(labels) + len(labels) ** 2:
        return labels + [f"{before} -> {after}" for before in labels for after in labels]
    return [f"score {k + 1}" for k in range(scores)]


def top_weights(model: Model, count: int) -> dict[str, list[Weight]]:
    """The weights of largest size that are not 0, by what their scores speak for; at most `count` each."""
    names, matrix = feature_names(model), model.weights.reshape(model.dim, -1)
    return {
        score: [Weight(feature_name(model, names, k), float(column[k])) for k in _largest(column, count)]
        for score, column in zip(score_names(model), matrix.T)
    }


def top_transitions(model: Model, count: int) -> list[Weight] | None:
    """The transitions of largest size, at most `count`; None for models that are not of sequences."""
    transitions = model.arrays.get("transitions")
    if transitions is None:
        return None
    labels, flat = label_names(model), transitions.ravel()
    pairs = (divmod(k, len(labels)) for k in _largest(flat, count))
    return [Weight(f"{labels[a]} -> {labels[b]}", float(transitions[a, b])) for a, b in pairs]


def _largest(values: NDArray[np.float64], count: int) -> list[int]:
    size = np.abs(values)
    some = np.argpartition(-size, count - 1)[:count] if count < len(size) else np.arange(len(size))
    order = some[np.argsort(-size[some], kind="stable")]
    return [int(k) for k in order if values[k] != 0.0]


def described(model: Model, count: int, folder: Path | None = None) -> dict[str, Any]:
    """The whole description, for JSON.

    Parameters
    ----------
    model : from a file or a run.
    count : weights of each score.
    folder : of the run, whose config and summary say how it was trained; None if unknown.
    """
    header = model.header
    objective, bound = header.get("objective"), header.get("lower_bound")
    status = str(header.get("status"))
    transitions = top_transitions(model, count)
    return {
        "loss": header["loss"],
        "regularizer": header.get("regularizer"),
        "lambda_from": _lambda_from(header),
        "labels": label_names(model),
        "features": model.dim,
        "columns": None if model.encoding is None else model.encoding.described(),
        "feature_map": None if model.features is None else model.features.header(),
        "nonzero_weights": int(np.count_nonzero(model.weights)),
        "intercept": model.intercept.tolist(),
        "bias": header.get("bias"),
        "row_scale": model.row_scale,
        "offset": model.offset,
        "objective": objective,
        "lower_bound": bound,
        "relative_gap": None if objective is None or bound is None else finite(relative_gap(objective, bound)),
        "status": status,
        "advice": Status[status].advice if status in Status.__members__ else None,
        "version": header.get("version"),
        "trained": trained(folder),
        "calibration": None if model.calibration is None else model.calibration.header(),
        "learned": {name: _array(array) for name, array in model.arrays.items() if name != "transitions"},
        "transitions": None if transitions is None else _plain(transitions),
        "weights": {score: _plain(weights) for score, weights in top_weights(model, count).items()},
    }


def _lambda_from(header: Mapping[str, Any]) -> str | None:
    """The rule by which lambda follows from the rows, such as "1 / m"; None where it was given as a number."""
    chosen = header.get("chosen")
    found = chosen.get("lambda") if isinstance(chosen, Mapping) else None
    return rule_of_lambda(header.get("problem"), header.get("regularizer")) if found is None else str(found)


def _array(array: NDArray[np.float64]) -> Any:
    return array.tolist() if array.size <= MOST_VALUES else {"shape": list(array.shape)}


def _plain(weights: Sequence[Weight]) -> list[dict[str, Any]]:
    return [{"name": weight.name, "value": weight.value} for weight in weights]


def trained(folder: Path | None) -> dict[str, Any] | None:
    """What the files of a run say of the training; None where they are not there."""
    summary = None if folder is None else json_file(folder / SUMMARY)
    if folder is None or summary is None:
        return None
    config = config_file(folder / CONFIG)
    data = config.get("data") or {}
    known = {key: summary.get(key) for key in ("rows", "nnz", "ranks", "solver", "iterations", "passes", "metrics")}
    seconds = summary.get("seconds") or {}
    return known | {
        "seconds": seconds.get("total"),
        "data": data.get("train"),
        "scale": data.get("scale"),
        "bias": data.get("bias"),
    }


def json_file(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None where there is none that can be read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def config_file(path: Path) -> dict[str, Any]:
    """The fields of a resolved config; none where it cannot be read."""
    import yaml

    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return value if isinstance(value, dict) else {}


def section_in_words(section: Mapping[str, Any] | None) -> str:
    """`huber, delta 2`."""
    if section is None:
        return "-"
    name, options = named(section)
    return ", ".join([name, *(f"{key} {text_of(value)}" for key, value in options.items())])
