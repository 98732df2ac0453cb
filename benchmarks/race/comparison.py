"""Two races against one another: what became slower, the drift of the machine taken out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.race import tables
from benchmarks.race.statistics import Interval, ratio
from benchmarks.race.summary import Record, ours_of, times_of

SLOWER = 1.1
"""A change counts from here on: its whole interval above (or below the inverse)."""


@dataclass(frozen=True)
class Change:
    """Our time now over our time then on one problem to one accuracy, divided by the drift."""

    problem: str
    accuracy: float
    then: float | None
    now: float | None
    ratio: Interval | None

    @property
    def verdict(self) -> str:
        """ "regression", "faster", "lost" (reached then, not now), "gained", or empty."""
        if self.then is None or self.now is None:
            return {(False, True): "lost", (True, False): "gained"}.get((self.then is None, self.now is None), "")
        assert self.ratio is not None
        if self.ratio.low > SLOWER:
            return "regression"
        return "faster" if self.ratio.high < 1.0 / SLOWER else ""


def drift(now: Sequence[Record], then: Sequence[Record]) -> float:
    """The median over what peers did of time now over time then: the machine, not us. 1 without peers."""
    old = {(record["name"], entrant["name"]): entrant for record in then for entrant in record["entrants"]}
    ratios = []
    for record in now:
        for entrant in record["entrants"]:
            before = old.get((record["name"], entrant["name"]))
            if entrant["ours"] or before is None:
                continue
            for accuracy in record["accuracies"]:
                a, b = times_of(entrant, accuracy), times_of(before, accuracy)
                if a and b and a != b:  # the same times were taken over, not measured
                    ratios.append(float(np.median(a) / np.median(b)))
    return float(np.median(ratios)) if ratios else 1.0


def changes(now: Sequence[Record], then: Sequence[Record]) -> list[Change]:
    """For every problem that both races have."""
    old = {record["name"]: record for record in then}
    factor = drift(now, then)
    found = []
    for record in now:
        before = old.get(record["name"])
        if before is None:
            continue
        for accuracy in record["accuracies"]:
            a, b = times_of(ours_of(record), accuracy), times_of(ours_of(before), accuracy)
            one = None
            if a and b:
                raw = ratio(a, b, paired=False)
                one = Interval(raw.middle / factor, raw.low / factor, raw.high / factor)
            found.append(Change(record["name"], accuracy, _median(b), _median(a), one))
    return found


def report(now: Mapping[str, Any], then: Mapping[str, Any]) -> str:
    """A markdown section; regressions first."""
    every = changes(now["problems"], then["problems"])
    order = ("lost", "regression", "gained", "faster", "")
    every.sort(key=lambda change: order.index(change.verdict))
    rows = [
        [f"`{c.problem}`", f"{c.accuracy:g}", tables.seconds(c.then), tables.seconds(c.now), c.ratio or "", c.verdict]
        for c in every
    ]
    factor = drift(now["problems"], then["problems"])
    worse = sum(change.verdict in ("lost", "regression") for change in every)
    head = f"{worse} of {len(every)} slower; peers took {factor:.2f} times as long as then, which is divided out.\n\n"
    return head + tables.table(("problem", "to", "then", "now", "now / then", ""), rows)


def _median(times: Sequence[float] | None) -> float | None:
    return float(np.median(times)) if times else None
