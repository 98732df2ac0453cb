"""The `bmrm` command."""

import json
from pathlib import Path

import numpy as np
import pytest

import bmrm
from bmrm.cli import main
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.regularizers import REGULARIZERS
from bmrm.solvers import SOLVERS


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A folder with data.svm and the models of two and of three classes."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(2)
    X = random.normal(size=(40, 3)).round(4)
    y = np.where(X.sum(axis=1) > 0, 2, 1)
    lines = (f"{label} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for row, label in zip(X, y))
    (tmp_path / "data.svm").write_text("\n".join(lines) + "\n")
    bmrm.fit(X, y, regularizer=bmrm.L2(1e-2)).save("two.npz")
    bmrm.fit(X, np.arange(40) % 3, loss="softmax", regularizer=bmrm.L2(1e-2)).save("three.npz")
    return X, y


def test_predict_writes_scores_that_read_back_to_the_same_bits(job, capsys):
    assert main(["predict", "two.npz", "data.svm", "--out", "scores.txt"]) == 0
    model = bmrm.load_model("two.npz")
    assert (np.loadtxt("scores.txt") == model.decision_function(read("data.svm"))).all()
    assert main(["predict", "two.npz", "data.svm"]) == 0
    assert np.array(capsys.readouterr().out.split(), float).tolist() == np.loadtxt("scores.txt").tolist()


def test_predict_labels_and_several_scores(job):
    assert main(["predict", "two.npz", "data.svm", "--labels", "--out", "labels.txt"]) == 0
    assert set(Path("labels.txt").read_text().split()) == {"1", "2"}
    assert main(["predict", "three.npz", "data.svm", "--out", "scores.txt"]) == 0
    assert (
        np.loadtxt("scores.txt", skiprows=1) == bmrm.load_model("three.npz").decision_function(read("data.svm"))
    ).all()


def test_evaluate_prints_the_measures_of_the_loss(job, capsys):
    X, y = job
    assert main(["evaluate", "two.npz", "data.svm"]) == 0
    printed = capsys.readouterr().out
    accuracy = (bmrm.load_model("two.npz").predict(X) == y).mean()
    assert f"{accuracy:.6g}" in printed
    assert "auc" in printed


def test_evaluate_refuses_labels_of_another_world(job, tmp_path, capsys):
    (tmp_path / "other.svm").write_text("-1 1:1\n1 1:2\n")
    assert main(["evaluate", "two.npz", "other.svm"]) == 2
    assert "bmrm: other.svm: the label -1 is not among those of the model, 1, 2" in capsys.readouterr().err


def test_info(job, capsys, tmp_path):
    assert main(["info", "data.svm"]) == 0
    printed = capsys.readouterr().out
    for words in ("40", "3", "sparse float64", "1: ", "2: "):
        assert words in printed
    assert main(["info", "synthetic:dense_regression?rows=50&features=2"]) == 0
    assert "50 different values" in capsys.readouterr().out
    np.savez(tmp_path / "d.npz", X=np.eye(3), y=np.array(["a", "b", "b"]), weights=[1.0, 2.0, 0.5], groups=[1, 1, 2])
    assert main(["info", "d.npz"]) == 0
    printed = capsys.readouterr().out
    for words in ("a: 1, b: 2", "from 0.5 to 2, sum 3.5", "groups", "dense float64"):
        assert words in printed
    (tmp_path / "d.csv").write_text("a;1;2\nb;3;4\n")
    assert main(["info", "d.csv", "--format", "{name: csv, label: 0}"]) == 0
    assert "a: 1, b: 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "registry"), [("losses", LOSSES), ("regularizers", REGULARIZERS), ("solvers", SOLVERS)]
)
def test_a_listing_has_a_line_for_each_and_details_have_every_option(table, registry, capsys):
    assert main([table]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [entry.name for entry in registry.all()]
    for entry in registry.all():
        assert main([table, entry.name]) == 0
        printed = capsys.readouterr().out
        for field in entry.parameters:
            assert f"{bmrm.registry.option_name(field.name)} = " in printed
        assert "(any number)" not in printed


@pytest.mark.parametrize(
    ("table", "registry"), [("losses", LOSSES), ("regularizers", REGULARIZERS), ("solvers", SOLVERS)]
)
def test_tables_as_json_have_every_entry_with_its_options(table, registry, capsys):
    assert main([table, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found] == [entry.name for entry in registry.all()]
    for one, entry in zip(found, registry.all()):
        names = [bmrm.registry.option_name(field.name) for field in entry.parameters]
        assert [option["name"] for option in one["options"]] == names
        for option, field in zip(one["options"], entry.parameters):
            assert option["types"]
            assert option["doc"]
            given = {bmrm.registry.field_name(o["name"]): o["default"] for o in one["options"] if not o["required"]}
            assert given[field.name] == field.default if not option["required"] else field.name not in given


def test_one_plug_in_as_json(capsys):
    assert main(["solvers", "bundle", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["source"]) == ("bundle", "Teo, Le, Smola & Vishwanathan 2007")
    tolerance, planes = (next(o for o in found["options"] if o["name"] == name) for name in ("tolerance", "max_planes"))
    assert (tolerance["types"], tolerance["default"], tolerance["required"]) == (["number"], 1e-4, False)
    assert tolerance["range"] == {"least": 0.0}
    assert planes["types"] == ["integer", "null"]
    assert planes["default"] is None
    assert main(["losses", "hinge", "--json"]) == 0
    hinge = json.loads(capsys.readouterr().out)
    assert (hinge["task"], hinge["sum_over"], hinge["smooth"], hinge["options"]) == ("binary", "rows", False, [])
    assert main(["regularizers", "l2", "--json"]) == 0
    (lam, *_) = json.loads(capsys.readouterr().out)["options"]
    assert (lam["name"], lam["required"], lam["types"], lam["range"]) == ("lambda", True, ["number"], {"above": 0.0})


def test_one_plug_in_is_shown_with_its_docstring_and_options(capsys):
    assert main(["solvers", "bundle"]) == 0
    printed = capsys.readouterr().out
    assert "O(1 / (lambda epsilon))" in printed
    assert "cuts_per_pass = 1" in printed
    assert "planes a pass" in printed
    assert main(["losses", "hindge"]) == 2
    assert "did you mean 'hinge'" in capsys.readouterr().err


def test_schema_is_json(capsys):
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert "loss" in schema["properties"]


def test_train_is_run(job, tmp_path):
    (tmp_path / "c.yaml").write_text(
        "schema: 2\ndata: {train: data.svm, bias: none}\nregularizer: {lambda: 0.1}\noutput: {directory: out}\n"
    )
    assert main(["train", "c.yaml", "--quiet", "--set", "solver.max_iterations=1"]) == 3
    assert (tmp_path / "out" / "model.npz").exists()


WRONG = {
    "predict none.npz data.svm": "none.npz: cannot be read",
    "predict data.svm data.svm": "data.svm: not a model file",
    "predict two.npz none.svm": "none.svm",
    "predict two.npz wide.svm": "9 features, the model has 3",
    "predict two.npz data.svm --out none/scores.txt": "none/scores.txt: cannot be written",
    "info data.svm --format cvs": "did you mean 'csv'",
    "info sklearn:iriss": "did you mean 'iris'",
    "train none.yaml": "none.yaml: cannot be read",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_input_is_one_message_and_status_2(job, words, capsys, tmp_path):
    (tmp_path / "wide.svm").write_text("1 9:1\n")
    assert main(words.split()) == 2
    message = capsys.readouterr().err
    assert WRONG[words] in message
    assert len(message.strip().splitlines()) == 1
