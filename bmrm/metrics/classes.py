"""Measures of labels and of the scores behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import metrics as sk

from bmrm.metrics.core import Scored, both_classes, known_labels, measure

_POSITIVE: dict[str, Any] = {"labels": [1], "average": "macro", "zero_division": 0}
"""scikit-learn's way to ask for the positive class alone, whatever other codes there are."""


@measure
def accuracy(s: Scored) -> float:
    """Share of rows predicted right, by weight."""
    return float(sk.accuracy_score(s.y, s.predicted, sample_weight=s.weights))


@measure
def balanced_accuracy(s: Scored) -> float:
    """Mean over the classes that occur of the share of their rows predicted right."""
    weights = np.ones(len(s.y)) if s.weights is None else s.weights
    right = weights * (s.y == s.predicted)
    present = [k for k in np.unique(s.y) if weights[s.y == k].sum() > 0]
    return float(np.mean([right[s.y == k].sum() / weights[s.y == k].sum() for k in present]))


@measure
def f1(s: Scored) -> float:
    """Harmonic mean of precision and recall of the positive class; 0 where neither predicted nor true ones exist."""
    return float(sk.f1_score(s.y, s.predicted, sample_weight=s.weights, **_POSITIVE))


@measure
def macro_f1(s: Scored) -> float:
    """Mean of the F1 of each class that the model knows."""
    labels = np.arange(s.classes)
    return float(
        sk.f1_score(s.y, s.predicted, labels=labels, average="macro", sample_weight=s.weights, zero_division=0)
    )


@measure
def precision(s: Scored) -> float:
    """Share of true positives among the rows predicted positive."""
    return float(sk.precision_score(s.y, s.predicted, sample_weight=s.weights, **_POSITIVE))


@measure
def recall(s: Scored) -> float:
    """Share of the positive rows that are predicted positive."""
    return float(sk.recall_score(s.y, s.predicted, sample_weight=s.weights, **_POSITIVE))


@measure
def auc(s: Scored) -> float | None:
    """Area under the ROC curve: the chance that a positive row scores above a negative one, ties half."""
    if not both_classes(s):
        return None
    return float(sk.roc_auc_score(s.y, s.scores, sample_weight=s.weights))


@measure
def average_precision(s: Scored) -> float | None:
    """Precision averaged over the recall steps of the ranking by score."""
    if not both_classes(s):
        return None
    return float(sk.average_precision_score(s.y, s.scores, sample_weight=s.weights))


@measure
def log_loss(s: Scored) -> float | None:
    """Mean of -log p(true class), with p = 1/(1 + exp(-f)) for two classes, softmax of the scores for more."""
    if not known_labels(s):
        return None
    f = s.scores if s.scores.ndim == 2 else np.column_stack((np.zeros(len(s.scores)), s.scores))
    shifted = f - f.max(axis=1, keepdims=True)
    rows = shifted[np.arange(len(f)), s.y.astype(np.intp)] - np.log(np.exp(shifted).sum(axis=1))
    return float(np.average(-rows, weights=s.weights))


@measure
def f_beta(s: Scored) -> float:
    """Weighted harmonic mean of precision and recall at the loss's `beta`; F1 where it has none."""
    beta = float(s.parameters.get("beta", 1.0))
    return float(sk.fbeta_score(s.y, s.predicted, beta=beta, sample_weight=s.weights, **_POSITIVE))


@measure
def partial_auc(s: Scored) -> float | None:
    """Area under the ROC curve up to the loss's `max_fpr`, standardised by McClish: 0.5 for chance, 1 at best."""
    if not both_classes(s):
        return None
    limit = float(s.parameters.get("max_fpr", 0.1))
    return float(sk.roc_auc_score(s.y, s.scores, sample_weight=s.weights, max_fpr=limit))
