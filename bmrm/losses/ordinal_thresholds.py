"""Cut points between neighbouring grades, minimised out: threshold models of ordinal regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import jit
from bmrm.kernels.sorting import ascending
from bmrm.kernels.vectors import dot, plain
from bmrm.losses import domain, register
from bmrm.losses.base import Labels, LossBase
from bmrm.losses.grouping import Rows
from bmrm.losses.prepared import Array, Curve, along_by_slopes
from bmrm.problem import InputError, Summary, Targets, Vector
from bmrm.registry import parameter


@jit
def profile_cut(values, side, weights, slope):  # type: ignore[no-untyped-def]
    """Add to `slope` that of the hinges of one cut point at its best place; return constant part, least, largest place.

    The rows of `side` 1 should be above the cut by 1 and cost max(0, 1 - f + cut), those of -1 below it; 0 does not
    count. `values` rise. As the cut rises, its derivative grows from minus the weight of the lower rows, by the weight
    of a row at each kink, f - 1 or f + 1: the best cut is where it passes 0. There the slopes of the rows add up to 0,
    and the sum of hinges is that of the active weights plus <slope, f>. Rows with their kink at the cut are active in
    part, all of them in the same part.
    """
    n = values.size
    left = 0.0
    for i in range(n):
        if side[i] < 0:
            left += weights[i]
    cut, high, low = 0.0, 0, 0
    before, here = 0.0, 0.0
    while True:
        while high < n and side[high] <= 0:
            high += 1
        while low < n and side[low] >= 0:
            low += 1
        if high == n and low == n:
            break
        cut = min(values[high] - 1.0 if high < n else np.inf, values[low] + 1.0 if low < n else np.inf)
        here = 0.0
        while high < n and (side[high] <= 0 or values[high] - 1.0 == cut):
            here += weights[high] if side[high] > 0 else 0.0
            high += 1
        while low < n and (side[low] >= 0 or values[low] + 1.0 == cut):
            here += weights[low] if side[low] < 0 else 0.0
            low += 1
        if before + here >= left:
            break
        before += here
    part = min(1.0, max(0.0, (left - before) / here)) if here > 0.0 else 0.0
    active, following = 0.0, np.inf
    for i in range(n):
        if side[i] > 0:
            kink = values[i] - 1.0
            share = weights[i] * (1.0 if kink < cut else part if kink == cut else 0.0)
            slope[i] -= share
        elif side[i] < 0:
            kink = values[i] + 1.0
            share = weights[i] * (1.0 if kink > cut else 1.0 - part if kink == cut else 0.0)
            slope[i] += share
        else:
            continue
        active += share
        if kink > cut and weights[i] > 0.0:
            following = min(following, kink)
    # Where the derivative is 0 behind the kink, every place up to the next one is as good.
    return active, cut, following if part == 1.0 and following < np.inf else cut


@register("ordinal_thresholds", task="ordinal")
@dataclass(frozen=True)
class OrdinalThresholds(LossBase):
    """min over cut points t_1, ..., t_{K-1} of mean over rows of sum_k max(0, 1 - s_ik (f_i - t_k)).

    s_ik is 1 where the grade of row i is above the k-th lowest of the K grades, else -1. `cuts: all` takes the sum over
    all cut points: a row pays for each one on the wrong side of which it lies, so for the distance in grades, and the
    best cut points rise with k. `cuts: immediate` takes it over the two next to the row's grade only.

    The cut points are minimised out exactly: each is a one-dimensional problem whose kinks are sorted scores. What is
    left is convex in the scores, R(f) = min over t, and has a subgradient whose sum is 0. Costs one sort and O(m K).
    The model keeps the cut points (the middle where an interval is best); a row's predicted grade is the lowest plus
    the number of cut points below its score.

    Domain: at least two grades, finite numbers; all rows of the sample at once. A weight is a number of copies. A
    common shift of the scores moves the cut points and changes nothing, so a free intercept has no meaning.
    """

    cuts: str = parameter(
        "all", doc="the cut points that a row pays for", choices=("all", "immediate"), example="immediate"
    )

    task: ClassVar[str] = "ordinal"
    decomposes: ClassVar[Literal["rows", "groups", "no"]] = "no"
    formula = "min over t of mean over rows of sum_k max(0, 1 - s_ik (f_i - t_k))"
    source = "Shashua & Levin 2002; Rennie & Srebro 2005; Chu & Keerthi 2007"
    metrics = ("accuracy", "mae", "kendall_tau")
    no_free_intercept = "the cut points are free already"

    def summarise(self, targets: Targets) -> Summary:
        """The grades of these rows and how many have each."""
        domain.numbers(targets, self.title)
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


class PreparedCuts:
    """The grades of a whole sample, as 0 to K - 1."""

    scores_per_row = 1
    extra_dim = 0
    infimum = 0.0
    smooth = False

    def __init__(self, grades: Rows, weights: Vector | None, count: int, all_cuts: bool) -> None:
        self.grades, self.count, self.all_cuts = grades, count, all_cuts
        self.weights = np.ones(grades.size) if weights is None else weights
        self.mass = float(self.weights.sum())

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum over rows at scores `f` and the best cut points, and its slope, a new array like `f`."""
        active, slope, _ = self._profiled(plain(f))
        return max(active + dot(slope, f - np.median(f)), 0.0) if f.size else 0.0, slope

    def along(self, f: Array, step: Array) -> Curve:
        """The function t -> (the sum at f + t step, its derivative in t), for a vector of t."""
        return along_by_slopes(self.value_and_slope, f, step)

    def learned(self, f: Array) -> dict[str, Array]:
        """The cut points, (K - 1,), that are best at scores `f`."""
        return {"cut_points": self._profiled(plain(f))[2]}

    def _profiled(self, f: Array) -> tuple[float, Array, Array]:
        order, values = ascending(f)
        grades, weights = self.grades[order], self.weights[order]
        slope, cuts, total = np.zeros(values.size), np.zeros(self.count - 1), 0.0
        for k in range(self.count - 1):
            side = np.where(grades > k, 1, -1)
            if not self.all_cuts:
                side[(grades != k) & (grades != k + 1)] = 0
            active, least, most = profile_cut(values, side, weights, slope)
            total += active
            cuts[k] = 0.5 * (least + most)
        out = np.empty_like(slope)
        out[order] = slope
        return total, out, cuts
