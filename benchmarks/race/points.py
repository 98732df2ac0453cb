"""What cost most where nobody had tuned: shapes of data on which `auto` once was slow, and the problems that have them.

`then` is our time over that of the best peer when the point was noted, at commit f6681da, on a data set of that shape
that this repository does not have.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.race.statistics import geometric_mean
from benchmarks.race.summary import Record, compare
from benchmarks.race.tables import table

TO = (1e-3, 1e-6)


@dataclass(frozen=True)
class Point:
    """A shape, what was measured then, and patterns of the names of problems of that shape."""

    shape: str
    then: str
    problems: tuple[str, ...]


POINTS = (
    Point(
        "small: 4,600 x 57",
        "hinge 3.4, to 1e-6 4.5; ridge 3.2",
        ("hinge small*", "logistic small l2*", "least_squares small-regression l2*"),
    ),
    Point(
        "more features than rows: 38 x 7,129",
        "logistic 15.5, to 1e-6 21; squared hinge 118 and 76",
        ("* genes l2*", "least_squares genes-regression l2*"),
    ),
    Point("short texts, hinges", "squared hinge at a small lambda 7", ("*hinge short-texts l2*",)),
    Point("texts, logistic", "3.8, long ones 2.2", ("logistic short-texts l2*", "logistic long-texts l2*")),
    Point(
        "L1 logistic on texts",
        "3.3 and 7.6; to 1e-6 not in 20 s",
        ("logistic short-texts l1*", "logistic long-texts l1*"),
    ),
    Point(
        "lasso and elastic net in few features",
        "4.1",
        ("least_squares small-regression l1*", "least_squares heavy-tails-regression l1*", "least_squares fried l1*"),
    ),
    Point(
        "classes in few features",
        "softmax 3.3, multiclass hinge 2.4",
        ("softmax *-classes *", "multiclass_hinge *-classes *"),
    ),
    Point("dense noise, hinge", "1.7", ("hinge noise l2*",)),
    Point("squared hinge on farm-ads, lambda 1e-6", "17", ("squared_hinge farm-ads l2=1e-06",)),
    Point("softmax on covtype", "3.1", ("softmax covtype *",)),
    Point("L1 logistic on w8a", "-", ("logistic w8a l1*",)),
    Point("multiclass hinge on usps", "-", ("multiclass_hinge usps *",)),
)


def points(records: Sequence[Record]) -> str:
    """A line for each shape: then, and now to both accuracies."""
    rows = [
        [point.shape, point.then, *(_now(_of(point, records), accuracy) for accuracy in TO)]
        for point in POINTS
        if _of(point, records)
    ]
    return table(("shape", "ratio then", "now, to 0.001", "now, to 1e-06"), rows)


def _of(point: Point, records: Sequence[Record]) -> list[Record]:
    return [one for one in records if any(fnmatch.fnmatchcase(one["name"], pattern) for pattern in point.problems)]


def _now(records: Sequence[Record], accuracy: float) -> str:
    """Geometric mean where both got there, the worst of them, and how often either did not."""
    compared = [compare(record, accuracy) for record in records]
    ratios = [one.ratio for one in compared if one.counts and math.isfinite(one.ratio.middle)]
    failed = sum(one.counts and one.seconds is None for one in compared)
    alone = sum(not one.counts for one in compared)
    notes = [f"worst {max(one.middle for one in ratios):.3g}"] if len(ratios) > 1 else []
    notes += [f"{failed} not reached"] if failed else []
    notes += [f"{alone} without a peer"] if alone else []
    mean = f"{geometric_mean(ratios).middle:.2f}" if ratios else "-"
    return f"{mean} ({', '.join(notes)})" if notes else mean
