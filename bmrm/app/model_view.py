"""A model in a line, as HTML for notebooks, and by its largest weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from bmrm.app.defaults import INTERCEPTS
from bmrm.app.model_file import ModelData
from bmrm.problem import Iteration, Solution, shown
from bmrm.registry import Range, checked_value

LABELS = 4
"""Most labels in a description; of more their number is given."""
HEIGHT = 160.0
"""Height of the picture, in pixels."""
STYLE = "font: 13px/1.5 system-ui, sans-serif; max-width: 46em"
CELL = "text-align: left; vertical-align: top; padding: 1px 12px 1px 0"


class Weight(NamedTuple):
    """A weight by the name of its feature; `label` is that of its score, None where there is one score per row."""

    feature: str
    weight: float
    label: Any = None


def top_weights(model: ModelData, count: int) -> list[Weight]:
    """The largest weights by absolute value, largest first, `count` of each score; zeros are left out."""
    count = checked_value("count", count, (int,), Range(least=0))
    table = model.weights[:, None] if model.weights.ndim == 1 else model.weights
    names, found = model.column_names, []
    for label, column in zip(_scores(model, table.shape[1]), table.T, strict=True):
        order = np.argsort(-np.abs(column), kind="stable")[:count]
        found += [Weight(names[j], float(column[j]), label) for j in order if column[j] != 0.0]
    return found


def _scores(model: ModelData, count: int) -> list[Any]:
    """What each score of a row is about: a label, a pair of labels (transitions), or else its number."""
    if model.weights.ndim == 1:
        return [None]
    labels = model.labels.tolist()
    pairs = [(before, after) for before in labels for after in labels]
    return {len(labels): labels, len(labels) + len(pairs): labels + pairs}.get(count) or list(range(count))


def line(model: ModelData) -> str:
    """`<Model hinge + l2 (lambda 0.001), free intercept; 30 features; labels 0, 1; CONVERGED, relative gap 3e-05>`."""
    parts = [f"{_loss(model)} + {_regularizer(model)}{_intercept(model)}", f"{model.weights.shape[0]} features"]
    parts += [f"labels {_labels(model)}"] if model.labels.size else []
    parts.append(_end(model))
    parts += [] if model.weights.any() else ["all weights are 0"]
    if model.header.get("chosen"):
        parts.append(f"chosen: {_chosen(model)}")
    return f"<Model {'; '.join(parts)}>"


def title(model: ModelData) -> str:
    """`hinge + l2: CONVERGED, relative gap 3e-05`, for pictures."""
    parts = [str(section["name"]) for section in (model.header["loss"], model.header.get("regularizer")) if section]
    return f"{' + '.join(parts)}: {_end(model)}"


def html(model: ModelData) -> str:
    """The problem, the certificate, measures that were followed, and a small picture of the convergence."""
    rows = [("loss", _loss(model)), ("regularizer", _regularizer(model) + _intercept(model))]
    rows.append(("features", f"{model.weights.shape[0]:,}"))
    rows += [("labels", _labels(model))] if model.labels.size else []
    rows += [("chosen", _chosen(model))] if model.header.get("chosen") else []
    rows += [("result", _end(model)), ("certificate", _certificate(model))]
    rows += [("found", model._solution.message)] if model._solution is not None and model._solution.message else []
    rows += [(f"validation {name}", f"{value:.6g}") for name, value in _followed(model._solution)]
    cells = "".join(
        f'<tr><th style="{CELL}" scope="row">{escape(name)}</th><td style="{CELL}">{escape(text)}</td></tr>'
        for name, text in rows
    )
    picture = "" if model._solution is None else _picture(model._solution.history)
    return f'<div style="{STYLE}"><table>{cells}</table>{picture}</div>'


def _named(section: Mapping[str, Any], hidden: Sequence[str] = ()) -> str:
    options = [f"{key} {_short(value)}" for key, value in section.items() if key not in ("name", *hidden)]
    return f"{section['name']} ({', '.join(options)})" if options else str(section["name"])


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else shown(value, 40)


def _loss(model: ModelData) -> str:
    section = model.header["loss"]
    return _named(section, [key for key, value in section.items() if value is None])


def _regularizer(model: ModelData) -> str:
    section = model.header.get("regularizer")
    return "a regularizer" if section is None else _named(section, ("engine",))


def _intercept(model: ModelData) -> str:
    return f", {INTERCEPTS[model.header['bias']]}" if model.header.get("bias") in INTERCEPTS else ""


def _labels(model: ModelData) -> str:
    labels = model.labels
    if labels.size > LABELS:
        return f"{labels[0]}, {labels[1]}, ... ({labels.size})"
    return ", ".join(str(label) for label in labels)


def _chosen(model: ModelData) -> str:
    chosen: Mapping[str, str] = model.header["chosen"]
    return ", ".join(text if name == "loss" else f"{name} {text}" for name, text in chosen.items())


def _end(model: ModelData) -> str:
    status, solution = str(model.header.get("status", "")), model._solution
    if solution is None:
        return status
    gap = f", relative gap {solution.relative_gap:.2g}" if math.isfinite(solution.relative_gap) else ", no lower bound"
    return status + gap


def _certificate(model: ModelData) -> str:
    objective, bound = model.header.get("objective"), model.header.get("lower_bound")
    if objective is None or bound is None:
        return "none: this solver gives no lower bound of the minimum"
    return f"objective {objective:.8g}; no weights reach less than {bound:.8g}"


def _followed(solution: Solution | None) -> Iterator[tuple[str, float]]:
    """The last values of what was measured of validation rows."""
    table = {} if solution is None else solution.details.get("validation", {})
    for name, values in table.items():
        if name != "iteration" and len(values):
            yield name, float(values[-1])


def _picture(history: Sequence[Iteration]) -> str:
    """The relative gap over the iterations."""
    from bmrm.app.charts import Axis, Chart, Line

    points = [row for row in history if 0.0 < row.relative_gap < math.inf]
    if len(points) < 2:
        return ""
    first, last = points[0], points[-1]
    words = f"relative gap over {last.iteration} iterations, from {first.relative_gap:.2g} to {last.relative_gap:.2g}"
    line = Line("relative gap", [row.iteration for row in points], [row.relative_gap for row in points])
    return Chart(words, [line], Axis("iteration", whole=True), Axis("", log=True), height=HEIGHT).__html__()
