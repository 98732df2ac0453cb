"""`bmrm show`: certificate, weights by name, transitions, how a model was trained."""

import json
from pathlib import Path

import numpy as np
import pytest

import bmrm
from bmrm.app.description import described
from bmrm.cli import main


@pytest.fixture
def table(folder):
    """a.csv with named columns, of which `b` speaks against and `a` for the label `yes`; `none` says nothing."""
    random = np.random.default_rng(1)
    X = random.normal(size=(60, 3)).round(3)
    X[:, 2] = 0.0
    y = np.where(3 * X[:, 0] - X[:, 1] > 0, "yes", "no")
    lines = [",".join(map(str, x)) + f",{a}" for x, a in zip(X.tolist(), y)]
    Path("a.csv").write_text("a,b,none,said\n" + "\n".join(lines) + "\n")
    assert main(["train", "a.csv", "--loss", "logistic", "--lambda", "0.01", "--quiet", "--output", "run"]) == 0


def test_weights_by_name_and_how_it_was_trained(table, capsys):
    assert main(["show", "run", "--top", "2"]) == 0
    printed = capsys.readouterr().out
    for words in ("logistic", "weights for yes", "l2, lambda 0.01", "CONVERGED", "a.csv", "newton", "above the lowest"):
        assert words in printed
    weights = [line.split() for line in printed.split("weights for yes\n")[1].splitlines()]
    model = bmrm.load_model("run/model.npz")
    assert [name for _, name in weights] == ["a", "b"]
    assert [float(value) for value, _ in weights] == pytest.approx(model.weights[:2], rel=1e-4)


def test_json_says_the_same(table, capsys):
    assert main(["show", "run/model.npz", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    summary = json.loads(Path("run/summary.json").read_text())
    model = bmrm.load_model("run/model.npz")
    assert (found["objective"], found["lower_bound"]) == (summary["objective"], summary["lower_bound"])
    assert found["relative_gap"] == pytest.approx(summary["relative_gap"], rel=1e-9)
    assert found["trained"]["metrics"] == summary["metrics"]
    assert [one["name"] for one in found["weights"]["yes"]] == ["a", "b"]
    assert found["weights"]["yes"][0]["value"] == model.weights[0]
    assert (found["labels"], found["nonzero_weights"], found["transitions"]) == (["no", "yes"], 2, None)


def test_a_model_without_its_run(folder, capsys):
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 4))
    model = bmrm.fit(X, np.arange(30) % 3, loss="softmax", regularizer=bmrm.L2(0.1))
    model.save("m.npz")
    assert main(["show", "m.npz", "--top", "1"]) == 0
    printed = capsys.readouterr().out
    largest = np.abs(model.weights).argmax(axis=0)
    for label in range(3):
        assert printed.split(f"weights for {label}\n")[1].splitlines()[0].endswith(f"feature {largest[label]}")
    assert "training" not in printed


@pytest.mark.parametrize("transitions", ["constant", "observed"])
def test_transitions_of_chains(transitions, capsys, folder):
    text = "the D\ncat N\nsleeps V\n\na D\ndog N\nbarks V\n\nthe D\ndog N\n\n" * 5
    Path("t.conll").write_text(text)
    words = ["--loss", "chain_crf", "--loss.transitions", transitions, "--data.format.templates", "w=%x[0,0]"]
    assert main(["train", "t.conll", *words, "--format", "conll", "--lambda", "0.01", "--quiet", "--output", "r"]) == 0
    found = described(bmrm.load_model("r/model.npz"), 2)
    T = bmrm.load_model("r/model.npz").arrays["transitions"]
    largest = sorted(np.abs(T).ravel())[-2:][::-1]
    assert [abs(one["value"]) for one in found["transitions"]] == pytest.approx(largest)
    assert {one["name"] for one in found["transitions"]} <= {f"{a} -> {b}" for a in "DNV" for b in "DNV"}
    assert {one["name"] for one in found["weights"]["D"]} <= {
        f"w={w}" for w in ("the", "a", "cat", "dog", "barks", "sleeps")
    }
    assert ("N -> V" in found["weights"]) == (transitions == "observed")
    assert main(["show", "r"]) == 0
    assert "transition\n" in capsys.readouterr().out


def test_what_is_no_model_is_one_line(folder, capsys):
    Path("runs").mkdir()
    assert main(["show", "runs"]) == 2
    assert capsys.readouterr().err.startswith("bmrm: runs/model.npz: cannot be read")
