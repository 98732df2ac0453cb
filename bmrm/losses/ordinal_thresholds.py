"""Cut points between neighbouring grades, minimised out: threshold models of ordinal regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import plain
from bmrm.kernels.rankings.cut_points import costs_at_cuts, kinks_between, next_kink
from bmrm.losses import register
from bmrm.losses._core import domain
from bmrm.losses._core.grouping import Rows
from bmrm.losses._core.prepared import NO_WEIGHTS, Array
from bmrm.losses._core.whole_sample import KinkedSample
from bmrm.losses.base import Labels, LossBase
from bmrm.problem import InputError, Summary, Targets, Vector
from bmrm.registry import parameter

SAMPLE = 4096
"""Rows of the sample from which bounds of the best cuts are estimated."""
EVERYWHERE = -np.inf, np.inf


@register("ordinal_thresholds", task="ordinal")
@dataclass(frozen=True)
class OrdinalThresholds(LossBase):
    """min over cut points t of mean over rows of sum_k max(0, 1 - s_ik (f_i - t_k)): grades as intervals of the score.

    t has K - 1 elements; s_ik is 1 where the grade of row i is above the k-th lowest of the K grades, else -1.
    `cuts: all` takes the sum over all cut points: a row pays for each cut point on whose wrong side it lies, that
    is, for the distance in grades, and the best cut points increase with k. `cuts: immediate` takes it over the two
    next to the row's grade only.

    The cut points are minimised out exactly. As t_k increases, the derivative of its hinges increases from minus the
    weight of the rows below it, by the weight of a row at each kink; kinks are at f_i - 1 for rows above and at f_i + 1
    for rows below. The best t_k is the kink where the derivative passes 0, a weighted quantile. It is found without
    sorting all rows: a sample gives bounds, the rows within are sorted, and those outside only counted. Rows with their
    kink at t_k get a common fraction of their slope, so that the slopes of a cut's hinges add up to 0. The result is
    convex in the scores, R(f) = min over t, with that subgradient. Costs O(m K). The model keeps the cut points (the
    middle where an interval is best); a row's predicted grade is the lowest plus the number of cut points below its
    score.

    Domain: at least two grades, finite numbers; all rows of the sample at once. A weight is a number of copies. A
    common shift of the scores is compensated by the cut points, so a free intercept has no meaning.
    """

    cuts: str = parameter(
        "all", doc="the cut points that a row pays for", choices=("all", "immediate"), example="immediate"
    )

    task: ClassVar[str] = "ordinal"
    decomposes: ClassVar[Literal["rows", "groups", "no"]] = "no"
    formula = "min over t of mean over rows of sum_k max(0, 1 - s_ik (f_i - t_k))"
    source = "Shashua & Levin 2002; Rennie & Srebro 2005; Chu & Keerthi 2007"
    at_zero = "take loss ordinal"
    metrics = ("accuracy", "mae", "kendall_tau")
    no_free_intercept = "the cut points are free already"

    def summarise(self, targets: Targets) -> Summary:
        """The grades of these rows and how many have each."""
        domain.grades(targets, self.title)
        return domain.summary_of_labels(targets, self.title)

    def prepare(self, targets: Targets, summary: Summary) -> PreparedCuts:
        """Bind to all rows; InputError unless there are at least two grades, all finite numbers."""
        if len(summary.labels) < 2:
            raise InputError(
                f"{self.title}: only one class: {domain.listed(summary.labels)}, expected two grades or more"
            )
        grades = domain.label_positions(targets, summary.labels, self.title)
        weights = domain.checked_weights(targets, self.title)
        return PreparedCuts(grades, weights, len(summary.labels), self.cuts == "all")

    def predict(self, f: Array, labels: Labels, cut_points: Array | None = None) -> NDArray[Any]:
        """The grade of each score, (rows,)."""
        if cut_points is None:
            raise InputError(f"{self.title}: grades cannot be predicted without the cut points of a trained model")
        return np.array(labels)[np.searchsorted(np.sort(cut_points), f, side="left")]


class PreparedCuts(KinkedSample):
    """The grades of a whole sample, as 0 to K - 1."""

    sample: PreparedCuts | None = None
    """Every so many of the rows, where they are many."""

    def __init__(self, grades: Rows, weights: Vector | None, count: int, all_cuts: bool) -> None:
        self.grades, self.near = grades, not all_cuts
        self.weights = NO_WEIGHTS if weights is None else weights
        self.mass = float(grades.size if weights is None else weights.sum())
        per_grade = np.bincount(grades, weights, count).astype(np.float64)
        self.below = (per_grade if self.near else np.cumsum(per_grade))[:-1]
        """(K - 1,) the weight of the rows that should be below each cut."""
        every = max(1, grades.size // SAMPLE)
        self.sampled = slice(None, None, every)
        if every > 1:
            fewer = None if weights is None else weights[self.sampled].copy()
            self.sample = PreparedCuts(grades[self.sampled].copy(), fewer, count, all_cuts)

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum over rows at scores `f` and the best cut points, and its slope, a new array like `f`."""
        f = plain(f)
        slope = np.empty_like(f)
        total = costs_at_cuts(f, self.grades, self.weights, *self._best_cuts(f), self.near, slope)
        return float(total), slope

    def learned(self, f: Array) -> dict[str, Array]:
        """The best cut points at scores `f`, (K - 1,); the middle if an interval is best."""
        f = plain(f)
        cuts, parts = self._best_cuts(f)
        for k in np.flatnonzero(parts == 1.0):
            # The derivative is 0 behind the kink: every place up to the next one is as good.
            following = next_kink(f, self.grades, self.weights, k, self.near, cuts[k])
            cuts[k] = 0.5 * (cuts[k] + following) if following < np.inf else cuts[k]
        return {"cut_points": cuts}

    def _best_cuts(self, f: Array) -> tuple[Array, Array]:
        """For each cut the kink at which it is best, and the active fraction of the rows above it with that kink."""
        cuts, parts = np.zeros(self.below.size), np.zeros(self.below.size)
        room = np.empty(f.size + 1), np.empty(self.weights.size + 1 if self.weights.size else 0)
        few = f[self.sampled].copy()
        for k, below in enumerate(self.below):
            likely = EVERYWHERE if self.sample is None else self.sample.bounds(few, k, room)
            for bounds in (likely, EVERYWHERE):
                lower, kinks, masses = self._kinks(f, k, bounds, room)
                cuts[k], before, here = weighted_quantile(kinks, masses, below - lower)
                if before < below - lower <= before + here:
                    break
            parts[k] = min(1.0, max(0.0, (below - lower - before) / here)) if here > 0.0 else 0.0
        return cuts, parts

    def bounds(self, f: Array, cut: int, room: tuple[Array, Array]) -> tuple[float, float]:
        """Bounds that very likely contain the best place of a cut, from a sample with these rows."""
        _, kinks, masses = self._kinks(f, cut, EVERYWHERE, room)
        values, ranks = rising(kinks, masses)
        at, radius = int(np.searchsorted(ranks, self.below[cut])), 2 * math.isqrt(f.size)
        low, high = at - radius, at + radius
        return (values[low] if low >= 0 else -np.inf), (values[high] if high < values.size else np.inf)

    def _kinks(
        self, f: Array, cut: int, bounds: tuple[float, float], room: tuple[Array, Array]
    ) -> tuple[float, Array, Array]:
        """The weight of the kinks of a cut below the bounds; those within, and their weights, in `room`."""
        lower, count = kinks_between(f, self.grades, self.weights, cut, self.near, *bounds, *room)
        return lower, room[0][:count], room[1][:count]


def rising(values: Array, masses: Array) -> tuple[Array, Array]:
    """The sorted values, and the sums of their masses up to each of them; no masses: all are 1."""
    if not masses.size:
        return np.sort(values), np.arange(1.0, values.size + 1.0)
    order = np.argsort(values)
    return values[order], np.cumsum(masses[order])


def weighted_quantile(values: Array, masses: Array, wanted: float) -> tuple[float, float, float]:
    """The lowest value up to which the masses add up to `wanted`, the mass below it, and the mass at it."""
    if not values.size:
        return 0.0, 0.0, 0.0
    if masses.size:
        ordered, sums = rising(values, masses)
        value = ordered[min(int(np.searchsorted(sums, wanted)), values.size - 1)]
        return float(value), float(masses[values < value].sum()), float(masses[values == value].sum())
    place = min(max(math.ceil(wanted) - 1, 0), values.size - 1)
    value = np.partition(values, place)[place]
    return float(value), float(np.count_nonzero(values < value)), float(np.count_nonzero(values == value))
