"""Measures: by hand where that is short, and undefined where they are."""

import numpy as np
import pytest
from sklearn import metrics as sk

from bmrm.losses import LOSSES
from bmrm.metrics import ScoredRows, check_metrics, evaluate
from bmrm.problem import InputError


def binary(y, scores, weights=None):
    scores = np.asarray(scores, float)
    weights = None if weights is None else np.asarray(weights, float)
    return ScoredRows(np.asarray(y), scores, (scores > 0).astype(int), weights, 2, {})


def numbers(y, f, weights=None, **parameters):
    f = np.asarray(f, float)
    weights = None if weights is None else np.asarray(weights, float)
    return ScoredRows(np.asarray(y, float), f, f, weights, 0, parameters)


def test_every_measure_that_a_loss_names_exists():
    for entry in LOSSES.all():
        check_metrics(entry.cls.metrics, entry.cls)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'accuracy'"):
        evaluate(["acuracy"], binary([0, 1], [0, 1]))


def test_binary_measures_by_hand():
    s = binary([0, 0, 1, 1], [-1.0, 2.0, 1.0, -3.0])
    values = evaluate(["accuracy", "f1", "precision", "recall", "auc", "balanced_accuracy"], s)
    # one true positive, one false positive, one false negative; pairs ranked right: (1.0 > -1.0) only
    assert values == {
        "accuracy": 0.5,
        "f1": 0.5,
        "precision": 0.5,
        "recall": 0.5,
        "auc": 0.25,
        "balanced_accuracy": 0.5,
    }


@pytest.mark.parametrize("name", ["accuracy", "f1", "auc", "average_precision", "log_loss", "balanced_accuracy"])
def test_a_weight_means_repetition_of_the_row(name):
    random = np.random.default_rng(3)
    y, scores, weights = random.integers(0, 2, 40), random.normal(size=40), random.integers(0, 4, 40)
    weighted = evaluate([name], binary(y, scores, weights))
    repeated = evaluate([name], binary(np.repeat(y, weights), np.repeat(scores, weights)))
    assert weighted[name] == pytest.approx(repeated[name], rel=1e-12)


@pytest.mark.parametrize("name", ["mae", "rmse", "r2", "pinball", "coverage"])
def test_for_numbers_too(name):
    random = np.random.default_rng(4)
    y, f, weights = random.normal(size=40), random.normal(size=40), random.integers(0, 4, 40)
    weighted = evaluate([name], numbers(y, f, weights, tau=0.3))
    repeated = evaluate([name], numbers(np.repeat(y, weights), np.repeat(f, weights), tau=0.3))
    assert weighted[name] == pytest.approx(repeated[name], rel=1e-12)


def test_measures_of_numbers_by_hand():
    values = evaluate(["mae", "rmse", "r2", "pinball", "coverage"], numbers([0.0, 2.0], [1.0, 0.0], tau=0.75))
    assert values["mae"] == 1.5
    assert values["rmse"] == pytest.approx(np.sqrt(2.5))
    assert values["r2"] == pytest.approx(1 - 5 / 2)
    assert values["pinball"] == pytest.approx((0.25 * 1 + 0.75 * 2) / 2)
    assert values["coverage"] == 0.5


def test_log_loss_is_finite_for_huge_scores_and_the_same_for_two_ways_to_write_two_classes():
    one = evaluate(["log_loss"], binary([0, 1, 1], [-1000.0, 2.0, 1000.0]))["log_loss"]
    f = np.array([[0.0, -1000.0], [0.0, 2.0], [0.0, 1000.0]])
    two = evaluate(["log_loss"], ScoredRows(np.array([0, 1, 1]), f, f.argmax(axis=1), None, 2, {}))["log_loss"]
    assert one == pytest.approx(np.log1p(np.exp(-2.0)) / 3, rel=1e-12)
    assert two == pytest.approx(one, rel=1e-12)


def test_undefined_measures_are_none():
    assert evaluate(["auc", "average_precision"], binary([1, 1], [0.0, 1.0])) == {
        "auc": None,
        "average_precision": None,
    }
    assert evaluate(["accuracy", "auc"], binary([], [])) == {"accuracy": None, "auc": None}
    assert evaluate(["r2"], numbers([1.0], [1.0])) == {"r2": None}


def test_a_label_that_the_model_does_not_know_is_an_error_and_no_crash():
    f = np.eye(3)
    s = ScoredRows(np.array([0, 1, 3]), f, f.argmax(axis=1), None, 3, {})
    values = evaluate(["accuracy", "macro_f1", "log_loss", "balanced_accuracy"], s)
    assert values["accuracy"] == pytest.approx(2 / 3)
    assert values["log_loss"] is None
    assert values["macro_f1"] == pytest.approx(2 / 3)


def test_deviances_by_hand():
    y, mean = np.array([1.0, 3.0, 2.0]), np.array([2.0, 3.0, 1.0])
    s = numbers(y, mean, power=1.5)
    values = evaluate(["poisson_deviance", "gamma_deviance", "tweedie_deviance", "d2_poisson"], s)
    poisson = 2.0 * (y * np.log(y / mean) - y + mean).mean()
    assert values["poisson_deviance"] == pytest.approx(poisson)
    assert values["gamma_deviance"] == pytest.approx(2.0 * (np.log(mean / y) + y / mean - 1.0).mean())
    assert values["tweedie_deviance"] == pytest.approx(4.0 * ((np.sqrt(y) - np.sqrt(mean)) ** 2 / np.sqrt(mean)).mean())
    assert values["d2_poisson"] == pytest.approx(1.0 - poisson / (2.0 * (y * np.log(y / 2.0)).mean()))


def test_deviances_where_they_are_not_defined():
    assert evaluate(["gamma_deviance", "d2_gamma"], numbers([0.0, 1.0], [1.0, 1.0])) == {
        "gamma_deviance": None,
        "d2_gamma": None,
    }
    assert evaluate(["d2_poisson"], numbers([0.0, 0.0], [1.0, 1.0])) == {"d2_poisson": None}
    # a mean that has come to 0 is infinitely wrong where there was something, and no nan
    assert evaluate(["poisson_deviance"], numbers([2.0, 1.0], [0.0, 1.0]))["poisson_deviance"] > 100.0


def label_sets(weights=None):
    y = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    f = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    return ScoredRows(y, f, np.argsort(-f, axis=1), weights, 3, {})


def test_rankings_of_labels_by_hand():
    names = ["label_average_precision", "label_ranking_loss", "label_coverage", "one_error"]
    values = evaluate(names, label_sets())
    # rows without labels, or with all of them, rank nothing
    assert values == {
        "label_average_precision": pytest.approx(((1.0 + 2.0 / 3.0) / 2.0 + 0.5) / 2.0),
        "label_ranking_loss": pytest.approx((0.5 + 0.5) / 2.0),
        "label_coverage": pytest.approx((3.0 + 2.0) / 2.0),
        "one_error": pytest.approx(0.5),
    }
    first_only = evaluate(names, label_sets(np.array([2.0, 0.0, 1.0, 1.0])))
    assert first_only["label_coverage"] == pytest.approx(3.0)
    assert set(evaluate(names, label_sets(np.array([0.0, 0.0, 1.0, 1.0]))).values()) == {None}


def test_distance_in_a_tree_by_hand():
    edges = (("b", "a"), ("c", "a"), ("d", "b"))
    verdict = ScoredRows(np.array([1, 3, 0]), np.zeros((3, 4)), np.array([1, 2, 3]), None, 4, {"edges": edges})
    # b for b; c for d over b and a; d for a over b
    assert evaluate(["tree_distance"], verdict) == {"tree_distance": pytest.approx((0 + 3 + 2) / 3)}
    unknown = ScoredRows(np.array([4]), np.zeros((1, 4)), np.array([1]), None, 4, {"edges": edges})
    assert evaluate(["tree_distance"], unknown) == {"tree_distance": None}


def test_asymmetric_error_and_novelty_by_hand():
    values = evaluate(["asymmetric_mse"], numbers([0.0, 0.0], [2.0, -1.0], tau=0.9))
    assert values["asymmetric_mse"] == pytest.approx((0.1 * 4.0 + 0.9 * 1.0) / 2.0)
    verdict = numbers([0.0, 0.0, 0.0], [1.0, -1.0, 1.0], [1.0, 2.0, 1.0])
    assert evaluate(["novel_share"], verdict) == {"novel_share": 0.5}


FIRST = {"labels": [1], "average": "macro", "zero_division": 0}
PEERS = {
    "accuracy": lambda s, w: sk.accuracy_score(s.y, s.predicted, sample_weight=w),
    "balanced_accuracy": lambda s, w: sk.balanced_accuracy_score(s.y, s.predicted, sample_weight=w),
    "f1": lambda s, w: sk.f1_score(s.y, s.predicted, sample_weight=w, **FIRST),
    "f_beta@0.3": lambda s, w: sk.fbeta_score(s.y, s.predicted, beta=0.3, sample_weight=w, **FIRST),
    "precision": lambda s, w: sk.precision_score(s.y, s.predicted, sample_weight=w, **FIRST),
    "recall": lambda s, w: sk.recall_score(s.y, s.predicted, sample_weight=w, **FIRST),
    "auc": lambda s, w: sk.roc_auc_score(s.y, s.scores, sample_weight=w),
    "partial_auc@0.3": lambda s, w: sk.roc_auc_score(s.y, s.scores, sample_weight=w, max_fpr=0.3),
    "average_precision": lambda s, w: sk.average_precision_score(s.y, s.scores, sample_weight=w),
    "log_loss": lambda s, w: sk.log_loss(s.y, 1.0 / (1.0 + np.exp(-s.scores)), sample_weight=w),
}
NUMBERS = {
    "r2": sk.r2_score,
    "explained_variance": sk.explained_variance_score,
    "mae": sk.mean_absolute_error,
    "mse": sk.mean_squared_error,
    "pinball@0.3": lambda y, f, sample_weight: sk.mean_pinball_loss(y, f, alpha=0.3, sample_weight=sample_weight),
    "poisson_deviance": sk.mean_poisson_deviance,
    "gamma_deviance": sk.mean_gamma_deviance,
    "tweedie_deviance@1.4": lambda y, f, sample_weight: sk.mean_tweedie_deviance(
        y, f, power=1.4, sample_weight=sample_weight
    ),
    "tweedie_deviance@3": lambda y, f, sample_weight: sk.mean_tweedie_deviance(
        y, f, power=3, sample_weight=sample_weight
    ),
    "tweedie_deviance@-1": lambda y, f, sample_weight: sk.mean_tweedie_deviance(
        y, f, power=-1, sample_weight=sample_weight
    ),
    "d2_poisson": lambda y, f, sample_weight: sk.d2_tweedie_score(y, f, power=1, sample_weight=sample_weight),
    "d2_gamma": lambda y, f, sample_weight: sk.d2_tweedie_score(y, f, power=2, sample_weight=sample_weight),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", PEERS)
def test_of_two_classes_with_equal_scores_they_are_scikit_learns(name, weighted):
    random = np.random.default_rng(5)
    for rows, digits in ((5, 0), (50, 1), (300, 1), (300, 9)):
        y = np.append([0, 1], random.integers(0, 2, rows - 2))
        s = binary(y, (random.normal(size=rows) + y).round(digits), random.random(rows) + 0.1 if weighted else None)
        assert evaluate([name], s)[name] == pytest.approx(PEERS[name](s, s.weights), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NUMBERS)
def test_of_numbers_they_are_scikit_learns(name, weighted):
    random = np.random.default_rng(6)
    y, f, weights = random.gamma(2.0, size=60), random.gamma(2.0, size=60) + 0.1, random.random(60)
    w = weights if weighted else None
    assert evaluate([name], numbers(y, f, w))[name] == pytest.approx(NUMBERS[name](y, f, sample_weight=w), rel=1e-12)
    if name in ("r2", "explained_variance", "mae", "mse"):
        Y, F = random.normal(size=(60, 3)), random.normal(size=(60, 3))
        Y[:, 1] = 2.0  # scikit-learn's r2 of a constant output is 0, or 1 where it is met
        assert evaluate([name], numbers(Y, F, w))[name] == pytest.approx(
            NUMBERS[name](Y, F, sample_weight=w), rel=1e-12
        )


def test_counts_and_skewed_deviances_of_targets_that_are_0():
    y, f = np.array([0.0, 0.0, 3.0]), np.array([0.5, 1.0, 2.0])
    values = evaluate(["poisson_deviance", "tweedie_deviance@1.5"], numbers(y, f))
    assert values["poisson_deviance"] == pytest.approx(sk.mean_poisson_deviance(y, f))
    assert values["tweedie_deviance@1.5"] == pytest.approx(sk.mean_tweedie_deviance(y, f, power=1.5))


@pytest.mark.parametrize("weighted", [False, True])
def test_of_classes_and_sets_of_labels_they_are_scikit_learns(weighted):
    random = np.random.default_rng(8)
    w = random.random(80) if weighted else None
    y, predicted = random.integers(0, 4, 80), random.integers(0, 4, 80)
    s = ScoredRows(y, np.eye(5)[predicted], predicted, w, 5, {})
    for name, peer in (("accuracy", sk.accuracy_score), ("balanced_accuracy", sk.balanced_accuracy_score)):
        assert evaluate([name], s)[name] == pytest.approx(peer(y, predicted, sample_weight=w), rel=1e-12)
    macro = {"labels": np.arange(5), "average": "macro", "zero_division": 0, "sample_weight": w}
    assert evaluate(["macro_f1"], s)["macro_f1"] == pytest.approx(sk.f1_score(y, predicted, **macro), rel=1e-12)
    Y, f = random.integers(0, 2, (80, 6)), random.normal(size=(80, 6)).round(1)
    Y[:, 0], Y[:, 1] = 0, 1
    sets = ScoredRows(Y.astype(float), f, f > 0.0, w, 6, {})
    peers = {
        "accuracy": lambda: sk.accuracy_score(Y, f > 0.0, sample_weight=w),
        "micro_f1": lambda: sk.f1_score(Y, f > 0.0, average="micro", sample_weight=w),
        "macro_f1": lambda: sk.f1_score(Y, f > 0.0, average="macro", sample_weight=w, zero_division=0),
        "hamming_loss": lambda: sk.hamming_loss(Y, f > 0.0, sample_weight=w),
        "label_average_precision": lambda: sk.label_ranking_average_precision_score(Y, f, sample_weight=w),
        "label_ranking_loss": lambda: sk.label_ranking_loss(Y, f, sample_weight=w),
        "label_coverage": lambda: sk.coverage_error(Y, f, sample_weight=w),
    }
    values = evaluate(peers, sets)
    assert values == {name: pytest.approx(peer(), rel=1e-12) for name, peer in peers.items()}


def test_areas_of_perfectly_ranked_rows_are_1_whatever_the_weights():
    random = np.random.default_rng(9)
    for _ in range(50):
        y = np.repeat([0, 1], [17, 13])
        s = binary(y, y + random.random(30) / 2, random.random(30))
        assert max(evaluate(["auc", "partial_auc@0.1", "average_precision"], s).values()) <= 1.0
