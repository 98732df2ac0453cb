"""The files of a cross-validation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bmrm.app.pipeline.run_folder import MODEL, write_file, write_text
from bmrm.app.tables import csv_text
from bmrm.data.label_types import shown_label
from bmrm.search._core.page import page
from bmrm.search._core.record import CrossValidation

RESULT, TABLE, FOLDS, PREDICTIONS, ROC, PRECISION_RECALL, PAGE = FILES = (
    "cv.json",
    "table.csv",
    "folds.txt",
    "predictions.csv",
    "roc.csv",
    "precision_recall.csv",
    "cv.html",
)


def write_results(directory: Path, result: CrossValidation, title: str, settings: Any = None) -> list[str]:
    """Write all files, each whole or not at all, `cv.json` last; older ones are replaced.

    Returns
    -------
    list of str
        Their names.
    """
    texts = {
        TABLE: table_csv(result.table()),
        FOLDS: csv_text(result.fold_numbers.tolist(), " "),
        PREDICTIONS: predictions_csv(result),
        ROC: curve_csv(result.roc, "fpr", "tpr"),
        PRECISION_RECALL: curve_csv(result.precision_recall, "recall", "precision"),
        PAGE: page(result, title),
    }
    written = []
    for name in (MODEL, *FILES):
        (directory / name).unlink(missing_ok=True)
    for name, text in texts.items():
        if text:
            write_text(directory, name, text)
            written.append(name)
    if result.model is not None:
        write_file(directory, MODEL, result.model.write)
        written.append(MODEL)
    plain = {"title": title, **result.plain(), "settings": settings}
    write_text(directory, RESULT, json.dumps(plain, indent=2, allow_nan=False) + "\n")
    return [*written, RESULT]


def table_csv(table: Sequence[dict[str, Any]]) -> str:
    """The table with a line of names."""
    head = list(dict.fromkeys(name for line in table for name in line))
    rows = [["" if line.get(name) is None else _plain(line[name]) for name in head] for line in table]
    return csv_text([head, *rows])


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def predictions_csv(result: CrossValidation) -> str:
    """Of each held-out row its number, fold, target, prediction and scores."""
    if not result.held_out or result.held_out[0].scored.y.ndim != 1:
        return ""
    first = result.held_out[0].scored
    wide = 1 if first.scores.ndim == 1 else first.scores.shape[1]
    dtype = "" if result.model is None else str(result.model.labels.dtype)
    names = [shown_label(_label(name), dtype) if first.classes else name for name in first.labels]
    scores = ["score"] if wide == 1 else [f"score {name}" for name in (names or range(wide))]
    rows: list[list[Any]] = [["row", "fold", "target", "predicted", *scores]]
    for one in result.held_out:
        s = one.scored
        y, predicted = _names(s.y, names), _names(s.predicted, names)
        table = s.scores.reshape(len(s.y), -1).tolist()
        rows += [[row, one.fold, *line] for row, *line in zip(one.rows.tolist(), y, predicted)]
        for line, numbers in zip(rows[-len(table) :], table):
            line += numbers
    return csv_text(rows)


def _label(name: str) -> Any:
    try:
        return float(name)
    except ValueError:
        return name


def _names(codes: Any, names: Sequence[str]) -> list[Any]:
    """Labels of codes; numbers as they are."""
    if not names or codes.ndim != 1:
        return list(np.asarray(codes).tolist())
    return [names[int(code)] if int(code) < len(names) else "" for code in codes.tolist()]


def curve_csv(found: dict[str, Any], across: str, up: str) -> str:
    """The points of each fold's curve, and of their average; "" where there are none."""
    if not found:
        return ""
    rows: list[list[Any]] = [["fold", across, up]]
    for one in (*found["folds"], {"fold": "average", **found["average"]}):
        rows += [[one["fold"], a, b] for a, b in zip(one[across], one[up])]
    return csv_text(rows)
