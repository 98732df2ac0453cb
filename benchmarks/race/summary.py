"""From the records of a race to figures: ours against the best peer, class by class; our solvers among themselves."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.race.statistics import NONE, NOT_REACHED, Interval, geometric_mean, ratio
from benchmarks.race.targets import KINDS

Record = Mapping[str, Any]
"""Of one problem, as `contest.hold` returns it.

`given` is there only where the times of the rounds are not known (a record read from a page): by accuracy, for "peer"
and "single", the name of the best peer, or of our best single solver, and the interval of the ratio.
"""


@dataclass(frozen=True)
class Comparison:
    """Ours against one other entrant on one problem to one accuracy.

    `seconds` and `other_seconds` are medians, None where the accuracy was not reached; `ratio` is ours over the
    other's, nan where the other never got there and inf where we did not.
    """

    problem: str
    kind: str
    accuracy: float
    seconds: float | None
    other: str
    other_seconds: float | None
    ratio: Interval

    @property
    def counts(self) -> bool:
        """Whether there is a ratio: somebody else got there."""
        return self.other_seconds is not None

    @property
    def won(self) -> bool:
        """Whether we got there, and nobody did sooner."""
        return self.seconds is not None and not self.ratio.middle > 1.0


def times_of(entrant: Mapping[str, Any], accuracy: float) -> list[float] | None:
    """Seconds of the repeated runs to an accuracy; None where it was not reached."""
    found = entrant["best"].get(f"{accuracy:g}")
    return None if found is None else list(found["seconds"])


def ours_of(record: Record) -> Mapping[str, Any]:
    """The entrant that is timed for us: the first of ours."""
    return next(entrant for entrant in record["entrants"] if entrant["ours"])


def best_of(entrants: Sequence[Mapping[str, Any]], accuracy: float) -> Mapping[str, Any] | None:
    """The entrant with the smallest median; those of the rounds go before those that ran once."""

    def key(entrant: Mapping[str, Any]) -> tuple[bool, float]:
        found = entrant["best"][f"{accuracy:g}"]
        return (not found["in_rounds"], float(np.median(found["seconds"])))

    return min((one for one in entrants if f"{accuracy:g}" in one["best"]), key=key, default=None)


def compare(record: Record, accuracy: float) -> Comparison:
    """Ours against the best peer."""
    peers = [entrant for entrant in record["entrants"] if not entrant["ours"]]
    return _compared(record, ours_of(record), peers, accuracy, "peer")


def against_our_best(record: Record, accuracy: float) -> Comparison:
    """`auto` against the best single solver of ours."""
    auto, *single = [entrant for entrant in record["entrants"] if entrant["ours"]]
    return _compared(record, auto, single, accuracy, "single")


def _compared(
    record: Record, ours: Mapping[str, Any], others: Sequence[Mapping[str, Any]], accuracy: float, what: str
) -> Comparison:
    given = record.get("given", {}).get(f"{accuracy:g}", {}).get(what)
    other = best_of([one for one in others if given is None or one["name"] == given["name"]], accuracy)
    mine = times_of(ours, accuracy)
    theirs = None if other is None else times_of(other, accuracy)
    found = NONE
    if theirs and not mine:
        found = NOT_REACHED
    elif theirs and mine and given is not None:
        found = _with_interval(float(np.median(mine) / np.median(theirs)), given["interval"])
    elif theirs and mine:
        seed = zlib.crc32(f"{record['name']} {accuracy:g}".encode())
        found = ratio(mine, theirs, seed, paired=not (other or {}).get("earlier", False))
    return Comparison(
        record["name"],
        record["kind"],
        accuracy,
        float(np.median(mine)) if mine else None,
        "" if other is None else other["name"],
        float(np.median(theirs)) if theirs else None,
        found,
    )


def _with_interval(middle: float, sides: Sequence[float] | None) -> Interval:
    """Sides that were rounded to two decimals hold the middle."""
    low, high = sides or (middle, middle)
    return Interval(middle, min(middle, low), max(middle, high))


@dataclass(frozen=True)
class ClassFigure:
    """A class at one accuracy: geometric mean and worst case of ours over the best peer's time, and the targets.

    `alone` counts problems on which no peer got to the accuracy: they have no ratio; `failed` those on which we did
    not. `mean` is inf where a peer got there and we did not, `reached` the mean without these. `won` is the share of
    problems with peers on which we were the fastest; None where no peer took part.
    """

    kind: str
    accuracy: float
    problems: int
    alone: int
    failed: int
    mean: Interval
    reached: Interval
    worst: Comparison | None
    won: float | None

    @property
    def targets(self) -> tuple[float | None, float | None]:
        """The most that mean and worst may be."""
        return KINDS[self.kind].of(self.accuracy)


def class_figures(records: Sequence[Record]) -> Iterator[ClassFigure]:
    """For every class that has problems, and every accuracy."""
    for kind in KINDS:
        mine = [record for record in records if record["kind"] == kind]
        for accuracy in _accuracies(mine):
            every = [compare(record, accuracy) for record in mine]
            contested = [one for one, record in zip(every, mine, strict=True) if _has_peers(record)]
            ratios = [one.ratio for one in every if one.counts]
            yield ClassFigure(
                kind,
                accuracy,
                len(every),
                sum(not one.counts for one in every),
                sum(one.seconds is None for one in every),
                geometric_mean(ratios),
                geometric_mean([one for one in ratios if math.isfinite(one.middle)]),
                next(iter(worst_cases(mine, accuracy)), None),
                sum(one.won for one in contested) / len(contested) if contested else None,
            )


def worst_cases(records: Sequence[Record], *accuracies: float) -> list[Comparison]:
    """All comparisons with a peer that got there, the largest ratio first; to all accuracies where none is named."""
    found = [compare(record, accuracy) for record in records for accuracy in accuracies or record["accuracies"]]
    return sorted((one for one in found if one.counts), key=lambda one: -one.ratio.middle)


def choice_figures(records: Sequence[Record]) -> Iterator[tuple[str, float, int, int, Interval]]:
    """Class, accuracy, problems, those where `auto` alone did not get there, and the geometric mean over the others.

    `auto` against the best single solver of ours, on problems where both ran.
    """
    for kind in KINDS:
        mine = [record for record in records if record["kind"] == kind and _several(record)]
        for accuracy in _accuracies(mine):
            found = [one for one in (against_our_best(record, accuracy) for record in mine) if one.counts]
            reached = [one.ratio for one in found if one.seconds is not None]
            if found:
                yield kind, accuracy, len(found), len(found) - len(reached), geometric_mean(reached)


def profile_times(records: Sequence[Record]) -> dict[str, list[float]]:
    """Median times on every problem to every accuracy, by family; inf where it did not get there or did not start.

    Ours is one curve; a family of peers is one, too: its best method on each problem. Problems that no peer has tried
    are left out.
    """
    contested = [record for record in records if _has_peers(record)]
    names = dict.fromkeys(entrant["family"] for record in contested for entrant in _shown(record))
    times: dict[str, list[float]] = {name: [] for name in names}
    for record in contested:
        for accuracy in record["accuracies"]:
            found = dict.fromkeys(names, math.inf)
            for entrant in _shown(record):
                seconds = times_of(entrant, accuracy)
                if seconds:
                    found[entrant["family"]] = min(found[entrant["family"]], float(np.median(seconds)))
            for name in names:
                times[name].append(found[name])
    return times


def _accuracies(records: Sequence[Record]) -> list[float]:
    return sorted({accuracy for record in records for accuracy in record["accuracies"]}, reverse=True)


def _has_peers(record: Record) -> bool:
    return not all(entrant["ours"] for entrant in record["entrants"])


def _several(record: Record) -> bool:
    ours = [entrant["name"] for entrant in record["entrants"] if entrant["ours"]]
    return len(ours) > 1 and ours[0] == "bmrm auto"


def _shown(record: Record) -> list[Mapping[str, Any]]:
    """The one of ours that is timed, and all peers."""
    ours = ours_of(record)
    return [entrant for entrant in record["entrants"] if not entrant["ours"] or entrant is ours]
