"""Searches over fields of a config: grid, random and halving, on folds or validation rows, resumed, over ranks."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import bmrm
from bmrm.app.config.config import load_settings
from bmrm.app.model import load_model
from bmrm.cli import main as command
from bmrm.data.dataset import Dataset
from bmrm.data.writers import write_svmlight
from bmrm.problem import InputError
from bmrm.run import main
from bmrm.search.grid import Grid
from bmrm.search.halving import Halving
from bmrm.search.random import Random
from tests.mpi.launch import environment, work

X, Y = load_breast_cancer(return_X_y=True)
X = scale(X)
LAMBDAS = [1e-3, 1e-2, 1e-1]


def written(folder, search, **more):
    write_svmlight(folder / "rows.svm", Dataset.from_arrays(X[:400], Y[:400]))
    write_svmlight(folder / "others.svm", Dataset.from_arrays(X[400:], Y[400:]))
    config = {"data": {"train": "rows.svm"}, "loss": "logistic", "output": {"directory": "out"}, **more}
    config["search"] = search
    (folder / "c.yaml").write_text(yaml.safe_dump(config))


def ran(folder, monkeypatch, *words):
    monkeypatch.chdir(folder)
    assert main(["c.yaml", "--quiet", *words]) == 0
    return json.loads((folder / "out/summary.json").read_text())


def test_a_grid_on_folds_chooses_as_cross_validation_does(tmp_path, monkeypatch):
    written(tmp_path, {"regularizer.lambda": LAMBDAS, "loss": ["hinge", "logistic"], "folds": 3, "measure": "auc"})
    found = ran(tmp_path, monkeypatch)["search"]
    own = bmrm.cross_validate(
        X[:400],
        Y[:400],
        search={"regularizer.lambda": LAMBDAS, "loss": ["hinge", "logistic"]},
        folds=3,
        measures=["auc", "accuracy"],
    )
    assert found["name"] == "grid"
    assert found["judged_on"] == "3 stratified folds"
    values = [line["auc"] for line in found["table"]]
    assert found["chosen"] == int(np.argmax(values))
    assert found["table"][found["chosen"]]["loss"] == own.best.values["loss"]
    assert set(found["table"][0]) >= {"auc", "auc, pooled", "accuracy", "passes"}
    assert "log_loss" not in found["table"][0]  # not of both losses
    assert len(found["table"]) == 6
    for line in found["table"]:
        trial = next(one for one in own.trials if all(line[name] == value for name, value in one.values.items()))
        assert line["auc"] == pytest.approx(np.mean(trial.by_fold["auc"]), abs=5e-4)
    model = load_model(tmp_path / "out/model.npz")
    assert model.header["regularizer"]["lambda"] == found["table"][found["chosen"]]["regularizer.lambda"]
    assert not (tmp_path / "out/trials").exists()
    again = load_settings(tmp_path / "out/config.yaml").plain()["search"]
    assert again["fields"] == {"regularizer.lambda": LAMBDAS, "loss": ["hinge", "logistic"]}
    assert command(["report", "out", "--out", "page.html"]) == 0
    assert "trainings of the search grid" in (tmp_path / "page.html").read_text()


def test_validation_rows_decide_where_there_are_some(tmp_path, monkeypatch):
    data = {"train": "rows.svm", "validation": "others.svm"}
    written(tmp_path, {"regularizer.lambda": LAMBDAS, "measure": "log_loss"}, data=data)
    found = ran(tmp_path, monkeypatch)["search"]
    assert found["judged_on"] == "validation"
    values = []
    for lam in LAMBDAS:
        model = bmrm.fit(X[:400], Y[:400], loss="logistic", lam=lam)
        values.append(model.evaluate(X[400:], Y[400:], metrics=["log_loss"])["log_loss"])
    np.testing.assert_allclose([line["log_loss"] for line in found["table"]], values, rtol=1e-2)
    assert found["chosen"] == int(np.argmin(values))


def test_draws_are_those_of_the_seed():
    fields = {"regularizer.lambda": {"from": 1e-4, "to": 1.0}, "loss.delta": {"from": 1, "to": 2, "log": False}}
    fields["data.scale"] = ["none", "max_abs"]
    one = Random(fields=fields, count=30, seed=1).tried()
    assert one == Random(fields=fields, count=30, seed=1).tried()
    assert one != Random(fields=fields, count=30, seed=2).tried()
    lambdas = np.log10([values["regularizer.lambda"] for values in one])
    assert lambdas.min() >= -4
    assert lambdas.max() <= 0
    assert lambdas.mean() == pytest.approx(-2, abs=0.8)
    assert all(1 <= values["loss.delta"] <= 2 for values in one)
    assert {values["data.scale"] for values in one} == {"none", "max_abs"}
    assert len(Random(fields={"data.scale": ["none", "max_abs"]}, count=30).tried()) == 2


def test_a_random_search(tmp_path, monkeypatch):
    written(tmp_path, {"name": "random", "regularizer.lambda": {"from": 1e-4, "to": 1.0}, "count": 4, "folds": 2})
    found = ran(tmp_path, monkeypatch)["search"]
    assert len(found["table"]) == 4
    assert len({line["regularizer.lambda"] for line in found["table"]}) == 4


def test_halving_gives_the_better_part_more_passes(tmp_path, monkeypatch):
    lambdas = np.geomspace(1e-5, 10, 7).tolist()
    search = {"name": "halving", "regularizer.lambda": lambdas, "factor": 2, "passes": 3, "folds": 2}
    written(tmp_path, search | {"measure": "log_loss"}, solver="lbfgs")
    found = ran(tmp_path, monkeypatch)["search"]
    rounds = [line["rounds"] for line in found["table"]]
    assert sorted(rounds) == [1, 1, 1, 2, 2, 3, 3]  # 7, 4, 2
    assert rounds[found["chosen"]] == 3
    best = [line["log_loss"] for line in found["table"] if line["rounds"] == 3]
    assert found["table"][found["chosen"]]["log_loss"] == min(best)
    full = bmrm.cross_validate(
        X[:400], Y[:400], loss="logistic", lambdas=lambdas, folds=2, measures=["log_loss"], refit=False
    )
    assert found["chosen"] == full.chosen


def test_a_search_that_is_killed_resumes_with_the_same_choice(tmp_path, monkeypatch):
    lambdas = np.geomspace(1e-3, 1.0, 12).tolist()  # 216 trainings, kept by fold and loss
    search = {"regularizer.lambda": lambdas, "loss": ["hinge", "squared_hinge", "logistic"], "folds": 6}
    written(tmp_path, search)
    kills = int(np.random.default_rng().integers(1, 15))
    whole = ran(tmp_path, monkeypatch)
    (tmp_path / "out").rename(tmp_path / "whole")
    words = [sys.executable, "-m", "bmrm.run", "c.yaml", "--quiet"]
    process = subprocess.Popen(words, cwd=tmp_path, env=environment())
    trials, limit = tmp_path / "out/trials", time.monotonic() + 100
    while len(list(trials.glob("*.npz"))) < kills and time.monotonic() < limit:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = {path.name: path.stat().st_mtime_ns for path in trials.glob("*.npz")}
    assert kills <= len(done) < 18
    calls = []
    from bmrm.search._core import trials as module

    def counted(walk, *arguments, **options):
        calls.append(len(walk))
        return original(walk, *arguments, **options)

    original = module.trained
    monkeypatch.setattr(module, "trained", counted)
    resumed = ran(tmp_path, monkeypatch, "--resume")
    assert len(calls) == 18 - len(done)
    assert resumed["search"] == whole["search"]
    assert resumed["objective"] == whole["objective"]
    assert not trials.exists()


WRONG = [
    ({"fields": {}}, "fields is {}"),
    ({"regularizer.lambda": []}, "regularizer.lambda has no values"),
    ({"regularizer.lambda": [0.0]}, "regularizer.lambda is 0.0"),
    ({"regularizer.lambada": [1.0]}, "unknown field 'regularizer.lambada'"),
    ({"data.format": ["csv"]}, "unknown field 'data.format'"),
    ({"loss.delta": [1.0]}, "logistic' has no option 'delta'"),
    ({"regularizer.lambda": 1.0}, "expected a list of values"),
    ({"regularizer.lambda": [1.0], "folds": 1}, "folds is 1"),
    ({"regularizer.lambda": [1.0], "chose": "best"}, "has no option 'chose'"),
    ({"regularizer.lambda": [1.0], "choose": "first"}, "choose is 'first'"),
    ({"name": "random", "regularizer.lambda": {"from": 1.0}}, "expected {from: NUMBER, to: NUMBER"),
    ({"name": "random", "regularizer.lambda": {"from": 0, "to": 1}}, "above 0 for log"),
    ({"name": "halving", "fields": {"loss": ["hinge"]}, "factor": 1}, "factor is 1"),
    ({"regularizer.lambda": [1.0], "measure": "rmse"}, "'rmse' does not fit logistic"),
    ({"regularizer.lambda": [1.0], "folds": 401}, "folds is 401"),
]


@pytest.mark.parametrize(("search", "said"), WRONG)
def test_what_is_wrong_is_said_and_nothing_written(search, said, tmp_path, monkeypatch, capsys):
    written(tmp_path, search)
    monkeypatch.chdir(tmp_path)
    assert main(["c.yaml", "--quiet"]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_cross_validation_takes_the_candidates_of_a_config(tmp_path, monkeypatch, capsys):
    written(tmp_path, {"regularizer.lambda": LAMBDAS, "folds": 2})
    monkeypatch.chdir(tmp_path)
    assert command(["cv", "c.yaml", "--folds", "3", "--quiet", "--json", "--no-refit"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [line["regularizer.lambda"] for line in found["table"]] == LAMBDAS
    assert command(["cv", "c.yaml", "--set", "search=f_measure", "--quiet"]) == 2
    assert "f_measure is for `bmrm train`" in capsys.readouterr().err


def test_options_are_checked_from_python_too():
    with pytest.raises(InputError, match="no values"):
        Grid(fields={"loss": []})
    assert len(Halving(fields={"loss": ["hinge", "logistic"], "data.bias": ["free", "none"]}).tried()) == 4


def test_shares_of_labels_are_judged_by_validation_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = np.column_stack((X[:200, :3], np.clip(0.5 + 0.4 * X[:200, 0], 0.0, 1.0)))
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",")
    config = {"data": {"train": "rows.csv", "format": "csv", "validation": "rows.csv"}, "loss": "logistic"}
    config |= {"search": {"regularizer.lambda": LAMBDAS}, "output": {"directory": "out"}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    assert main(["c.yaml", "--quiet"]) == 0
    assert main(["c.yaml", "--quiet", "--set", "data.validation=null", "--set", "output.directory=other"]) == 2
    assert "rows with shares of labels are not divided into folds here" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
    assert command(["cv", "c.yaml", "--folds", "3", "--quiet"]) == 0


@pytest.mark.mpi
def test_three_ranks_choose_as_one(tmp_path):
    search = {"name": "halving", "regularizer.lambda": LAMBDAS, "factor": 2, "folds": 3, "measure": "log_loss"}
    written(tmp_path, search, solver={"name": "lbfgs", "tolerance": 1e-8})
    found = []
    for ranks in (1, 3):
        done = work(ranks, "bmrm.run", "c.yaml", "--quiet", "--set", f"output.directory=out{ranks}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found.append(json.loads((tmp_path / f"out{ranks}/summary.json").read_text()))
    one, three = found
    assert one["search"]["chosen"] == three["search"]["chosen"]
    assert three["objective"] == pytest.approx(one["objective"], rel=1e-7)
    for a, b in zip(one["search"]["table"], three["search"]["table"], strict=True):
        assert a["rounds"] == b["rounds"]
        if a["rounds"] == max(line["rounds"] for line in one["search"]["table"]):
            assert a["log_loss"] == pytest.approx(b["log_loss"], rel=1e-3)
