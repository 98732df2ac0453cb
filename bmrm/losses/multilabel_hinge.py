"""Multi-label hinge loss: relevant labels above irrelevant ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.label_types import is_whole
from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses._core import domain
from bmrm.losses._core.prepared import Array, PreparedRows, along_by_blocks
from bmrm.losses.base import Labels, RowLoss
from bmrm.problem import InputError, Summary, Targets, Vector
from bmrm.registry import parameter

Relevant = NDArray[np.bool_]
"""(rows, labels): whether the row has the label."""


@fast_jit
def multilabel_hinge_kernel(f, y, weights, slope, averaged):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum."""
    total = 0.0
    labels = f.shape[1]
    for i in range(f.shape[0]):
        weight = weights[i] if weights.size else 1.0
        low, high, relevant = -1, -1, 0
        for k in range(labels):
            slope[i, k] = 0.0
            if y[i, k]:
                relevant += 1
                low = k if low < 0 or f[i, k] < f[i, low] else low
            else:
                high = k if high < 0 or f[i, k] > f[i, high] else high
        if low < 0 or high < 0 or weight == 0.0 or 1.0 + f[i, high] - f[i, low] <= 0.0:
            continue
        if not averaged:
            total += weight * (1.0 + f[i, high] - f[i, low])
            slope[i, high] += weight
            slope[i, low] -= weight
            continue
        share = weight / (float(relevant) * float(labels - relevant))
        for j in range(labels):
            if y[i, j]:
                for k in range(labels):
                    short = 1.0 + f[i, k] - f[i, j]
                    if not y[i, k] and short > 0.0:
                        total += share * short
                        slope[i, k] += share
                        slope[i, j] -= share
    return total


@register("multilabel_hinge", task="multilabel")
@dataclass(frozen=True)
class MultilabelHinge(RowLoss):
    """max over relevant j, irrelevant k of max(0, 1 + f_k - f_j): a row's labels should outscore all others.

    Domain: a set of labels per row, at least two different ones in all. A row with no label, or with all labels, has
    loss 0. `averaged` takes the mean over the pairs (j, k) of the row instead of the largest. Only the order of a row's
    scores is trained, and an intercept shared by all labels has no effect. Which labels are predicted is decided by a
    threshold, a linear function of the row's scores that is fitted to the training rows. At ties the slope takes the
    first labels; kinks at f_j = 1 + f_k, where the pair's slope is 0.
    """

    averaged: bool = parameter(False, doc="mean over the pairs of a row instead of the largest", example=True)

    task: ClassVar[str] = "multilabel"
    formula = "max (or mean) over relevant j, irrelevant k of max(0, 1 + f_k - f_j)"
    source = "Crammer & Singer 2003; averaged: Elisseeff & Weston 2001"
    at_zero = "take a loss of two classes for each label, such as logistic"
    metrics = ("label_average_precision", "label_ranking_loss", "one_error", "label_coverage")
    kernel = staticmethod(multilabel_hinge_kernel)
    along_kernel = staticmethod(along_by_blocks(multilabel_hinge_kernel))

    def summarise(self, targets: Targets) -> Summary:
        """The labels of these rows and how many rows have each."""
        rows = domain.summary_of_rows(targets, self.title)
        sets = domain.label_sets(targets, self.title) if targets.rows else None
        if sets is None:
            return rows
        if targets.weights is not None:
            sets = sets[np.asarray(targets.weights) != 0.0]
        labels = sets.classes()
        counts = sets.counts(labels).tolist()
        whole = is_whole(sets.dtype) and labels.dtype.kind == "f"
        names = (labels.astype(np.int64) if whole else labels).tolist()
        return Summary(rows.rows, rows.weight, tuple(names), tuple(counts), dtype=sets.dtype, form=sets.form)

    def prepare(self, targets: Targets, summary: Summary) -> PreparedRows:
        """Bind to some rows; InputError unless there are at least two labels over all rows."""
        count = len(summary.labels)
        if count < 2:
            found = f"only one label: {domain.listed(summary.labels)}" if count else "no labelled rows"
            raise InputError(f"{self.title}: {found}, expected at least two labels")
        if not targets.rows:
            return self._prepared(targets, np.zeros((0, count), np.bool_), count, summary)
        return self._prepared(targets, self._relevant(targets, summary.labels), count, summary)

    def arguments(self, summary: Summary) -> tuple[Any, ...]:
        """Mean or largest."""
        return (bool(self.averaged),)

    def value(self, f: Array, y: Relevant) -> Array:
        """The loss of each row."""
        short = self._shortfalls(f, y)
        if not self.averaged:
            largest: Array = short.max(axis=(1, 2))
            return largest
        mean: Array = short.sum(axis=(1, 2)) / self._pairs(y)
        return mean

    def slope(self, f: Array, y: Relevant) -> Array:
        """Its slope: 1 at irrelevant labels that violate the margin, -1 at the relevant ones against which they do."""
        short = self._shortfalls(f, y)
        if self.averaged:
            active = (short > 0.0) / self._pairs(y)[:, None, None]
            mean: Array = active.sum(axis=1) - active.sum(axis=2)
            return mean
        slope = np.zeros_like(f)
        rows = np.flatnonzero(short.max(axis=(1, 2)) > 0.0)
        slope[rows, np.where(y, -np.inf, f)[rows].argmax(axis=1)] += 1.0
        slope[rows, np.where(y, f, np.inf)[rows].argmin(axis=1)] -= 1.0
        return slope

    def predict(self, f: Array, labels: Labels, threshold: Array | None = None) -> NDArray[np.bool_]:
        """Whether each row has each label, (rows, labels): where the score is above `threshold`, or 0 without one."""
        above: NDArray[np.bool_] = f > (0.0 if threshold is None else label_thresholds(f, threshold)[:, None])
        return above

    def moments(self, f: Array, targets: Targets, labels: Labels) -> Array:
        """The sums over these rows that `threshold` needs; they add up over chunks and ranks."""
        if not targets.rows:
            return threshold_moments(np.zeros((0, len(labels))), np.zeros((0, len(labels)), np.bool_), None)
        return threshold_moments(f, self._relevant(targets, labels), targets.weights)

    def threshold(self, moments: Array) -> Array:
        """The threshold function of Elisseeff & Weston (2001), fitted to the training rows; (labels + 1,)."""
        return fitted_threshold(moments)

    def measured(self, targets: Targets, labels: Labels, part: str) -> Array:
        """What measures compare predictions with: 1.0 where a row has a label, (rows, labels)."""
        if not targets.rows:
            return np.zeros((0, len(labels)))
        return self._relevant(targets, labels, part).astype(np.float64)

    def _relevant(self, targets: Targets, labels: Labels, part: str = "") -> Relevant:
        sets = domain.label_sets(targets, self.title)
        present = slice(None) if targets.weights is None else np.asarray(targets.weights) != 0.0
        table = np.zeros((targets.rows, len(labels)), np.bool_)
        try:
            table[present] = sets[present].indicator(np.array(labels))
        except InputError as error:
            raise InputError(f"{part + ': ' if part else ''}{self.title}: {error}") from error
        return table

    def _shortfalls(self, f: Array, y: Relevant) -> Array:
        """max(0, 1 + f_k - f_j) at [row, j, k], 0 unless j is relevant and k is not."""
        short = np.maximum(0.0, 1.0 + f[:, None, :] - f[:, :, None])
        return np.where(y[:, :, None] & ~y[:, None, :], short, 0.0)

    def _pairs(self, y: Relevant) -> Array:
        count = y.sum(axis=1)
        pairs: Array = np.maximum(count * (y.shape[1] - count), 1).astype(np.float64)
        return pairs


MOST_LABELS = 1000
"""Labels above which the threshold is one number: its least squares would need a matrix of labels by labels."""
BEYOND = 0.5
"""Distance of the threshold from the best or worst score of a row that has no label, or all."""


def best_thresholds(f: Array, relevant: NDArray[np.bool_]) -> Vector:
    """For each row the threshold with the fewest labels on the wrong side, (rows,); the middle of several.

    How many of its best labels a row has is told by a linear function of its scores, fitted to these by least squares
    (Elisseeff & Weston 2001).
    """
    rows, labels = f.shape
    order = np.argsort(-f, axis=1, kind="stable")
    ranked = np.take_along_axis(f, order, axis=1)
    hits = np.cumsum(np.take_along_axis(relevant, order, axis=1), axis=1)
    taken = np.arange(1, labels + 1)
    wrong = np.concatenate([hits[:, -1:], hits[:, -1:] - hits + (taken - hits)], axis=1)
    cuts = np.concatenate(
        [ranked[:, :1] + BEYOND, 0.5 * (ranked[:, 1:] + ranked[:, :-1]), ranked[:, -1:] - BEYOND], axis=1
    )
    best = wrong == wrong.min(axis=1, keepdims=True)
    middle = (best.cumsum(axis=1) > (best.sum(axis=1, keepdims=True) - 1) // 2).argmax(axis=1)
    chosen: Vector = cuts[np.arange(rows), middle]
    return chosen


def threshold_moments(f: Array, relevant: NDArray[np.bool_], weights: Vector | None) -> Array:
    """The sums of which least squares are made, over rows: (n + 1, n + 1), n = labels + 1 (1 where there are many)."""
    columns = [f] if f.shape[1] <= MOST_LABELS else []
    wanted = best_thresholds(f, relevant) if f.shape[0] else np.zeros(0)
    table = np.column_stack([*columns, np.ones(f.shape[0]), wanted])
    moments: Array = table.T @ (table if weights is None else weights[:, None] * table)
    return moments


def fitted_threshold(moments: Array) -> Vector:
    """The coefficients of the scores, then the constant; the smallest where several do equally well."""
    return np.asarray(np.linalg.lstsq(moments[:-1, :-1], moments[:-1, -1], rcond=1e-10)[0], np.float64)


def label_thresholds(f: Array, threshold: Vector) -> Vector:
    """The threshold of each row, (rows,)."""
    return np.asarray(threshold[-1] + (f @ threshold[:-1] if threshold.size > 1 else np.zeros(f.shape[0])))
