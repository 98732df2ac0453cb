"""Positive and negative rows above each threshold of a score: of ROC curve, precision and recall, and their areas.

These are judged in every run with two classes: they do not wait for scikit-learn, whose import takes longer than a
small problem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.metrics.core import Scored
from bmrm.problem import Vector


@dataclass(frozen=True, eq=False)
class Above:
    """Weights of the rows whose scores are at least as large as each of the distinct scores, largest first; 0 first.

    Attributes
    ----------
    positive, negative : (distinct scores + 1,).
    """

    positive: Vector
    negative: Vector

    @classmethod
    def of(cls, scored: Scored) -> Above:
        """Of the rows of weight above 0, label 1 positive; scores must be finite."""
        s = scored.present
        order = np.argsort(-s.scores, kind="stable")
        scores, positive = s.scores[order], (s.y[order] == 1).astype(np.float64)
        weights = np.ones(len(scores)) if s.weights is None else np.asarray(s.weights, np.float64)[order]
        last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
        of_positive, of_negative = (np.cumsum(weights * rows)[last] for rows in (positive, 1.0 - positive))
        return cls(np.append(0.0, of_positive), np.append(0.0, of_negative))

    @property
    def rates(self) -> tuple[Vector, Vector]:
        """Shares of the negative and of the positive rows."""
        return self.negative / self.negative[-1], self.positive / self.positive[-1]

    @property
    def precision_recall(self) -> tuple[Vector, Vector]:
        """Precision and recall, from all rows up to the largest score, and (1, 0) at the end."""
        precision = self.positive[1:] / (self.positive[1:] + self.negative[1:])
        return np.append(precision[::-1], 1.0), self.rates[1][::-1]

    @property
    def area(self) -> float:
        """Under the ROC curve: the chance that a positive row is above a negative one, ties half."""
        fpr, tpr = self.rates
        return float((np.diff(fpr) * (tpr[1:] + tpr[:-1])).sum() / 2.0)

    @property
    def average_precision(self) -> float:
        """Sum of precisions, each times the recall gained there."""
        precision, recall = self.precision_recall
        return float((-np.diff(recall) * precision[:-1]).sum())
