"""Several columns of targets: classes one against the rest, each of several labels, outputs of a regression."""

import json

import numpy as np
import pytest
import yaml
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris

import bmrm
from bmrm.cli import main
from bmrm.data.writers import write_npz, write_svmlight
from bmrm.problem import IncompatibleError, InputError
from tests.mpi.launch import work

TIGHT = {"lam": 1e-2, "tolerance": 1e-8}
NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.fixture(scope="module")
def rows():
    """Features, labels, a matrix of 0 and 1, numbers."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    rng = np.random.default_rng(0)
    marks = (X @ rng.standard_normal((4, 3)) + rng.normal(size=(50, 3)) > [1.0, 0.0, 3.0]).astype(int)
    numbers = rng.poisson(np.exp(0.3 * X @ rng.standard_normal((4, 2)))).astype(float)
    return X, NAMES[y], marks, numbers


def alone(X, columns, loss, **more):
    """A model for each column."""
    return [bmrm.fit(X, column, loss=loss, **{**TIGHT, **more}) for column in columns]


def same(model, models):
    assert model.weights.shape[1] == model.intercept.size == len(models)
    for k, one in enumerate(models):
        np.testing.assert_array_equal(model.weights[:, k], one.weights)
        assert model.intercept[k] == one.intercept[0]
        assert model.header["columns"]["objective"][k] == one.solution.objective
        assert model.header["columns"]["lower_bound"][k] == one.solution.lower_bound
    solution = model.solution
    assert solution.objective == pytest.approx(sum(one.solution.objective for one in models), rel=1e-14)
    assert solution.lower_bound == pytest.approx(sum(one.solution.lower_bound for one in models), rel=1e-14)
    assert solution.converged
    assert solution.history[-1].objective == pytest.approx(solution.objective, rel=1e-14)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_one_against_the_rest(rows, loss, weighted):
    X, y, _, _ = rows
    more = {"sample_weight": np.linspace(0.5, 2.0, 50)} if weighted else {}
    model = bmrm.fit(X, y, loss=loss, classes="one_vs_rest", **more, **TIGHT)
    same(model, alone(X, [y == name for name in NAMES], loss, **more))
    assert model.labels.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(model.predict(X), NAMES[model.decision_function(X).argmax(axis=1)])
    assert model.evaluate(X, y)["accuracy"] == np.mean(model.predict(X) == y) > 0.8


def test_probabilities_are_those_of_the_classes_over_their_sum(rows):
    X, y, _, _ = rows
    model = bmrm.fit(X, y, loss="logistic", classes="one_vs_rest", **TIGHT)
    each = 1.0 / (1.0 + np.exp(-model.decision_function(X)))
    np.testing.assert_allclose(model.predict_proba(X), each / each.sum(axis=1, keepdims=True))
    with pytest.raises(InputError, match="has no probabilities"):
        bmrm.fit(X, y, classes="one_vs_rest").predict_proba(X)


def test_two_classes_are_one_problem(rows):
    X, y, _, _ = rows
    kept = y != "setosa"
    model = bmrm.fit(X[kept], y[kept], loss="hinge", classes="one_vs_rest", **TIGHT)
    assert model.weights.ndim == 1
    np.testing.assert_array_equal(model.weights, bmrm.fit(X[kept], y[kept], loss="hinge", **TIGHT).weights)


def test_lambda_and_weights_of_classes_are_those_of_all_rows(rows):
    X, y, _, _ = rows
    model = bmrm.fit(X, y, loss="hinge", classes="one_vs_rest", class_weight={"setosa": 3.0}, tolerance=1e-8)
    assert model.header["regularizer"]["lambda"] == 1.0 / 50
    weights = np.where(y == "setosa", 3.0, 1.0)
    same(model, alone(X, [y == name for name in NAMES], "hinge", lam=1.0 / 50, sample_weight=weights))


@pytest.mark.parametrize("loss", ["hinge", "roc_area", "logistic"])
def test_each_label(rows, loss):
    X, _, marks, _ = rows
    model = bmrm.fit(X, marks, loss=loss, labels="each", **TIGHT)
    same(model, alone(X, marks.T, loss))
    np.testing.assert_array_equal(model.predict(X), (model.decision_function(X) > 0.0).astype(int))
    sparse = bmrm.fit(X, csr_matrix(marks), loss=loss, labels="each", **TIGHT)
    assert (sparse.predict(X) != csr_matrix(model.predict(X))).nnz == 0
    sets = [{NAMES[k] for k in np.flatnonzero(row)} for row in marks]
    named = bmrm.fit(X, sets, loss=loss, labels="each", **TIGHT)
    np.testing.assert_array_equal(named.weights, model.weights)
    assert named.predict(X)[0] == {NAMES[k] for k in np.flatnonzero(model.predict(X)[0])}
    assert set(model.evaluate(X, marks)) == {"label_average_precision", "macro_f1", "micro_f1"}


def test_labels_by_probe(rows):
    X, _, marks, _ = rows
    model = bmrm.fit(X, marks, loss="hinge", labels="each", solver="probe", lam=1e-2)
    assert set(model.header["columns"]["status"]) <= {"OWN_RULE", "CONVERGED"}


@pytest.mark.parametrize("loss", ["poisson", "quantile", "huber", "least_squares"])
def test_outputs_of_a_regression(rows, loss):
    X, _, _, numbers = rows
    model = bmrm.fit(X, numbers, loss=loss, **TIGHT)
    models = alone(X, numbers.T, loss)
    same(model, models)
    np.testing.assert_allclose(model.predict(X), np.stack([one.predict(X) for one in models], axis=1), rtol=1e-10)
    assert model.evaluate(X, numbers)["mae"] == pytest.approx(np.mean(np.abs(model.predict(X) - numbers)))


def test_an_offset_goes_with_its_column(rows):
    X, _, _, numbers = rows
    offset = np.random.default_rng(1).normal(size=(50, 2))
    model = bmrm.fit(X, numbers, loss="poisson", offset=offset, **TIGHT)
    each = [bmrm.fit(X, numbers[:, k], loss="poisson", offset=offset[:, k], **TIGHT) for k in range(2)]
    same(model, each)
    np.testing.assert_allclose(model.predict(X, offset=offset)[:, 1], each[1].predict(X, offset=offset[:, 1]))


def test_files_of_models_and_warm_starts(rows, tmp_path):
    X, y, marks, numbers = rows
    for targets, more in (
        (y, {"loss": "logistic", "classes": "one_vs_rest"}),
        (marks, {"loss": "hinge", "labels": "each"}),
        (numbers, {"loss": "quantile"}),
    ):
        model = bmrm.fit(X, targets, **more, **TIGHT)
        model.save(tmp_path / "model.npz")
        again = bmrm.load_model(tmp_path / "model.npz")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.evaluate(X, targets) == model.evaluate(X, targets)
        warm = bmrm.fit(X, targets, start=again, **more, **TIGHT)
        assert warm.solution.objective == pytest.approx(model.solution.objective, rel=1e-7)
        assert warm.solution.iterations <= model.solution.iterations


def test_estimators(rows):
    X, y, _, numbers = rows
    classifier = bmrm.Classifier("hinge", alpha=1e-2, tol=1e-8, classes="one_vs_rest").fit(X, y)
    model = bmrm.fit(X, y, loss="hinge", classes="one_vs_rest", **TIGHT)
    np.testing.assert_array_equal(classifier.coef_, model.weights.T)
    np.testing.assert_array_equal(classifier.predict(X), model.predict(X))
    assert classifier.dual_gap_ == model.solution.gap
    regressor = bmrm.Regressor("huber", alpha=1e-2, tol=1e-8).fit(X, numbers)
    assert regressor.coef_.shape == (2, 4)
    assert regressor.predict(X).shape == (50, 2)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"loss": "softmax", "classes": "one_vs_rest"}, "softmax: one_vs_rest is for losses of two classes"),
        ({"loss": "hinge", "classes": "ovr"}, "classes is 'ovr', expected one of together, one_vs_rest"),
        ({"loss": "hinge", "labels": "all"}, "labels is 'all', expected one of together, each"),
        ({"loss": "hinge", "classes": "one_vs_rest", "labels": "each"}, "expected one of the two"),
        ({"loss": "hinge", "labels": "each"}, "expected a set of labels per row"),
    ],
    ids=["softmax", "unknown", "unknown-labels", "both", "labels"],
)
def test_what_is_wrong_is_said(rows, more, said):
    X, y, _, _ = rows
    with pytest.raises(InputError) as found:
        bmrm.fit(X, y, **more)
    assert said in str(found.value)


def test_what_is_of_one_problem_is_refused(rows):
    X, y, _, _ = rows
    with pytest.raises(IncompatibleError, match="follow measures one problem"):
        bmrm.fit(X, y, loss="hinge", classes="one_vs_rest", validation=(X, y), follow=["accuracy"])


def test_a_label_that_all_rows_have_is_named(rows):
    X, _, marks, _ = rows
    marks = marks.copy()
    marks[:, 1] = 1
    with pytest.raises((InputError, IncompatibleError), match="label 1"):
        bmrm.fit(X, marks, loss="roc_area", labels="each")


def test_a_time_limit_is_that_of_all(rows):
    X, y, _, _ = rows
    model = bmrm.fit(X, y, loss="hinge", classes="one_vs_rest", lam=1e-9, tolerance=0.0, time_limit=0.3)
    assert model.solution.seconds < 5.0
    assert np.isfinite(model.solution.objective)


@pytest.fixture
def files(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, marks, numbers = rows
    place = np.searchsorted(NAMES, y)
    order = np.random.default_rng(2).permutation(50)
    write_svmlight("classes.svm", bmrm.Dataset.from_arrays(X[order], place[order]))
    write_npz("labels.npz", bmrm.Dataset.from_arrays(X, csr_matrix(marks)))
    write_npz("numbers.npz", bmrm.Dataset.from_arrays(X, numbers))
    return {
        "classes": bmrm.fit(X[order], place[order], loss="hinge", classes="one_vs_rest", **TIGHT),
        "labels": bmrm.fit(X, marks, loss="hinge", labels="each", **TIGHT),
        "numbers": bmrm.fit(X, numbers, loss="quantile", **TIGHT),
    }


SOURCES = {
    "classes": ("classes.svm", "--loss", "hinge", "--classes", "one_vs_rest"),
    "labels": ("labels.npz", "--loss", "hinge", "--labels", "each"),
    "numbers": ("numbers.npz", "--loss", "quantile"),
}
WORDS = ("--lambda", "1e-2", "--tolerance", "1e-8", "--quiet")


def summary(folder):
    with open(f"{folder}/summary.json") as file:
        return json.load(file)


@pytest.mark.parametrize("name", SOURCES)
def test_command_line_and_config(files, name, capsys):
    source = SOURCES[name]
    assert main(["train", *source, *WORDS, "--test", source[0], "--output", "a"]) == 0
    found, expected = summary("a"), files[name].solution
    assert found["objective"] == pytest.approx(expected.objective, rel=1e-8)
    assert found["lower_bound"] == pytest.approx(expected.lower_bound, rel=1e-8)
    assert set(found["metrics"]["test"]) == set(files[name].loss.metrics)
    with open("a/config.yaml") as file:
        kept = yaml.safe_load(file)
    kept["output"]["directory"] = "b"
    with open("b.yaml", "w") as file:
        yaml.safe_dump(kept, file)
    assert main(["train", "b.yaml", "--quiet"]) == 0
    assert summary("b")["objective"] == found["objective"]
    capsys.readouterr()
    assert main(["predict", "a", source[0], "--labels", "--quiet"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 50
    assert main(["show", "a"]) == 0
    assert main(["evaluate", "a", source[0]]) == 0


def test_probabilities_are_exported(rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y, _, _ = rows
    model = bmrm.fit(X, y, loss="logistic", classes="one_vs_rest", **TIGHT)
    model.save("model.npz")
    assert main(["export", "model.npz", "--to", "json", "--out", "model.json"]) == 0
    with open("model.json") as file:
        found = json.load(file)
    assert found["predicts"] == "largest"
    assert found["probabilities"] == {"form": "sigmoid", "lines": [[1.0, 0.0]] * 3}


def test_classes_apart_are_another_problem(files, capsys):
    assert main(["train", *SOURCES["classes"], *WORDS, "--output", "a"]) == 0
    assert main(["train", "classes.svm", "--loss", "multiclass_hinge", *WORDS, "--output", "a"]) == 2
    assert main(["train", "classes.svm", "--loss", "softmax", "--classes", "one_vs_rest", *WORDS, "--output", "b"]) == 2
    assert "softmax: one_vs_rest is for losses of two classes" in capsys.readouterr().err


@pytest.mark.mpi
@pytest.mark.parametrize("name", SOURCES)
def test_over_ranks(files, name, tmp_path):
    done = work(3, "bmrm.cli", "train", *SOURCES[name], *WORDS, "--output", "o", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert summary("o")["objective"] == pytest.approx(files[name].solution.objective, rel=1e-7)
