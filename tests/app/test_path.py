"""Regularization paths: each point is a certified fit, and what is kept from point to point changes none."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression

import bmrm
from bmrm.problem import IncompatibleError, InputError

GROUPS = [[0, 1, 2], [4, 5]]
FAMILIES = {
    "l1": "l1",
    "elastic_net": {"name": "elastic_net", "l1_ratio": 0.3},
    "l2": "l2",
    "group_l2": {"name": "group_l2", "groups": GROUPS},
    "free group": {"name": "group_l2", "groups": GROUPS, "weights": [0.0, 1.0]},
    "sparse_group": {"name": "sparse_group", "groups": GROUPS},
    "row_group_l2": "row_group_l2",
    "box": {"name": "box", "norm": "l1"},
}
FEW = {"n_lambdas": 6, "ratio": 0.01, "tolerance": 1e-6}


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X * np.linspace(1.0, 40.0, X.shape[1]), y / 10.0


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(0)) / X.std(0), y


def same_as_fits(found, X, y, family, **more):
    """Every point lies within the gaps of a separate fit."""
    for lam, model in zip(found.lambdas, found.models, strict=True):
        section = {"name": family} if isinstance(family, str) else family
        alone = bmrm.fit(X, y, regularizer={**section, "lambda": lam}, tolerance=1e-7, **more).solution
        mine = model.solution
        assert mine.relative_gap <= 1e-6
        assert mine.lower_bound <= alone.objective * (1.0 + 1e-12)
        assert alone.lower_bound <= mine.objective * (1.0 + 1e-12)
        assert model.header["regularizer"]["lambda"] == lam


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("bias", ["free", "none"])
def test_each_point_is_a_fit(diabetes, kind, bias):
    X, y = diabetes
    given = {"loss": "least_squares", "bias": bias}
    found = bmrm.path(X, y, regularizer=FAMILIES[kind], **given, **FEW)
    assert len(found) == 6
    assert np.all(np.diff(found.lambdas) < 0.0)
    same_as_fits(found, X, y, FAMILIES[kind], **given)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
@pytest.mark.parametrize("family", ["l1", "l2"])
def test_classes(cancer, loss, family):
    X, y = cancer
    found = bmrm.path(X, y, loss=loss, regularizer=family, n_lambdas=4, ratio=0.1, tolerance=1e-6)
    same_as_fits(found, X, y, family, loss=loss)


@pytest.mark.parametrize("solver", ["line_search_bundle", "bundle", "dual_coordinate", "semismooth_newton", "newton"])
def test_what_solvers_keep(cancer, solver):
    X, y = cancer
    loss = "logistic" if solver == "newton" else "hinge"
    lambdas = [1.0, 0.3, 0.1, 0.03]
    found = bmrm.path(X, y, loss=loss, lambdas=lambdas, solver=solver, tolerance=1e-6, max_iterations=20_000)
    assert found.largest is None
    same_as_fits(found, X, y, "l2", loss=loss)


def test_lambda_max_is_where_the_first_weight_appears(diabetes):
    X, y = diabetes
    centred = X - X.mean(0)
    for kind, most in (("l1", np.abs(centred.T @ y).max()), ("elastic_net", np.abs(centred.T @ y).max() / 0.3)):
        found = bmrm.path(X, y, loss="least_squares", regularizer=FAMILIES[kind], **FEW)
        assert found.exact
        assert found.largest == pytest.approx(most / len(y), rel=1e-12)
        assert found.lambdas[0] == found.largest
        assert found.nonzeros[0] == 0 < found.nonzeros[1]
    norms = [np.linalg.norm(centred[:, g].T @ y) / np.sqrt(len(g)) for g in [*GROUPS, *[[j] for j in (3, 6, 7, 8, 9)]]]
    found = bmrm.path(X, y, loss="least_squares", regularizer=FAMILIES["group_l2"], **FEW)
    assert found.largest == pytest.approx(max(norms) / len(y), rel=1e-12)


def test_lambda_max_beside_features_without_penalty(diabetes):
    X, y = diabetes
    design = np.column_stack((np.ones(len(y)), X[:, GROUPS[0]]))
    rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    norms = [np.linalg.norm(X[:, g].T @ rest) / np.sqrt(len(g)) for g in [GROUPS[1], *[[j] for j in (3, 6, 7, 8, 9)]]]
    found = bmrm.path(X, y, loss="least_squares", regularizer=FAMILIES["free group"], **FEW)
    assert found.largest == pytest.approx(max(norms) / len(y), rel=1e-5)


def test_without_a_kink_weights_of_0_meet_the_tolerance_at_lambda_max(diabetes):
    X, y = diabetes
    found = bmrm.path(X, y, loss="least_squares", regularizer="l2", n_lambdas=2, ratio=0.5, tolerance=1e-3)
    slope = (X - X.mean(0)).T @ y / len(y)
    assert not found.exact
    assert found.largest == pytest.approx(slope @ slope / (2.0 * 1e-3 * 0.5 * y.var()), rel=1e-9)


def test_scikit_learn_finds_nothing_below_the_bounds(diabetes, cancer):
    X, y = diabetes
    found = bmrm.path(X, y, loss="least_squares", regularizer="l1", **FEW)
    for lam, bound, objective in zip(found.lambdas, found.lower_bounds, found.objectives):
        other = Lasso(alpha=lam, tol=1e-12, max_iter=100_000).fit(X, y)
        theirs = 0.5 * np.mean((y - other.predict(X)) ** 2) + lam * np.abs(other.coef_).sum()
        assert bound <= theirs * (1.0 + 1e-12)
        assert theirs <= objective * (1.0 + 1e-9)
    found = bmrm.path(X, y, loss="least_squares", regularizer=FAMILIES["elastic_net"], **FEW)
    for lam, bound, model in zip(found.lambdas, found.lower_bounds, found.models):
        other = ElasticNet(alpha=lam, l1_ratio=0.3, tol=1e-12, max_iter=100_000).fit(X, y)
        w = other.coef_
        theirs = 0.5 * np.mean((y - other.predict(X)) ** 2) + lam * (0.3 * np.abs(w).sum() + 0.35 * w @ w)
        assert bound <= theirs * (1.0 + 1e-12)
        assert np.allclose(model.predict(X), other.predict(X), atol=0.02)
    X, y = cancer
    found = bmrm.path(X, y, loss="logistic", regularizer="l2", lambdas=[0.1, 0.01], tolerance=1e-8)
    for lam, model in zip(found.lambdas, found.models):
        other = LogisticRegression(C=1.0 / (lam * len(y)), tol=1e-10, max_iter=10_000).fit(X, y)
        assert np.allclose(model.weights, other.coef_.ravel(), atol=1e-3)


def test_sparse_is_dense(diabetes):
    X, y = diabetes
    thin = np.where(np.abs(X) > np.median(np.abs(X)), X, 0.0)
    for family in ("l1", "l2"):
        given = {"loss": "least_squares", "regularizer": family, **FEW}
        one, other = bmrm.path(thin, y, **given), bmrm.path(sp.csr_matrix(thin), y, **given)
        assert one.lambdas == pytest.approx(other.lambdas, rel=1e-12)
        assert one.objectives == pytest.approx(other.objectives, rel=2e-6)


def test_scaled_weighted_rows(diabetes):
    X, y = diabetes
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    given = {"loss": "least_squares", "regularizer": "l1", "scale": "standardize", **FEW}
    one = bmrm.path(X, y, sample_weight=weights, **given)
    same_as_fits(one, X, y, "l1", loss="least_squares", scale="standardize", sample_weight=weights)
    given["scale"] = "none"
    one = bmrm.path(X, y, sample_weight=weights, **given)
    other = bmrm.path(np.repeat(X, weights, axis=0), np.repeat(y, weights), **given)
    assert one.lambdas == pytest.approx(other.lambdas, rel=1e-12)
    assert one.objectives == pytest.approx(other.objectives, rel=2e-6)


def test_it_ends_where_it_is_told(diabetes):
    X, y = diabetes
    given = {"loss": "least_squares", "regularizer": "l1", "n_lambdas": 30}
    found = bmrm.path(X, y, stop={"nonzeros": 4}, **given)
    assert found.nonzeros[-1] >= 4 > found.nonzeros[-2]
    found = bmrm.path(X, y, stop={"explained": 0.4}, **given)
    assert found.explained[-1] >= 0.4 > found.explained[-2]
    lines = []
    found = bmrm.path(X, y, callback=lambda line: lines.append(line) or len(lines) == 5, **given)
    assert len(found) < 30


def test_explained_is_r_squared(diabetes):
    X, y = diabetes
    found = bmrm.path(X, y, loss="least_squares", regularizer="l1", **FEW)
    for share, model in zip(found.explained, found.models):
        assert share == pytest.approx(model.evaluate(X, y, metrics=["r2"])["r2"], abs=1e-9)


def test_a_model_for_a_lambda_and_a_table(diabetes):
    X, y = diabetes
    found = bmrm.path(X[:300], y[:300], loss="least_squares", regularizer="l1", validation=(X[300:], y[300:]), **FEW)
    assert found.model(found.lambdas[3] * 1.1) is found.models[3]
    assert found.weights.shape == (6, 10)
    assert found.intercepts.shape == (6, 1)
    measure = found.measures["r2"]
    assert measure[2] == pytest.approx(found.models[2].evaluate(X[300:], y[300:], metrics=["r2"])["r2"])
    assert found.table()[2]["r2"] == measure[2]
    assert [line["lambda"] for line in found.table()] == found.lambdas.tolist()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lambdas": [0.1, 0.2]}, "lambdas: number 1 is 0.2 after 0.1, expected decreasing numbers, each once"),
        ({"lambdas": [0.1, 0.1]}, "lambdas: number 1 is 0.1 after 0.1, expected decreasing numbers, each once"),
        ({"lambdas": [0.1, -0.2]}, "lambdas: number 1 is -0.2, expected a number > 0"),
        ({"lambdas": [float("nan")]}, "lambdas: number 0 is nan, expected"),
        ({"lambdas": []}, "lambdas is empty, expected numbers"),
        ({"lambdas": 0.1}, "lambdas is 0.1, expected a list of numbers"),
        ({"lambdas": ["x"]}, "lambdas: number 0 is 'x', expected"),
        ({"n_lambdas": 0}, "n_lambdas is 0, expected"),
        ({"ratio": 1.0}, "ratio is 1.0, expected"),
        ({"ratio": 0.0}, "ratio is 0.0, expected"),
        ({"lambdas": [0.1], "ratio": 0.1}, "ratio beside lambdas, expected one of the two"),
        ({"lambdas": [0.1], "n_lambdas": 3}, "n_lambdas beside lambdas, expected one of the two"),
        ({"regularizer": "none"}, "regularizer 'none' has no lambda, of which a path has many"),
        ({"regularizer": {"name": "l1", "lambda": 0.1}}, "regularizer 'l1': lambda is given, but a path chooses it"),
        ({"regularizer": bmrm.L1(0.1)}, "regularizer is an instance of L1, whose lambda a path chooses; expected"),
        ({"regularizer": 3}, "regularizer is 3, expected a name, a mapping, or a function of lambda"),
        ({"lam": 0.1}, "path has no argument 'lam'; use lambdas"),
        ({"n_alphas": 3}, "path has no argument 'n_alphas'; use n_lambdas"),
        ({"stop": 3}, "stop is 3, expected a mapping such as {'nonzeros': 50}"),
        ({"stop": {"weights": 3}}, "stop has no 'weights', expected nonzeros or explained"),
        ({"stop": {"explained": 2.0}}, "stop: explained is 2.0, expected"),
        ({"metrics": ["r2"]}, "metrics measure validation rows, expected validation=(X, y)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be(diabetes, given, said):
    with pytest.raises(InputError) as error:
        bmrm.path(*diabetes, **given)
    assert str(error.value).startswith(said)


def test_targets_that_need_no_weights():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(InputError, match="lambda_max is 0: weights of 0 explain the targets as well as any others"):
        bmrm.path(X, np.full(20, 2.5), loss="least_squares", regularizer="l1")
    with pytest.raises(InputError, match="lambda_max is 0: weights of 0 explain the targets as well as any others"):
        bmrm.path(np.abs(X), -np.ones(20), loss="least_squares", regularizer="box", bias="none")
    with pytest.raises(InputError, match="weights of 0 meet the tolerance for no lambda, so that none is the first"):
        bmrm.path(X, X[:, 0], loss="least_squares", regularizer="l2", tolerance=0.0)
    with pytest.raises(IncompatibleError, match="a path is of one problem"):
        bmrm.path(X, np.ones((20, 2)) * [[1.0, 2.0]], loss="least_squares", regularizer="l1")


def test_a_function_of_lambda(diabetes):
    X, y = diabetes
    one = bmrm.path(X, y, loss="least_squares", regularizer=bmrm.L1, **FEW)
    other = bmrm.path(X, y, loss="least_squares", regularizer="l1", **FEW)
    assert one.objectives == pytest.approx(other.objectives, rel=1e-12)


def test_estimators_walk_too(cancer, diabetes):
    X, y = cancer
    named = np.array(["benign", "malign"])[y]
    one = bmrm.Classifier("logistic", l1_ratio=1.0, class_weight="balanced", tol=1e-6).path(
        X, named, n_alphas=5, eps=0.1
    )
    given = {"loss": "logistic", "regularizer": "l1", "class_weight": "balanced", "tolerance": 1e-6}
    other = bmrm.path(X, named, n_lambdas=5, ratio=0.1, **given)
    assert one.objectives == pytest.approx(other.objectives, rel=1e-12)
    assert one.models[-1].labels.tolist() == ["benign", "malign"]
    chosen = bmrm.ClassifierCV("logistic", l1_ratio=1.0, class_weight="balanced", tol=1e-6)
    assert chosen.path(X, named, n_alphas=5, eps=0.1).objectives == pytest.approx(other.objectives, rel=1e-12)
    X, y = diabetes
    regressor = bmrm.Regressor("least_squares", l1_ratio=0.5, fit_intercept=False)
    one = regressor.path(X, y, alphas=[1.0, 0.1], stop={"nonzeros": 1})
    assert one.lambdas.tolist() == [1.0]
    assert one.models[0].header["regularizer"] == {
        "name": "elastic_net",
        "lambda": 1.0,
        "l1_ratio": 0.5,
        "engine": "active_set",
    }
    with pytest.raises(InputError, match=r"Classifier\.path: calibrate is 'sigmoid', expected the default"):
        bmrm.Classifier(calibrate="sigmoid").path(*cancer)
    with pytest.raises(InputError, match=r"Regressor: l1_ratio is 0\.5 beside a regularizer"):
        bmrm.Regressor(regularizer="group_l2", l1_ratio=0.5).path(X, y)
    with pytest.raises(InputError, match=r"lambdas: number 1 is 0\.2 after 0\.1"):
        bmrm.Regressor("least_squares").path(X, y, alphas=[0.1, 0.2])


def test_a_picture(diabetes):
    X, y = diabetes
    found = bmrm.path(X, y, loss="least_squares", regularizer="l1", **FEW)
    tree = ET.fromstring(found.svg("The <first> path"))
    assert tree.get("aria-label") == "The <first> path"
    titles = [chart.get("aria-label") for chart in tree.iter("{http://www.w3.org/2000/svg}svg") if chart is not tree]
    assert [title.partition(" by lambda")[0] for title in titles] == [
        "Weights",
        "Features",
        "Share of the loss explained",
        "Relative gap",
    ]
    assert "6 points, lambda" in found._repr_html_()
