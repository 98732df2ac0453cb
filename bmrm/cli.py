"""The `bmrm` command: train, predict, evaluate, info, and tables of what there is."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmrm.app.phases import process_begin
from bmrm.mpi.group import Group
from bmrm.problem import InputError, facts_of
from bmrm.registry import Entry, Range, Registry, nearest, option_name
from bmrm.run import FAILED, OK, add_arguments, guarded, overrides_of, run, switches_of

if TYPE_CHECKING:
    from rich.table import Table

    from bmrm.app.model import Model
    from bmrm.data.dataset import Dataset
    from bmrm.metrics import Measure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    begin = process_begin() if arguments is None else None
    parsed = _parser().parse_args(arguments)
    parsed.begin = begin
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # `module:Class` of the folder that one stands in, as `python -m` finds it
    command: Callable[[Group, argparse.Namespace], int] = parsed.command
    return guarded(lambda group: command(group, parsed))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bmrm", description="Regularized risk minimization with a certified gap.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[Group, argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=command)
        return sub

    add_arguments(add("train", _train, "train a model as a config file says, as `python -m bmrm.run` does"))
    predict = add("predict", _predict, "score the rows of a data file")
    _add_model_and_data(predict)
    predict.add_argument("--out", help="file for the result, a row per line; default: standard output")
    predict.add_argument("--labels", action="store_true", help="write predicted labels or numbers instead of scores")
    measured = add("evaluate", _evaluate, "measure a model on a data file with targets")
    _add_model_and_data(measured)
    _add_measuring(measured)
    _add_data(add("info", _info, "say what is in a data file"))
    for name in ("losses", "regularizers", "solvers"):
        table = add(name, _list, f"table of the {name}, or all about one of them")
        table.add_argument("name", nargs="?", help="one of them, with its options")
        table.add_argument("--json", action="store_true", help="the same as JSON, for programs")
        table.set_defaults(table=name)
    measures = add("measures", _measures, "table of the measures, by the tasks that they fit")
    measures.add_argument("task", nargs="?", help="of one task only, such as binary")
    measures.add_argument("--json", action="store_true", help="the same as JSON, for programs")
    check = add("check", _check, "try a loss or regularizer of yours against the laws that solvers rest on")
    check.add_argument("plug_in", metavar="NAME", help="module:Class, a name, or {name: ..., option: value}")
    check.add_argument("--seed", type=int, default=0, help="of the points that are tried; default: 0")
    warm = add("warm", _warm, "compile what training needs beforehand, in parallel processes")
    warm.add_argument(
        "losses", nargs="*", metavar="LOSS", help="names, module:Class, or config files; default: all losses"
    )
    warm.add_argument("--processes", type=_processes, default=None, help="default: one per core")
    report = add("report", _report, "write an HTML page about finished runs, several compared")
    report.add_argument("runs", nargs="+", metavar="RUN", help="output folder of a run")
    report.add_argument("--out", default="report.html", help="the file to write; default: %(default)s")
    add("schema", _schema, "print the JSON schema of config files")
    return parser


def _check(group: Group, arguments: argparse.Namespace) -> int:
    from bmrm.app.config.config import named_plug_in
    from bmrm.app.model import from_plain
    from bmrm.checks.losses import check_loss
    from bmrm.checks.regularizers import check_regularizer
    from bmrm.losses import LOSSES
    from bmrm.regularizers import REGULARIZERS

    kind, section = named_plug_in(arguments.plug_in)
    if kind == "loss":
        report = check_loss(from_plain(LOSSES, section), seed=arguments.seed)
    else:
        report = check_regularizer(from_plain(REGULARIZERS, section), seed=arguments.seed)
    print(report)
    return OK if report.ok else FAILED


def _processes(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("expected a whole number >= 1")
    return count


def _warm(group: Group, arguments: argparse.Namespace) -> int:
    from bmrm.app.pipeline.warm import warm

    def say(text: str) -> None:
        print(f"compiling kernels (once, kept for later runs): {text}", file=sys.stderr, flush=True)

    done = warm(arguments.losses, arguments.processes, say)
    what = done.losses[0] if len(done.losses) == 1 else f"{len(done.losses)} losses or configs"
    who = "1 process" if done.processes == 1 else f"{done.processes} processes"
    print(f"{done.kernels} kernels compiled for {what} in {done.seconds:.1f} s by {who}")
    return OK


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help="file, sklearn:NAME or synthetic:NAME")
    parser.add_argument("--format", default="auto", help="auto (default), a name, or {name: csv, label: 0}")


def _add_model_and_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="model.npz of a run")
    _add_data(parser)


def _add_measuring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics",
        nargs="+",
        metavar="NAME",
        help="measures that fit the loss, such as auc ndcg@5, see `bmrm measures`; default: those of the loss",
    )
    parser.add_argument(
        "--folds", type=int, default=None, help="measure so many parts of the rows each by itself: mean and interval"
    )
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="of the interval over the parts; default: %(default)s"
    )


def _train(group: Group, arguments: argparse.Namespace) -> int:
    return run(group, arguments.config, overrides_of(arguments), **switches_of(arguments), begin=arguments.begin)


def _read(arguments: argparse.Namespace, model: Model | None = None, labelled: bool = False) -> Dataset:
    from bmrm.app.config.config import format_section
    from bmrm.data.reading import read

    format = format_section(arguments.format)
    return (
        read(arguments.data, format=format) if model is None else model.read(arguments.data, format, labelled=labelled)
    )


def _predict(group: Group, arguments: argparse.Namespace) -> int:
    from bmrm.app.model import load_model
    from bmrm.data.files import whole_file

    model = load_model(arguments.model)
    data = _read(arguments, model)
    result = model.predict(data) if arguments.labels else model.decision_function(data)
    lines = _lines(result)
    if model.reader is not None and data.targets.groups is not None:
        lines = _spaced(lines, data.targets.groups.tolist())
    if arguments.out is None:
        for line in lines:
            print(line)
        return 0
    with whole_file(Path(arguments.out)) as stream:
        for line in lines:
            stream.write(f"{line}\n".encode())
    return 0


def _lines(result: Any) -> Iterator[str]:
    """A line for each row: a number, several of them, a label, or a set of labels with commas between."""
    import numpy as np

    if isinstance(result, list):
        return (",".join(map(_text, sorted(row))) for row in result)
    if not isinstance(result, np.ndarray):
        result = result.toarray()
    if result.dtype.kind == "M":
        return iter(np.datetime_as_string(result).tolist())
    if result.dtype.kind == "m":
        return (str(value) for value in result)
    rows = result.tolist()
    return (" ".join(map(_text, row)) if isinstance(row, list) else _text(row) for row in rows)


def _spaced(lines: Iterable[str], groups: Sequence[int]) -> Iterator[str]:
    """The lines with an empty one between sentences, as in the file that was read."""
    before = groups[0] if groups else None
    for line, sentence in zip(lines, groups, strict=True):
        if sentence != before:
            yield ""
        before = sentence
        yield line


def _text(value: Any) -> str:
    """Numbers so that reading them again gives the same bits; whole ones without a point."""
    return repr(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else str(value)


def _evaluate(group: Group, arguments: argparse.Namespace) -> int:
    from bmrm.app.measure import check_metrics
    from bmrm.app.model import load_model

    model = load_model(arguments.model)
    names = _names(arguments.metrics)
    check_metrics(names, model.loss)
    data = _read(arguments, model, facts_of(model.loss).needs_targets)
    if arguments.folds is None:
        values = model.evaluate(data, metrics=names)
        shown = {name: "-" if value is None else f"{value:.6g}" for name, value in values.items()}
    else:
        found = model.evaluate_folds(data, metrics=names, folds=arguments.folds, confidence=arguments.confidence)
        shown = {name: str(interval) for name, interval in found.items()}
    _print_pairs(f"{arguments.model} on {arguments.data}", shown)
    return 0


def _names(given: Sequence[str] | None) -> list[str] | None:
    """Names with blanks or commas between them."""
    return None if given is None else [name for part in given for name in part.split(",") if name]


def _measures(group: Group, arguments: argparse.Namespace) -> int:
    from rich.markup import escape
    from rich.table import Table

    from bmrm.metrics import MEASURES, TASKS

    task = arguments.task
    if task is not None and task not in TASKS:
        raise InputError(f"unknown task {task!r}{nearest(task, TASKS)}; expected one of {', '.join(TASKS)}")
    tasks = TASKS if task is None else (task,)
    found = sorted((one for one in MEASURES.values() if set(one.tasks) & set(tasks)), key=lambda one: one.spelling)
    if arguments.json:
        print(json.dumps([_measure_described(one) for one in found], indent=2, allow_nan=False))
        return 0
    for task in tasks:
        table = Table(title=task, title_justify="left", show_lines=True)
        for heading in ("name", "formula", "weights", "source"):
            table.add_column(heading, overflow="fold", no_wrap=heading == "name")
        for one in found:
            if task in one.tasks:
                table.add_row(*map(escape, (one.spelling, one.formula, one.weighted, one.source)))
        _print(table)
    return 0


def _measure_described(measure: Measure) -> dict[str, Any]:
    """For programs."""
    number = measure.number
    return {
        "name": measure.name,
        "spelling": measure.spelling,
        "tasks": list(measure.tasks),
        "judges": measure.of,
        "formula": measure.formula,
        "weights": measure.weighted,
        "source": measure.source,
        "number": None
        if number is None
        else {
            "name": number.name,
            "types": ["integer" if number.whole else "number"],
            "range": _sides(number.range),
            "required": number.required,
            "default": number.default,
            "doc": number.range.doc,
        },
    }


def _print_pairs(title: str, pairs: dict[str, str]) -> None:
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in pairs.items():
        table.add_row(name, value)
    _print(table)


def _print(table: Table) -> None:
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    console.print(table)


def _list(group: Group, arguments: argparse.Namespace) -> int:
    from rich.markup import escape
    from rich.table import Table

    from bmrm.losses import LOSSES
    from bmrm.regularizers import REGULARIZERS
    from bmrm.solvers import SOLVERS

    registries: dict[str, Registry[Any]] = {"losses": LOSSES, "regularizers": REGULARIZERS, "solvers": SOLVERS}
    columns = COLUMNS[arguments.table]
    if arguments.json:
        registry, name = registries[arguments.table], arguments.name
        found = [_described(entry, columns) for entry in (registry.all() if name is None else [registry.get(name)])]
        print(json.dumps(found if name is None else found[0], indent=2, allow_nan=False))
        return 0
    if arguments.name is not None:
        entry = registries[arguments.table].get(arguments.name)
        _print_pairs(entry.name, {heading: text(entry) for heading, text in columns.items()})
        print(f"\n{inspect.cleandoc(entry.cls.__doc__ or '')}\n")
        _print_pairs("options", _explained(entry))
        return 0
    table = Table(title=arguments.table, title_justify="left", show_lines=True)
    for heading in ("name", *columns, "options (default)"):
        name = heading == "name"
        table.add_column(heading, overflow="fold", no_wrap=name, style="bold" if name else None)
    for entry in registries[arguments.table].all():
        cells = (entry.name, *(text(entry) for text in columns.values()), options_text(entry))
        table.add_row(*map(escape, cells))
    _print(table)
    return 0


Column = Callable[[Entry[Any]], str]
"""Of a table: the cell of an entry."""


def _fact(name: str) -> Column:
    return lambda entry: str(entry.facts.get(name) or "-")


SUMS_OVER = {"rows": "rows", "groups": "groups", "no": "whole sample"}
COLUMNS: dict[str, dict[str, Column]] = {
    "losses": {
        "task": lambda entry: facts_of(entry.cls).task or "-",
        "formula": lambda entry: facts_of(entry.cls).formula or "-",
        "sum over": lambda entry: SUMS_OVER.get(facts_of(entry.cls).decomposes, "-"),
        "smooth": lambda entry: "yes" if facts_of(entry.cls).smooth else "no",
        "source": lambda entry: facts_of(entry.cls).source or "-",
    },
    "regularizers": {"what it is": lambda entry: entry.headline},
    "solvers": {
        "what it is": lambda entry: entry.headline,
        "problem": _fact("problem"),
        "needs": _fact("needs"),
        "lower bound": _fact("certificate"),
        "an iteration costs": _fact("cost"),
        "source": _fact("source"),
    },
}


IN_JSON = {"-": None, "yes": True, "no": False}
"""Cells of the tables that are no text for programs."""


def _described(entry: Entry[Any], columns: Mapping[str, Column]) -> dict[str, Any]:
    """For programs: the name, the facts of the table, and each option with types, range, default and meaning."""
    from bmrm.app.config.fields import option_types

    facts = {heading.replace(" ", "_"): text(entry) for heading, text in columns.items()}
    types = option_types(entry.cls)
    return {
        "name": entry.name,
        **{heading: IN_JSON.get(cell, cell) for heading, cell in facts.items()},
        "options": [_option(field, types[field.name]) for field in entry.parameters],
    }


def _option(field: dataclasses.Field[Any], kind: Any) -> dict[str, Any]:
    from pydantic import TypeAdapter

    limits = field.metadata.get("range", Range())
    required = field.default is dataclasses.MISSING
    return {
        "name": option_name(field.name),
        "types": _json_types(TypeAdapter(kind).json_schema()),
        "range": _sides(limits),
        "required": required,
        "default": None if required else field.default,
        "doc": limits.doc,
    }


def _sides(limits: Range) -> dict[str, Any]:
    """The bounds that there are."""
    sides = {side: limit for side, limit in dataclasses.asdict(limits).items() if side not in ("doc", "renamed")}
    return {side: limit for side, limit in sides.items() if limit not in (None, math.inf)}


def _json_types(schema: Mapping[str, Any]) -> list[str]:
    """The types of JSON that a value may have."""
    if "type" in schema:
        return [schema["type"]]
    return list(dict.fromkeys(name for one in schema.get("anyOf", ()) for name in _json_types(one)))


def options_text(entry: Entry[Any]) -> str:
    """The options with their defaults; `bmrm TABLE NAME` says what they mean."""
    return ", ".join(f"{option_name(field.name)}={_default(field)}" for field in entry.parameters) or "-"


def _explained(entry: Entry[Any]) -> dict[str, str]:
    explained = {}
    for field in entry.parameters:
        limits = field.metadata.get("range")
        meaning = limits.doc if limits is not None else ""
        if limits is not None and str(limits) != "any number":
            meaning += f" ({limits})"
        explained[f"{option_name(field.name)} = {_default(field)}"] = meaning
    return explained


def _default(field: dataclasses.Field[Any]) -> str:
    return "required" if field.default is dataclasses.MISSING else _shown(field.default)


def _shown(value: Any) -> str:
    return "null" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _schema(group: Group, arguments: argparse.Namespace) -> int:
    from bmrm.app.config.schema import json_schema

    print(json.dumps(json_schema(), indent=2))
    return 0


def _report(group: Group, arguments: argparse.Namespace) -> int:
    from bmrm.app.html import write_report

    print(write_report(arguments.runs, arguments.out))
    return OK


def _info(group: Group, arguments: argparse.Namespace) -> int:
    import numpy as np

    from bmrm.data.labels import LabelSets
    from bmrm.data.matrix import Csr

    data = _read(arguments)
    y = data.targets.y
    pairs = {
        "rows": str(data.rows),
        "features": str(data.features),
        "non-zeros": f"{data.nnz} ({data.nnz / max(1, data.rows * data.features):.3%} of the matrix)",
        "storage": _storage(data.X) if isinstance(data.X, Csr) else f"dense {data.X.dtype}",
    }
    if data.rows == 0:
        raise InputError(f"{arguments.data}: no rows")
    if isinstance(y, LabelSets):
        pairs["targets"] = f"label sets, {len(y.classes())} different labels"
    elif y.ndim == 2:
        pairs["targets"] = f"{y.shape[1]} numbers per row"
    else:
        labels, counts = np.unique(y, return_counts=True)
        shown = ", ".join(f"{_text(label)}: {count}" for label, count in zip(labels.tolist(), counts, strict=True))
        few = len(labels) <= 20
        pairs["targets"] = shown if few else f"{len(labels)} different values from {labels[0]} to {labels[-1]}"
    if data.targets.groups is not None:
        pairs["groups"] = str(len(np.unique(data.targets.groups)))
    if data.targets.weights is not None:
        weights = data.targets.weights
        pairs["weights"] = f"from {weights.min():g} to {weights.max():g}, sum {weights.sum():g}"
    _print_pairs(arguments.data, pairs)
    return 0


def _storage(matrix: Any) -> str:
    return "sparse, all values 1" if matrix.values is None else f"sparse {matrix.values.dtype}"


if __name__ == "__main__":
    sys.exit(main())
