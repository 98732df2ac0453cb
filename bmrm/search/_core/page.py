"""The page of a cross-validation, with its pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from bmrm.app.charts import Axis, Chart, Line
from bmrm.app.html.page import rendered
from bmrm.app.report import number
from bmrm.search._core.candidates import LAMBDA
from bmrm.search._core.record import CrossValidation, half_width
from bmrm.search._core.trials import mean

_SHARE = (0.0, 1.0)
AVERAGE, CHANCE = 1, 5
"""Colours of the averaged curve, and of guessing."""


def page(result: CrossValidation, title: str) -> str:
    """The text of the page."""
    lines = result.table()
    names = [name for name in lines[0] if not name.startswith(("half_", "pooled_")) and name != "chosen"]
    head = ["", *(name.removeprefix("mean_") for name in names), *(f"{name}, pooled" for name in result.measures)]
    rows = [_cells(line, names, result.measures) for line in lines]
    folds = [
        [name, *(number(result.best.by_fold[measure][k], 5) for measure in result.measures)]
        for k, name in enumerate(result.fold_names)
    ]
    known = [*next(iter(result.each_label.values()), {})]
    labels = [
        [label, *(_with_half(values[name], result.confidence) for name in known)]
        for label, values in result.each_label.items()
    ]
    return rendered(
        "cross_validation.html",
        title=title,
        words=result.words(),
        head=head,
        rows=rows,
        confidence=f"{result.confidence:.0%}",
        by_lambda=list(by_lambda(result)),
        fold_head=["fold", *result.measures],
        folds=folds,
        curves=list(curves(result)),
        label_head=["label", *known],
        labels=labels,
        model=[] if result.model is None else list(_certificate(result)),
    )


def _cells(line: dict[str, Any], names: Sequence[str], measures: Sequence[str]) -> list[str]:
    cells = ["chosen" if line["chosen"] else ""]
    for name in names:
        half = line.get(name.replace("mean_", "half_", 1)) if name.startswith("mean_") else None
        value = line[name]
        text = str(value) if isinstance(value, (str, bool, dict, list)) else number(value, 5)
        cells.append(text if half is None else f"{text} \N{PLUS-MINUS SIGN} {half:.2g}")
    return [*cells, *(number(line[f"pooled_{name}"], 5) for name in measures)]


def _with_half(values: Sequence[float | None], confidence: float) -> str:
    half, told = half_width(values, confidence), number(mean(values), 5)
    return told if half is None else f"{told} \N{PLUS-MINUS SIGN} {half:.2g}"


def by_lambda(result: CrossValidation) -> Iterator[Chart]:
    """Each measure against lambda, where candidates differ in it: mean, and the ends of the interval."""
    if len({trial.lam for trial in result.trials}) < 2 or not all(trial.lam > 0.0 for trial in result.trials):
        return
    others = {_others(trial.values): k for k, trial in reversed(list(enumerate(result.trials)))}
    for measure in result.measures:
        found: list[Line] = []
        for series, (words, first) in enumerate(sorted(others.items(), key=lambda pair: pair[1])):
            line = [k for k, trial in enumerate(result.trials) if _others(trial.values) == words]
            line.sort(key=lambda k: result.trials[k].lam)
            x = [result.trials[k].lam for k in line]
            means = [_number(mean(result.trials[k].by_fold[measure])) for k in line]
            single = len(others) == 1
            found.append(Line("mean" if single else _named(result, first), x, means, series))
            if single:
                ends = [result.interval(measure, k) for k in line]
                low = [math.nan if one is None else one.low for one in ends]
                high = [math.nan if one is None else one.high for one in ends]
                found.append(Line(f"{result.confidence:.0%} interval", x, low, 1, dashed=True, marked=False))
                found.append(Line("", x, high, 1, dashed=True, marked=False))
        value = mean(result.best.by_fold[measure])
        level = None if value is None else (value, f"chosen: {result.lam:.3g}")
        yield Chart(f"{measure} by lambda", found, Axis("lambda", log=True), Axis(measure), level)


def _others(values: Any) -> str:
    return repr({name: value for name, value in values.items() if name != LAMBDA})


def _named(result: CrossValidation, k: int) -> str:
    values = result.trials[k].values
    return ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in values.items() if name != LAMBDA)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def curves(result: CrossValidation) -> Iterator[Chart]:
    """ROC, and precision and recall, of each fold and averaged."""
    roc, pr = result.roc, result.precision_recall
    if roc:
        lines = _of_folds(roc, "fpr", "tpr")
        lines.append(Line("chance", _SHARE, _SHARE, CHANCE, dashed=True, marked=False))
        x, y = Axis("share of negative rows above", *_SHARE), Axis("share of positive rows above", *_SHARE)
        yield Chart("ROC of each fold, and their average", lines, x, y)
    if pr:
        lines = _of_folds(pr, "recall", "precision")
        yield Chart(
            "Precision and recall of each fold, and their average",
            lines,
            Axis("recall", *_SHARE),
            Axis("precision", 0.0, 1.02),
        )


def _of_folds(found: dict[str, Any], across: str, up: str) -> list[Line]:
    """The folds alike, without names but the first; the average above them."""
    lines = [
        Line("folds" if k == 0 else "", one[across], one[up], 0, dashed=True, marked=False)
        for k, one in enumerate(found["folds"])
    ]
    average = found["average"]
    return [*lines, Line("average", average[across], average[up], AVERAGE, marked=False)]


def _certificate(result: CrossValidation) -> Iterator[tuple[str, str]]:
    assert result.model is not None
    solution = result.model.solution
    yield "status", solution.status.name
    yield "objective", number(solution.objective, 10)
    yield "lower bound", number(solution.lower_bound, 10)
    yield "relative gap", number(solution.relative_gap, 2)
    yield "lambda", f"{result.lam:.6g}"
