"""Several runs side by side: results, the settings that differ, curves overlaid."""

from __future__ import annotations

from collections.abc import Sequence

from bmrm.app.charts import style_of
from bmrm.app.comparison import OWN
from bmrm.app.elements import Content, Markup, section, table, tag
from bmrm.app.html.convergence import convergence_charts
from bmrm.app.html.judging import curve_charts
from bmrm.app.html.overview import status
from bmrm.app.html.run import Run, named
from bmrm.app.pipeline.fingerprint import same
from bmrm.app.report import number

ABSENT = "-"


def comparison(runs: Sequence[Run]) -> list[Markup]:
    """The sections of a comparison."""
    comparable = same([run.summary.problem for run in runs])
    words = (
        "The runs minimise the same function of the same data, so that their objectives can be compared."
        if comparable
        else "The runs minimise different functions, or have other data: compare their measures, not their objectives."
    )
    charts = curve_charts(runs)
    parts = dict.fromkeys(named(run.curves.part) for run in runs if run.curves is not None)
    judged = f"Judged by the {' and '.join(parts)} rows"
    found = (
        section("Results", _results(runs), tag("p", words, class_="faint")),
        section("Settings that differ", _differences(runs)),
        section("Convergence", convergence_charts(runs, values=False)),
        section(judged, tag("div", charts, class_="charts")) if charts else None,
    )
    return [one for one in found if one is not None]


def _results(runs: Sequence[Run]) -> list[Markup]:
    """A row for each run: status, objective, bound, gap, seconds; and its measures, in a table below."""
    judged = {run.name: run.summary.metrics.get(_part(run), {}) for run in runs}
    names = list(dict.fromkeys(name for values in judged.values() for name in values))
    links = [
        tag("span", _swatch(k), " ", tag("a", run.name, href=f"#run-{k}"), class_="key") for k, run in enumerate(runs)
    ]
    head: list[Content] = ["run", "status", "objective", "lower bound", "relative gap", "passes", "seconds"]
    rows: list[list[Content]] = []
    for link, run in zip(links, runs):
        s = run.summary
        row: list[Content] = [link, status(run), number(s.objective, 8), number(s.lower_bound, 8)]
        rows.append([*row, number(s.relative_gap, 2), f"{s.passes:.4g}", number(s.seconds.get("total"), 3)])
    found = [table(head, rows, numbers=range(2, len(head)))]
    if names:
        measured = [[link, *(_measure(run, name) for name in names)] for link, run in zip(links, runs)]
        found.append(table(["run", *names], measured, numbers=range(1, len(names) + 1), most=4))
    return found


def _part(run: Run) -> str:
    """The part that the run is judged by."""
    return run.curves.part if run.curves is not None else next(reversed(run.summary.metrics), "")


def _measure(run: Run, name: str) -> Content:
    """The value with its interval below."""
    value = number(run.summary.metrics.get(_part(run), {}).get(name), 5)
    interval = None if run.curves is None else run.curves.intervals.get(name)
    if interval is None:
        return value
    return [value, tag("div", f"{number(interval.low, 4)} to {number(interval.high, 4)}", class_="faint")]


def _differences(runs: Sequence[Run]) -> Markup:
    """A row for each field that is not the same in all, but for those that every run has to itself."""
    fields = [name for name in dict.fromkeys(name for run in runs for name in run.settings) if name not in OWN]
    rows: list[list[Content]] = []
    for name in fields:
        values = [_shown(run.settings[name]) if name in run.settings else ABSENT for run in runs]
        if len(set(values)) > 1:
            rows.append([tag("code", name), *values])
    if not rows:
        return tag("p", "None: the configs are the same.")
    return table(["field", *(run.name for run in runs)], rows, most=6)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return "null" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _swatch(series: int) -> Markup:
    path = tag("path", d="M1 5H25", class_="line")
    return tag("svg", path, viewBox="0 0 26 10", aria_hidden="true", class_=style_of(series))
