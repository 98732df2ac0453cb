"""Finished runs as one HTML file that needs no network and no script: the numbers and words for `report.html`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from bmrm.app import description
from bmrm.app.charts import swatch
from bmrm.app.comparison import differences
from bmrm.app.defaults import INTERCEPTS
from bmrm.app.html import curves
from bmrm.app.html.runs import Named, Profile, Run, Search, SummaryFile, named, read_runs
from bmrm.app.model import Model
from bmrm.app.model_file import package_version
from bmrm.app.phases import NAMES
from bmrm.app.pipeline.fingerprint import same
from bmrm.app.report import in_ranks, moved, number
from bmrm.data.files import whole_file
from bmrm.losses import LOSSES
from bmrm.problem import facts_of

TOP, TOP_OF_CLASS = 20, 8
"""Weights that are listed: of one score, and of each of several."""
MOST_STATES = 30
"""Most labels of a table of transitions."""
MOST_LINES = 30
"""Most iterations in the table of numbers."""
PHASES = {
    "earlier": "runs that this one resumed",
    "start": "start of Python",
    "load": "reading the data",
    "prepare": "preparing the rows",
    "compile": "compiling kernels",
    "risk": "risk and products with the data",
    "master": "master problems",
    "waiting": "waiting for slower ranks",
    "network": "messages between ranks",
    "solver": "the solver's own steps",
    "measure": "measures",
    "write": "writing files",
    "draw": "drawing",
}
Pair = tuple[str, Any]
Table = tuple[Sequence[str], list[list[Any]], Sequence[int]]
"""Head, rows, and the columns that are numbers."""
Bars = list[tuple[str, float, str]]


def write_report(folders: Sequence[Path | str], out: Path | str) -> Path:
    """Write one HTML file about finished runs; returns its path.

    The file is written whole or not at all. It loads nothing, and has no script.

    Parameters
    ----------
    folders : the output folders of the runs.
    out : the file; an older one is replaced.

    Raises
    ------
    InputError
        Naming the file of a run that is missing, cut off or damaged, or that `out` cannot be written.
    OutputError
        Where the disk is full.
    """
    text = rendered("report.html", runs=read_runs(folders))
    with whole_file(out) as stream:
        stream.write(text.encode())
    return Path(out)


def rendered(name: str, **values: Any) -> str:
    """The text of a page; `values` are those that its template names."""
    return template(name).render(version=package_version(), **values).lstrip()


def template(name: str) -> Template:
    """A template beside this file, with the functions of this file."""
    engine = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    engine.filters.update(number=number, named=named, options=_options, masses=_masses)
    engine.globals.update({one.__name__.strip("_"): one for one in USED})
    return engine.get_template(name)


def _tiles(run: Run) -> Iterator[Pair]:
    """The few numbers that one looks for first."""
    s = run.summary
    yield "objective", number(s.objective, 6)
    yield "relative gap", "none proved" if s.relative_gap is None else f"{s.relative_gap:.1e}"
    for name, value in list(s.metrics.get(run.part, {}).items())[:2]:
        yield f"{name}, {run.part}", number(value, 4)
    yield "training rows", f"{s.rows:,}"
    yield "seconds", number(s.seconds.get("total"), 3)


def _problem(run: Run, plug_in: Callable[[Named], Markup]) -> Iterator[Pair]:
    """What was minimised, and how."""
    config, s, code = run.config, run.summary, Markup("<code>{}</code>")
    yield "minimised", code.format("J(w) = Omega(w) + R(w)")
    yield "loss", plug_in(config.loss)
    known = {entry.name: entry for entry in LOSSES.all()}  # a loss of a user's is not imported for its formula
    formula = facts_of(known[config.loss.name].cls).formula if config.loss.name in known else ""
    if formula:
        yield "of one row or group", code.format(formula)
    kept = None if run.model is None else run.model.header.get("loss", {})
    if s.search is not None and kept and kept.get("name") != config.loss.name:
        yield "loss that was kept", plug_in(Named(**kept))
    yield "regularizer", plug_in(config.regularizer)
    yield "intercept", INTERCEPTS.get(str(config.data.get("bias", "none")), "-")
    yield "scaling", config.data.get("scale", "none")
    yield "solver", s.solver
    yield "asked for", plug_in(config.solver)
    yield "ranks", in_ranks(s.ranks, s.threads)
    yield "iterations, passes", f"{s.iterations:,}, {s.passes:,.4g}"


def _options(named: Named) -> str:
    return ", ".join(f"{key} = {_value(value)}" for key, value in named.options.items() if value is not None)


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _masses(error: tuple[str, str, float]) -> tuple[str, str, str]:
    return *error[:2], f"{error[2]:g}"


def _trainings(search: Search) -> Table:
    """The trainings of which one was kept."""
    head = list(dict.fromkeys(name for row in search.table for name in row))
    cells = ((row.get(name) for name in head) for row in search.table)
    texts = [[one if isinstance(one, str) else number(one, 5) for one in row] for row in cells]
    rows = [["kept" if k == search.chosen else "", *row] for k, row in enumerate(texts)]
    return ["", *head], rows, [k for k, name in enumerate(head, 1) if not isinstance(search.table[0].get(name), str)]


def _sizes(run: Run) -> Iterator[Pair]:
    s, about = run.summary, run.summary.problem.get("data")
    features = about.get("features") if isinstance(about, dict) else None
    yield "training rows", f"{s.rows:,}"
    if isinstance(features, int):
        yield "features", f"{features:,}"
        yield "stored entries", f"{s.nnz:,} ({100 * s.nnz / max(1, s.rows * features):.3g} % of the matrix)"
    for part in ("train", "validation", "test"):
        value = run.config.data.get(part)
        if value is not None:
            yield f"{part} files", ", ".join(map(str, value)) if isinstance(value, list) else value


def _facts(profile: Profile) -> Iterator[str]:
    """The sizes of a part, and its targets where they are numbers."""
    yield f"{profile.rows:,} rows"
    if profile.groups is not None:
        yield f"{profile.groups:,} groups"
    if profile.weight is not None:
        yield f"weights of sum {profile.weight:.6g}"
    if profile.unknown:
        yield f"{profile.unknown:,} rows with labels that the model does not know"
    if len(profile.quantiles) == 5:
        least, *middle, most = (f"{value:.5g}" for value in profile.quantiles)
        yield f"targets from {least} to {most}, quartiles {', '.join(middle)}"


def _shares(profile: Profile) -> Bars:
    rows = max(1, profile.rows)
    return [(name, count, f"{count:,} ({100 * count / rows:.3g} %)") for name, count in profile.labels]


def _history(run: Run) -> Table:
    """At most `MOST_LINES` lines, evenly, the ends among them."""
    head = ("iteration", "objective", "lower bound", "relative gap", "passes", "seconds")
    places = np.linspace(0, len(run.history) - 1, min(MOST_LINES, len(run.history))).round().astype(int)
    rows: list[list[Any]] = []
    for one in (run.history[k] for k in places):
        row = [one.iteration, number(one.objective, 10), number(one.lower_bound, 10), number(one.relative_gap, 3)]
        rows.append([*row, f"{one.passes:.4g}", f"{one.seconds:.3g}"])
    return head, rows, range(6)


def _phases(seconds: dict[str, float]) -> Bars:
    """Seconds by phase, without those that would hardly be seen."""
    total = seconds.get("total", 0.0)
    found = [(PHASES.get(name, name), seconds.get(name, 0.0)) for name in NAMES]
    share = " ({:.0f} %)" if total else ""
    return [
        (name, part, f"{part:.3g} s" + share.format(100 * part / (total or 1.0)))
        for name, part in found
        if part >= 5e-4 * max(total, 1e-9)
    ]


def _sent(s: SummaryFile) -> str:
    """What ranks did with their rows, and what they sent."""
    told = f"{moved(s.row_sharing)} ({s.row_sharing.get('why', '')}). " if "allowed" in s.row_sharing else ""
    words = f"{s.sent.get('messages', 0):,} messages of {s.sent.get('bytes', 0) / 1e6:.3g} MB in all. Of each rank:"
    return told[:1].upper() + told[1:] + words


def _loads(s: SummaryFile) -> list[list[str]]:
    """Rows, entries and seconds of each rank."""
    columns = [s.spread.get(name, []) for name in ("rows", "entries", "seconds")]
    return [[str(k), *(f"{one:,.6g}" for one in line)] for k, line in enumerate(zip(*columns))]


def _measures(run: Run) -> Table:
    """Measures of each part, with intervals where there are."""
    parts = {part: values for part, values in run.summary.metrics.items() if values}
    intervals = {} if run.curves is None else run.curves.intervals
    head = ["measure", *parts, *([f"95 % interval, {run.part}"] if intervals else [])]
    rows = []
    for name in dict.fromkeys(name for values in parts.values() for name in values):
        one = intervals.get(name)
        words = "-" if one is None else f"{number(one.low, 5)} to {number(one.high, 5)}"
        rows.append([name, *(number(values.get(name), 5) for values in parts.values()), words][: len(head)])
    return head, rows, range(1, len(head))


def _count_of_weights(model: Model) -> str:
    return f"{np.count_nonzero(model.weights):,} of {model.weights.size:,}"


def _largest(model: Model) -> list[tuple[str, Bars]]:
    """The largest weights of each score, and its intercept."""
    titles, labels = description.score_names(model), description.label_names(model)
    if len(titles) == 1:
        two = len(labels) == 2
        titles = [f"Above 0 speaks for {labels[1]}, below 0 for {labels[0]}." if two else "Of the one score."]
    found = description.top_weights(model, TOP if len(titles) == 1 else TOP_OF_CLASS).values()
    rows: list[Bars] = [[(one.name, one.value, f"{one.value:.4g}") for one in weights] for weights in found]
    for lines, constant in zip(rows, model.intercept):
        lines += [("(intercept)", 0.0, f"{constant:.4g}")] if constant else []
    return list(zip(titles, rows))


def _transitions(model: Model) -> tuple[list[str], list[list[float]]]:
    """Of a chain: the labels, and the weight of each label after each; none of many labels."""
    labels, found = description.label_names(model), model.arrays.get("transitions")
    if found is None or found.shape != (len(labels), len(labels)) or len(labels) > MOST_STATES:
        return labels, []
    return labels, [[float(f"{value:.3g}") for value in row] for row in found.tolist()]


def _files(run: Run) -> Iterator[Pair]:
    yield "folder", Markup("<code>{}</code>").format(run.directory)
    yield from run.summary.versions.items()


def _settings(run: Run) -> list[Pair]:
    return [(name, _value(value)) for name, value in run.settings.items()]


def _results(runs: Sequence[Run], status: Callable[[Run], Markup]) -> tuple[list[str], list[list[Any]], list[str], Any]:
    """Status, objective, bound, gap, seconds of each run; and the names of measures, with those of each run."""
    link = Markup('<span class="key">{} <a href="#run-{}">{}</a></span>')
    links = [link.format(swatch(k), k, run.name) for k, run in enumerate(runs)]
    head = ["run", "status", "objective", "lower bound", "relative gap", "passes", "seconds"]
    rows: list[list[Any]] = []
    for name, run in zip(links, runs):
        s = run.summary
        row = [name, status(run), number(s.objective, 8), number(s.lower_bound, 8), number(s.relative_gap, 2)]
        rows.append([*row, f"{s.passes:.4g}", number(s.seconds.get("total"), 3)])
    names = list(dict.fromkeys(name for run in runs for name in run.summary.metrics.get(run.part, {})))
    return head, rows, names, [[a, *(_measure(run, name) for name in names)] for a, run in zip(links, runs)]


def _measure(run: Run, name: str) -> Markup:
    """The value with its interval below."""
    value = number(run.summary.metrics.get(run.part, {}).get(name), 5)
    one = None if run.curves is None else run.curves.intervals.get(name)
    if one is None:
        return Markup.escape(value)
    below = Markup('{}<div class="faint">{} to {}</div>')
    return below.format(value, number(one.low, 4), number(one.high, 4))


def _differing(runs: Sequence[Run]) -> list[list[str]]:
    """The settings that are not the same in all runs."""
    return [[name, *map(_shown, values)] for name, values in differences([run.config.fields for run in runs]).items()]


def _shown(value: object) -> str:
    return ", ".join(map(_shown, value)) if isinstance(value, list) else "null" if value is None else _value(value)


def _same(runs: Sequence[Run]) -> bool:
    return same([run.summary.problem for run in runs])


USED: tuple[Callable[..., Any], ...] = (
    *(_tiles, _problem, _trainings, _sizes, _facts, _shares, _history, _phases, _sent, _loads, _measures),
    *(_count_of_weights, _largest, _transitions, _files, _settings, _results, _differing, _same),
    *(curves.convergence, curves.followed, curves.judged),
)
"""Functions that the template calls, by name."""
