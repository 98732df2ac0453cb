"""The weights of a run: the largest by name, and the transitions of a chain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bmrm.app.charts import bars
from bmrm.app.description import feature_name, feature_names, label_names, score_names
from bmrm.app.elements import Content, Markup, heated, section, tag
from bmrm.app.html.run import Run
from bmrm.app.model import Model

TOP = 20
"""Weights that are listed of one score."""
TOP_OF_CLASS = 8
"""Weights that are listed of each of several classes."""
MOST_CLASSES = 12
"""Classes whose weights are listed."""
MOST_STATES = 30
"""Labels of a table of transitions."""


def weights(run: Run) -> Markup | None:
    """The largest weights by name, of each class where there are several."""
    model = run.model
    if model is None:
        return section("Weights", tag("p", "This run has left no model.", class_="none"))
    names, table_of = feature_names(model), model.weights.reshape(model.dim, -1)
    zeros = int(np.sum(table_of == 0.0))
    words = f"{table_of.size - zeros:,} of {table_of.size:,} weights are not 0. They belong to the features as they "
    words += "stand in the data, in their units: a large weight of a feature with small numbers may matter little."
    titles = _score_names(model)
    most = TOP if len(titles) == 1 else TOP_OF_CLASS
    listed = [
        [title, bars(_largest(model, table_of[:, k], most, names, float(model.intercept[k])), signed=True)]
        for k, title in enumerate(titles[:MOST_CLASSES])
    ]
    content: list[Content] = [tag("p", words, class_="faint")]
    if len(titles) == 1:
        content += [tag("p", titles[0]), *listed[0][1:]]
    else:
        content.append(tag("div", [tag("div", tag("h3", title), rows) for title, rows in listed], class_="charts"))
    if len(titles) > MOST_CLASSES:
        content.append(tag("p", f"and {len(titles) - MOST_CLASSES:,} more classes", class_="faint"))
    return section("Largest weights", *content, _transitions(run))


def _score_names(model: Model) -> list[str]:
    names, labels = score_names(model), label_names(model)
    if len(names) > 1:
        return names
    return [f"Above 0 speaks for {labels[1]}, below 0 for {labels[0]}." if len(labels) == 2 else "Of the one score."]


def _largest(
    model: Model, column: NDArray[np.float64], most: int, names: Sequence[str] | None, intercept: float
) -> list[tuple[str, float, str]]:
    order = np.argsort(-np.abs(column), kind="stable")[:most]
    found = [(feature_name(model, names, int(k)), float(column[k])) for k in order if column[k] != 0.0]
    lines = [(name, value, f"{value:.4g}") for name, value in found]
    return lines + ([("(intercept)", 0.0, f"{intercept:.4g}")] if intercept else [])


def _transitions(run: Run) -> Content:
    """Of a chain: the weight of each label after each."""
    model = run.model
    found = None if model is None else model.arrays.get("transitions")
    if model is None or found is None or found.ndim != 2 or len(found) > MOST_STATES:
        return None
    labels = label_names(model)
    if found.shape != (len(labels), len(labels)):
        return None
    rows = [[float(f"{value:.3g}") for value in row] for row in found.tolist()]
    words = "The weight of each label (across) after each (down)."
    return heated(labels, labels, rows, "Transitions", words, "from")
