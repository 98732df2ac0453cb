"""The pictures of the page *How it grows*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.scaling import PROBLEMS
from benchmarks.simulator import page
from benchmarks.simulator.replay import PARTS, Prediction

COLOURS = dict(zip(PARTS, ("#1f6fb4", "#8fbde0", "#7a4fb0", "#d1701f", "#b59a2a", "#2f8f5b", "#c23b3b")))
SMALL = 1e-3
"""Share of the time below which a part is not drawn, on whatever number of ranks."""
TITLES = {"mesh": "MeSH, hinge", "vw": "Vowpal Wabbit's rows, logistic"}


def clusters(predictions: Mapping[str, Sequence[Prediction]], path: Path) -> None:
    """Seconds by part against ranks, a panel for each problem."""
    figure, axes, legend = _panels(len(predictions))
    for axis, (name, of) in zip(axes, predictions.items()):
        ranks = [each.ranks for each in of]
        axis.plot(ranks, [each.total for each in of], color="0.15", lw=2.0, label="all")
        for part in PARTS:
            if max(each.seconds[part] / each.total for each in of) > SMALL:
                some = [each for each in of if each.seconds[part] > 0.0]
                seconds = [each.seconds[part] for each in some]
                axis.plot([each.ranks for each in some], seconds, color=COLOURS[part], lw=1.2, label=part)
        short = [(each.ranks, each.total) for each in of if not each.fits]
        if short:
            axis.plot(*zip(*short), "x", color="#c23b3b", ms=7, label="memory too little")
        _logarithmic(axis, ranks, [each.total for each in of], 50.0)
        axis.set(title=TITLES.get(name, f"KDD figure 6, {name.removeprefix('kdd_')}"), xlabel="ranks")
    _finish(figure, axes, legend, path)


def laws(found: Mapping[str, Any], path: Path) -> None:
    """The law of each problem, and what was measured on one rank and two."""
    figure, axes, legend = _panels(len(PROBLEMS))
    _, of = page.fitted(found)
    ranks = [2**k for k in range(7)]
    for axis, (problem, law) in zip(axes, of.items()):
        seconds = [law.seconds(n) for n in ranks]
        axis.plot(ranks, seconds, color="#1f6fb4", lw=1.6, label="T(n), fitted")
        axis.plot(ranks, [law.a + law.b / n for n in ranks], color="0.6", lw=1.0, ls="--", label="a + b/n")
        measured = [page.seconds(found["strong"][name][problem]) for name in ("1", "2")]
        axis.plot([1, 2], measured, "o", color="#d1701f", ms=6, label="measured")
        _logarithmic(axis, ranks, [*seconds, *measured], 4.0)
        axis.set(title=problem, xlabel="ranks")
    _finish(figure, axes, legend, path)


def _panels(count: int) -> tuple[Any, list[Any], Any]:
    """A figure with room for so many panels, three to a line, the panels, and a place for the legend if one is left."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "bmrm"
    from matplotlib import pyplot

    lines = -(-count // 3)
    figure, axes = pyplot.subplots(lines, 3, figsize=(10.2, 3.3 * lines), squeeze=False)
    flat = list(axes.flat)
    for axis in flat[count:]:
        axis.axis("off")
    return figure, flat[:count], flat[count] if len(flat) > count else None


def _logarithmic(axis: Any, ranks: Sequence[int], seconds: Sequence[float], deep: float) -> None:
    """Both axes; what is farther below all `seconds` than this factor is cut off."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set(xscale="log", yscale="log", ylim=(min(seconds) / deep, 2.0 * max(seconds)))
    axis.xaxis.set_major_locator(FixedLocator(ranks))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_locator(NullLocator())
    axis.grid(True, lw=0.3, color="0.9")


def _finish(figure: Any, axes: Sequence[Any], legend: Any, path: Path) -> None:
    from matplotlib import pyplot

    for axis in axes[::3]:
        axis.set_ylabel("seconds")
    known = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels())}
    where = {"loc": "center left"} if legend is not None else {"loc": "best", "fontsize": 8}
    (axes[0] if legend is None else legend).legend(known.values(), known, frameon=False, **where)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
