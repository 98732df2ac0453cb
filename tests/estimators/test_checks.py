"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_classifier_not_supporting_multiclass,
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    estimator_checks_generator,
)
from sklearn.utils.validation import _num_samples

from bmrm.estimators import (
    Classifier,
    ClassifierCV,
    MultilabelClassifier,
    NoveltyDetector,
    OrdinalClassifier,
    Ranker,
    Regressor,
    RegressorCV,
)


class OneQuery(Ranker):
    """A ranker whose rows are one query where nothing is said: the checks give no groups."""

    def fit(self, X, y, groups=None, sample_weight=None):
        return super().fit(X, y, [0] * _num_samples(X) if groups is None else groups, sample_weight)


DIGITS = "decision values are compared to 1e-7, which a gap of 1e-4 does not promise; passes with a smaller tol below"
EDGES = "some rows score rho to the last digits, as support vectors do: rounding tells whether they are novel"
FOLDED = "a row is in one fold, copies of it may lie in several: a weight is another choice than copies"
REPETITION = "check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"
EXPECTED = {
    Classifier: dict.fromkeys(REPETITION, DIGITS),
    ClassifierCV: dict.fromkeys(REPETITION, FOLDED),
    NoveltyDetector: dict.fromkeys(REPETITION, EDGES),
    OrdinalClassifier: {"check_classifiers_classes": "grades that are text have no order: `classes` must say it"},
    OneQuery: {"check_fit2d_1sample": "one row is no ranking; the message says so, in other words than the check's"},
}
IN_FULL = [Classifier(), Regressor()]
OTHERS = [
    Classifier("softmax", tol=1e-10),
    Regressor("multivariate_least_squares"),
    MultilabelClassifier(),
    OrdinalClassifier(),
    NoveltyDetector(),
    OneQuery(),
    ClassifierCV(alphas=[1e-2, 1e-1], cv=2),
    RegressorCV(alphas=[1e-2, 1e-1], cv=2),
]


INHERITED = """check_estimator_cloneable check_estimator_repr check_estimator_tags_renamed check_valid_tag_types
check_mixin_order check_no_attributes_set_in_init check_parameters_default_constructible check_get_params_invariance
check_set_params check_do_not_raise_errors_in_init_or_set_params check_estimator_sparse_array
check_estimator_sparse_matrix check_dtype_object check_estimators_dtypes check_estimators_pickle
check_readonly_memmap_input check_f_contiguous_array_estimator"""
"""Of what all estimators have from their base: parameters, and the kinds of arrays that features come in."""


def cases():
    """All checks on two estimators; on the others those of what each has of its own."""
    for estimator in IN_FULL + OTHERS:
        expected = EXPECTED.get(type(estimator), {}) if estimator.tol == 1e-4 else {}
        for case in estimator_checks_generator(estimator, expected_failed_checks=expected, mark="xfail"):
            _, check = getattr(case, "values", case)
            if estimator in IN_FULL or check.func.__name__ not in INHERITED.split():
                yield case


def name(part):
    """Of an estimator or a check."""
    return f"{part.func.__name__}{part.keywords or ''}" if hasattr(part, "func") else str(part)


@pytest.mark.filterwarnings(
    "ignore:.*(all weights are 0|weights of 0 are as good)"
)  # true where a check's targets are random
@pytest.mark.parametrize(("estimator", "check"), list(cases()), ids=name)
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
