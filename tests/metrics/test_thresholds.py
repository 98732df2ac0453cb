"""What is judged in every run is scikit-learn's, though without it."""

import numpy as np
import pytest
from sklearn import metrics as sk

from bmrm.metrics import Scored, evaluate
from bmrm.metrics.thresholds import Above


@pytest.mark.parametrize("ties", [1, 4, 1000])
@pytest.mark.parametrize("weighted", [False, True])
def test_areas_and_curves_are_those_of_scikit_learn(ties, weighted):
    random = np.random.default_rng(ties)
    y, scores = random.integers(0, 2, 200), np.round(random.normal(size=200) * ties)
    weights = random.integers(0, 3, 200).astype(float) if weighted else None
    s = Scored(y, scores, (scores > 0).astype(int), weights, 2, {}, None, ("0", "1"))
    assert evaluate(["auc", "average_precision", "accuracy"], s) == pytest.approx(
        {
            "auc": sk.roc_auc_score(y, scores, sample_weight=weights),
            "average_precision": sk.average_precision_score(y, scores, sample_weight=weights),
            "accuracy": sk.accuracy_score(y, s.predicted, sample_weight=weights),
        },
        rel=1e-12,
    )
    for mine, theirs in (
        (Above.of(s).rates, sk.roc_curve(y, scores, sample_weight=weights, drop_intermediate=False)),
        (Above.of(s).precision_recall, sk.precision_recall_curve(y, scores, sample_weight=weights)),
    ):
        for array, expected in zip(mine, theirs[:2], strict=True):
            np.testing.assert_allclose(array, expected, rtol=1e-12)


def test_sets_of_labels_are_right_where_all_labels_are():
    y, predicted = np.array([[0, 1], [1, 1], [0, 0]]), np.array([[0, 1], [1, 0], [0, 0]])
    s = Scored(y, predicted.astype(float), predicted, np.array([1.0, 2.0, 3.0]), 2, {}, None, ("a", "b"))
    assert evaluate(["accuracy"], s)["accuracy"] == sk.accuracy_score(y, predicted, sample_weight=s.weights)


def test_an_area_of_scores_that_are_not_finite_is_not_defined():
    s = Scored(np.array([0, 1, 1]), np.array([0.0, np.nan, 1.0]), np.array([0, 1, 1]), None, 2, {}, None, ("0", "1"))
    assert evaluate(["auc", "average_precision"], s) == {"auc": None, "average_precision": None}
