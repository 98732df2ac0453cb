"""The charts of runs, overlaid where there are several: how they went, and how good their predictions are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from bmrm.app.charts import Axis, Chart, Line
from bmrm.app.html.runs import Run

_SHARE = (0.0, 1.0)


def convergence(runs: Sequence[Run], *, values: bool) -> Iterator[Chart]:
    """Relative gap, and where `values` objective and bound, against passes and seconds."""
    several = len(runs) > 1
    for label, of in (("passes over the data", "passes"), ("seconds", "seconds")):
        x, lines = Axis(label), []
        for k, run in enumerate(runs):
            at, gaps = [getattr(one, of) for one in run.history], [one.relative_gap for one in run.history]
            lines.append(Line(run.name if several else "relative gap", at, gaps, k, marked=not several))
        wanted = {run.tolerance for run in runs}
        goal = wanted.pop() if len(wanted) == 1 else None
        level = None if goal is None else (goal, f"tolerance {goal:g}")
        yield Chart(f"Gap by {of}", lines, x, Axis("relative gap", log=True), level)
        if values:
            yield _values(runs[0], x, of)


def _values(run: Run, x: Axis, of: str) -> Chart:
    """Objective and bound, over the heights that the objective takes."""
    at = [getattr(one, of) for one in run.history]
    objective, bound = ([getattr(one, name) for one in run.history] for name in ("objective", "lower_bound"))
    lines = [Line("objective", at, objective), Line("lower bound", at, bound, 1, dashed=True)]
    heights, bounds = (list(filter(math.isfinite, values)) for values in (objective, bound))
    if not heights:
        return Chart(f"Objective by {of}", lines, x, Axis("J"))
    top, least = max(heights), min(heights)
    reach = max(top - least, 1e-3 * abs(least))
    low = max(min(bounds, default=least), least - reach)
    pad = 0.05 * (top - low) or 1.0
    return Chart(f"Objective and bound by {of}", lines, x, Axis("J", low - pad, top + pad))


def followed(run: Run) -> Iterator[Chart]:
    """Measures of the validation rows while the solver ran."""
    table = {
        name: [math.nan if value is None else value for value in values]
        for name, values in run.summary.followed.items()
    }
    steps = table.pop("iteration", [])
    for name, values in table.items():
        yield Chart(f"{name} of the validation rows", [Line(name, steps, values)], Axis("iteration"), Axis(name))


def judged(runs: Sequence[Run]) -> list[Chart]:
    """Those that the runs have: ROC, precision and recall, reliability, calibration, NDCG by query."""
    charts = []
    for name, draw in _CURVES.items():
        found = [(k, run, getattr(run.curves.curves, name)) for k, run in enumerate(runs) if run.curves is not None]
        have = [one for one in found if one[2] is not None]
        charts += [draw(have)] if have else []
    return charts


_Have = Sequence[tuple[int, Run, Any]]
"""(position, run, curve) of the runs that have a curve."""


def _roc(have: _Have) -> Chart:
    lines = [Line(run.name, one.fpr, one.tpr, k, marked=False) for k, run, one in have]
    lines.append(Line("chance", _SHARE, _SHARE, 5, dashed=True, marked=False))
    x, y = Axis("share of negative rows above", *_SHARE), Axis("share of positive rows above", *_SHARE)
    return Chart("ROC", lines, x, y)


def _precision_recall(have: _Have) -> Chart:
    lines = [Line(run.name, one.recall, one.precision, k, marked=False) for k, run, one in have]
    bases = {one.base for _, _, one in have}
    level = (bases.pop(), "all rows positive") if len(bases) == 1 else None
    return Chart("Precision and recall", lines, Axis("recall", *_SHARE), Axis("precision", 0.0, 1.02), level)


def _reliability(have: _Have) -> Chart:
    lines = [Line(run.name, one.predicted, one.observed, k) for k, run, one in have]
    lines.append(Line("what is predicted comes true", _SHARE, _SHARE, 5, dashed=True, marked=False))
    rows = " to ".join(dict.fromkeys(f"{end(k for _, _, one in have for k in one.rows):g}" for end in (min, max)))
    x, y = Axis("predicted probability", *_SHARE), Axis("share that came true", *_SHARE)
    return Chart(f"Reliability (bins of {rows} rows)", lines, x, y)


def _calibration(have: _Have) -> Chart:
    lines = [Line(f"{run.name}: mean", one.predicted, one.observed, k) for k, run, one in have]
    if len(have) == 1:
        k, _, one = have[0]
        lines = [Line("mean", one.predicted, one.observed, k)]
        for name, part in (("90 %", one.high), ("10 %", one.low)):
            lines.append(Line(name, one.predicted, part, 1, dashed=True, marked=False))
    every = [value for _, _, one in have for value in one.predicted]
    ends = [min(every), max(every)]
    lines.append(Line("as predicted", ends, ends, 5, dashed=True, marked=False))
    return Chart("Targets by prediction", lines, Axis("prediction"), Axis("target"))


def _ndcg(have: _Have) -> Chart:
    shares = ([k / max(1, len(one.values) - 1) for k in range(len(one.values))] for _, _, one in have)
    lines = [Line(run.name, at, one.values, k, marked=False) for at, (k, run, one) in zip(shares, have)]
    queries = ", ".join(dict.fromkeys(f"{one.queries:,}" for _, _, one in have))
    x, y = Axis("share of the queries with less", *_SHARE), Axis("NDCG", *_SHARE)
    return Chart(f"NDCG of {queries} queries, in ascending order", lines, x, y)


_CURVES = {
    "roc": _roc,
    "precision_recall": _precision_recall,
    "reliability": _reliability,
    "calibration": _calibration,
    "ndcg_by_query": _ndcg,
}
