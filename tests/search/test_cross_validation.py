"""Cross-validation at each door, against scikit-learn's on the same folds with the same objective."""

import csv
import json
import math

import numpy as np
import pytest
import yaml
from scipy.stats import t as student
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.preprocessing import scale

import bmrm
from bmrm.app.model import load_model
from bmrm.cli import main
from bmrm.data.dataset import Dataset
from bmrm.data.writers import write_svmlight
from bmrm.losses.hinge import Hinge
from bmrm.losses.least_squares import LeastSquares
from bmrm.losses.rank_hinge import RankHinge
from bmrm.metrics import MEASURES
from bmrm.mpi.group import Alone
from bmrm.problem import IncompatibleError, InputError
from bmrm.search._core.folds import AskedFolds, Folds
from tests.mpi.launch import work

X, Y = load_breast_cancer(return_X_y=True)
X = scale(X)
TIGHT = {"tolerance": 1e-9}
random = np.random.default_rng(0)
WEIGHTS = random.integers(1, 4, len(Y)).astype(float)


class Logistic(ClassifierMixin, BaseEstimator):
    """scikit-learn's, with the C of a lambda beside the mean loss of the rows it is given."""

    def __init__(self, lam=1e-2):
        self.lam = lam

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.inner_ = LogisticRegression(C=1.0 / (self.lam * len(y)), tol=1e-12, max_iter=10_000).fit(X, y)
        return self

    def decision_function(self, X):
        return self.inner_.decision_function(X)

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)

    def predict(self, X):
        return self.inner_.predict(X)


def test_measures_of_folds_are_those_of_scikit_learn():
    found = bmrm.cross_validate(
        X, Y, loss="logistic", lambdas=[1e-1, 1e-3], folds=5, measures=["auc", "accuracy", "log_loss"], **TIGHT
    )
    splitter = PredefinedSplit(found.fold_numbers[:, 0])
    for trial in found.trials:
        for name, scoring, sign in (
            ("auc", "roc_auc", 1),
            ("accuracy", "accuracy", 1),
            ("log_loss", "neg_log_loss", -1),
        ):
            theirs = sign * cross_val_score(Logistic(trial.lam), X, Y, cv=splitter, scoring=scoring)
            np.testing.assert_allclose(trial.by_fold[name], theirs, rtol=1e-4)
    assert found.best is max(found.trials, key=lambda trial: np.mean(trial.by_fold["auc"]))
    alone = bmrm.fit(X, Y, loss="logistic", lam=found.lam, **TIGHT)
    np.testing.assert_allclose(found.model.weights, alone.weights, atol=1e-4)
    assert found.model.solution.converged


def test_a_regression_too():
    rows, y = load_diabetes(return_X_y=True)
    found = bmrm.cross_validate(
        rows, y, loss="least_squares", lam=1e-3, folds=4, split="random", measures=["r2", "rmse"], seed=3, **TIGHT
    )
    splitter = KFold(4, shuffle=True, random_state=3)
    theirs = []
    for train, held in splitter.split(rows):
        theirs.append(Ridge(1e-3 * len(train)).fit(rows[train], y[train]).score(rows[held], y[held]))
    np.testing.assert_allclose(found.best.by_fold["r2"], theirs, rtol=1e-6)
    assert found.measure == "r2"


def test_intervals_and_pooled_measures_are_by_their_formulas():
    found = bmrm.cross_validate(
        X, Y, loss="logistic", lam=1e-2, folds=5, measures=["auc", "average_precision"], sample_weight=WEIGHTS
    )
    values = np.array(found.best.by_fold["auc"])
    half = student.ppf(0.975, 4) * values.std(ddof=1) / math.sqrt(5)
    line = found.table()[0]
    assert line["mean_auc"] == pytest.approx(values.mean())
    assert line["half_auc"] == pytest.approx(half)
    assert found.interval("auc").high == pytest.approx(min(1.0, values.mean() + half))
    scores, labels, weights = np.zeros(len(Y)), np.zeros(len(Y)), np.zeros(len(Y))
    for one in found.held_out:
        scores[one.rows], labels[one.rows], weights[one.rows] = one.scored.scores, one.scored.y, one.scored.weights
    np.testing.assert_array_equal(labels, Y)
    np.testing.assert_array_equal(weights, WEIGHTS)
    assert line["pooled_auc"] == pytest.approx(roc_auc_score(Y, scores, sample_weight=WEIGHTS))
    theirs = average_precision_score(Y, scores, sample_weight=WEIGHTS)
    assert line["pooled_average_precision"] == pytest.approx(theirs)


def test_curves_of_folds_and_their_average():
    found = bmrm.cross_validate(X, Y, loss="logistic", lam=1e-2, folds=3, measures=["auc"])
    for one, value in zip(found.roc["folds"], found.best.by_fold["auc"], strict=True):
        assert np.trapezoid(one["tpr"], one["fpr"]) == pytest.approx(value, abs=1e-9)
    average = found.roc["average"]
    assert np.trapezoid(average["tpr"], average["fpr"]) == pytest.approx(np.mean(found.best.by_fold["auc"]), abs=0.01)
    heights = found.precision_recall["average"]["precision"]
    assert heights == sorted(heights, reverse=True)
    assert bmrm.cross_validate(*load_iris(return_X_y=True), folds=3, refit=False).roc == {}


SPLITTERS = {
    "stratified": (Hinge(), StratifiedKFold(4, shuffle=True, random_state=5)),
    "random": (LeastSquares(), KFold(4, shuffle=True, random_state=5)),
    "grouped": (LeastSquares(), GroupKFold(4, shuffle=True, random_state=5)),
    "time": (LeastSquares(), TimeSeriesSplit(4)),
}


@pytest.mark.parametrize("split", [*SPLITTERS, "grouped classes"])
def test_folds_are_those_of_scikit_learn(split):
    rows, groups = random.normal(size=(60, 2)), np.repeat(np.arange(15), 4)
    y = np.tile([0.0, 0.0, 1.0], 20)
    loss, splitter = SPLITTERS.get(split, (Hinge(), StratifiedGroupKFold(4, shuffle=True, random_state=5)))
    groups = groups if split.startswith("grouped") else None
    data = Dataset.from_arrays(rows, y, groups=groups)
    found = Folds.prepared(AskedFolds(4, split.split()[0], seed=5), data, loss, Alone())
    theirs = list(splitter.split(rows, y, groups))
    for one, (train, held) in zip(found.splits, theirs, strict=True):
        np.testing.assert_array_equal(one.train, train)
        np.testing.assert_array_equal(one.held, held)
    if split == "time":
        assert np.all(found.numbers[:12] == 0)
    again = Folds.prepared(AskedFolds(splitter), data, loss, Alone())
    assert all(np.array_equal(a.held, b.held) for a, b in zip(found.splits, again.splits, strict=True))


def test_auto_keeps_classes_or_groups():
    y, groups = np.tile([0.0, 1.0], 12), np.repeat(np.arange(8), 3)
    data = Dataset.from_arrays(np.ones((24, 1)), y, groups=groups)
    assert Folds.prepared(AskedFolds(4), data, Hinge(), Alone()).words == "4 stratified folds"
    assert Folds.prepared(AskedFolds(4), data, LeastSquares(), Alone()).words == "4 random folds"
    found = Folds.prepared(AskedFolds(4), data, RankHinge(), Alone())
    assert found.words == "4 grouped folds"
    assert all(len(np.unique(found.numbers[groups == k])) == 1 for k in range(8))


def test_rows_of_consecutive_numbers_are_views():
    data = Dataset.from_arrays(random.normal(size=(40, 2)), np.tile([0.0, 1.0], 20))
    found = Folds.prepared(AskedFolds(4, "time"), data, LeastSquares(), Alone())
    for split in found.splits:
        assert np.shares_memory(split.rows(data, split.train).X, data.X)


def test_repeats_are_divided_anew():
    found = bmrm.cross_validate(X, Y, lam=1e-2, folds=3, repeats=2, measures=["auc"], refit=False)
    assert found.fold_names == ("1.1", "1.2", "1.3", "2.1", "2.2", "2.3")
    assert found.fold_numbers.shape == (len(Y), 2)
    assert np.any(found.fold_numbers[:, 0] != found.fold_numbers[:, 1])
    assert found.model is None
    each = [np.concatenate([one.scored.scores for one in found.held_out[k : k + 3]]) for k in (0, 3)]
    labels = [np.concatenate([one.scored.y for one in found.held_out[k : k + 3]]) for k in (0, 3)]
    values = [roc_auc_score(y, f) for y, f in zip(labels, each, strict=True)]
    assert found.best.pooled["auc"] == pytest.approx(np.mean(values))


def test_one_standard_error_takes_the_largest_lambda_within():
    lambdas = np.geomspace(1e-4, 10.0, 9)
    found = bmrm.cross_validate(
        X, Y, loss="logistic", lambdas=lambdas, folds=5, measures=["log_loss"], choose="one_standard_error", refit=False
    )
    values = np.array([trial.by_fold["log_loss"] for trial in found.trials])
    best = values.mean(axis=1).argmin()
    limit = values[best].mean() + values[best].std(ddof=1) / math.sqrt(5)
    assert found.lam == lambdas[values.mean(axis=1) <= limit].max()
    assert found.lam > lambdas[best]


def test_each_label_against_all_others():
    rows, y = load_iris(return_X_y=True)
    found = bmrm.cross_validate(rows, y, loss="softmax", lam=1e-3, folds=3, each_label=True, refit=False)
    for k in range(3):
        for one, value in zip(found.held_out, found.each_label[str(k)]["auc"], strict=True):
            assert value == pytest.approx(roc_auc_score(one.scored.y == k, one.scored.scores[:, k]))


def test_columns_of_targets_and_shares():
    sets = [{"a"} if row[0] > 0 else {"b", "c"} if row[1] > 0 else {"c"} for row in X]
    found = bmrm.cross_validate(X, sets, labels="each", lam=1e-2, folds=3, each_label=True)
    assert sorted(found.each_label) == ["a", "b", "c"]
    assert all(value > 0.9 for value in found.each_label["a"]["auc"])
    with pytest.raises(IncompatibleError, match="calibrate needs a loss whose rows have one of two or more classes"):
        bmrm.cross_validate(X, sets, labels="each", lam=1e-2, folds=3, calibrate="sigmoid")
    trials = np.column_stack((Y * 2, np.full(len(Y), 2)))
    doubled = bmrm.cross_validate(X, trials, loss="logistic", lam=1e-2, folds=3, split="random", **TIGHT)
    single = bmrm.cross_validate(X, Y, loss="logistic", lam=1e-2, folds=3, split="random", **TIGHT)
    np.testing.assert_allclose(doubled.best.by_fold["log_loss"], single.best.by_fold["log_loss"], rtol=1e-6)


def test_held_out_scores_calibrate_the_model():
    found = bmrm.cross_validate(X, Y, lam=1e-2, folds=5, calibrate="sigmoid")
    assert found.model.calibration is not None
    p = found.model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert log_loss(Y, p) < 0.2


def test_a_config_calibrates_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows_file(tmp_path)
    config = {"data": {"train": "rows.svm"}, "loss": "hinge", "calibrate": "sigmoid"}
    config["regularizer"] = {"name": "l2", "lambda": 1e-2}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    assert main(["cv", "c.yaml", "--folds", "5", "--out", "out", "--quiet"]) == 0
    own = bmrm.cross_validate(X, Y, loss="hinge", lam=1e-2, folds=5, calibrate="sigmoid").model
    found = load_model(tmp_path / "out/model.npz")
    np.testing.assert_allclose(found.predict_proba(X), own.predict_proba(X), atol=1e-3)
    for words, said in (
        (["cv", "c.yaml", "--no-refit"], "it takes the folds of the cross-validation, and needs refit"),
        (
            ["cv", "c.yaml", "--set", "start=model.npz"],
            "start is for `bmrm train`; leave it out of what `bmrm cv` takes",
        ),
        (["path", "c.yaml"], "calibrate is for `bmrm train`; leave it out of what `bmrm path` takes"),
    ):
        assert main([*words, "--quiet"]) == 2
        assert said in capsys.readouterr().err


def test_candidates_of_any_fields():
    found = bmrm.cross_validate(
        X,
        Y,
        folds=3,
        measures=["auc"],
        search={
            "loss": ["hinge", "squared_hinge"],
            "regularizer.alpha": [1e-2, 1e-1],
            "data.scale": ["none", "max_abs"],
        },
    )
    assert len(found.trials) == 8
    assert set(found.best.values) == {"loss", "regularizer.lambda", "data.scale"}
    assert found.model.header["regularizer"]["lambda"] == found.lam
    other = bmrm.cross_validate(
        X, Y, folds=3, measures=["auc"], loss="squared_hinge", lam=1e-1, scale="max_abs", refit=False
    )
    values = {"loss": "squared_hinge", "regularizer.lambda": 1e-1, "data.scale": "max_abs"}
    trial = next(one for one in found.trials if dict(one.values) == values)
    np.testing.assert_allclose(trial.by_fold["auc"], other.best.by_fold["auc"], rtol=1e-4)


def test_a_grid_begins_at_lambda_max():
    rows, y = load_diabetes(return_X_y=True)
    given = {"loss": "least_squares", "regularizer": "l1"}
    found = bmrm.cross_validate(rows, y, n_lambdas=8, folds=3, measures=["rmse"], **given)
    path = bmrm.path(rows, y, n_lambdas=8, **given)
    np.testing.assert_allclose([trial.lam for trial in found.trials], path.lambdas, rtol=1e-9)


WRONG = [
    ({"folds": 1}, "folds is 1, expected"),
    ({"folds": 1000}, "folds is 1000, expected a number from 2 to the 569 rows"),
    ({"folds": 300}, "the label 0 has 212 rows"),
    ({"folds": np.zeros(5, int)}, "folds: 5 numbers of folds, the training data have 569 rows"),
    ({"folds": np.zeros(569, int)}, "folds: 1 folds, expected two or more"),
    ({"folds": 3, "split": "grouped"}, "the rows have no groups"),
    ({"folds": 3, "split": "grouped", "groups": np.arange(569) % 2}, "expected a number from 2 to the 2 groups"),
    ({"folds": 3, "split": "sorted"}, "split is 'sorted', expected one of auto, stratified"),
    ({"folds": 3, "split": "time", "repeats": 2}, "time has one order"),
    ({"measures": ["rmse"]}, "'rmse' does not fit hinge"),
    ({"measures": []}, "measures is empty"),
    ({"lambdas": []}, "lambdas is empty"),
    ({"lambdas": [0.0]}, "lambdas is 0.0, expected"),
    ({"search": {}}, "fields is {}"),
    ({"search": {"loss": []}}, "loss has no values"),
    (
        {"search": {"regularizer.lambdo": [1.0]}},
        r"unknown field 'regularizer.lambdo' \(did you mean 'regularizer.lambda'",
    ),
    ({"search": {"loss.delta": [1.0]}}, "hinge has no option 'delta'"),
    ({"search": {"data.train": ["a"]}}, "unknown field 'data.train'"),
    ({"search": {"regularizer.lambda": [1.0]}, "lambdas": [1.0]}, "are the same setting"),
    ({"n_lambdas": 5, "lambdas": [1.0]}, "n_lambdas beside lambdas"),
    ({"n_lambdas": 5, "regularizer": "none", "lam": None}, "there is no lambda_max"),
    ({"choose": "worst"}, "choose is 'worst', expected one of best, one_standard_error"),
    ({"cv": 5}, "use folds"),
    ({"calibrate": "sigmoid", "refit": False}, "needs refit"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_what_is_wrong_is_said(given, said):
    with pytest.raises(InputError, match=said):
        bmrm.cross_validate(X, Y, **{"loss": "hinge", "lam": 1e-2, **given})


def test_a_measure_that_is_not_defined_in_a_fold():
    fold = np.arange(len(Y)) % 2
    fold[np.flatnonzero(Y == 1)[:9]] = 2
    with pytest.raises(InputError, match="auc is not defined in fold 3"):
        bmrm.cross_validate(X, Y, loss="hinge", lam=1e-2, folds=fold, measures=["auc"])
    with pytest.raises(InputError, match="all rows have one class"):
        bmrm.cross_validate(X, np.ones(569), loss="hinge", lam=1e-2)


def test_measures_that_are_no_better_or_worse_do_not_choose():
    rows, y = load_diabetes(return_X_y=True)
    with pytest.raises(InputError, match="coverage has no best value"):
        bmrm.cross_validate(rows, y, loss="quantile", lam=1e-2, measures=["coverage"])
    least = {name for name, one in MEASURES.items() if one.sign < 0}
    assert {"log_loss", "brier", "rmse", "hamming_loss", "one_error", "tree_distance"} <= least
    assert not least & {"auc", "r2", "map", "ndcg", "expected_rank_utility", "d2_poisson"}


def rows_file(folder):
    path = folder / "rows.svm"
    write_svmlight(path, Dataset.from_arrays(X, Y))
    return path


def test_the_command_writes_what_it_found(tmp_path, capsys):
    path, out = rows_file(tmp_path), tmp_path / "out"
    words = [
        "cv",
        str(path),
        "--loss",
        "logistic",
        "--lambdas",
        "1e-3,1e-2",
        "--folds",
        "4",
        "--measures",
        "auc",
        "map",
    ]
    assert main([*words, "--out", str(out), "--seed", "2", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "4 stratified folds: auc 0.99" in said
    found = json.loads((out / "cv.json").read_text())
    assert [line["regularizer.lambda"] for line in found["table"]] == [1e-3, 1e-2]
    own = bmrm.cross_validate(X, Y, loss="logistic", lambdas=[1e-3, 1e-2], folds=4, measures=["auc", "map"], seed=2)
    np.testing.assert_allclose(found["trials"][0]["folds"]["auc"], own.trials[0].by_fold["auc"], rtol=1e-4)
    with (out / "table.csv").open() as stream:
        table = list(csv.DictReader(stream))
    assert float(table[1]["mean_auc"]) == pytest.approx(found["table"][1]["mean_auc"])
    np.testing.assert_array_equal(np.loadtxt(out / "folds.txt"), own.fold_numbers[:, 0])
    with (out / "predictions.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert sorted(int(line["row"]) for line in lines) == list(range(len(Y)))
    assert all(int(line["target"]) == Y[int(line["row"])] for line in lines)
    value = roc_auc_score([int(line["target"]) for line in lines], [float(line["score"]) for line in lines])
    assert value == pytest.approx(found["table"][found["chosen"]]["pooled_auc"])
    with (out / "roc.csv").open() as stream:
        assert {line["fold"] for line in csv.DictReader(stream)} == {"1", "2", "3", "4", "average"}
    page = (out / "cv.html").read_text()
    assert page.count("<svg") == 4
    assert load_model(out / "model.npz").header["regularizer"]["lambda"] == found["trials"][found["chosen"]]["lambda"]
    assert main([*words[:-3], "--folds", str(out / "folds.txt"), "--measures", "auc", "--json", "--quiet"]) == 0
    again = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(again["trials"][1]["folds"]["auc"], found["trials"][1]["folds"]["auc"], rtol=1e-9)


WRONG_WORDS = [
    (["--folds", "missing.txt"], "missing.txt: cannot be read"),
    (["--folds", "short.txt"], "short.txt: 2 numbers of folds, the training data have 569 rows"),
    (["--folds", "words.txt"], "words.txt, line 2: 'b', expected the number of a fold"),
    (["--folds", "1"], "folds is 1"),
    (["--measures", "rmse"], "'rmse' does not fit hinge"),
    (["--lambdas", "0"], "--lambdas: '0', expected a number > 0"),
    (["--out", "full"], "it holds other.txt, but no cv.json"),
    (["--output", "x"], "unknown argument '--output'"),
]


@pytest.mark.parametrize(("words", "said"), WRONG_WORDS)
def test_wrong_words_are_answered_before_anything_is_written(words, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows_file(tmp_path)
    (tmp_path / "short.txt").write_text("1\n2\n")
    (tmp_path / "words.txt").write_text("1\nb\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "other.txt").write_text("")
    given = ["cv", "rows.svm", "--loss", "hinge", "--quiet", *words]
    if "--out" not in words:
        given += ["--out", "made"]
    try:
        status = main(given)
    except SystemExit as end:
        status = end.code
    assert status == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("command", ["cv", "path"])
def test_what_a_config_says_of_the_output_of_a_training(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = {"data": {"train": "sklearn:breast_cancer", "scale": "standardize"}, "loss": "logistic"}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config | {"output": {"directory": "made"}}))
    (tmp_path / "d.yaml").write_text(yaml.safe_dump(config))
    few = ["--lambdas", "1e-1", *(["--folds", "3"] if command == "cv" else [])]
    assert main([command, "c.yaml", *few]) == 0
    said = f"bmrm: output.directory is for `bmrm train`; `bmrm {command}` writes to --out DIR\n"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "made").exists()
    for words in (["d.yaml"], ["c.yaml", "--quiet"]):
        assert main([command, *words, *few]) == 0
        assert "output.directory" not in capsys.readouterr().err


def test_a_grid_where_lambda_max_is_0_is_refused():
    with pytest.raises(InputError, match="lambda_max is 0"):
        bmrm.cross_validate(np.zeros((30, 2)), np.arange(30) % 2, loss="logistic", n_lambdas=3, folds=3)


@pytest.mark.mpi
def test_three_ranks_find_what_one_finds(tmp_path):
    rows_file(tmp_path)
    config = {"data": {"train": "rows.svm", "scale": "standardize"}, "loss": "logistic", "seed": 4}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    found = []
    for ranks in (1, 3):
        words = [
            "cv",
            "c.yaml",
            "--folds",
            "3",
            "--lambdas",
            "1e-2",
            "1e-3",
            "--tolerance",
            "1e-8",
            "--quiet",
            "--json",
        ]
        done = work(ranks, "bmrm.cli", *words, "--measures", "auc", "--out", f"out{ranks}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    one, three = found
    assert one["chosen"] == three["chosen"]
    assert (tmp_path / "out1/folds.txt").read_text() == (tmp_path / "out3/folds.txt").read_text()
    for a, b in zip(one["trials"], three["trials"], strict=True):
        np.testing.assert_allclose(a["folds"]["auc"], b["folds"]["auc"], rtol=1e-6)
    scores = [np.loadtxt(tmp_path / f"out{n}/predictions.csv", delimiter=",", skiprows=1) for n in (1, 3)]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-3)
    done = work(3, "bmrm.cli", "cv", "c.yaml", "--folds", "1000", "--quiet", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("folds is 1000") == 1


@pytest.mark.mpi
def test_ranks_share_out_folds(tmp_path):
    rows_file(tmp_path)
    words = ["cv", "rows.svm", "--loss", "logistic", "--scale", "standardize", "--folds", "4", "--quiet", "--json"]
    words += ["--lambdas", "1e-2", "1e-3", "--measures", "auc", "--parallel", "folds"]
    found = []
    for ranks in (1, 3):
        done = work(ranks, "bmrm.cli", *words, "--out", f"out{ranks}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    one, three = found
    assert one["chosen"] == three["chosen"]
    assert [a["folds"] for a in one["trials"]] == [a["folds"] for a in three["trials"]]  # each is trained alone
    for name in ("folds.txt", "predictions.csv", "roc.csv"):
        assert (tmp_path / "out1" / name).read_text() == (tmp_path / "out3" / name).read_text()
    for more, said in ((["--folds", "1000"], "folds is 1000"), (["--measures", "rmse"], "'rmse' does not fit")):
        done = work(3, "bmrm.cli", *words, *more, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.count(said) == 1
