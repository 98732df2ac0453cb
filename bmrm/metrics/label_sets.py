"""Measures of ranked sets of labels, and of labels in a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from bmrm.losses._core.ontology import Tree
from bmrm.metrics.core import Scored, known_labels, measure
from bmrm.problem import Vector


def _with_pairs(s: Scored) -> Scored:
    """The rows that have a relevant and an irrelevant label; `y` is (rows, labels), 1 where the row has the label."""
    keep = (s.y > 0.0).any(axis=1) & (s.y <= 0.0).any(axis=1)
    weights = None if s.weights is None else s.weights[keep]
    return Scored(s.y[keep], s.scores[keep], s.predicted[keep], weights, s.classes, s.parameters)


def _of_rankings(s: Scored, judge: Callable[..., float]) -> float | None:
    s = _with_pairs(s)
    if not len(s.y) or (s.weights is not None and not s.weights.any()):
        return None
    return float(judge(s.y.astype(np.int64), s.scores, sample_weight=s.weights))


@measure
def label_average_precision(s: Scored) -> float | None:
    """Mean over a row's labels of the share of its labels among those ranked as high; over rows with some, not all."""
    return _of_rankings(s, sk.label_ranking_average_precision_score)


@measure
def label_ranking_loss(s: Scored) -> float | None:
    """Share of pairs of a relevant and an irrelevant label ranked wrongly; over rows that have such pairs."""
    return _of_rankings(s, sk.label_ranking_loss)


@measure
def label_coverage(s: Scored) -> float | None:
    """How far down its ranking, from 1, one has to go for all labels of a row; over rows with some labels, not all."""
    return _of_rankings(s, sk.coverage_error)


@measure
def one_error(s: Scored) -> float | None:
    """Share of rows whose best-scored label is not theirs; over rows with some labels, not all."""

    def judge(y: NDArray[Any], scores: NDArray[np.float64], sample_weight: Vector | None) -> float:
        return float(np.average(y[np.arange(len(y)), scores.argmax(axis=1)] == 0, weights=sample_weight))

    return _of_rankings(s, judge)


@measure
def tree_distance(s: Scored) -> float | None:
    """Mean number of edges between true and predicted node; not defined where a label is unknown to the model."""
    if not known_labels(s):
        return None
    apart = Tree(s.parameters["edges"], "tree_distance").distances()
    return float(np.average(apart[s.y.astype(np.intp), s.predicted.astype(np.intp)], weights=s.weights))
