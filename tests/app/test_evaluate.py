"""Measures that are chosen: from Python, from the command line, in a config; against scikit-learn's and formulas."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn import metrics as sk
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import bmrm
from bmrm.app.model import Model
from bmrm.cli import main
from bmrm.losses import LOSSES
from bmrm.metrics import MEASURES, TASKS
from bmrm.problem import InputError
from tests.metrics.formulas import at_first, chunk_counts, mean_over


def untrained(name, weights, labels=(), intercept=None, **options):
    """A model with these weights, (features,) or (features, scores)."""
    loss = LOSSES.make(name, options)
    header = {"format": 2, "loss": LOSSES.describe(loss), "dimension": weights.shape[0], "status": "CONVERGED"}
    own = np.zeros(1 if weights.ndim == 1 else weights.shape[1]) if intercept is None else intercept
    return Model(weights, own, np.array(labels), header, _loss=loss)


@pytest.fixture(scope="module")
def cancer():
    """Rows, labels, and a hinge model of them."""
    X, y = load_breast_cancer(return_X_y=True)
    return X, y, bmrm.fit(X, y, loss="hinge", regularizer=bmrm.L2(1e-2), bias="free", scale="standardize")


def test_two_classes_by_scikit_learn(cancer):
    X, y, model = cancer
    weights = np.random.default_rng(0).random(len(y))
    f, predicted = model.decision_function(X), model.predict(X)
    p = 1.0 / (1.0 + np.exp(-f))
    for w in (None, weights):
        expected = {
            "auc": sk.roc_auc_score(y, f, sample_weight=w),
            "average_precision": sk.average_precision_score(y, f, sample_weight=w),
            "f1": sk.f1_score(y, predicted, sample_weight=w),
            "f_beta@2": sk.fbeta_score(y, predicted, beta=2.0, sample_weight=w),
            "log_loss": sk.log_loss(y, p, sample_weight=w),
            "brier": sk.brier_score_loss(y, p, sample_weight=w),
            "matthews_correlation": sk.matthews_corrcoef(y, predicted, sample_weight=w),
            "balanced_accuracy": sk.balanced_accuracy_score(y, predicted, sample_weight=w),
            "macro_f1": sk.f1_score(y, predicted, average="macro", sample_weight=w),
            "partial_auc@0.2": sk.roc_auc_score(y, f, max_fpr=0.2, sample_weight=w),
        }
        found = model.evaluate(X, y, metrics=list(expected), sample_weight=w)
        assert found == pytest.approx(expected, rel=1e-9)
    ranked = {"map": sk.average_precision_score(y, f), "break_even": at_first(y, f, y.sum()) / y.sum()}
    ranked |= {"precision@20": at_first(y, f, 20) / 20, "recall@400": at_first(y, f, 400) / y.sum()}
    ranked["ndcg@5"] = sk.ndcg_score([y], [f], k=5)
    assert model.evaluate(X, y, metrics=list(ranked)) == pytest.approx(ranked, rel=1e-9)


def test_by_default_the_measures_of_the_loss(cancer):
    X, y, model = cancer
    assert list(model.evaluate(X, y)) == ["accuracy", "auc"]
    assert model.evaluate(bmrm.Dataset.from_arrays(X, y)) == model.evaluate(X, y)
    assert model.evaluate(X, y, metrics=[]) == {}


def test_intervals_over_folds(cancer):
    X, y, model = cancer
    found = model.evaluate_folds(X, y, metrics=["auc", "break_even"], folds=5, seed=3)
    assert list(found) == ["auc", "break_even"]
    assert len(found["auc"].values) == 5
    assert found["auc"].low < found["auc"].mean < found["auc"].high
    fold = np.random.default_rng(3).permutation(len(y)) % 5
    f = model.decision_function(X)
    assert found["auc"].values == pytest.approx([sk.roc_auc_score(y[fold == k], f[fold == k]) for k in range(5)])
    with pytest.raises(InputError, match="auc is not defined in fold"):
        model.evaluate_folds(X[:60], np.where(np.arange(60) == 0, 1, 0), metrics=["auc"], folds=5)


def test_several_classes_by_scikit_learn():
    X, y = load_iris(return_X_y=True)
    W = np.random.default_rng(1).normal(size=(4, 3))
    model = untrained("multiclass_hinge", W, [0, 1, 2])
    f, predicted = X @ W, (X @ W).argmax(axis=1)
    p = np.exp(f) / np.exp(f).sum(axis=1, keepdims=True)
    expected = {
        "accuracy": sk.accuracy_score(y, predicted),
        "accuracy@2": sk.top_k_accuracy_score(y, f, k=2),
        "macro_f1": sk.f1_score(y, predicted, average="macro"),
        "log_loss": sk.log_loss(y, p),
        "matthews_correlation": sk.matthews_corrcoef(y, predicted),
    }
    assert model.evaluate(X, y, metrics=list(expected)) == pytest.approx(expected, rel=1e-9)


def test_numbers_by_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    w = np.random.default_rng(2).normal(size=10)
    model = untrained("least_squares", w, intercept=np.array([150.0]))
    f = X @ w + 150.0
    expected = {
        "explained_variance": sk.explained_variance_score(y, f),
        "median_absolute_error": sk.median_absolute_error(y, f),
        "max_error": sk.max_error(y, f),
        "pinball@0.9": sk.mean_pinball_loss(y, f, alpha=0.9),
        "poisson_deviance": sk.mean_poisson_deviance(y, f),
        "tweedie_deviance@1.5": sk.mean_tweedie_deviance(y, f, power=1.5),
        "d2_tweedie@3": sk.d2_tweedie_score(y, f, power=3),
    }
    assert model.evaluate(X, y, metrics=list(expected)) == pytest.approx(expected, rel=1e-9)
    below = model.evaluate(X, y - 200.0, metrics=["poisson_deviance", "d2_gamma"])
    assert below == {"poisson_deviance": None, "d2_gamma": None}


def test_queries_by_scikit_learn_and_formulas():
    rng = np.random.default_rng(3)
    X, y, groups = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), rng.integers(0, 5, 60)
    w = np.array([1.0, -1.0, 0.5])
    f = X @ w
    expected = {
        "ndcg@5": mean_over(groups, y, f, lambda y, f: sk.ndcg_score([2.0**y - 1.0], [f], k=5)),
        "ndcg": mean_over(groups, y, f, lambda y, f: sk.ndcg_score([2.0**y - 1.0], [f])),
        "map": mean_over(groups, y, f, lambda y, f: sk.average_precision_score(y > 0, f)),
        "mrr": mean_over(groups, y, f, lambda y, f: 1.0 / (1 + np.sum(f > f[y > 0].max()))),
        "precision@4": mean_over(groups, y, f, lambda y, f: at_first(y > 0, f, 4) / 4),
    }
    found = untrained("rank_hinge", w).evaluate(X, y, metrics=list(expected), groups=groups)
    assert found == pytest.approx(expected, rel=1e-9)


def test_sets_of_labels_by_scikit_learn():
    rng = np.random.default_rng(4)
    X, W, Y = rng.normal(size=(50, 3)), rng.normal(size=(3, 4)), rng.integers(0, 2, (50, 4))
    loss = LOSSES.make("multilabel_hinge")
    header = {"loss": LOSSES.describe(loss), "sets": {"form": "matrix", "dtype": "int64"}}
    threshold = {"threshold": np.array([0.0, 0.0, 0.0, 0.0, 0.25])}
    model = Model(W, np.zeros(4), np.arange(4), header, _loss=loss, arrays=threshold)
    predicted = (X @ W > 0.25).astype(int)
    expected = {
        "micro_f1": sk.f1_score(Y, predicted, average="micro"),
        "macro_f1": sk.f1_score(Y, predicted, average="macro"),
        "hamming_loss": sk.hamming_loss(Y, predicted),
        "accuracy": sk.accuracy_score(Y, predicted),
    }
    assert model.evaluate(X, Y, metrics=list(expected)) == pytest.approx(expected, rel=1e-9)


def test_grades_by_scikit_learn():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(80, 2)), rng.integers(1, 5, 80)
    loss = LOSSES.make("ordinal_thresholds")
    header = {"loss": LOSSES.describe(loss)}
    cuts = {"cut_points": np.array([-1.0, 0.0, 1.0])}
    model = Model(np.array([1.0, 1.0]), np.zeros(1), np.arange(1, 5), header, _loss=loss, arrays=cuts)
    predicted = 1 + np.searchsorted(cuts["cut_points"], X.sum(axis=1))
    expected = {
        "quadratic_kappa": sk.cohen_kappa_score(y, predicted, weights="quadratic"),
        "mae": np.abs(y - predicted).mean(),
        "rmse": np.sqrt(((y - predicted) ** 2).mean()),
        "macro_f1": sk.f1_score(y, predicted, average="macro"),
    }
    assert model.evaluate(X, y, metrics=list(expected)) == pytest.approx(expected, rel=1e-9)


def test_sequences_by_formulas():
    rng = np.random.default_rng(6)
    names = np.array(["B-A", "B-B", "I-A", "I-B", "O"])
    X, y, groups = rng.normal(size=(90, 6)), names[rng.integers(0, 5, 90)], np.arange(90) // 7
    loss = LOSSES.make("chain_crf")
    W = rng.normal(size=(6, 5))
    transitions = {"transitions": rng.normal(size=(5, 5))}
    model = Model(W, np.zeros(5), names, {"loss": LOSSES.describe(loss)}, _loss=loss, arrays=transitions)
    predicted = model.predict(X, groups)
    y = np.where(np.arange(90) % 10 == 3, "I-C", y)  # which the model does not know
    true, found, common = chunk_counts(y, predicted, groups)
    some = ["B-A", "B-B", "I-A", "I-B", "I-C"]
    expected = {
        "token_accuracy": np.mean(y == predicted),
        "token_f1": sk.f1_score(y, predicted, labels=some, average="micro"),
        "macro_f1": sk.f1_score(y, predicted, labels=names, average="macro"),
        "chunk_precision": common / found,
        "chunk_recall": common / true,
        "chunk_f1": 2.0 * common / (true + found),
        "sentence_accuracy": np.mean([np.all(y[groups == g] == predicted[groups == g]) for g in range(13)]),
    }
    assert model.evaluate(X, y, metrics=list(expected), groups=groups) == pytest.approx(expected, rel=1e-9)

    def only(labels, kind):  # chunks of the other types as tokens outside
        return np.where(np.char.endswith(labels, f"-{kind}"), labels, "O")

    by_type = model.evaluate_chunks(X, y, groups=groups)
    assert list(by_type) == ["A", "B", "C"]
    for kind, one in by_type.items():
        assert (one.true, one.found, one.common) == chunk_counts(only(y, kind), only(predicted, kind), groups)
    assert sum(one.common for one in by_type.values()) == common


def test_chunks_are_of_sequences(cancer):
    X, y, model = cancer
    with pytest.raises(InputError, match="hinge has no chunks"):
        model.evaluate_chunks(X, y)


def test_what_does_not_fit_is_refused_from_python(cancer):
    X, y, model = cancer
    with pytest.raises(InputError, match=r"'r2' does not fit hinge; those that fit hinge \(binary\): accuracy, auc, "):
        model.evaluate(X, y, metrics=["auc", "r2"])


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A folder with data.svm, and config.yaml for it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 3)).round(3)
    y = np.where(X.sum(axis=1) + rng.normal(size=60) > 0, 1, -1)
    rows = (f"{label} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for row, label in zip(X, y))
    Path("data.svm").write_text("\n".join(rows) + "\n")
    settings = {
        "data": {"train": "data.svm", "test": "data.svm"},
        "loss": "hinge",
        "regularizer": {"name": "l2", "lambda": 0.01},
        "output": {"directory": "out", "metrics": ["auc", "map", "break_even", "log_loss", "ndcg@5"]},
    }
    Path("config.yaml").write_text(yaml.safe_dump(settings))
    return X, y


def test_a_run_and_the_command_measure_what_they_are_asked_for(job, capsys):
    X, y = job
    assert main(["train", "config.yaml", "--quiet"]) == 0
    metrics = json.loads(Path("out/summary.json").read_text())["metrics"]
    f = bmrm.load_model("out/model.npz").decision_function(X)
    expected = {
        "auc": sk.roc_auc_score(y, f),
        "map": sk.average_precision_score(y, f),
        "break_even": at_first(y > 0, f, (y > 0).sum()) / (y > 0).sum(),
        "log_loss": sk.log_loss(y, 1.0 / (1.0 + np.exp(-f))),
        "ndcg@5": sk.ndcg_score([y > 0], [f], k=5),
    }
    assert metrics["train"] == pytest.approx(expected, rel=1e-9)
    assert list(metrics["test"]) == list(expected)
    assert yaml.safe_load(Path("out/config.yaml").read_text())["output"]["metrics"] == list(expected)
    assert main(["evaluate", "out/model.npz", "data.svm", "--metrics", "auc,map", "ndcg@5"]) == 0
    printed = capsys.readouterr().out
    for name in ("auc", "map", "ndcg@5"):
        assert f"{expected[name]:.6g}" in printed
    assert "accuracy" not in printed
    assert main(["evaluate", "out/model.npz", "data.svm", "--metrics", "auc", "--folds", "3"]) == 0
    assert " to " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("[auc, mae]", "output.metrics: 'mae' does not fit hinge; those that fit hinge (binary): accuracy, auc, "),
        ("[aucc]", "'aucc' is unknown (did you mean 'auc'?); those that fit hinge (binary): "),
        ("['ndcg@x']", "k is 'x', expected a whole number >= 1"),
        ("auc", "output.metrics is 'auc', expected a list of measures"),
        ("[1]", "expected a list of measures"),
    ],
)
def test_a_config_with_other_measures_is_status_2_before_training(job, capsys, monkeypatch, value, words):
    monkeypatch.setattr("bmrm.app.pipeline.train.solve_any", lambda *_: pytest.fail("training began"))
    assert main(["train", "config.yaml", "--quiet", "--set", f"output.metrics={value}"]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert len(message.strip().splitlines()) == 1
    assert not Path("out").exists()


def test_no_measures_and_those_of_the_loss(job):
    for value, names in (("null", ["accuracy", "auc"]), ("[]", [])):
        assert main(["train", "config.yaml", "--quiet", "--overwrite", "--set", f"output.metrics={value}"]) == 0
        assert list(json.loads(Path("out/summary.json").read_text())["metrics"]["test"]) == names


def test_the_command_refuses_what_does_not_fit(job, capsys):
    assert main(["train", "config.yaml", "--quiet"]) == 0
    assert main(["evaluate", "out/model.npz", "data.svm", "--metrics", "r2"]) == 2
    message = capsys.readouterr().err
    assert "'r2' does not fit hinge; those that fit hinge (binary): accuracy" in message
    assert len(message.strip().splitlines()) == 1
    assert main(["evaluate", "out/model.npz", "data.svm", "--folds", "61"]) == 2
    assert "folds is 61, expected a number from 2 to the 60 rows" in capsys.readouterr().err


def test_the_table_of_measures(capsys):
    assert main(["measures"]) == 0
    printed = capsys.readouterr().out
    assert all(task in printed for task in TASKS)
    assert [line.split()[0] for line in printed.splitlines()[1:]] == sorted(one.spelling for one in MEASURES.values())
    assert main(["measures", "novelty"]) == 0
    printed = capsys.readouterr().out
    assert "novel_share" in printed
    assert "auc" not in printed
    assert main(["measures", "binari"]) == 2
    assert "did you mean 'binary'" in capsys.readouterr().err


def test_the_table_of_measures_as_json(capsys):
    assert main(["measures", "--json"]) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert set(found) == set(MEASURES)
    ndcg = found["ndcg"]
    assert (ndcg["spelling"], ndcg["tasks"]) == ("ndcg[@k]", ["ranking", "binary", "ordinal"])
    assert ndcg["number"]["range"] == {"least": 1}
    assert (ndcg["number"]["default"], ndcg["number"]["types"]) == (None, ["integer"])
    assert found["auc"]["number"] is None
    assert main(["measures", "multivariate", "--json"]) == 0
    names = {one["name"] for one in json.loads(capsys.readouterr().out)}
    assert names == {"r2", "explained_variance", "mae", "mse", "rmse"}
