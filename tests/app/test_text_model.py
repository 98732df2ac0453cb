"""From token files to a model file and back: training, prediction of raw files, damaged dictionaries."""

import json

import numpy as np
import pytest

import bmrm
from bmrm.cli import main
from bmrm.data.readers.conll import Conll, read_conll
from bmrm.losses import LOSSES
from bmrm.problem import InputError
from bmrm.risk.linear import LinearRisk
from bmrm.run import main as run
from tests.mpi.test_sequences import sentences

CONFIG = """
data:
  train: train.txt
  test: test.txt
  format: {{name: conll, templates: "w=%x[0,0]\\nc=%x[-1,0]/%x[0,0]", min_count: 2}}
  bias: {bias}
loss: {{name: {loss}, transitions: {transitions}}}
regularizer: {{name: l2, lambda: 0.01}}
solver: {{tolerance: 1.0e-4}}
output: {{directory: out}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text("".join(sentences(0, 60)))
    (tmp_path / "test.txt").write_text("".join(sentences(1, 20)))
    return tmp_path


def trained(folder, loss="chain_crf", transitions="constant", bias="none"):
    (folder / "config.yaml").write_text(CONFIG.format(loss=loss, transitions=transitions, bias=bias))
    assert run(["config.yaml", "--quiet", "--overwrite"]) == 0
    return bmrm.load_model("out/model.npz"), json.loads((folder / "out" / "summary.json").read_text())


def test_a_model_labels_raw_files(folder, capsys):
    model, summary = trained(folder)
    labelled = model.read("test.txt")
    predicted = model.predict(labelled)
    assert np.mean(predicted == labelled.targets.y) == pytest.approx(summary["metrics"]["test"]["token_accuracy"])
    lines = (folder / "test.txt").read_text().splitlines()
    (folder / "raw.txt").write_text("\n".join(line.split(" ")[0] for line in lines) + "\n")
    assert main(["predict", "out/model.npz", "raw.txt", "--labels", "--out", "labels.txt"]) == 0
    said = (folder / "labels.txt").read_text().splitlines()
    assert [line for line in said if line] == predicted.tolist()
    assert [not line for line in said] == [not line for line in lines[: len(said)]]
    capsys.readouterr()
    assert main(["evaluate", "out/model.npz", "test.txt"]) == 0
    printed = capsys.readouterr().out
    assert f"{summary['metrics']['test']['chunk_f1']:.6g}" in printed
    by_type = model.evaluate_chunks(labelled)
    for kind, one in by_type.items():
        line = next(line.split() for line in printed.splitlines() if line.split()[:1] == [kind])
        assert [float(cell) for cell in line[1:4]] == pytest.approx([one.precision, one.recall, one.f1], rel=1e-5)
    assert main(["evaluate", "out/model.npz", "test.txt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chunks"].keys() == by_type.keys()


def test_the_file_holds_plain_arrays_and_no_file_of_others(folder):
    trained(folder)
    with np.load("out/model.npz", allow_pickle=False) as file:
        kinds = {name: file[name].dtype.kind for name in file.files}
        header = json.loads(str(file["header"][()]))
        assert file["loss_transitions"].shape == (3, 3)
    assert kinds["feature_bytes"] == "u"
    assert kinds["feature_ends"] == "i"
    assert header["arrays"] == ["transitions"]
    assert header["text"]["format"]["templates"].startswith("w=%x[0,0]")
    assert header["text"]["format"]["columns"] == 2


@pytest.mark.parametrize(
    ("loss", "transitions", "bias"),
    [
        ("chain_crf", "constant", "none"),
        ("chain_crf", "constant", "regularized"),
        ("chain_crf", "constant", "free"),
        ("chain_crf", "observed", "free"),
        ("chain_margin", "constant", "free"),
        ("chain_margin", "observed", "regularized"),
    ],
)
def test_what_the_model_says_is_what_was_minimised(folder, loss, transitions, bias):
    """The scores, transitions and intercept of the model file give the objective of the run."""
    model, summary = trained(folder, loss, transitions, bias)
    data, _ = read_conll("train.txt", Conll(templates="w=%x[0,0]\nc=%x[-1,0]/%x[0,0]", min_count=2))
    scores = model.decision_function(data)
    prepared = LinearRisk(data, model.loss).bound.whole
    flat = np.append(scores.ravel(), model.arrays["transitions"].ravel())
    own = model.weights.ravel() @ model.weights.ravel() + np.sum(model.arrays["transitions"] ** 2)
    if bias == "regularized":
        own += model.intercept @ model.intercept
    objective = prepared.value_and_slope(flat)[0] / prepared.mass + 0.005 * own
    assert objective == pytest.approx(summary["objective"], rel=1e-9)
    if bias == "free":
        assert summary["objective"] <= trained(folder, loss, transitions)[1]["objective"] * (1.0 + 1e-4)


def test_from_python(folder):
    options = Conll(templates="w=%x[0,0]\nc=%x[-1,0]/%x[0,0]", min_count=2)
    data, vocabulary = read_conll("train.txt", options)
    model = bmrm.fit(
        data.X, data.targets.y, groups=data.targets.groups, loss="chain_crf", regularizer=bmrm.L2(0.01), tolerance=1e-4
    )
    test, _ = read_conll("test.txt", options, vocabulary)
    from_file, _ = trained(folder)
    found = model.predict(test)
    assert np.mean(found == from_file.predict(test)) > 0.98
    np.testing.assert_array_equal(model.predict(test.X, groups=test.targets.groups), found)
    with pytest.raises(InputError, match="no groups"):
        model.predict(test.X)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"feature_ends": np.array([5, 3], np.int64)}, "dictionary of features is damaged"),
        ({"feature_bytes": None}, "not a model file"),
        ({"format": {"name": "os:system"}}, "none of ours"),
        ({"format": {"name": "nosuch"}}, "unknown data format"),
        ({"format": 3}, "description of its text features is damaged"),
    ],
)
def test_damaged_models_are_refused(folder, change, said):
    trained(folder)
    with np.load("out/model.npz", allow_pickle=False) as file:
        members = {name: file[name] for name in file.files}
    header = json.loads(str(members["header"][()]))
    if "format" in change:
        header["text"]["format"] = change.pop("format")
    members["header"] = np.array(json.dumps(header))
    members |= change
    np.savez("damaged.npz", **{name: array for name, array in members.items() if array is not None})
    with pytest.raises(InputError, match=said):
        bmrm.load_model("damaged.npz")


def test_numbers_beside_names_are_refused(folder, capsys):
    (folder / "test.txt").write_text("1 1:1\n")
    (folder / "config.yaml").write_text(
        CONFIG.format(loss="hinge", transitions="x", bias="none").replace("{name: hinge, transitions: x}", "chain_crf")
    )
    assert run(["config.yaml", "--quiet", "--overwrite"]) == 0  # a line of two columns is a token with a label
    (folder / "config.yaml").write_text("data: {train: test.txt, test: b.conll}\nregularizer: {lambda: 0.1}\n")
    (folder / "b.conll").write_text("a b c\n")
    assert run(["config.yaml", "--quiet"]) == 2
    assert "data.test: b.conll: the features have names" in capsys.readouterr().err


def test_every_chain_loss_lists_its_facts():
    for name in ("chain_crf", "chain_margin", "chain_scaled_margin"):
        cls = LOSSES.get(name).cls
        assert (cls.task, cls.decomposes) == ("sequence", "groups")
        assert cls.formula
        assert cls.source
        assert cls.metrics
