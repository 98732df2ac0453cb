"""Measures of validation rows while a solver runs: PROBE's figure 3, from Python and in a run."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn import metrics as sk

import bmrm
from bmrm.problem import InputError
from bmrm.run import main
from tests.mpi.launch import work

NAMES = ["map", "break_even", "auc"]


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(160, 5)) + 1.0
    y = np.where(X @ [1.0, -1.0, 2.0, 0.0, 0.5] - 2.5 + 2.0 * random.normal(size=160) > 0, 1, -1)
    return X[:100], y[:100], X[100:], y[100:]


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_probe_follows_map_and_break_even_in_its_details(rows, bias):
    X, y, X_v, y_v = rows
    how = {"regularizer": bmrm.L2(1e-3), "solver": "probe", "bias": bias, "scale": "standardize"}
    points = {}
    plain = bmrm.fit(X, y, **how, callback=lambda line: points.update({line.iteration: line.iterate.copy()}))
    model = bmrm.fit(X, y, **how, validation=(X_v, y_v), follow=NAMES, follow_every=10)
    assert (model.weights == plain.weights).all()  # who is watched runs as before
    table = model.solution.details["validation"]
    last = model.solution.iterations
    assert table["iteration"].tolist() == sorted({*range(0, last + 1, 10), last})
    result = model.evaluate(X_v, y_v, metrics=NAMES)
    assert {name: table[name][-1] for name in NAMES} == pytest.approx(result)
    assert len(model.solution.details["value"]) > 1  # PROBE's own details are there too
    centre, spread = X.mean(axis=0), X.std(axis=0)
    for at, found in zip(table["iteration"][:-1], zip(*(table[name] for name in ("map", "auc")))):
        f = (X_v - centre) / spread @ points[at][:5]
        if len(set(f)) > 1:  # not at the start, 0
            assert found == pytest.approx((sk.average_precision_score(y_v, f), sk.roc_auc_score(y_v, f)))


def test_every_solver_can_be_followed_and_frames_find_their_columns(rows):
    pandas = pytest.importorskip("pandas")
    X, y, X_v, y_v = rows
    names = list("abcde")
    other = pandas.DataFrame(X_v, columns=names)[names[::-1]]
    how = {"regularizer": bmrm.L2(1e-2), "solver": "line_search_bundle", "follow": ["auc"], "follow_every": 2}
    model = bmrm.fit(pandas.DataFrame(X, columns=names), y, validation=(other, y_v), **how)
    table = model.solution.details["validation"]
    assert table["auc"][-1] == pytest.approx(sk.roc_auc_score(y_v, X_v @ model.weights))
    assert len(table["auc"]) >= 3


def test_an_undefined_measure_is_nan(rows):
    X, y, X_v, _ = rows
    how = {"regularizer": bmrm.L2(1e-2), "solver": "probe", "follow": ["auc", "accuracy"]}
    table = bmrm.fit(X, y, validation=(X_v, np.ones(60)), **how).solution.details["validation"]
    assert np.isnan(table["auc"]).all()
    assert np.isfinite(table["accuracy"]).all()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"follow": ["map"]}, r"expected validation=\(X, y\)"),
        (
            {"follow": ["mae"], "validation": True},
            r"'mae' does not fit hinge; those that fit hinge \(binary\): accuracy",
        ),
        ({"follow": ["map"], "validation": True, "follow_every": 0}, "follow_every is 0, expected a whole number >= 1"),
        ({"follow": ["map"], "validation": False}, "validation has 4 features, X has 5"),
    ],
)
def test_what_cannot_be_followed_is_refused(rows, more, words):
    X, y, X_v, y_v = rows
    if "validation" in more:
        more = {**more, "validation": (X_v if more["validation"] else X_v[:, :4], y_v)}
    with pytest.raises(InputError, match=words):
        bmrm.fit(X, y, regularizer=bmrm.L2(1e-2), **more)


def test_predicted_sets_of_labels_are_not_followed():
    random = np.random.default_rng(1)
    X, Y = random.normal(size=(40, 3)), random.integers(0, 2, (40, 3))
    how = {"loss": "multilabel_hinge", "regularizer": bmrm.L2(1e-2), "validation": (X, Y)}
    with pytest.raises(InputError, match="micro_f1 of multilabel_hinge needs the threshold"):
        bmrm.fit(X, Y, **how, follow=["one_error", "micro_f1"])
    model = bmrm.fit(X, Y, **how, solver="line_search_bundle", follow=["one_error"])
    assert model.solution.details["validation"]["one_error"][-1] == model.evaluate(X, Y)["one_error"]


@pytest.fixture
def job(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, X_v, y_v = rows
    for name, features, labels in (("train", X, y), ("validation", X_v, y_v)):
        lines = (
            f"{label} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row))
            for row, label in zip(features.tolist(), labels)
        )
        Path(f"{name}.svm").write_text("\n".join(lines) + "\n")
    settings = {
        "data": {"train": "train.svm", "validation": "validation.svm"},
        "loss": "hinge",
        "regularizer": {"name": "l2", "lambda": 1e-3},
        "solver": {"name": "probe"},
        "output": {"directory": "out", "follow": NAMES, "follow_every": 5},
    }
    Path("config.yaml").write_text(yaml.safe_dump(settings))


def test_a_run_writes_what_it_followed(job):
    assert main(["config.yaml", "--quiet"]) in (0, 3)
    summary = json.loads(Path("out/summary.json").read_text())
    followed = summary["followed"]
    assert list(followed) == ["iteration", *NAMES]
    assert followed["iteration"][:3] == [0, 5, 10]
    assert followed["iteration"][-1] == summary["iterations"]
    assert followed["auc"][-1] == pytest.approx(summary["metrics"]["validation"]["auc"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("data.validation=null", "output.follow measures validation rows, but data.validation is null"),
        ("output.follow=[mae]", "output.follow: 'mae' does not fit hinge; those that fit hinge (binary): accuracy"),
        ("output.follow_every=0", "output.follow_every is 0, expected a number >= 1"),
    ],
)
def test_a_wrong_config_is_status_2(job, capsys, change, words):
    assert main(["config.yaml", "--quiet", "--set", change]) == 2
    assert words in capsys.readouterr().err
    assert not Path("out").exists()


def test_a_measure_stops_the_solver_and_the_best_model_is_kept(rows):
    X, y, X_v, y_v = rows
    how = {"loss": "logistic", "lam": 1e-7, "solver": "lbfgs", "tolerance": 1e-9, "validation": (X_v, y_v)}
    whole = bmrm.fit(X, y, follow=["log_loss"], follow_every=1, **how)
    values = whole.solution.details["validation"]["log_loss"]
    model = bmrm.fit(X, y, stop={"measure": "log_loss", "patience": 2}, follow_every=1, **how)
    table = model.solution.details["validation"]["log_loss"]
    best = int(np.argmin(table))
    assert len(table) < len(values)
    assert np.all(table[best + 1 :] >= table[best])
    assert model.evaluate(X_v, y_v, metrics=["log_loss"])["log_loss"] == pytest.approx(table[best])
    solution = model.solution
    assert solution.status.name == "OWN_RULE"
    assert model.header["status"] == "OWN_RULE"
    assert "kept is the point of the best log_loss of the validation rows" in solution.message
    assert solution.lower_bound <= whole.solution.objective <= solution.objective
    margins = np.where(y == 1, 1, -1) * model.decision_function(X)
    objective = np.logaddexp(0, -margins).mean() + 0.5e-7 * model.weights @ model.weights
    assert solution.objective == pytest.approx(objective, rel=1e-9)


def test_what_is_wrong_with_a_stop_is_said(rows, tmp_path, monkeypatch, capsys):
    X, y, X_v, y_v = rows
    for stop, said in (
        ({"patience": 2}, "expected {measure: NAME, patience: 5}"),
        ({"measure": "auc", "patience": 0}, "patience is 0, expected"),
        ({"measure": "rmse"}, "'rmse' does not fit logistic"),
    ):
        with pytest.raises(InputError, match=said):
            bmrm.fit(X, y, loss="logistic", validation=(X_v, y_v), stop=stop)
    with pytest.raises(InputError, match="stop measures validation rows"):
        bmrm.fit(X, y, loss="logistic", stop={"measure": "auc"})
    monkeypatch.chdir(tmp_path)
    config = {"data": {"train": "sklearn:breast_cancer", "scale": "standardize"}, "loss": "logistic"}
    config |= {"regularizer": {"name": "l2", "lambda": 1e-8}, "output": {"directory": "out", "follow_every": 1}}
    config["solver"] = {"name": "lbfgs", "stop": {"measure": "log_loss", "patience": 1}, "tolerance": 1e-9}
    Path("c.yaml").write_text(yaml.safe_dump(config))
    assert main(["c.yaml", "--quiet"]) == 2
    assert "solver.stop measures validation rows, but data.validation is null" in capsys.readouterr().err
    from bmrm.data.dataset import Dataset
    from bmrm.data.writers import write_svmlight

    write_svmlight("t.svm", Dataset.from_arrays(X, y))
    write_svmlight("v.svm", Dataset.from_arrays(X_v, y_v))
    config["data"] = {"train": "t.svm", "validation": "v.svm"}
    Path("c.yaml").write_text(yaml.safe_dump(config))
    assert main(["c.yaml", "--quiet"]) == 3
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["status"] == "OWN_RULE"
    assert summary["followed"]["log_loss"][-1] >= min(summary["followed"]["log_loss"])
    assert summary["metrics"]["validation"]["log_loss"] == pytest.approx(min(summary["followed"]["log_loss"]))


@pytest.mark.mpi
def test_three_ranks_stop_where_one_does(job):
    config = yaml.safe_load(Path("config.yaml").read_text())
    config |= {"loss": "logistic", "regularizer": {"name": "l2", "lambda": 1e-7}}
    config["data"]["scale"] = "standardize"
    config["solver"] = {"name": "line_search_bundle", "stop": {"measure": "log_loss", "patience": 2}, "tolerance": 1e-9}
    found = []
    for ranks in (1, 3):
        config["output"] = {"directory": f"out{ranks}", "follow_every": 1}
        Path("config.yaml").write_text(yaml.safe_dump(config))
        done = work(ranks, "bmrm.run", "config.yaml", "--quiet", cwd=Path.cwd())
        assert done.returncode == 3, done.stderr
        found.append(json.loads(Path(f"out{ranks}/summary.json").read_text()))
    one, three = found
    assert one["status"] == three["status"] == "OWN_RULE"
    assert one["followed"]["iteration"] == three["followed"]["iteration"]
    assert three["followed"]["log_loss"] == pytest.approx(one["followed"]["log_loss"], rel=1e-6)
    assert three["objective"] == pytest.approx(one["objective"], rel=1e-6)
    for summary in found:
        values = summary["followed"]["log_loss"]
        assert summary["metrics"]["validation"]["log_loss"] == pytest.approx(min(values))
        assert min(values) < values[-1]
