"""The tables of a race in markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.race.statistics import geometric_mean
from benchmarks.race.summary import (
    ClassFigure,
    Comparison,
    Record,
    against_our_best,
    class_figures,
    compare,
    ours_of,
    times_of,
)
from benchmarks.race.targets import KINDS


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A markdown table; empty without rows."""
    if not rows:
        return ""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def seconds(value: float | None) -> str:
    """In a unit that fits."""
    if value is None or not math.isfinite(value):
        return "none"
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def classes(records: Sequence[Record]) -> str:
    """Every class against its targets."""
    rows = [_class_row(figure) for figure in class_figures(records)]
    head = ("class", "to", "problems", "geometric mean", "target", "worst", "target", "worst problem", "met")
    return table(head, rows)


def _class_row(figure: ClassFigure) -> list[object]:
    counted = f"{figure.problems}"
    notes = [f"{figure.alone} without a peer that got there"] if figure.alone else []
    notes += [f"{figure.failed} not reached by us"] if figure.failed else []
    if notes:
        counted += f" ({', '.join(notes)})"
    return [
        KINDS[figure.kind].title,
        f"{figure.accuracy:g}",
        counted,
        figure.mean,
        _limit(figure.mean_target),
        figure.worst,
        _limit(figure.worst_target),
        figure.worst_problem,
        figure.met,
    ]


def _limit(most: float | None) -> str:
    return "" if most is None else f"{most:g}"


def problems(records: Sequence[Record], kind: str) -> str:
    """Every problem of a class: ours, the best peer, the ratio; to each accuracy."""
    rows = []
    for record in records:
        if record["kind"] != kind:
            continue
        row: list[object] = [f"`{record['name']}`", ours_chosen(record)]
        for accuracy in record["accuracies"]:
            one = compare(record, accuracy)
            row += [seconds(one.seconds), _other(one), _ratio(one)]
        rows.append(row)
    if not rows:
        return ""
    accuracies = next(record["accuracies"] for record in records if record["kind"] == kind)
    head = ["problem", "chosen by auto"]
    for accuracy in accuracies:
        head += [f"ours to {accuracy:g}", "best peer", "ratio"]
    return table(head, rows)


def _other(one: Comparison) -> str:
    return f"{seconds(one.other_seconds)} {one.other}" if one.counts else "none"


def _ratio(one: Comparison) -> str:
    return str(one.ratio) if one.counts else ""


def ours_chosen(record: Record) -> str:
    """What our last run says of itself, in short."""
    ladder = ours_of(record)["ladder"]
    text = str(ladder[-1]["details"].get("solver", "")) if ladder else ""
    return text.split(":")[0]


def every_peer(records: Sequence[Record], kind: str) -> str:
    """Medians of all entrants of a class to each accuracy."""
    rows = []
    for record in records:
        if record["kind"] != kind:
            continue
        for entrant in record["entrants"]:
            if [line["status"] for line in entrant["ladder"]] == ["unfit"]:
                continue
            cells = [_cell(entrant, accuracy) for accuracy in record["accuracies"]]
            rows.append([f"`{record['name']}`", entrant["name"], *cells, _nearest(entrant)])
    if not rows:
        return ""
    accuracies = next(record["accuracies"] for record in records if record["kind"] == kind)
    return table(["problem", "entrant", *(f"to {accuracy:g}" for accuracy in accuracies), "nearest"], rows)


def _cell(entrant: Mapping[str, Any], accuracy: float) -> str:
    found = times_of(entrant, accuracy)
    if found is None:
        return "none"
    rung = entrant["best"][f"{accuracy:g}"]["rung"]
    return f"{seconds(float(np.median(found)))} ({rung}, {len(found)} runs)"


def _nearest(entrant: Mapping[str, Any]) -> str:
    """The smallest suboptimality of the ladder, and how the ladder ended where it did not end well."""
    values = [line["suboptimality"] for line in entrant["ladder"] if line["suboptimality"] is not None]
    text = f"{min(values):.0e}" if values else ""
    last = entrant["ladder"][-1] if entrant["ladder"] else None
    if last is None or last["status"] == "ok":
        return text
    return f"{text} {last['status']} at {last['rung']}: {last['message']}".strip()


def single_solvers(records: Sequence[Record]) -> str:
    """`auto` against the best single solver of ours, on every problem where more than `auto` ran."""
    rows: list[list[object]] = []
    for accuracy in sorted({accuracy for record in records for accuracy in record["accuracies"]}, reverse=True):
        found = [against_our_best(record, accuracy) for record in records if _several(record)]
        counted = [one for one in found if one.counts]
        for one in counted:
            rows.append([f"`{one.problem}`", f"{accuracy:g}", seconds(one.seconds), _other(one), one.ratio])
        if counted:
            draws = [one.draws for one in counted if one.draws is not None]
            rows.append(
                ["geometric mean", f"{accuracy:g}", "", "", geometric_mean([c.ratio.middle for c in counted], draws)]
            )
    return table(["problem", "to", "auto", "best single solver", "ratio"], rows)


def _several(record: Record) -> bool:
    ours = [entrant["name"] for entrant in record["entrants"] if entrant["ours"]]
    return len(ours) > 1 and ours[0] == "bmrm auto"


def failures(records: Sequence[Record]) -> str:
    """Runs that ended in an error or a time-out, counted by entrant and message."""
    counts: dict[tuple[str, str, str], int] = {}
    for record in records:
        for entrant in record["entrants"]:
            for line in entrant["ladder"]:
                if line["status"] not in ("ok", "unfit"):
                    key = (entrant["name"], line["status"], str(line["message"])[:100])
                    counts[key] = counts.get(key, 0) + 1
    return table(("entrant", "status", "message", "runs"), [[*key, count] for key, count in sorted(counts.items())])
