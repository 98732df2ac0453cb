"""From the records of a race to figures: ours against the best peer, class by class; our solvers among themselves."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.race.statistics import Interval, Vector, geometric_mean, ratio, ratio_draws
from benchmarks.race.targets import KINDS

Record = Mapping[str, Any]
"""Of one problem, as `contest.hold` returns it."""


@dataclass(frozen=True)
class Comparison:
    """Ours against one other entrant on one problem to one accuracy.

    `seconds` and `other_seconds` are medians, None where the accuracy was not reached; `ratio` is ours over the
    other's, nan where the other never got there and inf where we did not; `draws` are of its bootstrap.
    """

    problem: str
    kind: str
    accuracy: float
    seconds: float | None
    other: str
    other_seconds: float | None
    ratio: Interval
    draws: Vector | None

    @property
    def counts(self) -> bool:
        """Whether there is a ratio: somebody else got there."""
        return self.other_seconds is not None


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
    return _compared(record, ours_of(record), best_of(peers, accuracy), accuracy)


def against_our_best(record: Record, accuracy: float) -> Comparison:
    """`auto` against the best single solver of ours."""
    auto, *single = [entrant for entrant in record["entrants"] if entrant["ours"]]
    return _compared(record, auto, best_of(single, accuracy), accuracy)


def _compared(record: Record, ours: Mapping[str, Any], other: Mapping[str, Any] | None, accuracy: float) -> Comparison:
    mine = times_of(ours, accuracy)
    theirs = None if other is None else times_of(other, accuracy)
    found, draws = Interval(math.nan, math.nan, math.nan), None
    if theirs and not mine:
        found = Interval(math.inf, math.inf, math.inf)
    elif theirs and mine:
        seed = zlib.crc32(f"{record['name']} {accuracy:g}".encode())
        together = not (other or {}).get("earlier", False)
        found, draws = ratio(mine, theirs, seed, together), ratio_draws(mine, theirs, seed, together)
    return Comparison(
        record["name"],
        record["kind"],
        accuracy,
        float(np.median(mine)) if mine else None,
        "" if other is None else other["name"],
        float(np.median(theirs)) if theirs else None,
        found,
        draws,
    )


@dataclass(frozen=True)
class ClassFigure:
    """A class at one accuracy: geometric mean and worst case of ours over the best peer's time, and the targets.

    A target is met where the upper end of the 90 % interval is not above it. `alone` counts problems on which no
    peer got to the accuracy: they have no ratio; `failed` those on which we did not.
    """

    kind: str
    accuracy: float
    problems: int
    alone: int
    failed: int
    mean: Interval
    worst: Interval
    worst_problem: str

    @property
    def mean_target(self) -> float | None:
        return KINDS[self.kind].of(self.accuracy)[0]

    @property
    def worst_target(self) -> float | None:
        return KINDS[self.kind].of(self.accuracy)[1]

    @property
    def met(self) -> str:
        """ "yes", "no", or empty where there is no target or nothing to compare."""
        if self.failed:
            return "no"
        pairs = ((self.mean, self.mean_target), (self.worst, self.worst_target))
        known = [(one, most) for one, most in pairs if most is not None and not math.isnan(one.middle)]
        if not known:
            return ""
        return "yes" if all(one.high <= most for one, most in known) else "no"


def class_figures(records: Sequence[Record]) -> Iterator[ClassFigure]:
    """For every class that has problems, and every accuracy."""
    for kind in KINDS:
        mine = [record for record in records if record["kind"] == kind]
        accuracies = sorted({accuracy for record in mine for accuracy in record["accuracies"]}, reverse=True)
        for accuracy in accuracies:
            every = [compare(record, accuracy) for record in mine]
            counted = [one for one in every if one.counts]
            ratios = [one.ratio.middle for one in counted]
            mean = geometric_mean(ratios, [one.draws for one in counted if one.draws is not None])
            worst = max(counted, key=lambda one: one.ratio.high, default=None)
            yield ClassFigure(
                kind,
                accuracy,
                len(every),
                sum(not one.counts for one in every),
                sum(one.seconds is None for one in every),
                mean,
                Interval(math.nan, math.nan, math.nan) if worst is None else worst.ratio,
                "" if worst is None else worst.problem,
            )


def profile_times(records: Sequence[Record]) -> dict[str, list[float]]:
    """Median times on every problem to every accuracy, by family; inf where it did not get there or did not start.

    Problems that no peer has tried are left out.
    """
    names = dict.fromkeys(
        _label(entrant) for record in records for entrant in record["entrants"] if _shown(entrant, record)
    )
    times: dict[str, list[float]] = {name: [] for name in names}
    for record in records:
        if all(entrant["ours"] for entrant in record["entrants"]):
            continue
        for accuracy in record["accuracies"]:
            found = dict.fromkeys(names, math.inf)
            for entrant in record["entrants"]:
                seconds = times_of(entrant, accuracy)
                if seconds and _shown(entrant, record):
                    name = _label(entrant)
                    found[name] = min(found[name], float(np.median(seconds)))
            for name in names:
                times[name].append(found[name])
    return times


def _label(entrant: Mapping[str, Any]) -> str:
    """Ours is one curve; a family of peers is one, too: its best method on each problem."""
    return str(entrant["family"])


def _shown(entrant: Mapping[str, Any], record: Record) -> bool:
    return not entrant["ours"] or entrant is ours_of(record)
