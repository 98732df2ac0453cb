"""How well scores predict targets: measures by name, over scikit-learn's. Losses name those that suit them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from bmrm import ranked
from bmrm.problem import InputError, Vector
from bmrm.registry import nearest
from bmrm.sequences import f1_of_chunks, f1_of_tokens


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
    groups : (rows,) the query of each row, or None; measures of rankings are then means over the queries.
        Of sequences the sentence of each token.
    labels : the names of the codes, K of them.
    """

    y: NDArray[Any]
    scores: NDArray[np.float64]
    predicted: NDArray[Any]
    weights: Vector | None
    classes: int
    parameters: Mapping[str, Any]
    groups: NDArray[np.int64] | None = None
    labels: tuple[str, ...] = ()


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
def asymmetric_mse(s: Scored) -> float:
    """Mean of |tau - [prediction > y]| (y - prediction)^2 at the loss's `tau`, at 1/2 where it has none."""
    tau = float(s.parameters.get("tau", 0.5))
    sides = np.where(s.predicted > s.y, 1.0 - tau, tau)
    return float(np.average(sides * (s.y - s.predicted) ** 2, weights=s.weights))


@measure
def pinball(s: Scored) -> float:
    """Mean pinball loss at the loss's `tau`, at the median where it has none."""
    alpha = float(s.parameters.get("tau", 0.5))
    return float(sk.mean_pinball_loss(s.y, s.predicted, alpha=alpha, sample_weight=s.weights))


@measure
def coverage(s: Scored) -> float:
    """Share of rows at or below their prediction: near `tau` for a good quantile model."""
    return float(np.average(s.y <= s.predicted, weights=s.weights))


@measure
def novel_share(s: Scored) -> float:
    """Share of rows predicted novel."""
    return float(np.average(s.predicted < 0.0, weights=s.weights))


def _means(s: Scored) -> NDArray[np.float64]:
    """Predicted means, all above 0 as deviances need them, where exp has come to 0 too."""
    means: NDArray[np.float64] = np.maximum(s.predicted, np.finfo(np.float64).tiny)
    return means


@measure
def poisson_deviance(s: Scored) -> float:
    """Mean of 2 (y log(y / mean) - y + mean)."""
    return float(sk.mean_poisson_deviance(s.y, _means(s), sample_weight=s.weights))


@measure
def gamma_deviance(s: Scored) -> float | None:
    """Mean of 2 (log(mean / y) + y / mean - 1); not defined where some y is 0."""
    return float(sk.mean_gamma_deviance(s.y, _means(s), sample_weight=s.weights)) if np.all(s.y > 0.0) else None


@measure
def tweedie_deviance(s: Scored) -> float:
    """Mean unit deviance at the loss's `power`."""
    power = float(s.parameters["power"])
    return float(sk.mean_tweedie_deviance(s.y, _means(s), sample_weight=s.weights, power=power))


def _explained(s: Scored, power: float) -> float | None:
    """1 - deviance / deviance of the constant mean; not defined for fewer than two rows."""
    if len(s.y) < 2 or np.any(s.y < 0.0) or (power >= 2.0 and np.any(s.y <= 0.0)) or not np.any(s.y > 0.0):
        return None
    return float(sk.d2_tweedie_score(s.y, _means(s), sample_weight=s.weights, power=power))


@measure
def d2_poisson(s: Scored) -> float | None:
    """Share of the Poisson deviance explained: 1 is perfect, 0 no better than the mean."""
    return _explained(s, 1.0)


@measure
def d2_gamma(s: Scored) -> float | None:
    """Share of the gamma deviance explained."""
    return _explained(s, 2.0)


@measure
def d2_tweedie(s: Scored) -> float | None:
    """Share of the Tweedie deviance explained, at the loss's `power`."""
    return _explained(s, float(s.parameters["power"]))


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
    from bmrm.losses.tree import Tree

    if not _known(s):
        return None
    apart = Tree(s.parameters["edges"], "tree_distance").distances()
    return float(np.average(apart[s.y.astype(np.intp), s.predicted.astype(np.intp)], weights=s.weights))


@measure
def f_beta(s: Scored) -> float:
    """Weighted harmonic mean of precision and recall at the loss's `beta`; F1 where it has none."""
    beta = float(s.parameters.get("beta", 1.0))
    return float(sk.fbeta_score(s.y, s.predicted, beta=beta, sample_weight=s.weights, **_POSITIVE))


@measure
def partial_auc(s: Scored) -> float | None:
    """Area under the ROC curve up to the loss's `max_fpr`, standardised by McClish: 0.5 for chance, 1 at best."""
    if not _both_classes(s):
        return None
    limit = float(s.parameters.get("max_fpr", 0.1))
    return float(sk.roc_auc_score(s.y, s.scores, sample_weight=s.weights, max_fpr=limit))


def _ranking(s: Scored, measure: ranked.Measure) -> float | None:
    """The mean over queries; not defined for weights other than 1, which rankings have no place for."""
    if s.weights is not None and np.any(s.weights != 1.0):
        return None
    return ranked.mean_over_queries(measure, s.y.astype(np.float64), s.scores, s.groups)


@measure
def ndcg(s: Scored) -> float | None:
    """Normalised discounted cumulative gain over all ranks, mean over queries with a grade above 0."""
    return _ranking(s, ranked.ndcg)


@measure
def ndcg_at_10(s: Scored) -> float | None:
    """Normalised discounted cumulative gain of the first ten ranks, mean over queries with a grade above 0."""
    return _ranking(s, lambda y, f: ranked.ndcg(y, f, 10))


@measure
def mrr(s: Scored) -> float | None:
    """1 over the rank of the first row of grade above 0, mean over queries that have one."""
    return _ranking(s, ranked.reciprocal_rank)


@measure
def map(s: Scored) -> float | None:  # the field's name for it
    """Mean over queries with rows of grade above 0 of their average precision."""
    return _ranking(s, ranked.average_precision)


@measure
def kendall_tau(s: Scored) -> float | None:
    """Kendall's tau-b of grades and scores, within queries where there are queries."""
    return _ranking(s, ranked.kendall_tau)


@measure
def winner_found(s: Scored) -> float | None:
    """Share of queries whose row of highest score has the best grade of the query."""
    return _ranking(s, ranked.winner_found)


@measure
def expected_rank_utility(s: Scored) -> float | None:
    """The utility of Breese et al. at the loss's `half_life` and `neutral`, mean over queries with a gain."""
    half_life, neutral = float(s.parameters.get("half_life", 5.0)), float(s.parameters.get("neutral", 0.0))

    def of_query(y: Vector, f: Vector) -> float | None:
        return ranked.utility(np.maximum(0.0, y - neutral), f, np.exp2(-np.arange(y.size) / (half_life - 1.0)))

    return _ranking(s, of_query)


@measure
def precision_at_k(s: Scored) -> float | None:
    """Share of positive rows (of grade above 0) among the loss's `k` of highest score; 10 where it has none."""
    k = int(s.parameters.get("k", 10))
    return _ranking(s, lambda y, f: ranked.precision_at(y, f, k))


@measure
def recall_at_k(s: Scored) -> float | None:
    """Share of the positive rows (of grade above 0) that are among the loss's `k` of highest score."""
    k = int(s.parameters.get("k", 10))
    return _ranking(s, lambda y, f: ranked.recall_at(y, f, k))


@measure
def break_even(s: Scored) -> float | None:
    """Precision among as many rows as there are positive ones (of grade above 0), where it equals recall."""
    return _ranking(s, ranked.break_even)


def _named(s: Scored, codes: NDArray[Any]) -> NDArray[np.str_]:
    """Labels by their names; one that the model does not know is a chunk of its own."""
    return np.array([*s.labels, "B-?"])[codes.astype(np.intp)]


@measure
def token_accuracy(s: Scored) -> float:
    """Share of tokens labelled right."""
    return float(np.average(s.y == s.predicted, weights=s.weights))


@measure
def token_f1(s: Scored) -> float:
    """F1 over the tokens whose label is not `O`; weights are not looked at."""
    return f1_of_tokens(_named(s, s.y), _named(s, s.predicted))


@measure
def chunk_f1(s: Scored) -> float:
    """F1 of chunks of all types together, by the definition of CoNLL; weights are not looked at."""
    starts = [0] if s.groups is None else [0, *(np.flatnonzero(np.diff(s.groups)) + 1).tolist()]
    return f1_of_chunks(_named(s, s.y).tolist(), _named(s, s.predicted).tolist(), starts)
