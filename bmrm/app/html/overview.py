"""What a run was of, what is proved of its result, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from bmrm.app.charts import bars
from bmrm.app.defaults import INTERCEPTS
from bmrm.app.elements import Content, Markup, pairs, section, table, tag
from bmrm.app.html.files import Named, Profile
from bmrm.app.html.run import Run, named
from bmrm.app.phases import NAMES
from bmrm.app.report import in_ranks, moved, number
from bmrm.losses import LOSSES
from bmrm.problem import Status, facts_of

GOOD = Status.CONVERGED.name
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


def status(run: Run) -> Markup:
    """The status, coloured."""
    return tag("span", run.summary.status, class_=f"status {'good' if run.summary.status == GOOD else 'warn'}")


def certificate(run: Run) -> Markup | None:
    """What is proved, in words."""
    s = run.summary
    words: list[Content] = [tag("p", status(run), " ", s.advice + ".")]
    if s.message:
        words.append(tag("p", s.message))
    if s.objective is None:
        words.append(tag("p", "The run has found no point at which the objective is finite."))
    elif s.lower_bound is None or s.relative_gap is None:
        words.append(
            tag("p", f"The objective is {s.objective:.10g}. Nothing is proved of how much lower it could be: ",
                "this solver gives no lower bound for this problem.")
        )  # fmt: skip
    else:
        words.append(
            tag(
                "p",
                f"The objective of this model is {s.objective:.10g}. It is proved that no weights whatever have less "
                f"than {s.lower_bound:.10g}: at most {s.gap or 0.0:.2g}, or {percent(s.relative_gap)} of the "
                "objective, could still be gained by further training of the same problem.",
            )
        )
        if s.significant_figures is not None and s.significant_figures >= 1:
            words.append(tag("p", f"{math.floor(s.significant_figures)} decimal digits of the objective are proved."))
    return section("Certificate", *words)


def percent(share: float) -> str:
    """A relative gap for readers: 0.012 %, 3e-07 %."""
    return f"{100.0 * share:.2g} %"


def tiles(run: Run) -> Markup:
    """The few numbers that one looks for first."""
    s = run.summary
    shown: list[tuple[str, str]] = [
        ("objective", number(s.objective, 6)),
        ("relative gap", "none proved" if s.relative_gap is None else f"{s.relative_gap:.1e}"),
    ]
    part = run.curves.part if run.curves is not None else next(reversed(s.metrics), "")
    shown += [(f"{name}, {part}", number(value, 4)) for name, value in list(s.metrics.get(part, {}).items())[:2]]
    shown += [
        ("training rows", f"{s.rows:,}"),
        ("seconds", number(s.seconds.get("total"), 3)),
    ]
    made = [tag("div", tag("span", a, class_="what"), tag("span", b, class_="much"), class_="tile") for a, b in shown]
    return tag("div", made, class_="tiles")


def problem(run: Run) -> Markup | None:
    """What was minimised, and how."""
    data, s = run.config.data, run.summary
    rows: list[tuple[Content, Content]] = [
        ("minimised", tag("code", "J(w) = Omega(w) + R(w)")),
        ("loss", _plug_in(run.config.loss)),
    ]
    formula = _formula(run.config.loss.name)
    if formula:
        rows.append(("of one row or group", tag("code", formula)))
    kept = None if run.model is None else run.model.header.get("loss", {})
    if s.search is not None and kept and kept.get("name") != run.config.loss.name:
        rows.append(("loss that was kept", _plug_in(Named(**kept))))
    rows += [
        ("regularizer", _plug_in(run.config.regularizer)),
        ("intercept", INTERCEPTS.get(str(data.get("bias", "none")), "-")),
        ("scaling", str(data.get("scale", "none"))),
        ("solver", s.solver),
        ("asked for", _plug_in(run.config.solver)),
        ("ranks", in_ranks(s.ranks, s.threads)),
        ("iterations, passes", f"{s.iterations:,}, {s.passes:,.4g}"),
    ]
    return section("Problem", pairs(rows))


def _plug_in(named: Named) -> Markup:
    options = ", ".join(f"{key} = {_value(value)}" for key, value in named.options.items() if value is not None)
    return tag("span", tag("code", named.name), f" ({options})" if options else "")


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _formula(name: str) -> str:
    """Of a registered loss; one of a user's is not imported for this."""
    known = {entry.name: entry for entry in LOSSES.all()}
    return facts_of(known[name].cls).formula if name in known else ""


def search(run: Run) -> Markup | None:
    """The trainings of which one was kept."""
    found = run.summary.search
    if found is None or not found.table:
        return None
    head = list(dict.fromkeys(name for row in found.table for name in row))
    rows = [
        ["kept" if k == found.chosen else "", *(_cell(row.get(name)) for name in head)]
        for k, row in enumerate(found.table)
    ]
    words = f"{len(rows)} trainings of the search {found.name}"
    words += f", judged on the {named(found.judged_on)} rows." if found.judged_on else "."
    numbers = [k + 1 for k, name in enumerate(head) if not isinstance(found.table[0].get(name), str)]
    return section("Search", tag("p", words), table(["", *head], rows, numbers=numbers))


def _cell(value: float | str | None) -> str:
    return value if isinstance(value, str) else number(value, 5)


def data(run: Run) -> Markup | None:
    """Sizes, and the labels of each part."""
    s = run.summary
    features = s.problem.get("data", {}).get("features") if isinstance(s.problem.get("data"), dict) else None
    sizes: list[tuple[Content, Content]] = [("training rows", f"{s.rows:,}")]
    if isinstance(features, int):
        sizes.append(("features", f"{features:,}"))
        share = s.nnz / max(1, s.rows * features)
        sizes.append(("stored entries", f"{s.nnz:,} ({100 * share:.3g} % of the matrix)"))
    for part in ("train", "validation", "test"):
        value = run.config.data.get(part)
        if value is not None:
            sizes.append((f"{part} files", ", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    profiles = {} if run.curves is None else run.curves.data
    notes = [tag("p", note) for note in s.notes]
    return section("Data", pairs(sizes), notes, [_profile(part, profile) for part, profile in profiles.items()])


def _profile(part: str, profile: Profile) -> list[Content]:
    facts = [f"{profile.rows:,} rows"]
    if profile.groups is not None:
        facts.append(f"{profile.groups:,} groups")
    if profile.weight is not None:
        facts.append(f"weights of sum {profile.weight:.6g}")
    if profile.unknown:
        facts.append(f"{profile.unknown:,} rows with labels that the model does not know")
    if len(profile.quantiles) == 5:
        least, *middle, most = (f"{value:.5g}" for value in profile.quantiles)
        facts.append(f"targets from {least} to {most}, quartiles {', '.join(middle)}")
    content: list[Content] = [tag("h3", part), tag("p", ", ".join(facts))]
    if profile.labels:
        rows = max(1, profile.rows)
        lines = [(name, float(count), f"{count:,} ({100 * count / rows:.3g} %)") for name, count in profile.labels]
        content.append(bars(lines))
        if profile.classes > len(lines):
            content.append(tag("p", f"and {profile.classes - len(lines):,} rarer labels", class_="faint"))
    return content


def time(run: Run) -> Markup | None:
    """Seconds by phase."""
    seconds = run.summary.seconds
    total = seconds.get("total", 0.0)
    found = [(seconds.get(name, 0.0), name) for name in NAMES]
    shown = [pair for pair in found if pair[0] >= 5e-4 * max(total, 1e-9)]
    lines = [
        (PHASES.get(name, name), part, f"{part:.3g} s ({100 * part / total:.0f} %)" if total else f"{part:.3g} s")
        for part, name in shown
    ]
    words = tag("p", f"{total:.3g} seconds in all, from the start of the program to the last file.")
    return section("Time", words, bars(lines), _ranks(run)) if lines else None


def _ranks(run: Run) -> Markup | None:
    """What each rank had and computed, and what they sent; None for one rank."""
    spread, sent = run.summary.spread, run.summary.sent
    if not spread:
        return None
    sharing = run.summary.row_sharing
    told = moved(sharing) if "allowed" in sharing else ""
    words = f"{sent.get('messages', 0):,} messages of {sent.get('bytes', 0) / 1e6:.3g} MB in all. Of each rank:"
    if told:
        words = f"{told[0].upper()}{told[1:]} ({sharing.get('why', '')}). {words}"
    columns = [spread.get(name, []) for name in ("rows", "entries", "seconds")]
    lines = [[str(k), *(f"{number:,.6g}" for number in numbers)] for k, numbers in enumerate(zip(*columns))]
    whole = table(["rank", "rows", "entries", "seconds computing"], lines, numbers=range(4))
    return tag("details", tag("summary", f"{run.summary.ranks} ranks"), tag("p", words), whole)


def files(run: Run) -> Markup | None:
    """Versions, and where the files are."""
    rows: list[tuple[Content, Content]] = [("folder", tag("code", str(run.directory)))]
    rows += [(name, text) for name, text in run.summary.versions.items()]
    settings: Iterable[Sequence[Content]] = [[tag("code", name), _value(value)] for name, value in run.settings.items()]
    whole = tag("details", tag("summary", "All settings"), table(["field", "value"], settings))
    return section("Files and versions", pairs(rows), whole)
