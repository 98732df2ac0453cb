"""Equal settings, equal models: against scikit-learn, to 1e-5."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import ElasticNet, HuberRegressor, Lasso, LogisticRegression, PoissonRegressor, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR, OneClassSVM

from bmrm.estimators import Classifier, NoveltyDetector, OrdinalClassifier, Ranker, Regressor

TIGHT = {"tol": 1e-12}


@pytest.fixture(scope="module")
def classes():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200, :8], y[:200]


@pytest.fixture(scope="module")
def numbers():
    random = np.random.default_rng(2)
    X = random.normal(size=(150, 6))
    return X, X @ [2.0, -1.0, 0.5, 0.0, 0.0, 3.0] + 1.5 + 0.3 * random.normal(size=150)


def same(ours, theirs, atol=1e-5):
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=atol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=atol)


def test_logistic_regression(classes):
    X, y = classes
    ours = Classifier("logistic", alpha=1e-2, **TIGHT).fit(X, y)
    theirs = LogisticRegression(C=1 / (1e-2 * len(y)), tol=1e-10, max_iter=10_000).fit(X, y)
    same(ours, theirs)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-4)
    assert ours.score(X, y) == theirs.score(X, y)


def test_multinomial_logistic_regression():
    X, y = load_iris(return_X_y=True)
    ours = Classifier("logistic", alpha=1e-2, **TIGHT).fit(X, y)
    theirs = LogisticRegression(C=1 / (1e-2 * len(y)), tol=1e-10, max_iter=10_000).fit(X, y)
    assert ours.coef_.shape == (3, 4)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_linear_support_vector_machines_without_intercept(classes, loss):
    X, y = classes
    theirs = LinearSVC(C=1 / (1e-2 * len(y)), loss=loss, fit_intercept=False, tol=1e-10, max_iter=1_000_000).fit(X, y)
    # LinearSVC has C times the squared hinge, ours is half of it
    ours = Classifier(loss, alpha=1e-2 / (1 + (loss == "squared_hinge")), fit_intercept=False, **TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


def test_weights_of_classes_and_samples(classes):
    X, y = classes
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    ours = Classifier("logistic", alpha=1e-2, class_weight={0: 3.0, 1: 1.0}, **TIGHT).fit(X, y, weights)
    total = (weights * np.where(y == 0, 3.0, 1.0)).sum()
    theirs = LogisticRegression(C=1 / (1e-2 * total), class_weight={0: 3.0}, tol=1e-10, max_iter=10_000)
    same(ours, theirs.fit(X, y, weights))


def test_ridge_lasso_and_elastic_net(numbers):
    X, y = numbers
    same(Regressor(alpha=1e-2, **TIGHT).fit(X, y), Ridge(alpha=1e-2 * len(y)).fit(X, y))
    same(Regressor(alpha=0.1, l1_ratio=1.0, **TIGHT).fit(X, y), Lasso(alpha=0.1, tol=1e-10).fit(X, y))
    theirs = ElasticNet(alpha=0.1, l1_ratio=0.3, tol=1e-10).fit(X, y)
    same(Regressor(alpha=0.1, l1_ratio=0.3, **TIGHT).fit(X, y), theirs)


def test_several_targets_are_ridge_for_each(numbers):
    X, y = numbers
    Y = np.column_stack((y, -2.0 * y + X[:, 0]))
    ours = Regressor("multivariate_least_squares", alpha=1e-2, **TIGHT).fit(X, Y)
    same(ours, Ridge(alpha=1e-2 * len(y)).fit(X, Y))
    assert ours.predict(X).shape == Y.shape


def test_support_vector_regression_without_intercept(numbers):
    X, y = numbers
    loss = {"name": "epsilon_insensitive", "epsilon": 0.2}
    ours = Regressor(loss, alpha=1e-2, fit_intercept=False, **TIGHT).fit(X, y)
    theirs = LinearSVR(epsilon=0.2, C=1 / (1e-2 * len(y)), fit_intercept=False, tol=1e-12, max_iter=1_000_000)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, y).coef_, atol=1e-5)


def test_poisson_regression_predicts_means(numbers):
    X, y = numbers
    counts = np.random.default_rng(1).poisson(np.exp(0.3 * y.clip(-3, 3)))
    ours = Regressor("poisson", alpha=1e-2, **TIGHT).fit(X, counts)
    theirs = PoissonRegressor(alpha=1e-2, tol=1e-10, max_iter=10_000).fit(X, counts)
    same(ours, theirs)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)


def test_huber_at_the_scale_that_scikit_learn_finds(numbers):
    X, y = numbers
    y = y + 20.0 * (np.arange(len(y)) % 17 == 0)
    theirs = HuberRegressor(epsilon=1.35, alpha=0.0, tol=1e-10, max_iter=10_000).fit(X, y)
    loss = {"name": "huber", "delta": 1.35 * theirs.scale_}
    ours = Regressor(loss, alpha=1e-12, tol=1e-12).fit(X, y)
    same(ours, theirs, atol=1e-4)


def test_ranking_is_classification_of_differences():
    random = np.random.default_rng(3)
    X, y, groups = random.normal(size=(40, 4)), random.integers(0, 3, 40), np.repeat(np.arange(5), 8)
    pairs = [(i, j) for i in range(40) for j in range(40) if groups[i] == groups[j] and y[i] > y[j]]
    differences = np.array([X[i] - X[j] for i, j in pairs])
    ours = Ranker(alpha=1e-2, **TIGHT).fit(X, y, groups=groups)
    both = np.vstack((differences, -differences))
    theirs = SVC(kernel="linear", C=1 / (1e-2 * len(both)), tol=1e-10)  # its intercept is 0 by symmetry
    theirs.fit(both, np.repeat([1, -1], len(pairs)))
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-5)


def test_novelty_is_a_one_class_support_vector_machine():
    X = np.random.default_rng(4).normal([3.0, 2.0, 1.0], 1.0, (80, 3))
    nu = 0.3
    theirs = OneClassSVM(kernel="linear", nu=nu, tol=1e-12).fit(X)
    w, rho = theirs.coef_[0] / (nu * len(X)), theirs.offset_[0] / (nu * len(X))  # libsvm: sum of the duals is nu m
    ours = NoveltyDetector({"name": "novelty", "rho": rho}, alpha=nu, **TIGHT).fit(X)
    np.testing.assert_allclose(ours.coef_[0], w, atol=1e-5)


@pytest.mark.parametrize("cuts", ["all", "immediate"])
def test_the_objective_of_grades_is_that_of_its_formula(cuts):
    random = np.random.default_rng(5)
    X = random.normal(size=(60, 3))
    y = np.digitize(X @ [1.0, -1.0, 0.5] + random.normal(size=60), [-0.5, 0.7])
    ours = OrdinalClassifier({"name": "ordinal_thresholds", "cuts": cuts}, alpha=0.1, **TIGHT).fit(X, y)
    f, w = X @ ours.coef_[0], ours.coef_[0]
    total = 0.0
    for k, cut in enumerate(ours.cut_points_):
        near = (y == k) | (y == k + 1) if cuts == "immediate" else np.full(60, True)
        total += np.maximum(0.0, 1.0 - np.where(y > k, 1.0, -1.0) * (f - cut))[near].sum()
    assert ours.solution_.objective == pytest.approx(0.05 * w @ w + total / 60, rel=1e-9)
