"""The F-measure search: its costs, its threshold, its judgement, alone and over ranks."""

import json

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import fbeta_score

import bmrm
from bmrm.app.model import load_model
from bmrm.app.pipeline.solve import Problem, solve
from bmrm.data.dataset import Dataset
from bmrm.losses.cost_sensitive_hinge import CostSensitiveHinge
from bmrm.losses.hinge import Hinge
from bmrm.mpi.group import Alone
from bmrm.problem import InputError
from bmrm.regularizers.l2 import L2
from bmrm.run import main
from bmrm.search.f_measure import FMeasure, best_threshold, f_beta_at, fit
from bmrm.solvers.line_search_bundle import LineSearchBundle
from tests.mpi.launch import work


def rare(seed=0, rows=400):
    """One positive row in ten, with an overlap."""
    random = np.random.default_rng(seed)
    y = np.where(random.random(rows) < 0.1, 1, -1)
    X = random.normal(size=(rows, 5)) + (y == 1)[:, None] * np.array([1.5, 1.0, 0.0, 0.0, -0.5])
    return X, y


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3), st.integers(0, 3)), min_size=1, max_size=12),
    st.sampled_from([0.5, 1.0, 2.0]),
)
def test_the_threshold_is_the_best_of_all(rows, beta):
    y, f, weights = (np.array(column, float) for column in zip(*rows, strict=True))
    threshold, value = best_threshold(y, f, weights, beta)
    tried = [f_beta_at(y, f, weights, beta, t) for t in np.append(np.unique(f), [-9.0, 9.0])]
    assert value == pytest.approx(max(tried), abs=1e-12)
    assert f_beta_at(y, f, weights, beta, threshold) == pytest.approx(value, abs=1e-12)
    if weights.sum() > 0 and (y * weights).sum() > 0:
        assert value == pytest.approx(
            fbeta_score(y, f > threshold, beta=beta, sample_weight=weights, zero_division=0), abs=1e-12
        )


def test_thresholds_between_neighbouring_floats_and_near_zero():
    f = np.array([np.nextafter(1.0, 2.0), 1.0])
    assert best_threshold(np.array([1.0, 0.0]), f, None, 1.0) == (1.0, 1.0)
    assert best_threshold(np.array([1.0, 0.0]), np.array([3.0, -1.0]), None, 1.0)[0] == 0.0
    below, value = best_threshold(np.ones(2), np.array([-3.0, -5.0]), None, 1.0)
    assert value == 1.0
    assert below < -5.0


def test_costs_are_those_of_the_reduction():
    grid = FMeasure(beta=2.0, costs=4).grid()
    assert [loss.cost_negative for loss in grid] == pytest.approx([4.0, 3.0, 2.0, 1.0])
    assert [loss.cost_positive + loss.cost_negative for loss in grid] == pytest.approx([5.0] * 4)


def test_the_best_f_measure_is_a_cost_sensitive_optimum():
    """Proposition 4 of Parambath et al., on all classifiers of a small sample: error profiles (misses, alarms)."""
    random = np.random.default_rng(0)
    for beta in (0.5, 1.0, 2.0):
        profiles = random.integers(0, 11, size=(30, 2))  # of 10 positives and any number of negatives
        f = (1 + beta**2) * (10 - profiles[:, 0]) / ((1 + beta**2) * 10 - profiles[:, 0] + profiles[:, 1])
        best = f.max()
        costs = (1 + beta**2 - best) * profiles[:, 0] + best * profiles[:, 1]
        assert f[np.argmin(costs)] == pytest.approx(best)


def test_validation_decides_and_the_intercept_takes_the_threshold():
    X, y = rare()
    validation = rare(seed=1)
    search = FMeasure(costs=5)
    model, table = fit(X, y, regularizer=L2(1e-3), bias="regularized", search=search, validation=validation)
    values = [line["f_beta"] for line in table["table"]]
    assert table["judged_on"] == "validation"
    assert table["chosen"] == int(np.argmax(values))
    assert len(values) == 5
    achieved = fbeta_score(validation[1], model.predict(validation[0]), beta=1.0, pos_label=1)
    assert achieved == pytest.approx(max(values), rel=1e-12)
    line = table["table"][table["chosen"]]
    assert model.loss == CostSensitiveHinge(line["cost_positive"], line["cost_negative"])
    plain, untuned = fit(
        X,
        y,
        regularizer=L2(1e-3),
        bias="regularized",
        search=FMeasure(costs=5, tune_threshold=False),
        validation=validation,
    )
    assert all(row["threshold"] == 0.0 for row in untuned["table"])
    assert max(row["f_beta"] for row in untuned["table"]) <= max(values)
    ordinary = bmrm.fit(X, y, loss=Hinge(), regularizer=L2(1e-3), solver=LineSearchBundle(), bias="regularized")
    assert achieved > fbeta_score(validation[1], ordinary.predict(validation[0]), beta=1.0, pos_label=1)
    assert plain.loss.cost_positive > 0.0


def test_each_cost_starts_from_the_last(monkeypatch):
    from bmrm.search import f_measure

    X, y = rare()
    starts, ends = [], []

    def recording(*arguments, start=None, **options):
        model = solve(*arguments, start=start, **options)
        starts.append(start)
        ends.append(model.solution.w)
        return model

    monkeypatch.setattr(f_measure, "solve", recording)
    fit(X, y, regularizer=L2(1e-3), bias="regularized", search=FMeasure(costs=3), validation=rare(seed=1))
    assert starts[0] is None
    for start, end in zip(starts[1:], ends[:-1], strict=True):
        np.testing.assert_array_equal(start, end)
    starts.clear()
    fit(X, y, regularizer=L2(1e-3), bias="regularized", search=FMeasure(costs=3, folds=2))
    assert [start is None for start in starts] == [True, True, False, False, False, False, False]


def test_a_start_in_solving_is_where_the_solver_starts():
    X, y = rare()
    data, problem = Dataset.from_arrays(X, y), Problem(Hinge(), L2(1e-3), LineSearchBundle(), "regularized")
    first = solve(data, problem, Alone())
    again = solve(data, problem, Alone(), start=first.solution.w)
    assert again.solution.history[0].objective == pytest.approx(first.solution.objective, rel=1e-12)


def test_folds_decide_without_validation_data():
    X, y = rare()
    one, first = fit(X, y, regularizer=L2(1e-3), bias="regularized", search=FMeasure(costs=3, folds=4, seed=1))
    _, again = fit(X, y, regularizer=L2(1e-3), bias="regularized", search=FMeasure(costs=3, folds=4, seed=1))
    _, other = fit(X, y, regularizer=L2(1e-3), bias="regularized", search=FMeasure(costs=3, folds=4, seed=2))
    assert first == again
    assert first["table"] != other["table"]
    assert first["judged_on"] == "4 folds"
    value = fbeta_score(y, one.predict(X), beta=1.0, pos_label=1)
    assert value == pytest.approx(first["table"][first["chosen"]]["f_beta"], abs=0.1)


def test_recall_and_precision_follow_beta():
    X, y = rare(rows=1500)
    called = [
        np.mean(
            fit(X, y, regularizer=L2(1e-3), bias="regularized", search=FMeasure(beta=beta, costs=4))[0].predict(X) == 1
        )
        for beta in (0.3, 1.0, 3.0)
    ]
    assert called[0] < called[1] < called[2]


def test_what_cannot_be_searched_is_refused():
    X, y = rare(rows=30)
    with pytest.raises(InputError, match="at most the 30 rows"):
        fit(X, y, regularizer=L2(1.0), search=FMeasure(folds=31))
    with pytest.raises(InputError, match="beta"):
        FMeasure(beta=0.0)


@pytest.fixture
def folder(tmp_path):
    for name, seed in (("train", 0), ("validation", 1)):
        X, y = rare(seed, 150)
        with (tmp_path / f"{name}.svm").open("w") as file:
            for row, label in zip(X, y, strict=True):
                file.write(f"{label} " + " ".join(f"{j + 1}:{x:.6f}" for j, x in enumerate(row)) + "\n")
    return tmp_path


def config(folder, **sections):
    base = {
        "data": {"train": "train.svm", "bias": "regularized"},
        "regularizer": {"name": "l2", "lambda": 0.01},
        "search": {"name": "f_measure", "costs": 3, "folds": 3},
        "solver": {"name": "line_search_bundle", "tolerance": 1e-6},
        "output": {"directory": "out"},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(base | sections))
    return str(folder / "config.yaml")


def test_from_the_config(folder, monkeypatch):
    monkeypatch.chdir(folder)
    data = {"train": "train.svm", "validation": "validation.svm", "bias": "free"}
    assert main([config(folder, data=data, search="f_measure"), "--quiet"]) == 0
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert summary["search"]["judged_on"] == "validation"
    assert len(summary["search"]["table"]) == 9
    chosen = summary["search"]["table"][summary["search"]["chosen"]]
    assert summary["metrics"]["validation"]["f1"] == pytest.approx(chosen["f_beta"], rel=1e-12)
    model = load_model(folder / "out" / "model.npz")
    assert model.header["loss"]["name"] == "cost_sensitive_hinge"
    kept = yaml.safe_load((folder / "out" / "config.yaml").read_text())
    assert kept["search"]["beta"] == 1.0


def test_another_loss_is_refused(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main([config(folder, loss="logistic"), "--quiet"]) == 2
    assert "cost_sensitive_hinge, not logistic" in capsys.readouterr().err
    assert main([config(folder, search="f_mesure"), "--quiet"]) == 2
    assert "did you mean 'f_measure'" in capsys.readouterr().err
    assert main([config(folder, search={"name": "f_measure", "cost": 3}), "--quiet"]) == 2
    assert "did you mean 'costs'" in capsys.readouterr().err


@pytest.mark.mpi
def test_ranks_find_the_same(folder):
    path = config(folder)
    found = []
    for ranks in (1, 2):
        done = work(ranks, "bmrm.run", path, "--quiet", cwd=folder)
        assert done.returncode == 0, done.stderr
        found.append(json.loads((folder / "out" / "summary.json").read_text())["search"])
    assert found[0]["chosen"] == found[1]["chosen"]
    for one, two in zip(found[0]["table"], found[1]["table"], strict=True):
        assert two["f_beta"] == pytest.approx(one["f_beta"], abs=0.02)
        assert two["objective"] == pytest.approx(one["objective"], rel=1e-5)


def test_other_validation_data_are_another_problem(folder, monkeypatch, capsys):
    """They decide which model is kept; without a search they are only measured."""
    monkeypatch.chdir(folder)
    data = {"train": "train.svm", "validation": "validation.svm", "bias": "none"}
    path, lines = config(folder, data=data), (folder / "validation.svm").read_text().splitlines(keepends=True)
    assert main([path, "--quiet"]) == 0
    assert main([path, "--quiet"]) == 0
    (folder / "validation.svm").write_text("".join(lines[:-1]))
    for words in ([], ["--resume"]):
        assert main([path, "--quiet", *words]) == 2
        assert "the validation data have 150 rows there, 149 here" in capsys.readouterr().err
    assert main([path, "--quiet", "--overwrite"]) == 0
    (folder / "validation.svm").write_text(
        "".join([*lines[:-2], lines[-2].replace(":0.", ":1.").replace(":-0.", ":1.")])
    )
    assert main([path, "--quiet"]) == 2
    assert "the validation data differ in features, labels or weights" in capsys.readouterr().err
    assert main([config(folder, data=data | {"validation": None}), "--quiet"]) == 2
    assert "there are validation data there, none here" in capsys.readouterr().err
    plain = config(folder, data=data, search=None, loss="hinge", output={"directory": "plain"})
    assert main([plain, "--quiet"]) == 0
    (folder / "validation.svm").write_text("".join(lines))
    assert main([plain, "--quiet"]) == 0
