"""`center` of l2: the minimum by formulas and by another road, every loss and solver, every door, and bad input."""

import json

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.sparse import csr_array

import bmrm
from bmrm.cli import main
from bmrm.data.writers import write_svmlight
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, InputError
from bmrm.regularizers.l2 import L2
from bmrm.run import main as run
from bmrm.solvers import SOLVERS
from tests.mpi.launch import work
from tests.targets import default_instance, groups_for, targets_for

LAM = 0.3
C = np.array([1.0, -2.0, 0.5, 0.0, 3.0])


def rows(count=80):
    random = np.random.default_rng(0)
    X = random.normal(1.0, [0.5, 1.0, 2.0, 3.0, 1.0], size=(count, 5))
    return X, X @ [1.0, -1.0, 0.0, 0.5, 2.0] + random.normal(size=count)


def ridge(X, y, lam, center, bias, scale, factors=None):
    """Weights of the raw features by the normal equations, and J there."""
    m, d = X.shape
    mean, unit = (X.mean(axis=0), X.std(axis=0)) if scale == "standardize" else (np.zeros(d), np.ones(d))
    A, c = (X - mean) / unit, center * unit
    P = lam * np.diag(np.ones(d) if factors is None else factors)
    if bias != "none":
        A, c = np.c_[A, np.ones(m)], np.append(c, 0.0)
        P = np.pad(P, (0, 1))
        P[d, d] = lam * (bias == "regularized")
    w = np.linalg.solve(A.T @ A / m + P, A.T @ y / m + P @ c)
    return w[:d] / unit, 0.5 * np.mean((A @ w - y) ** 2) + 0.5 * (w - c) @ P @ (w - c)


@pytest.mark.parametrize("scale", ["none", "standardize"])
@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
def test_ridge_regression_around_a_center(bias, scale):
    X, y = rows()
    w, least = ridge(X, y, LAM, C, bias, scale)
    options = {"loss": "least_squares", "bias": bias, "scale": scale, "tolerance": 1e-12}
    for features in (X, csr_array(X)):
        model = bmrm.fit(features, y, regularizer=L2(LAM, center=C), **options)
        np.testing.assert_allclose(model.weights, w, atol=1e-8)
        assert model.solution.objective == pytest.approx(least, rel=1e-10)
        assert model.solution.lower_bound <= least * (1.0 + 1e-13)


@pytest.mark.parametrize("factors", [[0.5, 2.0, 1.0, 3.0, 1.0], [0.0, 2.0, 1.0, 0.0, 1.0]], ids=["divided", "free"])
def test_with_factors_of_the_features(factors):
    X, y = rows()
    w, least = ridge(X, y, LAM, C, "free", "none", factors)
    omega = L2(LAM, center=C, feature_weights=factors)
    model = bmrm.fit(X, y, loss="least_squares", regularizer=omega, tolerance=1e-10)
    np.testing.assert_allclose(model.weights, w, atol=1e-4)
    assert model.solution.objective == pytest.approx(least, rel=1e-9)
    assert model.solution.lower_bound <= least * (1.0 + 1e-12)
    assert model.header["regularizer"]["center"] == tuple(C)


def test_svm_around_a_center_is_a_quadratic_program():
    cvxopt = pytest.importorskip("cvxopt")
    X, y = rows(40)
    y, (m, d) = np.sign(y - np.median(y)), (40, 5)
    q = np.r_[-LAM * C, 0.0, np.full(m, 1.0 / m)]
    P = np.diag(np.r_[np.full(d, LAM), np.zeros(m + 1)])
    G = np.r_[np.c_[-y[:, None] * X, -y, -np.eye(m)], np.c_[np.zeros((m, d + 1)), -np.eye(m)]]
    h = np.r_[-np.ones(m), np.zeros(m)]
    quiet = {"show_progress": False, "abstol": 1e-12, "reltol": 1e-12, "feastol": 1e-12}
    found = cvxopt.solvers.qp(*(cvxopt.matrix(one) for one in (P, q, G, h)), options=quiet)
    least = found["primal objective"] + 0.5 * LAM * C @ C
    fitted = 0
    for entry in SOLVERS.all():
        try:
            model = bmrm.fit(X, y, loss="hinge", regularizer=L2(LAM, center=C), solver=entry.name, time_limit=0.5)
        except IncompatibleError:
            with pytest.raises(IncompatibleError):  # nor without a center
                bmrm.fit(X, y, loss="hinge", lam=LAM, solver=entry.name)
            continue
        solution, fitted = model.solution, fitted + 1
        margins = y * (X @ model.weights + model.intercept)
        by_formula = 0.5 * LAM * np.sum((model.weights - C) ** 2) + np.maximum(0.0, 1.0 - margins).mean()
        assert solution.objective == pytest.approx(by_formula, rel=1e-11)
        assert solution.lower_bound <= least * (1.0 + 1e-9) <= solution.objective * (1.0 + 2e-9)
        if solution.converged:
            assert solution.objective <= least * (1.0 + 1.1e-4), entry.name
    assert fitted >= 6


@pytest.mark.parametrize("entry", LOSSES.all(), ids=lambda entry: entry.name)
def test_every_loss_of_scores_has_the_minimum_that_blocks_have(entry):
    """The center of a sum over blocks, on the rows as they are, is another road to the same J."""
    loss, random = default_instance(entry), np.random.default_rng(1)
    y, groups = targets_for(loss, 30), groups_for(loss, 30)
    data = bmrm.Dataset.from_arrays(random.normal(size=(30, 3)), y, groups=groups)
    risk = bmrm.LinearRisk(data, loss)
    center = random.normal(size=(3, risk.scores_per_row))
    omega = L2(0.1, center=center)
    if risk.dim != center.size:
        with pytest.raises(IncompatibleError, match=f"regularizer.center: .* {entry.name} learns more than weights"):
            bmrm.fit(data, loss=loss, regularizer=omega, bias="none")
        return
    model = bmrm.fit(data, loss=loss, regularizer=omega, bias="none", tolerance=1e-5, time_limit=5)
    value = risk.value_and_subgradient(model.weights.ravel())[0]
    away = model.weights.reshape(center.shape) - center
    assert model.solution.objective == pytest.approx(value + 0.05 * np.sum(away**2), rel=1e-10)
    other = bmrm.minimize(risk, omega, "bundle", tolerance=1e-4, time_limit=20)
    assert max(model.solution.lower_bound, other.lower_bound) <= min(model.solution.objective, other.objective) + 1e-9
    assert model.solution.objective <= other.objective * (1.0 + 1e-5) + 1e-9


@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax", "quantile"])
def test_a_center_at_the_minimum_of_the_loss_is_where_a_run_ends(loss, bias, tmp_path):
    """Continual training on the same rows: with a large lambda nothing moves, and J is the loss alone."""
    X, y = rows()
    y = {"softmax": np.digitize(y, [1.0, 4.0]), "quantile": y}.get(loss, y > np.median(y))
    first = bmrm.fit(X, y, loss=loss, lam=1e-4, bias=bias, scale="standardize", tolerance=1e-9)
    first.save(tmp_path / "first.npz")
    omega = L2(1e8, center=str(tmp_path / "first.npz"))
    given = {"tolerance": 1e-5, "callback": lambda _: None}  # else these few rows are solved at once
    again = bmrm.fit(X, y, loss=loss, regularizer=omega, bias=bias, scale="standardize", **given)
    assert again.solution.iterations <= 5  # kinks: to prove it
    np.testing.assert_allclose(again.weights, first.weights, atol=1e-6)
    assert again.solution.objective <= first.solution.objective
    assert "weights of 0" not in again.solution.message


def test_the_start_and_the_checkpoint_are_those_of_other_runs(tmp_path):
    X, y = rows()
    options = {"loss": "logistic", "regularizer": L2(LAM, center=C), "tolerance": 1e-9}
    model = bmrm.fit(X, y > 1.0, **options)
    again = bmrm.fit(X, y > 1.0, start=model, **options)
    assert again.solution.iterations <= 1
    assert again.solution.objective == pytest.approx(model.solution.objective, rel=1e-9)


@pytest.mark.parametrize("names", [list("abcde"), list("edcba"), ["a", "x", "c", "y", "e"]], ids="".join)
def test_features_of_a_model_are_found_by_name(names, tmp_path):
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abcde"))
    old = bmrm.fit(frame, y, loss="least_squares", lam=1e-3)
    old.save(tmp_path / "old.npz")
    center = np.array([dict(zip("abcde", old.weights)).get(name, 0.0) for name in names])
    other = pd.DataFrame(X, columns=names)
    model = bmrm.fit(other, y, loss="least_squares", regularizer=L2(LAM, center=tmp_path / "old.npz"), tolerance=1e-11)
    np.testing.assert_allclose(model.weights, ridge(X, y, LAM, center, "free", "none")[0], atol=1e-7)
    said = model.solution.message
    if "x" in names:
        assert "old.npz has no features 'x', 'y', whose center is 0 and has features 'b', 'd', which the data" in said
    else:
        assert "old.npz" not in said


def test_scores_of_a_model_are_found_by_label(tmp_path):
    X, y = rows()
    y = np.array(["low", "mid", "high"])[np.digitize(y, [1.0, 4.0])]
    bmrm.fit(X[y != "mid"], y[y != "mid"], loss="softmax", lam=1e-2).save(tmp_path / "two.npz")
    three = bmrm.fit(X, y, loss="softmax", lam=1e-2)
    three.save(tmp_path / "three.npz")
    for kind in ({"loss": "softmax"}, {"loss": "hinge", "classes": "one_vs_rest"}):
        far = bmrm.fit(X, y, regularizer=L2(1e9, center=str(tmp_path / "three.npz")), **kind)
        np.testing.assert_allclose(far.weights, three.weights, atol=1e-6)
        new = bmrm.fit(X, y, regularizer=L2(1e9, center=str(tmp_path / "two.npz")), **kind)
        assert new.labels.tolist() == ["high", "low", "mid"]
        assert np.abs(new.weights[:, 2]).max() < 1e-6 < np.abs(new.weights[:, 0]).max()
        assert "two.npz has no label 'mid', whose center is 0" in new.solution.message


def test_columns_of_targets_each_have_their_center():
    X, y = rows()
    center = np.c_[C, -C]
    model = bmrm.fit(X, np.c_[y, -2.0 * y], loss="least_squares", regularizer=L2(LAM, center=center), tolerance=1e-12)
    for k, factor in enumerate((1.0, -2.0)):
        w, _ = ridge(X, factor * y, LAM, center[:, k], "free", "none")
        np.testing.assert_allclose(model.weights[:, k], w, atol=1e-7)


def test_beside_an_offset_and_with_minimize():
    X, y = rows()
    own = np.random.default_rng(2).normal(size=len(y))
    model = bmrm.fit(X, y, loss="least_squares", offset=own, regularizer=L2(LAM, center=C), tolerance=1e-12)
    np.testing.assert_allclose(model.weights, ridge(X, y - own, LAM, C, "free", "none")[0], atol=1e-8)
    np.testing.assert_allclose(model.predict(X, offset=own), X @ model.weights + model.intercept + own)
    risk = bmrm.LinearRisk(bmrm.Dataset.from_arrays(X, y), LOSSES.make("least_squares"))
    _, least = ridge(X, y, LAM, C, "none", "none")
    for solver in ("auto", "bundle", "proximal_gradient", "lbfgs"):
        found = bmrm.minimize(risk, L2(LAM, center=dict(enumerate(C))), solver, tolerance=1e-8)
        assert found.objective == pytest.approx(least, rel=1e-7)
        assert found.lower_bound <= least * (1.0 + 1e-12)
    with pytest.raises(InputError, match=r"L2: center is the model file 'a.npz', which `bmrm.fit` reads"):
        bmrm.minimize(risk, L2(LAM, center="a.npz"))


def test_paths_cross_validation_and_estimators():
    X, y = rows()
    given = {"name": "l2", "center": C.tolist()}
    path = bmrm.path(X, y, loss="least_squares", regularizer=given, lambdas=[10.0, LAM, 0.01], tolerance=1e-11)
    for lam, model in zip(path.lambdas, path.models, strict=True):
        np.testing.assert_allclose(model.weights, ridge(X, y, lam, C, "free", "none")[0], atol=1e-6)
        assert model.header["regularizer"]["lambda"] == lam
    plain = bmrm.path(X, y, loss="least_squares", regularizer="l2", lambdas=[1e-6])
    near = bmrm.path(X, y, loss="least_squares", regularizer=given, lambdas=[1e-6])
    assert near.explained[0] == pytest.approx(plain.explained[0], abs=1e-4)
    grid = bmrm.path(X, y, loss="least_squares", regularizer=given, n_lambdas=5)
    np.testing.assert_allclose(grid.models[0].weights, C, atol=0.05)
    fold, held = np.arange(len(y)) % 4, []
    found = bmrm.cross_validate(
        X, y, loss="least_squares", regularizer=given, lambdas=[LAM, 1e4], folds=fold, measures=["mse"], tolerance=1e-11
    )
    for k in range(4):
        inside = fold != k
        w, _ = ridge(X[inside], y[inside], LAM, C, "free", "none")
        b = (y[inside] - X[inside] @ w).mean()
        held.append(np.mean((X[~inside] @ w + b - y[~inside]) ** 2))
    line = next(line for line in found.table() if line["regularizer.lambda"] == LAM)
    assert line["mean_mse"] == pytest.approx(np.mean(held), rel=1e-6)
    tight = {"tol": 1e-11, "regularizer": {**given, "lambda": LAM}}
    estimator = bmrm.Regressor("least_squares", **tight).fit(X, y)
    np.testing.assert_allclose(estimator.coef_, ridge(X, y, LAM, C, "free", "none")[0], atol=1e-6)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """`old.npz` of columns a to e; `new.csv`, `new.svm` and J of the center on them, lambda LAM."""
    monkeypatch.chdir(tmp_path)
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abcde"))
    old = bmrm.fit(frame[:30], y[:30], loss="least_squares", lam=1e-3)
    old.save("old.npz")
    bmrm.fit(X[:30], y[:30], loss="least_squares", lam=1e-3).save("numbers.npz")
    frame[["e", "d", "c", "b", "a"]].assign(y=y).to_csv("new.csv", index=False)
    write_svmlight("new.svm", bmrm.Dataset.from_arrays(X, y))
    return ridge(X, y, LAM, old.weights, "free", "none")[1]


def summary(folder):
    with open(f"{folder}/summary.json") as file:
        return json.load(file)


CSV = ("new.csv", "--format", "{name: csv, label: y}")
WORDS = ("--loss", "least_squares", "--lambda", str(LAM), "--tolerance", "1e-10", "--quiet")


@pytest.mark.parametrize("source", [(*CSV, "old.npz"), ("new.svm", "numbers.npz")], ids=["csv", "svmlight"])
def test_command_line_and_config(files, source):
    *rows, center = source
    given = ("--set", f"regularizer.center={center}")
    assert main(["train", *rows, *WORDS, *given, "--output", "a"]) == 0
    assert summary("a")["objective"] == pytest.approx(files, rel=1e-8)
    assert summary("a")["regularizer"]["center"] == center
    with open("a/config.yaml") as file:
        kept = yaml.safe_load(file)
    assert kept["regularizer"]["center"] == center
    kept["output"]["directory"] = "b"
    with open("b.yaml", "w") as file:
        yaml.safe_dump(kept, file)
    assert run(["b.yaml", "--quiet"]) == 0
    assert summary("b")["objective"] == summary("a")["objective"]
    assert main(["predict", "a", rows[0], "--quiet", "--out", "scores.txt"]) == 0


def test_long_lists_are_shortened_where_they_are_shown(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(20, 60))
    bmrm.fit(X, X[:, 0], loss="least_squares", regularizer=L2(LAM, center=np.full(60, 1.0 / 3.0))).save(tmp_path / "m")
    assert main(["show", str(tmp_path / "m")]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "regularizer" in line)
    assert "center" in line
    assert len(line) < 140


def test_another_file_under_the_same_name_is_another_problem(files, capsys):
    given = ("--set", "regularizer.center=old.npz")
    assert main(["train", *CSV, *WORDS, *given, "--output", "a"]) == 0
    bmrm.load_model("a/model.npz").save("old.npz")
    assert main(["train", *CSV, *WORDS, *given, "--output", "a", "--resume"]) == 2
    assert "regularizer.center is a model file of digest" in capsys.readouterr().err


@pytest.mark.mpi
def test_over_ranks_it_is_the_same_minimum(files, tmp_path):
    given = ("--set", "regularizer.center=old.npz")
    done = work(3, "bmrm.cli", "train", *CSV, *WORDS, *given, "--output", "o", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert summary("o")["objective"] == pytest.approx(files, rel=1e-8)
    done = work(
        3, "bmrm.cli", "train", *CSV, *WORDS, "--set", "regularizer.center=no.npz", "--output", "p", cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr.count("no.npz") == 1
    assert not (tmp_path / "p" / "model.npz").exists()


@pytest.mark.parametrize(
    ("center", "said"),
    [
        ([1.0, 2.0], "L2: center has 2 numbers, expected one for each of 5 features"),
        ([1.0, float("nan")], "L2: center of feature 1 is nan, expected a finite number"),
        (np.ones((5, 2)), r"L2: center has shape \(5, 2\), expected \(5, 1\): features and scores"),
        ([[1.0], [2.0, 3.0]], "expected a number for each feature, or as many for each"),
        ({9: 1.0}, "L2: center: feature 9, expected 0 to 4"),
        ({"age": 1.0}, "L2: center: feature 'age', but the features have no names"),
        ("", "L2: center is '', expected numbers or the path of a model file"),
        (True, "L2: center is True, expected a finite number"),
        ("no.npz", "no.npz"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(center, said):
    X, y = rows()
    with pytest.raises(InputError, match=said):
        bmrm.fit(X, y, loss="least_squares", regularizer=L2(LAM, center=center))


def test_models_that_do_not_fit_are_refused(tmp_path):
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abcde"))

    def said(rows, targets, path, **options):
        with pytest.raises(InputError) as found:
            bmrm.fit(rows, targets, regularizer=L2(LAM, center=str(tmp_path / path)), **options)
        return str(found.value)

    bmrm.fit(frame, y, loss="least_squares").save(tmp_path / "named.npz")
    bmrm.fit(X[:, :3], y, loss="least_squares").save(tmp_path / "three.npz")
    bmrm.fit(X, y > 1.0, loss="logistic").save(tmp_path / "binary.npz")
    bmrm.fit(X, y, loss="least_squares", scale="unit_norm").save(tmp_path / "unit.npz")
    bmrm.fit(X, y, loss="least_squares", features={"name": "polynomial", "degree": 2}).save(tmp_path / "map.npz")
    classes = np.digitize(y, [1.0, 4.0])
    squares = {"loss": "least_squares"}
    assert "three.npz has 3 features, the data have 5; expected as many, or names in both" in said(
        X, y, "three.npz", **squares
    )
    assert "named.npz has none of the features 'v', 'w', 'x' and 2 more, expected some" in said(
        pd.DataFrame(X, columns=list("vwxyz")), y, "named.npz", **squares
    )
    assert "binary.npz has 1 scores for a row, the problem has 3" in said(X, classes, "binary.npz", loss="softmax")
    assert "binary.npz has the labels [False, True], the data ['a', 'b']; expected the same" in said(
        X, np.where(y > 1.0, "b", "a"), "binary.npz", loss="hinge"
    )
    assert "unit.npz is of rows with scale unit_norm, these have none" in said(X, y, "unit.npz", **squares)
    assert "map.npz has weights of features that a map makes" in said(X, y, "map.npz", **squares)


@pytest.mark.parametrize("center", ["no.npz", "[1, 2]", "{zz: 1}", "numbers.txt"])
def test_bad_input_ends_a_command_in_one_line(files, center, capsys, tmp_path):
    (tmp_path / "numbers.txt").write_text("1 2 3\n")
    assert main(["train", *CSV, *WORDS, "--set", f"regularizer.center={center}", "--output", "a"]) == 2
    found = capsys.readouterr().err
    assert found.count("\n") == 1
    assert "center" in found or center in found
    assert not (tmp_path / "a" / "model.npz").exists()
