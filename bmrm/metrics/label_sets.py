"""Measures of ranked and predicted sets of labels, and of labels in a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.losses._core.ontology import Tree
from bmrm.metrics.classes import counts_of_classes, ratio
from bmrm.metrics.core import AMOUNT, Scored, known_labels, measure


def _of_rankings(s: Scored, judge: Callable[[_Ranked], NDArray[Any]]) -> float | None:
    """Of the rows with a relevant and an irrelevant label; `y` is (rows, labels), 1 where the row has the label."""
    s = s.present
    count = (s.y > 0.0).sum(axis=1)
    s = s.rows((count > 0) & (count < s.y.shape[1]))
    return s.mean(judge(_Ranked(s))) if len(s.y) else None


class _Ranked:
    """The labels of each row by falling score: which are relevant, how many are ranked as high as each."""

    def __init__(self, s: Scored) -> None:
        order = np.argsort(-s.scores, axis=1, kind="stable")
        f = np.take_along_axis(s.scores, order, 1)
        self.relevant = np.take_along_axis(s.y > 0.0, order, 1)
        labels = f.shape[1]
        ends = np.where(f[:, 1:] != f[:, :-1], np.arange(labels - 1), labels - 1)  # of labels with one score, the last
        last = np.minimum.accumulate(np.column_stack((ends, np.full(len(f), labels - 1)))[:, ::-1], axis=1)[:, ::-1]
        self.ranks = last + 1
        self.relevant_above = np.take_along_axis(self.relevant.cumsum(axis=1), last, 1)

    def over_relevant(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean over the relevant labels of each row."""
        means: NDArray[np.float64] = (values * self.relevant).sum(axis=1) / self.relevant.sum(axis=1)
        return means


@measure("multilabel", source="scikit-learn: label_ranking_average_precision_score")
def label_average_precision(s: Scored) -> float | None:
    """Mean over a row's labels of the share of its labels among those ranked as high; over rows with some, not all."""
    return _of_rankings(s, lambda r: r.over_relevant(r.relevant_above / r.ranks))


@measure("multilabel", source="scikit-learn: label_ranking_loss")
def label_ranking_loss(s: Scored) -> float | None:
    """Share of pairs of a relevant and an irrelevant label ranked wrongly; over rows that have such pairs."""
    return _of_rankings(s, lambda r: r.over_relevant(r.ranks - r.relevant_above) / (~r.relevant).sum(axis=1))


@measure("multilabel", source="scikit-learn: coverage_error", within=AMOUNT)
def label_coverage(s: Scored) -> float | None:
    """How far down its ranking, from 1, one has to go for all labels of a row; over rows with some labels, not all."""
    return _of_rankings(s, lambda r: (r.ranks * r.relevant).max(axis=1))


@measure("multilabel", source="Schapire & Singer 2000")
def one_error(s: Scored) -> float | None:
    """Share of rows whose best-scored label is not theirs; over rows with some labels, not all."""
    return _of_rankings(s, lambda r: ~r.relevant[:, 0])


@measure("multilabel", source="scikit-learn: f1_score, average micro", of="predictions")
def micro_f1(s: Scored) -> float:
    """2 TP / (2 TP + FP + FN), counted over all rows and labels; 0 where no row has or is given a label."""
    true, predicted, both = (counts.sum() for counts in counts_of_classes(s))
    return float(ratio(2.0 * both, true + predicted))


@measure("multilabel", source="scikit-learn: hamming_loss", of="predictions")
def hamming_loss(s: Scored) -> float:
    """Share of the pairs of a row and a label that are predicted wrongly."""
    return s.mean(((s.y > 0) != (s.predicted > 0)).mean(axis=1))


@measure("ontology", source="KDD paper (2007), section 3.2", of="predictions", within=AMOUNT)
def tree_distance(s: Scored) -> float | None:
    """Mean number of edges between true and predicted node; not defined where a label is unknown to the model."""
    if not known_labels(s) or "edges" not in s.parameters:
        return None
    s = s.present
    apart = Tree(s.parameters["edges"], "tree_distance").distances()
    return s.mean(apart[s.y.astype(np.intp), s.predicted.astype(np.intp)])
