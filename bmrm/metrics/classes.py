"""Measures of labels and of the scores behind them, of ranked and predicted sets of labels, and of labels in a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.losses._core.ontology import Tree
from bmrm.metrics.core import AMOUNT, CORRELATION, Number, ScoredRows, both_classes, known_labels, measure
from bmrm.problem import Vector
from bmrm.registry import Range

_ONE_LABEL = ("binary", "multiclass", "ontology", "ordinal")
_BETA = Number("beta", Range(above=0.0, doc="weight of recall against precision"), 1.0)
_MAX_FPR = Number("max_fpr", Range(above=0.0, most=1.0, doc="largest false positive rate"), 0.1)
_TOP = Number("k", Range(least=1, doc="classes of largest score"), 5, whole=True, of_loss=False)


@measure(*_ONE_LABEL, "multilabel", source="scikit-learn: accuracy_score", of="predictions")
def accuracy(s: ScoredRows) -> float:
    """Share of rows predicted right, sum of s_i [prediction = y_i] / sum of s_i; of sets of labels, all of them."""
    right = s.y == s.predicted
    return s.mean(right if right.ndim == 1 else right.all(axis=1))


@measure(*_ONE_LABEL, source="scikit-learn: balanced_accuracy_score", of="predictions")
def balanced_accuracy(s: ScoredRows) -> float:
    """Mean over the classes that occur of the share of their rows predicted right."""
    mass, _, right = counts_of_classes(s)
    return float(np.mean(right[mass > 0.0] / mass[mass > 0.0]))


@measure("binary", source="scikit-learn: f1_score", of="predictions")
def f1(s: ScoredRows) -> float:
    """2 TP / (2 TP + FP + FN) of the positive class; 0 where neither predicted nor true ones exist."""
    true, predicted, both = counts_of_classes(s)
    return float(ratio(2.0 * both, true + predicted)[1])


@measure(*_ONE_LABEL, "multilabel", "sequence", source="scikit-learn: f1_score, average macro", of="predictions")
def macro_f1(s: ScoredRows) -> float:
    """Mean of the F1 of each class or label that the model knows; 0 for one that is neither true nor predicted."""
    true, predicted, both = (counts[: s.classes] for counts in counts_of_classes(s))
    return float(np.mean(ratio(2.0 * both, true + predicted)))


@measure("binary", source="scikit-learn: precision_score", of="predictions")
def precision(s: ScoredRows) -> float:
    """TP / (TP + FP): share of true positives among the rows predicted positive; 0 where there are none."""
    _, predicted, both = counts_of_classes(s)
    return float(ratio(both, predicted)[1])


@measure("binary", source="scikit-learn: recall_score", of="predictions")
def recall(s: ScoredRows) -> float:
    """TP / (TP + FN): share of the positive rows that are predicted positive; 0 where there are none."""
    true, _, both = counts_of_classes(s)
    return float(ratio(both, true)[1])


@measure("binary", source="scikit-learn: roc_auc_score; Komarek 2004, section 5.1.4")
def auc(s: ScoredRows) -> float | None:
    """Area under the ROC curve: the chance that a positive row scores above a negative one, ties half."""
    if not both_classes(s):
        return None
    false, true = s.above
    below = np.diff(false, prepend=0.0) @ (true + np.append(0.0, true[:-1]))
    return min(1.0, float(below / (2.0 * false[-1] * true[-1])))


@measure("binary", source="scikit-learn: average_precision_score")
def average_precision(s: ScoredRows) -> float | None:
    """Sum over n of (R_n - R_{n-1}) P_n: precision and recall of the rows down to the n-th highest score."""
    if not both_classes(s):
        return None
    false, true = s.above
    return min(1.0, float(np.diff(true, prepend=0.0) @ (true / (false + true)) / true[-1]))


@measure("binary", "multiclass", source="scikit-learn: log_loss, of these p", within=AMOUNT)
def log_loss(s: ScoredRows) -> float | None:
    """Mean of -log p(true class), p = 1/(1 + exp(-f)) for two classes, softmax of the scores for more.

    Of a model that is calibrated p is what it says; not defined where that is 0.
    """
    if not known_labels(s):
        return None
    s = s.present
    if s.probabilities is not None:
        true = s.probabilities[np.arange(len(s.y)), s.y.astype(np.intp)]
        return s.mean(-np.log(true)) if true.all() else None
    if s.scores.ndim == 1:
        wrong = np.where(s.y == 1, -s.scores, s.scores)
        return s.mean(np.maximum(wrong, 0.0) + np.log1p(np.exp(-np.abs(wrong))))
    shifted = s.scores - s.scores.max(axis=1, keepdims=True)
    true = shifted[np.arange(len(shifted)), s.y.astype(np.intp)]
    return s.mean(np.log(np.exp(shifted, out=shifted).sum(axis=1)) - true)


@measure("binary", source="scikit-learn: brier_score_loss, of these p", wanted="least")
def brier(s: ScoredRows) -> float | None:
    """Mean of (p - y)^2, y 0 or 1 and p = 1/(1 + exp(-f)), of a model that is calibrated what it says."""
    p = 0.5 * (1.0 + np.tanh(0.5 * s.scores)) if s.probabilities is None else s.probabilities[:, 1]
    return s.mean((p - s.y) ** 2) if known_labels(s) else None


@measure(
    "binary", "multiclass", "ontology", source="scikit-learn: matthews_corrcoef", of="predictions", within=CORRELATION
)
def matthews_correlation(s: ScoredRows) -> float:
    """Correlation of true and predicted classes, 1 if perfect; 0 where either of them is constant."""
    present = s.present
    if len(np.unique(present.y)) < 2 or len(np.unique(present.predicted)) < 2:
        return 0.0
    from sklearn import metrics as sk  # for measures that are seldom asked for: its imports take longer than a run

    return float(sk.matthews_corrcoef(s.y, s.predicted, sample_weight=s.weights))


@measure("ordinal", source="scikit-learn: cohen_kappa_score, weights quadratic", of="predictions", within=CORRELATION)
def quadratic_kappa(s: ScoredRows) -> float | None:
    """1 - mean squared distance in grades / the same were grade and prediction independent."""
    present = s.present
    if len(np.unique(np.concatenate((present.y, present.predicted)))) < 2:
        return None
    from sklearn import metrics as sk

    return float(sk.cohen_kappa_score(s.y, s.predicted, weights="quadratic", sample_weight=s.weights))


@measure("multiclass", source="scikit-learn: top_k_accuracy_score", number=_TOP, stem="accuracy")
def top_k_accuracy(s: ScoredRows, k: int) -> float:
    """Share of rows whose class is among the k of largest score; without a number 5."""
    weights: Vector = np.ones(len(s.y)) if s.weights is None else s.weights
    known = s.y < s.classes
    if k >= s.classes:
        found = weights[known].sum()
    else:
        order = np.argsort(s.scores, axis=1, kind="stable")[:, ::-1][:, :k]  # of ties the last, as scikit-learn has it
        found = weights[(order == s.y[:, None]).any(axis=1)].sum()
    return float(found / weights.sum())


@measure("binary", source="scikit-learn: fbeta_score; f-measure paper", of="predictions", number=_BETA)
def f_beta(s: ScoredRows, beta: float) -> float:
    """(1 + beta^2) P R / (beta^2 P + R), precision and recall; without a number at the loss's `beta`, else F1."""
    true, predicted, both = counts_of_classes(s)
    square = float(beta) ** 2
    return float(ratio((1.0 + square) * both, square * true + predicted)[1])


@measure("binary", source="scikit-learn: roc_auc_score, max_fpr; McClish 1989", number=_MAX_FPR)
def partial_auc(s: ScoredRows, max_fpr: float) -> float | None:
    """Area under the ROC curve up to `max_fpr`, standardised by McClish: 0.5 for chance, 1 at best.

    Without a number up to the loss's `max_fpr`, else to 0.1.
    """
    if not both_classes(s):
        return None
    false, true = s.above
    fpr, tpr = np.append(0.0, false / false[-1]), np.append(0.0, true / true[-1])
    most = float(max_fpr)
    stop = int(np.searchsorted(fpr, most, side="right"))
    x, y = np.append(fpr[:stop], most), np.append(tpr[:stop], np.interp(most, fpr, tpr))
    area = float(np.diff(x) @ (y[1:] + y[:-1])) / 2.0
    least = most * most / 2.0
    return min(1.0, 0.5 * (1.0 + (area - least) / (most - least)))


def counts_of_classes(s: ScoredRows) -> tuple[Vector, Vector, Vector]:
    """By class, or by label of sets: the weight of the true ones, of the predicted ones, and of both at once."""
    if s.y.ndim == 2:
        mass = np.ones(len(s.y)) if s.weights is None else s.weights
        return mass @ (s.y > 0), mass @ (s.predicted > 0), mass @ ((s.y > 0) & (s.predicted > 0))
    y, predicted = s.y.astype(np.int64), s.predicted.astype(np.int64)
    count = max(s.classes, 2, int(y.max()) + 1, int(predicted.max()) + 1)
    right = y == predicted
    true, found = (np.bincount(codes, s.weights, count).astype(np.float64) for codes in (y, predicted))
    return true, found, np.bincount(y[right], None if s.weights is None else s.weights[right], count).astype(np.float64)


def ratio(part: Any, whole: Any) -> Vector:
    """part / whole, 0 where there is nothing."""
    shares: Vector = np.divide(part, whole, out=np.zeros(np.shape(whole)), where=whole > 0.0)
    return shares


def _of_rankings(s: ScoredRows, judge: Callable[[_Ranked], NDArray[Any]]) -> float | None:
    """Of the rows with a relevant and an irrelevant label; `y` is (rows, labels), 1 where the row has the label."""
    s = s.present
    count = (s.y > 0.0).sum(axis=1)
    s = s.rows((count > 0) & (count < s.y.shape[1]))
    return s.mean(judge(_Ranked(s))) if len(s.y) else None


class _Ranked:
    """The labels of each row by falling score: which are relevant, how many are ranked as high as each."""

    def __init__(self, s: ScoredRows) -> None:
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
def label_average_precision(s: ScoredRows) -> float | None:
    """Mean over a row's labels of the share of its labels among those ranked as high; over rows with some, not all."""
    return _of_rankings(s, lambda r: r.over_relevant(r.relevant_above / r.ranks))


@measure("multilabel", source="scikit-learn: label_ranking_loss", wanted="least")
def label_ranking_loss(s: ScoredRows) -> float | None:
    """Share of pairs of a relevant and an irrelevant label ranked wrongly; over rows that have such pairs."""
    return _of_rankings(s, lambda r: r.over_relevant(r.ranks - r.relevant_above) / (~r.relevant).sum(axis=1))


@measure("multilabel", source="scikit-learn: coverage_error", within=AMOUNT)
def label_coverage(s: ScoredRows) -> float | None:
    """How far down its ranking, from 1, one has to go for all labels of a row; over rows with some labels, not all."""
    return _of_rankings(s, lambda r: (r.ranks * r.relevant).max(axis=1))


@measure("multilabel", source="Schapire & Singer 2000", wanted="least")
def one_error(s: ScoredRows) -> float | None:
    """Share of rows whose best-scored label is not theirs; over rows with some labels, not all."""
    return _of_rankings(s, lambda r: ~r.relevant[:, 0])


@measure("multilabel", source="scikit-learn: f1_score, average micro", of="predictions")
def micro_f1(s: ScoredRows) -> float:
    """2 TP / (2 TP + FP + FN), counted over all rows and labels; 0 where no row has or is given a label."""
    true, predicted, both = (counts.sum() for counts in counts_of_classes(s))
    return float(ratio(2.0 * both, true + predicted))


@measure("multilabel", source="scikit-learn: hamming_loss", of="predictions", wanted="least")
def hamming_loss(s: ScoredRows) -> float:
    """Share of the pairs of a row and a label that are predicted wrongly."""
    return s.mean(((s.y > 0) != (s.predicted > 0)).mean(axis=1))


@measure("ontology", source="KDD paper (2007), section 3.2", of="predictions", within=AMOUNT)
def tree_distance(s: ScoredRows) -> float | None:
    """Mean number of edges between true and predicted node; not defined where a label is unknown to the model."""
    if not known_labels(s) or "edges" not in s.parameters:
        return None
    s = s.present
    apart = Tree(s.parameters["edges"], "tree_distance").distances()
    return s.mean(apart[s.y.astype(np.intp), s.predicted.astype(np.intp)])
