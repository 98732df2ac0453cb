"""The convergence of a run: objective and lower bound above, the relative gap below; as SVG, and by matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from markupsafe import Markup

from bmrm.app.charts import FONT, WIDTH, Axis, Chart, Line
from bmrm.problem import Iteration, MissingLibraryError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OBJECTIVE, _BOUND, _SHADE = "#1b4f72", "#c0561f", "#e9eef2"
"""Of the PNG."""
_LETTERS = 64
"""Letters of a line of the title."""
_LINE, _PAD = 16.0, 10.0
"""Height of a line of text, and margins."""
_RESOLUTION = 130
"""Of a PNG, in dots per inch."""


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
    lines = [line for line in history if math.isfinite(line.objective)]
    at = [float(line.iteration) for line in lines]
    objective, bound = [line.objective for line in lines], [line.lower_bound for line in lines]
    finite = [value for value in bound if math.isfinite(value)]
    steps = Axis("iteration", whole=True)
    heights = Axis("objective", *_window(objective, finite)) if finite else Axis("objective")
    level = None if tolerance is None or tolerance <= 0.0 else (tolerance, f"tolerance {tolerance:g}")
    values = [Line("objective (best so far)", at, objective), Line("lower bound", at, bound, 1, dashed=True)]
    gaps = [line.relative_gap if math.isfinite(line.lower_bound) else math.nan for line in lines]
    proved = any(0.0 < gap < math.inf for gap in gaps)
    charts = [Chart("objective", values, steps, heights)] if lines else []
    below = Axis("relative gap", log=True)
    charts += [Chart("relative gap", [Line("relative gap", at, gaps)], steps, below, level)] if proved else []
    words = [*textwrap.wrap(title, _LETTERS), *([] if proved else [_no_gap(lines)])]
    top, parts = _PAD, []
    for text in words:
        top += _LINE
        parts.append(Markup('<text x="{:g}" y="{:g}">{}</text>').format(_PAD, top, text))
    top += _PAD
    for chart in charts:
        parts.append(chart.svg(top))
        top += chart.whole + _PAD
    whole = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{}" viewBox="0 0 {:g} {:g}" width="{:g}" {}>'
        '<rect width="100%" height="100%" fill="#fff"/>{}</svg>\n'
    ).format(title, WIDTH, top, 1.5 * WIDTH, Markup(FONT), Markup("").join(parts))
    return str(whole)


def _no_gap(lines: Sequence[Iteration]) -> str:
    """What is said in place of a gap."""
    proved = any(math.isfinite(line.relative_gap) and math.isfinite(line.lower_bound) for line in lines)
    return "the gap is 0" if proved else "no lower bound for this problem"


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
    lines = [line for line in history if math.isfinite(line.objective)]
    steps = [line.iteration for line in lines]
    objective = [line.objective for line in lines]
    marker = "o" if len(lines) < 40 else None
    style = {"marker": marker, "markersize": 3, "linewidth": 1.6}
    above.plot(steps, objective, color=_OBJECTIVE, label="objective (best so far)", **style)
    bounded = [line for line in lines if math.isfinite(line.lower_bound)]
    if bounded:
        at, bound = [line.iteration for line in bounded], [line.lower_bound for line in bounded]
        above.plot(at, bound, color=_BOUND, label="lower bound", **style)
        above.fill_between(at, bound, [line.objective for line in bounded], color=_SHADE, zorder=0)
        above.set_ylim(*_window(objective, bound))
    above.set_ylabel("objective")
    above.legend(loc="best", frameon=False)
    certified = [line for line in bounded if 0.0 < line.relative_gap < math.inf]
    if certified:
        gaps = [line.relative_gap for line in certified]
        below.semilogy([line.iteration for line in certified], gaps, color=_OBJECTIVE, **style)
        if tolerance is not None and tolerance > 0:
            below.axhline(tolerance, color="0.4", linewidth=1, linestyle="--")
            below.annotate(
                f"tolerance {tolerance:g}",
                (0.005, tolerance),
                xycoords=("axes fraction", "data"),
                xytext=(0, 3),
                textcoords="offset points",
                ha="left",
                fontsize=8,
                color="0.3",
            )
            below.set_ylim(min(*gaps, tolerance) / 3, max(*gaps, tolerance) * 3)
    else:
        below.text(0.5, 0.5, _no_gap(lines), transform=below.transAxes, ha="center", va="center", color="0.4")
        below.set_yticks([])
    below.set_ylabel("relative gap")
    below.set_xlabel("iteration")
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(set(steps)) < 2:
        below.set_xlim(min(steps, default=0) - 1, max(steps, default=0) + 1)
    for axes in (above, below):
        axes.grid(True, color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


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
