"""The convergence of a run: objective and lower bound above, the relative gap below; as SVG, and by matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from markupsafe import Markup

from bmrm.app.charts import COLOURS, FONT, WIDTH, Axis, Chart, Line, clean
from bmrm.problem import Iteration, MissingLibraryError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LETTERS = 64
"""Most letters of a line of the title."""
_LINE, _PAD = 16.0, 10.0
"""Height of a line of text, and margins, in pixels."""
_RESOLUTION = 130
"""Resolution of a PNG, in dots per inch."""


def caption(title: str, status: str, relative_gap: float | None) -> str:
    """What a picture of a finished run is called."""
    return f"{title}: {status}" + ("" if relative_gap is None else f", relative gap {relative_gap:.1e}")


def convergence_svg(history: Sequence[Iteration], *, title: str, tolerance: float | None = None) -> str:
    """Two charts over the iterations, one above the other, as the text of an SVG file.

    Parameters
    ----------
    history : of a `Solution`.
    title : above the charts.
    tolerance : drawn into the lower chart as a dashed line.
    """
    title = clean(title)
    values, gaps, words = _charts(history, tolerance)
    top, parts = _PAD, []
    for text in [*textwrap.wrap(title, _LETTERS), *([] if gaps.drawn else [words])]:
        top += _LINE
        parts.append(Markup('<text x="{:g}" y="{:g}">{}</text>').format(_PAD, top, text))
    top += _PAD
    for chart in (values, gaps):
        if chart.drawn:
            parts.append(chart.svg(top))
            top += chart.whole + _PAD
    whole = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{}" viewBox="0 0 {:g} {:g}" width="{:g}" {}>'
        '<rect width="100%" height="100%" fill="#fff"/>{}</svg>\n'
    ).format(title, WIDTH, top, 1.5 * WIDTH, Markup(FONT), Markup("").join(parts))
    return str(whole)


def _charts(history: Sequence[Iteration], tolerance: float | None) -> tuple[Chart, Chart, str]:
    """Objective and bound, the relative gap, and what is said in place of a gap where there is none to draw."""
    lines = [line for line in history if math.isfinite(line.objective)]
    at = [float(line.iteration) for line in lines]
    objective, bound = [line.objective for line in lines], [line.lower_bound for line in lines]
    finite = [value for value in bound if math.isfinite(value)]
    gaps = [line.relative_gap if math.isfinite(line.lower_bound) else math.nan for line in lines]
    steps = Axis("iteration", whole=True)
    heights = Axis("objective", *_window(objective, finite)) if finite else Axis("objective")
    level = None if tolerance is None or tolerance <= 0.0 else (tolerance, f"tolerance {tolerance:g}")
    values = [Line("objective (best so far)", at, objective), Line("lower bound", at, bound, 1, dashed=True)]
    below = Chart("relative gap", [Line("relative gap", at, gaps)], steps, Axis("relative gap", log=True), level)
    words = "the gap is 0" if any(map(math.isfinite, gaps)) else "no lower bound for this problem"
    return Chart("objective", values, steps, heights), below, words


def convergence(history: Sequence[Iteration], *, title: str, tolerance: float | None = None) -> Figure:
    """The same as a figure of matplotlib: two stacked panels over the iterations.

    Parameters
    ----------
    history : of a `Solution`.
    title : above the figure.
    tolerance : drawn into the lower panel as a dashed line.

    Raises
    ------
    MissingLibraryError
        matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ModuleNotFoundError as error:
        raise MissingLibraryError("the picture needs", "matplotlib", "plot") from error
    figure = Figure(figsize=(7.5, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    figure.suptitle(textwrap.fill(title, _LETTERS), fontsize=11)
    values, gaps, words = _charts(history, tolerance)
    _draw(values, above)
    _draw(gaps, below, words)
    below.set_xlabel(gaps.x.label)
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (above, below):
        axes.grid(True, color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw(chart: Chart, axes: Axes, nothing: str = "") -> None:
    """The chart by matplotlib, or what is said where there is nothing to draw."""
    axes.set_ylabel(chart.y.label)
    if not chart.drawn:
        axes.text(0.5, 0.5, nothing, transform=axes.transAxes, ha="center", va="center", color="0.4")
        axes.set_yticks([])
        return
    for line, points in chart.drawn:
        style: Any = {"linestyle": "--" if line.dashed else "-", "marker": "o" if len(points) < 40 else None}
        axes.plot(*zip(*points), color=COLOURS[line.series], label=line.name, markersize=3, linewidth=1.6, **style)
    across, up = chart.scales
    axes.set(xlim=(across.low, across.high), ylim=(up.low, up.high), yscale="log" if chart.y.log else "linear")
    if len(chart.lines) > 1:
        axes.legend(loc="best", frameon=False)
    if chart.level is not None:
        height, words = chart.level
        axes.axhline(height, color="0.4", linewidth=1, linestyle="--")
        axes.annotate(
            words, (0.005, height), (0, 3), ("axes fraction", "data"), "offset points", fontsize=8, color="0.3"
        )


def _window(objective: Sequence[float], bound: Sequence[float]) -> tuple[float, float]:
    """Limits of the axis that leave out the first, very low bounds."""
    top, low = max(objective), min(objective)
    reach = max(top - low, abs(low), 1e-300)
    bottom = max(min(bound), low - 1.5 * reach)
    pad = 0.05 * (top - bottom) or 1.0
    return bottom - pad, top + pad


def save_convergence(figure: Figure, stream: IO[bytes]) -> None:
    """Write the figure as PNG."""
    figure.savefig(stream, format="png", dpi=_RESOLUTION)
