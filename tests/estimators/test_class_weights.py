"""Weights of classes and of rows: balanced ones count the weights, and a class whose rows all weigh 0 stays a class."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.utils.class_weight import compute_sample_weight

from bmrm.estimators import Classifier, MultilabelClassifier, OrdinalClassifier
from bmrm.problem import InputError

TIGHT = {"alpha": 1e-2, "tol": 1e-10}


def rows(classes, seed=0):
    """(X, y, weights): 120 rows of unequal classes, with small whole weights, some of them 0."""
    random = np.random.default_rng(seed)
    y = np.minimum(random.integers(0, 3 * classes, 120), 2 * classes) % classes
    X = random.normal(size=(120, 4)) + np.eye(classes, 4)[y]
    return X, y, random.integers(0, 4, 120).astype(float)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_balanced_weighs_as_if_rows_were_repeated(loss, classes):
    X, y, weights = rows(classes)
    times = weights.astype(int)
    weighted = Classifier(loss, class_weight="balanced", **TIGHT).fit(X, y, weights)
    repeated = Classifier(loss, class_weight="balanced", **TIGHT).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.solution_.objective == pytest.approx(repeated.solution_.objective, rel=1e-9)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)


def test_balanced_without_weights_is_that_of_scikit_learn():
    _, y, _ = rows(3)
    names = np.array(["a", "b", "c"])[y]
    found = Classifier(class_weight="balanced")._weights(names, None)
    np.testing.assert_allclose(found, compute_sample_weight("balanced", names), rtol=1e-15)
    equal = np.bincount(y, Classifier(class_weight="balanced")._weights(y, np.arange(120.0)))
    np.testing.assert_allclose(equal, equal[0])


def test_balanced_where_a_class_weighs_nothing():
    X, y, weights = rows(3)
    weights[y == 2] = 0.0
    kept = Classifier("softmax", class_weight="balanced", **TIGHT).fit(X, y, weights)
    there = y != 2
    factor = weights[there].sum() / (2.0 * np.bincount(y[there], weights[there])[y[there]])
    by_hand = Classifier("softmax", **TIGHT).fit(X[there], y[there], weights[there] * factor)
    assert kept.solution_.objective == pytest.approx(by_hand.solution_.objective, rel=1e-6)


def test_a_dict_of_weights_multiplies_those_of_rows():
    X, y, weights = rows(2)
    both = Classifier("logistic", class_weight={0: 1.0, 1: 5.0}, **TIGHT).fit(X, y, weights)
    by_hand = Classifier("logistic", **TIGHT).fit(X, y, weights * np.where(y == 1, 5.0, 1.0))
    np.testing.assert_allclose(both.coef_, by_hand.coef_, atol=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge", "modified_huber", "exponential", "huber_hinge"])
@pytest.mark.parametrize("only", [0, 1])
def test_one_of_two_classes_weighs_nothing(loss, only):
    X, y, _ = rows(2)
    names = np.array(["no", "yes"])[y]
    model = Classifier(loss).fit(X, names, (y == only).astype(float))
    assert list(model.classes_) == ["no", "yes"]
    assert set(model.predict(X)) == {["no", "yes"][only]}
    assert model.coef_.shape == (1, 4)
    assert model.decision_function(X).shape == (120,)
    if hasattr(model, "predict_proba"):
        assert np.all(model.predict_proba(X)[:, only] > 0.99)


def test_one_of_two_classes_weighs_nothing_without_an_intercept():
    X, y, _ = rows(2)
    kept = Classifier("logistic", fit_intercept=False, **TIGHT).fit(X, y, (y == 1).astype(float))
    assert list(kept.classes_) == [0, 1]
    w = kept.coef_[0]  # the minimum of lambda/2 |w|^2 + mean over the rows of class 1 of log(1 + exp(-f))
    one = X[y == 1]
    slope = 1e-2 * w - np.mean(one / (1.0 + np.exp(one @ w))[:, None], axis=0)
    np.testing.assert_allclose(slope, 0.0, atol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "multiclass_hinge", "softmax", "weston_watkins"])
def test_one_of_three_classes_weighs_nothing(loss):
    X, y = load_iris(return_X_y=True)
    model = Classifier(loss, alpha=1e-2).fit(X, y, (y != 2).astype(float))
    assert list(model.classes_) == [0, 1, 2]
    assert model.coef_.shape == (3, 4)
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X[:100], y[:100]) > 0.95
    without = Classifier(loss, alpha=1e-2).fit(X[:100], y[:100])
    if loss not in ("hinge", "logistic"):  # of several scores with an intercept the class costs nothing
        assert model.solution_.objective == pytest.approx(without.solution_.objective, rel=1e-3)


def test_a_third_class_without_weight_and_a_loss_for_two():
    X, y = load_iris(return_X_y=True)
    model = Classifier("squared_hinge", alpha=1e-2).fit(X, y, (y != 2).astype(float))
    assert list(model.classes_) == [0, 1]
    with pytest.raises(ValueError, match="y has 3 classes"):
        Classifier("squared_hinge").fit(X, y)


def test_a_class_that_is_not_there_at_all_is_refused():
    X, _, _ = rows(2)
    with pytest.raises(ValueError, match="only one class"):
        Classifier().fit(X, np.ones(120))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings(
    "ignore:.*(all weights are 0|weights of 0 are as good)"
)  # one row among others: true of some bags
@pytest.mark.parametrize(
    "estimator", [Classifier(), Classifier("logistic"), OrdinalClassifier(), MultilabelClassifier()]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_bagging_where_a_class_is_rare(estimator, classes):
    X, y, _ = rows(classes)
    X, y = X[:40], y[:40]
    y[y == classes - 1] = 0
    y[7] = classes - 1  # a third of the bags have no row of it
    bags = BaggingClassifier(estimator, 12, random_state=0).fit(X, y)
    assert set(bags.predict(X)) <= set(range(classes))
    assert all(len(bag.classes_) == classes for bag in bags.estimators_)


def test_grades_of_no_weight_stay_grades():
    random = np.random.default_rng(1)
    X = random.normal(size=(90, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    for absent in range(3):
        model = OrdinalClassifier(alpha=1e-3).fit(X, y, (y != absent).astype(float))
        assert list(model.classes_) == [0, 1, 2]
        assert model.cut_points_.shape == (2,)
        there = y != absent
        assert np.mean(model.predict(X[there]) == y[there]) > 0.9


def test_sparse_rows_too():
    X, y, _ = rows(2)
    model = Classifier().fit(csr_array(X), y, (y == 1).astype(float))
    assert set(model.predict(csr_array(X))) == {1}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"a": 2.0, "c": 1.0}, "class_weight has the label 'c', which y has not; its labels are \\['a', 'b'\\]"),
        ({"a": -1.0}, "class_weight of 'a' is -1.0, expected a number >= 0"),
        ({"a": "2"}, "class_weight of 'a' is '2', expected a number"),
        ({"b": np.nan}, "class_weight of 'b' is nan"),
        ("balance", "class_weight is 'balance', expected a dict of factors by label, 'balanced' or None"),
        ([1.0, 2.0], "class_weight is \\[1.0, 2.0\\], expected a dict"),
        (3, "class_weight is 3, expected a dict"),
    ],
)
def test_class_weights_that_mean_nothing(weights, message):
    X, y, _ = rows(2)
    with pytest.raises(InputError, match=f"^Classifier: {message}"):
        Classifier(class_weight=weights).fit(X, np.array(["a", "b"])[y])


def test_labels_without_rows_and_without_factors():
    X, y, w = rows(2)
    every = Classifier(class_weight={0: 2.0, 1: 1.0, 7: 5.0}).fit(X, y, w)  # rows of 7 are in another fold
    some = Classifier(class_weight={0: 2.0}).fit(X, y, w)
    assert np.array_equal(every.coef_, some.coef_)


@pytest.mark.parametrize("unit", [1e307, 1e-310])
@pytest.mark.parametrize("factors", ["balanced", {0: 2.0**10}])
def test_no_unit_of_sample_weights_overflows(unit, factors):
    X, y, w = rows(2)
    near = Classifier("logistic", class_weight=factors, tol=1e-9).fit(X, y, w)
    far = Classifier("logistic", class_weight=factors, tol=1e-9).fit(X, y, unit * w)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-3)
