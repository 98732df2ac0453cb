"""How good the predictions of runs are: measures with intervals, curves, confusion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bmrm.app.charts import Axis, Line, line_chart
from bmrm.app.elements import Content, Markup, heated, section, table, tag
from bmrm.app.html.files import Confusion
from bmrm.app.html.run import Run, named
from bmrm.app.report import number


def metrics(run: Run) -> Markup | None:
    """Measures of each part, with intervals where there are."""
    parts = {part: values for part, values in run.summary.metrics.items() if values}
    if not parts:
        return None
    names = list(dict.fromkeys(name for values in parts.values() for name in values))
    intervals = {} if run.curves is None else run.curves.intervals
    judged = "" if run.curves is None else run.curves.part
    head: list[Content] = ["measure", *parts, *([f"95 % interval, {judged}"] if intervals else [])]
    rows = []
    for name in names:
        row: list[Content] = [tag("code", name), *(number(values.get(name), 5) for values in parts.values())]
        if intervals:
            one = intervals.get(name)
            row.append("-" if one is None else f"{number(one.low, 5)} to {number(one.high, 5)}")
        rows.append(row)
    folds = {one.folds for one in intervals.values()}
    words = ""
    if folds:
        words = f"Intervals are Student's, of the mean over {folds.pop()} random parts of the {named(judged)} rows, "
        words += "all judged by this one model: they tell how far other rows may differ, not other training."
    return section("Measures", table(head, rows, numbers=range(1, len(head))), tag("p", words, class_="faint"))


def judgement(run: Run) -> Markup | None:
    """Curves of the rows that the model is judged by."""
    if run.curves is None:
        words = "This run has no curves.json: it is of an older version, or that file could not be written."
        return section("Judged", tag("p", words, class_="none"))
    found = run.curves.curves
    charts = curve_charts([run])
    content: list[Content] = [tag("div", charts, class_="charts")] if charts else []
    if found.confusion is not None:
        content.append(confusion_of(found.confusion))
    return section(f"Judged by the {named(run.curves.part)} rows", *content)


def curve_charts(runs: Sequence[Run]) -> list[Markup]:
    """Those that the runs have, overlaid: ROC, precision and recall, reliability, calibration, NDCG by query."""
    charts = (_roc(runs), _precision_recall(runs), _reliability(runs), _calibration(runs), _ndcg(runs))
    return [chart for chart in charts if chart is not None]


def _have(runs: Sequence[Run], name: str) -> list[tuple[int, Run, Any]]:
    """(position, run, curve) of the runs that have such a curve."""
    found = [(k, run, getattr(run.curves.curves, name)) for k, run in enumerate(runs) if run.curves is not None]
    return [one for one in found if one[2] is not None]


_SHARE = (0.0, 1.0)


def _roc(runs: Sequence[Run]) -> Markup | None:
    have = _have(runs, "roc")
    lines = [Line(run.name, one.fpr, one.tpr, k, marked=False) for k, run, one in have]
    lines.append(Line("chance", _SHARE, _SHARE, 5, dashed=True, marked=False))
    x, y = Axis("share of negative rows above", *_SHARE), Axis("share of positive rows above", *_SHARE)
    return line_chart(lines, x, y, title="ROC") if have else None


def _precision_recall(runs: Sequence[Run]) -> Markup | None:
    have = _have(runs, "precision_recall")
    lines = [Line(run.name, one.recall, one.precision, k, marked=False) for k, run, one in have]
    bases = {one.base for _, _, one in have}
    level = (bases.copy().pop(), "all rows positive") if len(bases) == 1 else None
    x, y = Axis("recall", *_SHARE), Axis("precision", 0.0, 1.02)
    return line_chart(lines, x, y, title="Precision and recall", level=level) if have else None


def _reliability(runs: Sequence[Run]) -> Markup | None:
    have = _have(runs, "reliability")
    lines = [Line(run.name, one.predicted, one.observed, k) for k, run, one in have]
    lines.append(Line("what is predicted comes true", _SHARE, _SHARE, 5, dashed=True, marked=False))
    if not have:
        return None
    rows = " to ".join(dict.fromkeys(f"{end([k for _, _, one in have for k in one.rows]):g}" for end in (min, max)))
    x, y = Axis("predicted probability", *_SHARE), Axis("share that came true", *_SHARE)
    return line_chart(lines, x, y, title=f"Reliability (bins of {rows} rows)")


def _calibration(runs: Sequence[Run]) -> Markup | None:
    have = _have(runs, "calibration")
    if not have:
        return None
    lines = [Line(f"{run.name}: mean", one.predicted, one.observed, k) for k, run, one in have]
    if len(have) == 1:
        k, _, one = have[0]
        lines = [Line("mean", one.predicted, one.observed, k)]
        lines += [
            Line(name, one.predicted, part, 1, True, marked=False)
            for name, part in (("90 %", one.high), ("10 %", one.low))
        ]
    ends = [value for _, _, one in have for value in (min(one.predicted), max(one.predicted))]
    ends = [min(ends), max(ends)]
    lines.append(Line("as predicted", ends, ends, 5, dashed=True, marked=False))
    return line_chart(lines, Axis("prediction"), Axis("target"), title="Targets by prediction")


def _ndcg(runs: Sequence[Run]) -> Markup | None:
    have = _have(runs, "ndcg_by_query")
    lines = [
        Line(
            run.name,
            [k / max(1, len(one.values) - 1) for k in range(len(one.values))],
            one.values,
            series,
            marked=False,
        )
        for series, run, one in have
    ]
    x, y = Axis("share of the queries with less", *_SHARE), Axis("NDCG", *_SHARE)
    queries = ", ".join(dict.fromkeys(f"{one.queries:,}" for _, _, one in have))
    return line_chart(lines, x, y, title=f"NDCG of {queries} queries, in ascending order") if have else None


def confusion_of(one: Confusion) -> Markup | None:
    """The matrix with its shades, or the list of the largest errors."""
    if one.errors is not None:
        rows = [[true, predicted, f"{mass:g}"] for true, predicted, mass in one.errors]
        caption = "The largest errors, in rows"
        return table(["true", "predicted", "rows"], rows, numbers=[2], caption=caption)
    words = "Rows by true class (down) and predicted class (across). The shade is the share of the true class."
    across = one.labels[: len(one.matrix[0])] if one.matrix else []
    return heated(one.labels, across, one.matrix, "Confusion", words, "true")
