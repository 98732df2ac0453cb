"""ClassifierCV and RegressorCV: what they choose, and what scikit-learn asks of them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import check_estimator_repr, check_no_attributes_set_in_init, check_set_params

import bmrm
from bmrm import ClassifierCV, RegressorCV
from bmrm.problem import InputError

X, Y = load_breast_cancer(return_X_y=True)
X = scale(X)


def test_the_lasso_is_chosen_as_by_scikit_learn():
    rows, y = load_diabetes(return_X_y=True)
    folds = KFold(5, shuffle=True, random_state=0)
    alphas = np.geomspace(2.0, 1e-3, 20)
    ours = RegressorCV(l1_ratio=1.0, alphas=alphas, cv=folds, measure="mse", tol=1e-9).fit(rows, y)
    theirs = LassoCV(alphas=alphas, cv=folds, tol=1e-9, max_iter=100_000).fit(rows, y)
    assert ours.alpha_ == ours.lambda_ == theirs.alpha_
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_)
    np.testing.assert_allclose(ours.scores_, theirs.mse_path_, rtol=1e-4)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-3)
    assert ours.best_score_ == pytest.approx(theirs.mse_path_.mean(axis=1).min(), rel=1e-5)
    assert ours.dual_gap_ <= 1e-8 * ours.solution_.objective


def test_logistic_regression_is_chosen_as_by_scikit_learn():
    folds = StratifiedKFold(4)
    inverse = np.array([1e-2, 1e0, 1e2])
    ours = ClassifierCV("logistic", alphas=1.0 / (inverse * 0.75 * len(Y)), cv=folds, measure="auc", tol=1e-9).fit(X, Y)
    theirs = LogisticRegressionCV(Cs=inverse, cv=folds, scoring="roc_auc", tol=1e-10, max_iter=10_000)
    theirs.set_params(**({"use_legacy_attributes": False} if "use_legacy_attributes" in theirs.get_params() else {}))
    if "l1_ratios" in theirs.get_params():  # None is to be forbidden
        theirs.set_params(l1_ratios=(0.0,))
    theirs.fit(X, Y)
    scores = theirs.scores_[1] if isinstance(theirs.scores_, dict) else theirs.scores_
    scores = np.reshape(scores, (4, 3))
    np.testing.assert_allclose(ours.scores_.T, scores, atol=2e-3)  # m of the folds differs by one row
    assert ours.cv_results_["mean_auc"][np.flatnonzero(ours.alphas_ == ours.alpha_)[0]] == ours.best_score_
    np.testing.assert_array_equal(ours.classes_, [0, 1])
    assert ours.predict_proba(X).shape == (len(Y), 2)


def test_a_number_of_alphas_several_classes_and_pipelines():
    rows, labels = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[labels]
    found = make_pipeline(StandardScaler(), ClassifierCV(alphas=6, cv=3)).fit(rows, names)
    one = found[-1]
    assert one.scores_.shape == (6, 3)
    assert one.coef_.shape == (3, 4)
    assert found.score(rows, names) > 0.9
    assert one.measure_ == "accuracy"
    np.testing.assert_array_equal(clone(one).fit(scale(rows), names).alphas_, one.alphas_)


def test_alphas_none_measures_alpha_alone():
    found = ClassifierCV(alpha=1e-2, alphas=None, cv=5).fit(X, Y)
    assert found.alphas_.tolist() == [1e-2]
    single = bmrm.Classifier(alpha=1e-2).fit(X, Y)
    np.testing.assert_allclose(found.coef_, single.coef_, atol=1e-2)


def test_class_weights_count_in_training_and_not_in_measures():
    plain = ClassifierCV("logistic", alphas=[1e-2], cv=5).fit(X, Y)
    heavy = ClassifierCV("logistic", alphas=[1e-2], cv=5, class_weight={0: 30.0}).fit(X, Y)
    held = heavy.cross_validation_.held_out
    assert all(one.scored.weights is None for one in held)
    assert np.mean(heavy.predict(X) == 0) > np.mean(plain.predict(X) == 0)


def test_held_out_scores_calibrate():
    found = ClassifierCV("hinge", alphas=[1e-2], cv=5, calibrate="sigmoid").fit(X, Y)
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("one", [ClassifierCV(), RegressorCV()])
def test_scikit_learns_checks_of_parameters(one):
    for check in (check_no_attributes_set_in_init, check_set_params, check_estimator_repr):
        check(type(one).__name__, one)
    for name in ("alphas", "cv", "measure", "choose", "loss"):
        assert f"{name} : " in type(one).__doc__
    assert "cross_validation_ : " in type(one).__doc__


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"alpha": 1.0}, "alpha is 1.0 beside alphas"),
        ({"warm_start": True}, "warm_start is True"),
        ({"alphas": []}, "lambdas is empty"),
        ({"alphas": 0}, "n_lambdas is 0"),
        ({"cv": 1}, "folds is 1"),
        ({"measure": "rmse"}, "'rmse' does not fit hinge"),
        ({"choose": "first"}, "choose is 'first'"),
    ],
)
def test_what_is_wrong_is_said(given, said):
    with pytest.raises(InputError, match=said):
        ClassifierCV(**given).fit(X, Y)
