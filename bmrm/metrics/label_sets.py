"""Measures of ranked and predicted sets of labels, and of labels in a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from bmrm.losses._core.ontology import Tree
from bmrm.metrics.core import AMOUNT, Scored, known_labels, measure
from bmrm.problem import Vector


def _of_rankings(s: Scored, judge: Callable[..., float]) -> float | None:
    """Of the rows with a relevant and an irrelevant label; `y` is (rows, labels), 1 where the row has the label."""
    s = s.present
    relevant = (s.y > 0.0).sum(axis=1)
    s = s.rows((relevant > 0) & (relevant < s.y.shape[1]))
    return float(judge(s.y.astype(np.int64), s.scores, sample_weight=s.weights)) if len(s.y) else None


@measure("multilabel", source="scikit-learn: label_ranking_average_precision_score")
def label_average_precision(s: Scored) -> float | None:
    """Mean over a row's labels of the share of its labels among those ranked as high; over rows with some, not all."""
    return _of_rankings(s, sk.label_ranking_average_precision_score)


@measure("multilabel", source="scikit-learn: label_ranking_loss")
def label_ranking_loss(s: Scored) -> float | None:
    """Share of pairs of a relevant and an irrelevant label ranked wrongly; over rows that have such pairs."""
    return _of_rankings(s, sk.label_ranking_loss)


@measure("multilabel", source="scikit-learn: coverage_error", within=AMOUNT)
def label_coverage(s: Scored) -> float | None:
    """How far down its ranking, from 1, one has to go for all labels of a row; over rows with some labels, not all."""
    return _of_rankings(s, sk.coverage_error)


@measure("multilabel", source="Schapire & Singer 2000")
def one_error(s: Scored) -> float | None:
    """Share of rows whose best-scored label is not theirs; over rows with some labels, not all."""

    def judge(y: NDArray[Any], scores: NDArray[np.float64], sample_weight: Vector | None) -> float:
        return float(np.average(y[np.arange(len(y)), scores.argmax(axis=1)] == 0, weights=sample_weight))

    return _of_rankings(s, judge)


@measure("multilabel", source="scikit-learn: f1_score, average micro", of="predictions")
def micro_f1(s: Scored) -> float:
    """2 TP / (2 TP + FP + FN), counted over all rows and labels; 0 where no row has or is given a label."""
    how: dict[str, Any] = {"average": "micro", "zero_division": 0, "sample_weight": s.weights}
    return float(sk.f1_score(s.y.astype(np.int64), s.predicted.astype(np.int64), **how))


@measure("multilabel", source="scikit-learn: hamming_loss", of="predictions")
def hamming_loss(s: Scored) -> float:
    """Share of the pairs of a row and a label that are predicted wrongly."""
    return float(sk.hamming_loss(s.y.astype(np.int64), s.predicted.astype(np.int64), sample_weight=s.weights))


@measure("ontology", source="KDD paper (2007), section 3.2", of="predictions", within=AMOUNT)
def tree_distance(s: Scored) -> float | None:
    """Mean number of edges between true and predicted node; not defined where a label is unknown to the model."""
    if not known_labels(s) or "edges" not in s.parameters:
        return None
    s = s.present
    apart = Tree(s.parameters["edges"], "tree_distance").distances()
    return float(np.average(apart[s.y.astype(np.intp), s.predicted.astype(np.intp)], weights=s.weights))
