"""How well scores predict targets: measures by name, over scikit-learn's. Losses name those that suit them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from bmrm.problem import InputError, Vector
from bmrm.registry import nearest


@dataclass(frozen=True, eq=False)
class Scored:
    """Some rows with a model's verdict on them.

    Attributes
    ----------
    y : (rows,) or (rows, outputs) numbers; for tasks with classes their codes 0..K-1 (of two, 1 is positive), and K
        for a label that the model does not know, which counts as an error.
    scores : (rows,) or (rows, K).
    predicted : like `y`.
    weights : (rows,) or None.
    classes : K, or 0 for tasks without classes.
    parameters : of the loss, by field name.
    """

    y: NDArray[Any]
    scores: NDArray[np.float64]
    predicted: NDArray[Any]
    weights: Vector | None
    classes: int
    parameters: Mapping[str, Any]


Measure = Callable[[Scored], float | None]
MEASURES: dict[str, Measure] = {}


def measure(function: Measure) -> Measure:
    """Make a measure known under its name."""
    MEASURES[function.__name__] = function
    return function


def evaluate(names: Iterable[str], scored: Scored) -> dict[str, float | None]:
    """The measures `names`; None where a measure is not defined (ROC area with one class only)."""
    table: dict[str, float | None] = {}
    for name in names:
        if name not in MEASURES:
            raise InputError(f"unknown metric {name!r}{nearest(name, MEASURES)}")
        value = MEASURES[name](scored) if len(scored.y) else None
        table[name] = None if value is None or not np.isfinite(value) else float(value)
    return table


def _both_classes(s: Scored) -> bool:
    """Whether there are positive and negative rows of weight > 0."""
    y = s.y if s.weights is None else s.y[s.weights > 0]
    return bool(np.any(y == 1) and np.any(y == 0))


def _known(s: Scored) -> bool:
    return bool(np.all(s.y < s.classes))


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
    if not _both_classes(s):
        return None
    return float(sk.roc_auc_score(s.y, s.scores, sample_weight=s.weights))


@measure
def average_precision(s: Scored) -> float | None:
    """Precision averaged over the recall steps of the ranking by score."""
    if not _both_classes(s):
        return None
    return float(sk.average_precision_score(s.y, s.scores, sample_weight=s.weights))


@measure
def log_loss(s: Scored) -> float | None:
    """Mean of -log p(true class), with p = 1/(1 + exp(-f)) for two classes, softmax of the scores for more."""
    if not _known(s):
        return None
    f = s.scores if s.scores.ndim == 2 else np.column_stack((np.zeros(len(s.scores)), s.scores))
    shifted = f - f.max(axis=1, keepdims=True)
    rows = shifted[np.arange(len(f)), s.y.astype(np.intp)] - np.log(np.exp(shifted).sum(axis=1))
    return float(np.average(-rows, weights=s.weights))


@measure
def r2(s: Scored) -> float | None:
    """1 - squared error / squared deviation from the mean; not defined for fewer than two rows."""
    if len(s.y) < 2:
        return None
    return float(sk.r2_score(s.y, s.predicted, sample_weight=s.weights))


@measure
def mae(s: Scored) -> float:
    """Mean of |y - prediction|."""
    return float(sk.mean_absolute_error(s.y, s.predicted, sample_weight=s.weights))


@measure
def mse(s: Scored) -> float:
    """Mean of (y - prediction)^2."""
    return float(sk.mean_squared_error(s.y, s.predicted, sample_weight=s.weights))


@measure
def rmse(s: Scored) -> float:
    """Root of the mean of (y - prediction)^2."""
    return float(np.sqrt(sk.mean_squared_error(s.y, s.predicted, sample_weight=s.weights)))


@measure
def pinball(s: Scored) -> float:
    """Mean pinball loss at the loss's `tau`, at the median where it has none."""
    alpha = float(s.parameters.get("tau", 0.5))
    return float(sk.mean_pinball_loss(s.y, s.predicted, alpha=alpha, sample_weight=s.weights))


@measure
def coverage(s: Scored) -> float:
    """Share of rows at or below their prediction: near `tau` for a good quantile model."""
    return float(np.average(s.y <= s.predicted, weights=s.weights))
