"""A path as a config and a command line describe it, and its files; rows are read once, by all ranks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import Any

from bmrm.app.html.page import rendered
from bmrm.app.path import Asked, Path, measured, of_raw_rows, solve_path
from bmrm.app.path_charts import of_path, picture
from bmrm.app.path_kept import KeptPoints, key_of
from bmrm.app.pipeline.features import Featured
from bmrm.app.pipeline.rows_of_config import RowsOfConfig
from bmrm.app.pipeline.run_folder import write_file, write_text
from bmrm.app.progress import Told
from bmrm.app.report import number
from bmrm.app.shares import parts_of_labels
from bmrm.app.tables import csv_text
from bmrm.mpi.group import Group
from bmrm.problem import Callback, InputError
from bmrm.risk.scaling import SCALINGS

RESULT, TABLE, WEIGHTS, PICTURE, PAGE = FILES = ("path.json", "table.csv", "weights.csv", "path.svg", "path.html")
MODELS = "models"
"""Folder of the models, by the number of their point from 0."""
DIGITS = {"lambda": 6, "objective": 8, "lower_bound": 8, "relative_gap": 2, "seconds": 3, "passes": 4}
"""Digits of numbers in tables; 5 for others."""
SHOWN = 20
"""Most lines of the table that is printed."""


def asked_of(settings: Mapping[str, Any], **given: Any) -> Asked:
    """What is asked for; InputError where the config has a lambda, and for what cannot be."""
    section = {name: value for name, value in settings["regularizer"].items() if name != "lambda"}
    if settings["regularizer"].get("lambda") is not None:
        raise InputError("regularizer.lambda is given, but a path chooses it; use --lambdas")
    return Asked.checked(section, **given)


def path_of(
    settings: Mapping[str, Any],
    asked: Asked,
    group: Group,
    *,
    quiet: bool = False,
    callback: Callback | None = None,
    kept: KeptPoints | None = None,
    told: Told | None = None,
) -> Path | None:
    """Collective: the path, on rank 0; None elsewhere.

    Parameters
    ----------
    settings : `Settings.plain()`, the same on every rank; models are measured on `data.validation`.
    asked : which lambdas.
    group : the ranks.
    quiet : whether notes of reading are kept back.
    callback : as of `solve_path`.
    kept : where points that are done are kept, the same on every rank; None for nowhere.
    told : hears of progress, on rank 0.
    """
    read = RowsOfConfig.read(settings, ("train", "validation"), group, "a path", quiet)
    problem = replace(read.problem, relative=None, regularizer=asked.family(1.0))
    if kept is not None:
        kept = replace(kept, key=key_of(settings, read.parts["train"], group))
        if group.rank == 0:
            kept.begin()
    parts = parts_of_labels(read.parts, problem.loss, group) if problem.shares else read.parts
    parts = {part: SCALINGS[problem.scale].rows(rows) for part, rows in parts.items()}
    others = {part: rows for part, rows in parts.items() if part != "train"}
    train, featured = parts["train"], None
    if read.features is not None:
        featured = Featured.of(read.features, parts, problem.scale, group, problem.threads)
        train, others = featured.parts["train"], {part: featured.parts[part] for part in others}
        problem = featured.problem(problem)
    found = measured(
        solve_path(train, problem, asked, group, callback, others, kept, told),
        problem,
        others,
        group,
        settings["output"]["metrics"],
    )
    return found if found is None or featured is None else of_raw_rows(found, featured)


def write_results(
    directory: File, found: Path, title: str, settings: Mapping[str, Any], models: bool = False
) -> list[str]:
    """Write all files, each whole or not at all, `path.json` last; older ones are replaced.

    Parameters
    ----------
    directory : the folder.
    found : the path.
    title : of pictures and the page.
    settings : the config.
    models : whether there is a file for each model.

    Returns
    -------
    list of str
        Their names.
    """
    for name in FILES:
        (directory / name).unlink(missing_ok=True)
    for old in (directory / MODELS).glob("*.npz"):
        old.unlink()
    charts = of_path(found, settings["solver"]["tolerance"])
    texts = {
        TABLE: csv_text([[*found.table()[0]], *([_cell(x) for x in line.values()] for line in found.table())]),
        WEIGHTS: csv_text(weight_lines(found)),
        PICTURE: picture(charts, title),
        PAGE: page(found, title, charts),
    }
    for name, text in texts.items():
        write_text(directory, name, text)
    for k, model in enumerate(found.models if models else ()):
        write_file(directory / MODELS, f"{k}.npz", model.write)
    plain = {"title": title, **plain_of(found), "settings": settings}
    write_text(directory, RESULT, json.dumps(plain, indent=2, allow_nan=False) + "\n")
    return [*texts, *([MODELS] if models else []), RESULT]


def plain_of(found: Path) -> dict[str, Any]:
    """The path as JSON, without its weights."""
    largest = {"lambda_max": found.largest, "exact": found.exact}
    model = found.models[0].header
    return {"format": 1, "loss": model["loss"], "regularizer": model["regularizer"], **largest, "points": found.table()}


def weight_lines(found: Path) -> list[list[Any]]:
    """Weights other than 0, and intercepts: lambda, feature, score, weight."""
    names, lines = found.models[0].column_names, list[list[Any]]([["lambda", "feature", "score", "weight"]])
    for lam, model in zip(found.lambdas.tolist(), found.models):
        table = model.weights.reshape(len(model.weights), -1)
        lines += [[lam, "(intercept)", k, value] for k, value in enumerate(model.intercept.tolist())]
        lines += [[lam, names[j], k, float(table[j, k])] for j, k in zip(*map(list, table.nonzero()))]
    return lines


def page(found: Path, title: str, charts: Sequence[Any]) -> str:
    """The text of the page."""
    lines = found.table()
    rows = [[_shown(name, value) for name, value in line.items()] for line in lines]
    return rendered(
        "path.html",
        title=title,
        words=found.words(),
        head=list(lines[0]),
        rows=rows,
        charts_of=charts,
        first=_first(found),
    )


def _first(found: Path) -> str:
    if found.largest is None:
        return "The lambdas were given."
    if found.exact:
        return f"lambda_max is {found.largest:.6g}, the least lambda with all weights that are penalised at 0."
    return f"lambda_max is {found.largest:.6g}, where weights of 0 have a gap of the tolerance."


def _shown(name: str, value: Any) -> str:
    return str(value) if isinstance(value, (str, int)) else number(value, DIGITS.get(name, 5))


def text_of(found: Path) -> list[str]:
    """The table as lines of text, every so many points where there are many."""
    lines = found.table()
    step = max(1, -(-len(lines) // SHOWN))
    chosen = sorted({*range(0, len(lines), step), len(lines) - 1})
    head = [name for name in lines[0] if name not in ("lower_bound", "seconds", "passes")]
    cells = [head, *([_shown(name, lines[k][name]) for name in head] for k in chosen)]
    wide = [max(len(row[j]) for row in cells) for j in range(len(head))]
    return ["  ".join(cell.rjust(w) for cell, w in zip(row, wide)).rstrip() for row in cells]


def _cell(value: Any) -> Any:
    return "" if value is None else value
