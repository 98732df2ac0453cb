"""How runs went: gap, objective and bound against passes and seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bmrm.app.charts import Axis, Line, line_chart
from bmrm.app.elements import Content, Markup, section, table, tag
from bmrm.app.html.files import finite
from bmrm.app.html.run import Run
from bmrm.app.report import number


def convergence_charts(runs: Sequence[Run], *, values: bool) -> Markup:
    """Relative gap, and where `values` objective and bound, against passes and seconds."""
    several = len(runs) > 1
    charts: list[Content] = []
    for label, of in (("passes over the data", "passes"), ("seconds", "seconds")):
        x, lines = Axis(label), []
        for k, run in enumerate(runs):
            name = run.name if several else "relative gap"
            lines.append(Line(name, [getattr(one, of) for one in run.history], _gaps(run), k, marked=not several))
        wanted = {run.tolerance for run in runs}
        goal = wanted.pop() if len(wanted) == 1 else None
        level = None if goal is None else (goal, f"tolerance {goal:g}")
        charts.append(line_chart(lines, x, Axis("relative gap", log=True), title=f"Gap by {of}", level=level))
        if values:
            charts.append(_values(runs, x, of))
    return tag("div", charts, class_="charts")


def _gaps(run: Run) -> list[float]:
    return [one.relative_gap for one in run.history]


def _values(runs: Sequence[Run], x: Axis, of: str) -> Markup:
    """Objective and bound, over the heights that the objective takes."""
    lines, heights, bounds = [], [], []
    for k, run in enumerate(runs):
        at = [getattr(one, of) for one in run.history]
        objective, bound = ([getattr(one, name) for one in run.history] for name in ("objective", "lower_bound"))
        name = f"{run.name}: " if len(runs) > 1 else ""
        series = 2 * k if len(runs) > 1 else 0
        lines.append(Line(f"{name}objective", at, objective, series))
        lines.append(Line(f"{name}lower bound", at, bound, k if len(runs) > 1 else 1, dashed=True))
        heights += [value for value in objective if math.isfinite(value)]
        bounds += [value for value in bound if math.isfinite(value)]
    if not heights:
        return line_chart(lines, x, Axis("J"), title=f"Objective by {of}")
    top, least = max(heights), min(heights)
    reach = max(top - least, 1e-3 * abs(least))
    low = max(min(bounds, default=least), least - reach)
    pad = 0.05 * (top - low) or 1.0
    return line_chart(lines, x, Axis("J", low - pad, top + pad), title=f"Objective and bound by {of}")


def convergence(run: Run) -> Markup | None:
    """How the run went."""
    head = ["iteration", "objective", "lower bound", "relative gap", "passes", "seconds"]
    lines = [run.history[k] for k in _some(len(run.history), 30)]
    rows = [
        [
            str(one.iteration),
            number(one.objective, 10),
            number(one.lower_bound, 10),
            number(one.relative_gap, 3),
            f"{one.passes:.4g}",
            f"{one.seconds:.3g}",
        ]
        for one in lines
    ]
    numbers = tag("details", tag("summary", "In numbers"), table(head, rows, numbers=range(6)))
    return section("Convergence", convergence_charts([run], values=True), numbers, _followed(run))


def _followed(run: Run) -> list[Content]:
    """Measures of the validation rows while the solver ran."""
    followed = dict(run.summary.followed)
    steps = [finite(value) for value in followed.pop("iteration", [])]
    charts = [
        line_chart(
            [Line(name, steps, [finite(value) for value in values])],
            Axis("iteration"),
            Axis(name),
            title=f"{name} of the validation rows",
        )
        for name, values in followed.items()
    ]
    return [tag("div", charts, class_="charts")] if charts else []


def _some(count: int, most: int) -> list[int]:
    """At most so many of the positions, evenly, the ends among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(k * (count - 1) / (most - 1)) for k in range(most)})
