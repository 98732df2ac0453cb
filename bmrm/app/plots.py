"""convergence.png: objective and lower bound above, the relative gap below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import IO

from bmrm.problem import Iteration, MissingLibraryError

try:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ModuleNotFoundError as error:
    raise MissingLibraryError("the picture needs", "matplotlib", "plot") from error

_OBJECTIVE, _BOUND, _SHADE = "#1b4f72", "#c0561f", "#e9eef2"


def _proved(line: Iteration) -> bool:
    """Whether there is a gap, and no bound above the objective."""
    return math.isfinite(line.relative_gap)


def convergence(history: Sequence[Iteration], *, title: str, tolerance: float | None = None) -> Figure:
    """Two stacked panels over the iterations.

    Parameters
    ----------
    history : of a `Solution`.
    title : above the figure.
    tolerance : drawn into the lower panel as a dashed line.
    """
    figure = Figure(figsize=(7.5, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    figure.suptitle(title, fontsize=11)
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
        words = "no lower bound for this problem" if not any(map(_proved, bounded)) else "the gap is 0"
        below.text(0.5, 0.5, words, transform=below.transAxes, ha="center", va="center", color="0.4")
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
    figure.savefig(stream, format="png", dpi=130)
