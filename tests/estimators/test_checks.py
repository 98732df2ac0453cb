"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_classifier_not_supporting_multiclass,
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)
from sklearn.utils.validation import _num_samples

from bmrm.estimators import (
    Classifier,
    MultilabelClassifier,
    NoveltyDetector,
    OrdinalClassifier,
    Ranker,
    Regressor,
)


class OneQuery(Ranker):
    """A ranker whose rows are one query where nothing is said: the checks give no groups."""

    def fit(self, X, y, groups=None, sample_weight=None):
        return super().fit(X, y, [0] * _num_samples(X) if groups is None else groups, sample_weight)


DIGITS = "decision values are compared to 1e-7, which a gap of 1e-4 does not promise; passes with a smaller tol below"
EDGES = "some rows score rho to the last digits, as support vectors do: rounding tells whether they are novel"
REPETITION = "check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"
EXPECTED = {
    Classifier: dict.fromkeys(REPETITION, DIGITS),
    NoveltyDetector: dict.fromkeys(REPETITION, EDGES),
    OrdinalClassifier: {"check_classifiers_classes": "grades that are text have no order: `classes` must say it"},
    OneQuery: {"check_fit2d_1sample": "one row is no ranking; the message says so, in other words than the check's"},
}
ESTIMATORS = [
    Classifier(),
    Classifier("softmax", tol=1e-10),
    Regressor(),
    Regressor("multivariate_least_squares"),
    MultilabelClassifier(),
    OrdinalClassifier(),
    NoveltyDetector(),
    OneQuery(),
]


def expected_failures(estimator):
    """By name of the check, with the reason."""
    return EXPECTED.get(type(estimator), {}) if estimator.tol == 1e-4 else {}


@pytest.mark.filterwarnings(
    "ignore:.*(all weights are 0|weights of 0 are as good)"
)  # true where a check's targets are random
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_a_loss_for_two_classes_says_so():
    two = Classifier("squared_hinge")
    assert not get_tags(two).classifier_tags.multi_class
    assert get_tags(Classifier("logistic")).classifier_tags.multi_class
    check_classifier_not_supporting_multiclass("Classifier", two)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # 1e-12 may be out of reach
def test_weights_are_repetition_where_the_gap_is_small():
    exact = Classifier(tol=1e-12, solver="line_search_bundle")
    check_sample_weight_equivalence_on_dense_data("Classifier", exact)
    check_sample_weight_equivalence_on_sparse_data("Classifier", exact)
