"""feature_weights of l2, l1 and elastic_net: against peers on scaled columns, cone programs, by every door."""

import json

import cvxopt
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

import bmrm
from bmrm.problem import Space
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2

LAM = 0.1
C = np.array([0.5, 2.0, 1.0, 3.0, 1.0, 0.2])
KINDS = {"l2": L2, "l1": L1, "elastic_net": ElasticNet}


def data(rows=90):
    random = np.random.default_rng(3)
    X = random.normal(1.0, 1.0, size=(rows, 6))
    return X, X @ [2.0, -1.0, 0.5, 0.0, 0.3, -0.2] + random.normal(size=rows)


def test_l1_is_the_lasso_on_divided_features():
    X, y = data()
    peer = Lasso(alpha=LAM, tol=1e-13, max_iter=100_000).fit(X / C, y)
    for weights in (C, C.tolist(), {0: 0.5, "1": 2.0, 3: 3.0, 5: 0.2}):
        model = bmrm.fit(X, y, loss="least_squares", regularizer=L1(LAM, feature_weights=weights), tolerance=1e-9)
        assert model.weights == pytest.approx(peer.coef_ / C, abs=1e-5)
        assert np.array_equal(model.weights == 0.0, peer.coef_ == 0.0)
        assert model.intercept[0] == pytest.approx(peer.intercept_, abs=1e-5)


def test_l2_is_ridge_regression_on_divided_features():
    X, y = data()
    root = np.sqrt(C)
    peer = Ridge(alpha=LAM * len(y)).fit(X / root, y)
    for rows in (X, csr_array(X)):
        model = bmrm.fit(rows, y, loss="least_squares", regularizer=L2(LAM, feature_weights=C), tolerance=1e-10)
        assert model.weights == pytest.approx(peer.coef_ / root, abs=1e-8)
        assert model.solution.relative_gap <= 1e-10


def test_the_objective_is_that_of_the_formula_and_the_dual_solvers_take_it():
    X, y = data()
    labels = np.where(y > 1.5, 1.0, -1.0)
    for kind, omega in (("l2", lambda w: 0.5 * (C * w * w).sum()), ("l1", lambda w: (C * abs(w)).sum())):
        options = {"name": kind, "lambda": LAM, "feature_weights": C.tolist()}
        model = bmrm.fit(X, labels, loss="hinge", regularizer=options, tolerance=1e-7)
        risk = np.maximum(0.0, 1.0 - labels * (X @ model.weights + model.intercept)).mean()
        assert model.solution.objective == pytest.approx(risk + LAM * omega(model.weights), rel=1e-9)
        assert model.solution.solver.startswith("semismooth_newton")
        assert model.solution.relative_gap <= 1e-7


@pytest.mark.parametrize("ratio", [0.3, 0.8])
def test_elastic_net_agrees_with_a_program(ratio):
    X, y = data()
    c = np.array([0.0, 2.0, 1.0, 3.0, 1.0, 0.2])
    m, d = X.shape
    A = np.hstack([X, np.ones((m, 1))])
    P = np.zeros((2 * d + 1, 2 * d + 1))  # w, b, bounds of |w|
    P[: d + 1, : d + 1] = A.T @ A / m
    P[range(d), range(d)] += LAM * (1.0 - ratio) * c
    q = np.concatenate([-A.T @ y / m, LAM * ratio * c])
    unit = np.eye(2 * d + 1)
    G = np.array([sign * unit[j] - unit[d + 1 + j] for j in range(d) for sign in (1.0, -1.0)])
    accuracy = {"show_progress": False, "abstol": 1e-12, "reltol": 1e-12, "feastol": 1e-12}
    found = cvxopt.solvers.qp(*(cvxopt.matrix(one) for one in (P, q, G, np.zeros(len(G)))), options=accuracy)
    least = found["primal objective"] + float(y @ y) / (2.0 * m)
    omega = ElasticNet(LAM, l1_ratio=ratio, feature_weights=c)
    model = bmrm.fit(X, y, loss="least_squares", regularizer=omega, tolerance=1e-8)
    assert model.solution.status.name == "CONVERGED"
    assert model.solution.objective == pytest.approx(least, rel=1e-8)
    assert model.solution.lower_bound <= least * (1.0 + 1e-9)
    assert model.weights == pytest.approx(np.array(found["x"]).ravel()[:d], abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["least_squares", "logistic", "hinge"])
def test_a_feature_of_weight_0_is_free(kind, loss):
    """Next to one that is penalised by next to nothing, and certified."""
    X, y = data()
    y = y if loss == "least_squares" else np.where(y > 1.5, 1.0, -1.0)
    models = [
        bmrm.fit(X, y, loss=loss, regularizer=KINDS[kind](5.0, feature_weights={0: least}), tolerance=1e-6)
        for least in (0.0, 1e-4)
    ]
    assert [model.solution.status.name for model in models] == ["CONVERGED"] * 2
    w, (free, held) = models[1].weights[0], (model.solution.objective for model in models)
    more = 5.0 * 1e-4 * max(abs(w), w * w)
    assert held - more - 3e-6 * held <= free <= held * (1.0 + 1e-6)
    assert abs(models[0].weights[0]) > 0.1


@pytest.mark.parametrize("scale", ["none", "standardize"])
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.parametrize("kind", ["l2", "l1"])
def test_divided_features_and_blocks_are_one_problem(kind, loss, scale, monkeypatch):
    from bmrm.regularizers._core import weighted

    X, y = data()
    y = np.digitize(y, [0.0, 2.0]) if loss == "softmax" else y > 1.5
    options = {"loss": loss, "scale": scale, "tolerance": 1e-7}
    divided = bmrm.fit(X, y, regularizer=KINDS[kind](LAM, feature_weights=C), **options)
    monkeypatch.setattr(weighted, "FAR", 0.0)
    blocks = bmrm.fit(X, y, regularizer=KINDS[kind](LAM, feature_weights=C), **options)
    assert "blocks" in blocks.solution.solver or loss == "softmax"
    assert "blocks" not in divided.solution.solver
    assert divided.solution.objective == pytest.approx(blocks.solution.objective, rel=3e-7)
    assert divided.predict(X).tolist() == blocks.predict(X).tolist()


def test_named_columns_by_every_door(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    from bmrm.cli import main

    X, y = data()
    names = ["town=Oslo", "town=Bergen", "age", "b", "c", "d"]
    c = np.array([3.0, 3.0, 0.5, 1.0, 1.0, 1.0])
    peer = Lasso(alpha=LAM, tol=1e-13, max_iter=100_000).fit(X / c, y)
    given = {"name": "l1", "lambda": LAM, "feature_weights": {"town=*": 3.0, "age": 0.5}}
    frame = pandas.DataFrame(X, columns=names)
    fitted = bmrm.fit(frame, y, loss="least_squares", regularizer=given, tolerance=1e-9)
    estimator = bmrm.Regressor("least_squares", regularizer=given, tol=1e-9).fit(frame, y)
    frame.assign(y=y).to_csv(tmp_path / "train.csv", index=False)
    config = {
        "schema": 2,
        "data": {"train": str(tmp_path / "train.csv"), "format": {"name": "csv", "label": "y"}},
        "loss": "least_squares",
        "regularizer": given,
        "solver": {"name": "auto", "tolerance": 1e-9},
        "output": {"directory": str(tmp_path / "run")},
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    from bmrm.run import main as run

    assert run([str(tmp_path / "config.yaml")]) == 0
    parts = ["train", str(tmp_path / "train.csv"), "--format", "{name: csv, label: y}", "--loss", "least_squares"]
    parts += [
        "--regularizer",
        "l1",
        "--lambda",
        str(LAM),
        "--set",
        "regularizer.feature_weights={town=*: 3.0, age: 0.5}",
    ]
    assert main([*parts, "--tolerance", "1e-9", "--output", str(tmp_path / "cli")]) == 0
    capsys.readouterr()
    saved = [bmrm.load_model(tmp_path / name / "model.npz") for name in ("run", "cli")]
    for weights in (fitted.weights, estimator.coef_, *(model.weights for model in saved)):
        assert weights == pytest.approx(peer.coef_ / c, abs=1e-5)
    for model in saved:
        assert model.header["regularizer"]["feature_weights"] == {"town=*": 3.0, "age": 0.5}
        assert model.predict(X) == pytest.approx(peer.predict(X / c), abs=1e-4)


def test_a_model_starts_a_run_with_other_weights_but_its_bound_does_not():
    X, y = data()
    first = bmrm.fit(X, y, loss="huber", regularizer=L2(LAM, feature_weights=C), tolerance=1e-8)
    again = bmrm.fit(X, y, loss="huber", regularizer=L2(LAM), start=first, tolerance=1e-8)
    plain = bmrm.fit(X, y, loss="huber", regularizer=L2(LAM), tolerance=1e-8)
    assert again.solution.objective == pytest.approx(plain.solution.objective, rel=2e-8)
    assert again.weights == pytest.approx(plain.weights, abs=1e-4)


def test_a_path_keeps_the_weights():
    X, y = data()
    path = bmrm.path(
        X,
        y,
        loss="least_squares",
        regularizer={"name": "l1", "feature_weights": C.tolist()},
        lambdas=[0.3, 0.1],
        tolerance=1e-8,
    )
    for lam, model in zip((0.3, 0.1), path.models, strict=True):
        peer = Lasso(alpha=lam, tol=1e-13, max_iter=100_000).fit(X / C, y)
        assert model.weights == pytest.approx(peer.coef_ / C, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((1.0, -1.0, 1.0, 1.0, 1.0, 1.0), "feature_weights of 1 is -1, expected numbers >= 0"),
        ({"2": -3.0}, "feature_weights of '2' is -3, expected numbers >= 0"),
        (float("nan"), "feature_weights is nan, expected any number"),
        ((1.0, float("inf")), "feature_weights of feature 1 is inf, expected a finite number"),
        ((1.0, 2.0), "feature_weights has 2 numbers, expected one for each of 6 features"),
        ({9: 1.0}, "feature_weights: feature 9, expected 0 to 5"),
        ({"age": 1.0}, "feature_weights: feature 'age', but the features have no names; expected their numbers"),
        ((0.0,) * 6, "feature_weights are all 0; without a regularizer take `none`"),
        (0.0, "feature_weights is 0, expected a number > 0 for all features"),
        ("much", "feature_weights is 'much', expected a finite number"),
    ],
)
def test_bad_weights_get_one_message(kind, given, said):
    X, y = data()
    with pytest.raises(bmrm.InputError, match=f"^{KINDS[kind].__name__}: {said}"):
        bmrm.fit(X, y, loss="least_squares", regularizer=KINDS[kind](LAM, feature_weights=given))


def test_without_a_space_it_says_so():
    with pytest.raises(bmrm.InputError, match="L2: which weights are those of a feature is not known"):
        L2(0.1, feature_weights=(1.0, 2.0)).value(np.ones(2))
    assert L2(0.1, feature_weights=(1.0, 2.0)).bind(Space(2)).value(np.ones(2)) == pytest.approx(0.15)


def test_sklearn_agrees_on_a_logistic_loss():
    X, y = data()
    labels, root = y > 1.5, np.sqrt(C)
    peer = LogisticRegression(C=1.0 / (LAM * len(y)), tol=1e-10, max_iter=10_000).fit(X / root, labels)
    model = bmrm.fit(X, labels, loss="logistic", regularizer=L2(LAM, feature_weights=C), tolerance=1e-10)
    assert model.weights == pytest.approx(peer.coef_.ravel() / root, abs=1e-5)
