"""Pictures of a regularization path: weights, scores and gaps against lambda."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from bmrm.app.charts import FONT, WIDTH, Axis, Chart, Line, clean

MOST = 12
"""Most features whose weights are drawn: the largest on the path."""
NAMED = 6
"""Most of them that the legend names."""
PAD, ROW = 10.0, 16.0
"""Margins and the height of a line of text, in pixels."""

Array = NDArray[np.float64]


def charts(
    lambdas: Array,
    weights: Array,
    names: Sequence[str],
    nonzeros: Sequence[int],
    shares: Mapping[str, Array],
    gaps: Array,
    tolerance: float | None = None,
) -> Iterator[Chart]:
    """One below the other: the largest weights, the features, each share or measure, the gaps.

    Parameters
    ----------
    lambdas : (points,).
    weights : (points, features), or (points, features, scores), of which the norm over the scores is drawn.
    names : of the features.
    nonzeros : (points,), features in the model.
    shares : (points,) by name; those without a finite number are left out.
    gaps : (points,), relative.
    tolerance : of the gaps, drawn as a line.
    """
    across = Axis("lambda", log=True)
    table = weights if weights.ndim == 2 else np.linalg.norm(weights, axis=2)
    sizes = np.abs(table).max(axis=0, initial=0.0)
    order = [int(j) for j in np.argsort(-sizes, kind="stable")[:MOST] if sizes[j] > 0.0]
    lines = [
        Line(names[j] if k < NAMED else "", lambdas, table[:, j], k, marked=False)  # type: ignore[arg-type]
        for k, j in enumerate(order)
    ]
    height = Axis("weight" if weights.ndim == 2 else "norm of the weights")
    yield Chart(f"Weights by lambda, {_of(len(order), int(np.count_nonzero(sizes)))}", lines, across, height)
    yield Chart("Features by lambda", [Line("", lambdas, nonzeros)], across, Axis("features", whole=True))  # type: ignore[arg-type]
    for name, values in shares.items():
        if np.isfinite(values).any():
            yield Chart(f"{name} by lambda", [Line("", lambdas, values)], across, Axis(name))  # type: ignore[arg-type]
    if np.any(gaps > 0.0):
        level = None if not tolerance else (tolerance, "tolerance")
        gap = Line("", lambdas, gaps)  # type: ignore[arg-type]
        yield Chart("Relative gap by lambda", [gap], across, Axis("relative gap", log=True), level)


def _of(count: int, all: int) -> str:
    return f"the largest {count} of {all}" if count < all else "all that are ever used"


def picture(found: Sequence[Chart], title: str) -> str:
    """Charts one above the other, each under its title, as the text of an SVG file."""
    title = clean(title)
    top, parts = (
        PAD + ROW,
        [Markup('<text x="{:g}" y="{:g}" font-weight="bold">{}</text>').format(PAD, PAD + ROW, title)],
    )
    for chart in found:
        top += ROW + PAD
        parts.append(Markup('<text x="{:g}" y="{:g}">{}</text>').format(PAD, top, chart.title))
        top += PAD
        parts.append(chart.svg(top))
        top += chart.whole if math.isfinite(chart.whole) else 0.0
    whole = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{}" viewBox="0 0 {:g} {:g}" width="{:g}" {}>'
        '<rect width="100%" height="100%" fill="#fff"/>{}</svg>\n'
    ).format(title, WIDTH, top + PAD, 1.5 * WIDTH, Markup(FONT), Markup("").join(parts))
    return str(whole)


def of_path(found: Any, tolerance: float | None = None) -> list[Chart]:
    """Those of a `bmrm.app.path.Path`."""
    names = found.models[0].column_names
    shares = {"Share of the loss explained": found.explained, **found.measures}
    return list(charts(found.lambdas, found.weights, names, found.nonzeros, shares, found.gaps, tolerance))
