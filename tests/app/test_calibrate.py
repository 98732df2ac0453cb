"""Probabilities from scores, at every door, against scikit-learn's `CalibratedClassifierCV`."""

import json

import numpy as np
import pytest
import yaml
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.metrics import brier_score_loss, log_loss

import bmrm
from bmrm.app.calibration.platt import fitted_line, smoothed
from bmrm.app.pipeline.calibrate import folds_of
from bmrm.cli import main
from bmrm.data.writers import write_svmlight
from bmrm.mpi.group import Alone
from bmrm.problem import IncompatibleError, InputError
from tests.mpi.launch import work

random = np.random.default_rng(3)
X = random.normal(size=(240, 4))
Y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + random.normal(size=240) > 0.3, "yes", "no")
WEIGHTS = random.integers(1, 4, 240).astype(float)
TRAIN, HELD = slice(0, 140), slice(140, 240)
TIGHT = {"lam": 1e-2, "tolerance": 1e-10}
METHODS = ("sigmoid", "isotonic")


class Scores(ClassifierMixin, BaseEstimator):
    """The scores of a model, which is trained anew by `fit`, for scikit-learn."""

    def __init__(self, loss="hinge", model=None):
        self.loss, self.model = loss, model

    def fit(self, X, y, sample_weight=None):
        self.model_ = self.model or bmrm.fit(X, y, loss=self.loss, sample_weight=sample_weight, **TIGHT)
        self.classes_ = self.model_.labels
        return self

    def decision_function(self, X):
        return self.model_.decision_function(X)

    def predict(self, X):
        return self.model_.predict(X)


def theirs(loss, method, X, y, weights, cv, model=None):
    calibrated = CalibratedClassifierCV(Scores(loss, model), method=method, cv=cv, ensemble=False)
    return calibrated.fit(X, y, sample_weight=weights)


def rows(kind):
    if kind == "two":
        return X, Y, "hinge"
    found, y = load_iris(return_X_y=True)
    return found, y, "multiclass_hinge"


@pytest.mark.filterwarnings("ignore:Since FrozenEstimator does not appear:UserWarning")
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_the_curve_of_validation_rows_is_that_of_scikit_learn(method, weights):
    given = WEIGHTS[HELD] if weights else None
    held = bmrm.Dataset.from_arrays(X[HELD], Y[HELD], given)
    model = bmrm.fit(X[TRAIN], Y[TRAIN], loss="hinge", calibrate=method, validation=held, **TIGHT)
    assert (model.calibration.method, model.calibration.rows) == (method, "validation")
    from sklearn.frozen import FrozenEstimator

    plain = Scores(model=bmrm.fit(X[TRAIN], Y[TRAIN], loss="hinge", **TIGHT)).fit(X, Y)
    other = CalibratedClassifierCV(FrozenEstimator(plain), method=method, ensemble=False)
    other.fit(X[HELD], Y[HELD], sample_weight=given)
    far = 3.0 * X
    np.testing.assert_allclose(model.predict_proba(far), other.predict_proba(far), atol=1e-6)
    np.testing.assert_array_equal(model.predict(far), plain.predict(far))


@pytest.mark.parametrize("kind", ["two", "three"])
@pytest.mark.parametrize("method", METHODS)
def test_the_curves_of_folds_are_those_of_scikit_learn(kind, method):
    X, y, loss = rows(kind)
    fold = folds_of(bmrm.Dataset.from_arrays(X, y), 4, Alone())
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4)]
    model = bmrm.fit(X, y, loss=loss, calibrate={"method": method, "folds": 4}, **TIGHT)
    other = theirs(loss, method, X, y, None, splits)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("loss", ["softmax", "multiclass_hinge"])
def test_two_scores_are_one(loss):
    model = bmrm.fit(X, Y, loss=loss, calibrate="sigmoid", **TIGHT)
    f = model.decision_function(X)
    ((a, b),) = model.calibration.curves.lines
    p = 1.0 / (1.0 + np.exp(-(a * (f[:, 1] - f[:, 0]) + b)))
    np.testing.assert_allclose(model.predict_proba(X), np.column_stack((1.0 - p, p)), atol=1e-14)


@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e8])
@pytest.mark.parametrize("shift", [0.0, 50.0])
def test_platt_is_the_minimum(scale, shift):
    f, positive = random.normal(size=80), random.random(80) < 0.3
    f += positive
    weights = random.uniform(0.1, 3.0, 80)
    line = fitted_line(scale * (f + shift), positive, weights)
    target = smoothed(positive, weights)

    def loss(line):
        z = line[0] * f + line[1]
        return weights @ (np.logaddexp(0.0, z) - target * z)

    best = minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-10})
    own = [line[0] * scale, line[1] + line[0] * scale * shift]
    np.testing.assert_allclose(own, best.x, atol=1e-5)
    assert loss(own) <= best.fun + 1e-9


@pytest.mark.parametrize("f", [np.ones(10), np.r_[np.zeros(5), np.ones(5)], 1e300 * np.r_[np.zeros(5), np.ones(5)]])
def test_scores_that_tell_nothing_or_all(f):
    positive = np.arange(10) >= 5
    a, b = fitted_line(f, positive, np.ones(10))
    p = 1.0 / (1.0 + np.exp(-(a * f + b)))
    expected = smoothed(positive, np.ones(10)) if np.ptp(f) else np.full(10, 0.5)
    np.testing.assert_allclose(p, expected, atol=1e-6)


def test_folds_depend_on_neither_order_nor_ranks_and_have_all_classes():
    order = random.permutation(240)
    one = folds_of(bmrm.Dataset.from_arrays(X, Y), 5, Alone())
    two = folds_of(bmrm.Dataset.from_arrays(X[order], Y[order]), 5, Alone())
    np.testing.assert_array_equal(one[order], two)
    for label in ("yes", "no"):
        sizes = np.bincount(one[label == Y], minlength=5)
        assert sizes.max() - sizes.min() <= 1


def test_rows_left_out_are_those_that_count():
    """Noise features that the training rows are fitted to: their own scores would promise too much."""
    noise = random.normal(size=(60, 200))
    y = np.arange(60) % 2
    model = bmrm.fit(noise, y, loss="hinge", lam=1e-4, calibrate="sigmoid")
    assert np.mean(model.predict(noise) == y) == 1.0
    assert np.all(np.abs(model.predict_proba(noise)[:, 1] - 0.5) < 0.45)


def test_models_for_folds_have_the_lambda_of_all_rows():
    with_default = bmrm.fit(X, Y, loss="hinge", tolerance=1e-10, calibrate="sigmoid")
    stated = bmrm.fit(X, Y, loss="hinge", lam=1.0 / 240, tolerance=1e-10, calibrate="sigmoid")
    np.testing.assert_allclose(with_default.predict_proba(X), stated.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_saved_measured_shown_and_exported(method, tmp_path, capsys):
    model = bmrm.fit(X, Y, loss="hinge", calibrate=method, scale="standardize", class_weight="balanced", **TIGHT)
    p = model.predict_proba(X)
    model.save(tmp_path / "m.npz")
    again = bmrm.load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.predict_proba(X), p)
    found = again.evaluate(X, Y, sample_weight=WEIGHTS)
    assert set(found) == {"accuracy", "auc", "log_loss", "brier"}
    assert found["brier"] == pytest.approx(brier_score_loss(Y == "yes", p[:, 1], sample_weight=WEIGHTS), rel=1e-12)
    if p[np.arange(240), (Y == "yes").astype(int)].all():
        assert found["log_loss"] == pytest.approx(log_loss(Y, p, sample_weight=WEIGHTS), rel=1e-12)
    assert main(["show", str(tmp_path / "m.npz")]) == 0
    assert f"{method}, on 5 folds" in capsys.readouterr().out
    model.export(tmp_path / "m.json", "json")
    assert json.loads((tmp_path / "m.json").read_text())["calibration"]["method"] == method
    for format in ("liblinear", "vw", *(("c", "onnx") if method == "isotonic" else ())):
        with pytest.raises(IncompatibleError, match="calibrated"):
            model.export(tmp_path / "m", format)


@pytest.mark.parametrize("kind", ["two", "three"])
def test_sigmoids_in_other_programs(kind, tmp_path):
    from tests.app.test_export import compiled, of_rows

    runtime, _ = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    X, y, loss = rows(kind)
    for name in (loss, "softmax"):
        model = bmrm.fit(X, y, loss=name, calibrate="sigmoid", lam=1e-2)
        model.export(tmp_path / "m.onnx", "onnx")
        session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
        (found,) = session.run(["probabilities"], {"X": X})
        np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-9, atol=1e-14)
        model.export(tmp_path / f"{name}.c", "c")
        code = compiled(tmp_path / f"{name}.c")
        f = of_rows(code.model_scores, X, model.weights.size // model.dim)
        found = of_rows(code.model_probabilities, f, len(model.labels))
        np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-9, atol=1e-14)


def test_estimators():
    classifier = bmrm.Classifier("hinge", alpha=1e-2, tol=1e-10, calibrate="isotonic").fit(X, Y)
    model = bmrm.fit(X, Y, loss="hinge", calibrate="isotonic", **TIGHT)
    np.testing.assert_array_equal(classifier.predict_proba(X), model.predict_proba(X))
    assert not hasattr(bmrm.Classifier("hinge"), "predict_proba")
    with pytest.raises(InputError, match="calibrate is 'platt', expected sigmoid, isotonic"):
        bmrm.Classifier(calibrate="platt").fit(X, Y)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("platt", "calibrate is 'platt', expected sigmoid, isotonic, or {method: ..., folds: ...}"),
        (3, "calibrate is 3, expected sigmoid, isotonic"),
        ({"folds": 3}, "expected sigmoid, isotonic"),
        ({"method": "sigmoid", "folds": 1}, "calibrate: folds is 1, expected a whole number >= 2, or None"),
        ({"method": "sigmoid", "fold": 3}, "calibrate has no option 'fold'"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(given, said):
    with pytest.raises(InputError) as found:
        bmrm.fit(X, Y, calibrate=given)
    assert said in str(found.value)


def test_losses_and_rows_that_cannot_be_calibrated():
    with pytest.raises(IncompatibleError, match="least_squares: calibrate needs a loss whose rows have one of two or"):
        bmrm.fit(X, X[:, 0], loss="least_squares", calibrate="sigmoid")
    y = Y.astype("U9")
    y[7] = "once"
    with pytest.raises(InputError, match="calibrate: the label 'once' has one row, expected two or more for 5 folds"):
        bmrm.fit(X, y, loss="softmax", calibrate="sigmoid")
    with pytest.raises(InputError, match=r"hinge has no probabilities, expected one of chain_crf, .*; calibrate gives"):
        bmrm.fit(X, Y, loss="hinge").predict_proba(X)


@pytest.mark.parametrize("damage", ["header", "array", "shape"])
def test_damaged_files(damage, tmp_path):
    bmrm.fit(X, Y, loss="hinge", calibrate="isotonic").save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        members = dict(file)
    if damage == "header":
        members["header"] = np.array(str(members["header"][()]).replace('"isotonic"', '"other"'))
    elif damage == "array":
        del members["calibration_y"]
    else:
        members["calibration_x"] = members["calibration_x"][::-1].copy()
    np.savez(tmp_path / "m.npz", **members)
    with pytest.raises(InputError, match=r"not a model file: .*(calibration|method)"):
        bmrm.load_model(tmp_path / "m.npz")


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_svmlight("rows.svm", bmrm.Dataset.from_arrays(X[TRAIN], np.where(Y[TRAIN] == "yes", 1, -1)))
    write_svmlight("held.svm", bmrm.Dataset.from_arrays(X[HELD], np.where(Y[HELD] == "yes", 1, -1)))


WORDS = ("--loss", "hinge", "--lambda", "1e-2", "--tolerance", "1e-9", "--quiet")


def test_command_line_and_config(job, capsys):
    y = np.where(Y == "yes", 1, -1)
    held = (X[HELD], y[HELD])
    for text, given, name in (("isotonic", "isotonic", "a"), ("{method: sigmoid, folds: 3}", None, "b")):
        given = given or {"method": "sigmoid", "folds": 3}
        words = (*WORDS, "--validation", "held.svm", "--calibrate", text, "--output", name)
        assert main(["train", "rows.svm", *words]) == 0
        found = bmrm.load_model(f"{name}/model.npz")
        model = bmrm.fit(X[TRAIN], y[TRAIN], loss="hinge", calibrate=given, validation=held, lam=1e-2, tolerance=1e-9)
        np.testing.assert_allclose(found.predict_proba(X), model.predict_proba(X), atol=1e-6)
        with open(f"{name}/summary.json") as file:
            summary = json.load(file)
        assert summary["calibration"] == model.calibration.header()
        assert {"log_loss", "brier"} <= set(summary["metrics"]["validation"])
        with open(f"{name}/curves.json") as file:
            assert {"roc", "reliability"} <= set(json.load(file)["curves"])
        with open(f"{name}/config.yaml") as file:
            kept = yaml.safe_load(file)
        kept["output"]["directory"] = "c"
        kept["output"]["overwrite"] = True
        with open("c.yaml", "w") as file:
            yaml.safe_dump(kept, file)
        assert main(["train", "c.yaml", "--quiet"]) == 0
        np.testing.assert_array_equal(bmrm.load_model("c/model.npz").predict_proba(X), found.predict_proba(X))
    capsys.readouterr()
    assert main(["predict", "b", "held.svm", "--probabilities", "--no-header"]) == 0
    said = capsys.readouterr()
    p = np.array([line.split() for line in said.out.splitlines()], float)
    np.testing.assert_allclose(p, found.predict_proba(X[HELD]), rtol=1e-12)
    assert f"brier {brier_score_loss(y[HELD], p[:, 1]):.6g}" in said.err
    assert main(["evaluate", "b", "held.svm", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["log_loss"] == pytest.approx(log_loss(y[HELD], p), rel=1e-9)
    assert main(["train", "rows.svm", *WORDS, "--output", "b"]) == 2  # another problem
    assert "calibrate" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["platt", "{folds: 3}", "{method: sigmoid, folds: 1}", "3"])
def test_a_wrong_one_is_refused_before_rows_are_read(text, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "rows.svm", "--calibrate", text, "--quiet"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("bmrm: --calibrate: calibrate is ")
    assert said.count("\n") == 1


def test_a_search_is_calibrated_on_validation_rows(job, capsys):
    words = ("--search", "f_measure", "--search.costs", "3", "--calibrate", "sigmoid", "--quiet", "--output", "s")
    assert main(["train", "rows.svm", *words]) == 2
    assert "beside a search there are no folds, expected data.validation" in capsys.readouterr().err
    assert main(["train", "rows.svm", *words, "--validation", "held.svm"]) == 0
    assert bmrm.load_model("s/model.npz").calibration.rows == "validation"


@pytest.mark.mpi
def test_over_ranks(job, tmp_path):
    y = np.where(Y == "yes", 1, -1)
    place = np.argsort(y, kind="stable")  # the third rank has a class alone
    for rank, part in enumerate((place[:90], place[90:200], place[200:])):
        write_svmlight(f"part-{rank}.svm", bmrm.Dataset.from_arrays(X[part], y[part]))
    alone = bmrm.fit(X, y, loss="hinge", calibrate="sigmoid", lam=1e-2, tolerance=1e-9)
    done = work(
        3, "bmrm.cli", "train", "part-{rank}.svm", *WORDS, "--calibrate", "sigmoid", "--output", "o", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(bmrm.load_model("o/model.npz").predict_proba(X), alone.predict_proba(X), atol=1e-6)
