"""The tables of a race in markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks.race.halves import HALVES, half_of_problem
from benchmarks.race.statistics import performance_profile, share_at
from benchmarks.race.summary import (
    ClassFigure,
    Comparison,
    Record,
    against_our_best,
    choice_figures,
    class_figures,
    profile_times,
    worst_cases,
)
from benchmarks.race.targets import KINDS

FACTORS = (1.0, 1.5, 2.0, 5.0, 10.0)
"""Of the fastest time, in the table beside the performance profile."""


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
    head = ("class", "to", "cases", "geometric mean", "target", "worst", "target", "worst case", "fastest in")
    return table(head, rows)


def glance(records: Sequence[Record]) -> str:
    """Every class by halves of the sets: the geometric mean of the cases that both reached, to each accuracy."""
    means: dict[str, dict[tuple[float, str], str]] = {}
    for half in HALVES:
        for figure in class_figures([one for one in records if half_of_problem(one["name"]) == half]):
            if figure.worst is not None and math.isfinite(figure.reached.middle):
                means.setdefault(figure.kind, {})[figure.accuracy, half] = f"{figure.reached.middle:.2f}"
    accuracies = sorted({accuracy for cells in means.values() for accuracy, _ in cells}, reverse=True)
    columns = [(accuracy, half) for accuracy in accuracies for half in HALVES]
    rows = [[KINDS[kind].title, *(means[kind].get(key, "-") for key in columns)] for kind in KINDS if kind in means]
    return table(("class", *(f"{half}, to {accuracy:g}" for accuracy, half in columns)), rows)


def halves(records: Sequence[Record]) -> str:
    """Every class by halves of the sets: geometric mean and worst case, and our failures."""
    by_half = {half: [one for one in records if half_of_problem(one["name"]) == half] for half in HALVES}
    cells: dict[tuple[str, float], dict[str, str]] = {}
    for half, some in by_half.items():
        for figure in class_figures(some):
            cells.setdefault((figure.kind, figure.accuracy), {})[half] = _half_cell(figure)
    order = sorted(cells, key=lambda key: (list(KINDS).index(key[0]), -key[1]))
    rows = [
        [KINDS[k].title, f"{accuracy:g}", *(cells[k, accuracy].get(h, "-") for h in HALVES)] for k, accuracy in order
    ]
    return table(("class", "to", *HALVES), rows)


def _half_cell(figure: ClassFigure) -> str:
    if figure.worst is None:
        return "-"
    failed = f", {figure.failed} not reached" if figure.failed else ""
    return f"{figure.reached.middle:.2f} (worst {figure.worst.ratio.middle:.3g}, cases {figure.problems}{failed})"


def _class_row(figure: ClassFigure) -> list[object]:
    notes = [f"{figure.alone} without a peer that got there"] if figure.alone else []
    notes += [f"{figure.failed} not reached by us"] if figure.failed else []
    mean = str(figure.mean)
    if math.isinf(figure.mean.middle) and math.isfinite(figure.reached.middle):
        mean = f"inf; {figure.reached} where we got there"
    mean_target, worst_target = ("" if most is None else f"{most:g}" for most in figure.targets)
    return [
        KINDS[figure.kind].title,
        f"{figure.accuracy:g}",
        f"{figure.problems} ({', '.join(notes)})" if notes else figure.problems,
        mean,
        mean_target,
        "-" if figure.worst is None else figure.worst.ratio,
        worst_target,
        "" if figure.worst is None else f"`{figure.worst.problem}`",
        "-" if figure.won is None else f"{figure.won:.0%}",
    ]


WORST = 10
"""Cases that need a reason."""


def worst(records: Sequence[Record], reasons: Mapping[str, str]) -> str:
    """The largest ratios over all classes, and why."""
    by_name = {record["name"]: record for record in records}
    rows = [
        [
            f"`{one.problem}`",
            f"{one.accuracy:g}",
            seconds(one.seconds),
            other(one),
            one.ratio,
            reasons.get(one.problem) or _choice(by_name[one.problem], one.accuracy),
        ]
        for one in worst_cases(records)[:WORST]
    ]
    return table(("case", "to", "ours", "best peer", "ratio", "reason"), rows)


def _choice(record: Record, accuracy: float) -> str:
    """What the choice of `auto` has to do with it, where nobody has written a reason."""
    one = against_our_best(record, accuracy)
    chosen = record.get("chosen", "")
    return f"`auto` chose {chosen}" + (f"; {one.other} takes {seconds(one.other_seconds)}" if one.counts else "")


def other(one: Comparison) -> str:
    """Time and name of the one compared with."""
    return f"{seconds(one.other_seconds)} {one.other}" if one.counts else "none"


def profile(records: Sequence[Record]) -> str:
    """The performance profile at a few factors."""
    found = sorted(performance_profile(profile_times(records)).items(), key=lambda item: -item[1][1][-1])
    rows = [[name, *(f"{share_at(steps, factor):.0%}" for factor in FACTORS)] for name, steps in found]
    return table(("programs", "fastest", *(f"within {factor:g} x" for factor in FACTORS[1:])), rows)


def choices(records: Sequence[Record]) -> str:
    """`auto` against our best single solver, class by class."""
    rows = [
        [KINDS[kind].title, f"{accuracy:g}", f"{cases} ({failed} not reached by auto)" if failed else cases, mean]
        for kind, accuracy, cases, failed, mean in choice_figures(records)
    ]
    return table(("class", "to", "cases", "geometric mean"), rows)
