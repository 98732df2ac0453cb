"""Drawings of the losses: SVG in the page, so that it has the colours of the page's mode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from markupsafe import Markup

from bmrm.app.charts import Axis, Chart, Line
from bmrm.losses import LOSSES
from bmrm.losses.base import OneScoreLoss

JUMP = 0.4
"""A slope that changes by more between neighbouring points has jumped there."""


def loss_figures() -> str:
    """Loss and slope of every loss with one score per row that is a sum over rows."""
    losses = [entry for entry in LOSSES.all() if issubclass(entry.cls, OneScoreLoss)]
    figures = Markup("").join(_figure(entry.name, entry.cls()) for entry in losses)
    return f'<div class="charts small">{figures}</div>'


def _figure(name: str, loss: OneScoreLoss) -> Chart:
    f = np.linspace(-3.0, 3.0, 601)
    y = np.full_like(f, loss.shown_target)
    value, slope = loss.value(f, y), loss.slope(f, y)
    borders = np.flatnonzero(np.abs(np.diff(slope)) > JUMP) + 1
    low = max(-4.0, min(float(slope.min()), float(value.min())) - 0.3)
    high = min(float(value.min()) + 6.0, float(value.max()) + 0.3)
    inside = (value >= low) & (value <= high)
    lines = [Line("loss", f[inside].tolist(), value[inside].tolist(), 0, marked=False)]
    lines += _slopes(f, np.where((slope >= low) & (slope <= high), slope, np.nan), borders)
    kinks = borders[np.diff(borders, prepend=-2) > 1]
    lines += [Line("", [float(f[k])], [float(value[k])], 0) for k in kinks]
    title = name if loss.task in ("binary", "novelty") else f"{name}, y = {loss.shown_target:g}"
    return Chart(title, lines, Axis("f", -3.0, 3.0), Axis("", low, high))


def _slopes(f: np.ndarray, slope: np.ndarray, borders: np.ndarray) -> Iterator[Line]:
    """The pieces of the slope between its jumps; the first is in the legend."""
    pieces = zip(np.split(f, borders), np.split(slope, borders), strict=True)
    for k, (x, y) in enumerate((x, y) for x, y in pieces if len(x) > 1):
        yield Line("" if k else "slope", x.tolist(), y.tolist(), 1, dashed=True, marked=False)
