"""A lambda that follows the data, from the config to the model."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.sparse import csr_array

import bmrm
from bmrm.app.config.config import load_settings
from bmrm.app.config.relative import checked_rule, lambda_of
from bmrm.app.model import load_model
from bmrm.cli import main as command
from bmrm.data.dataset import Dataset
from bmrm.mpi.group import Alone
from bmrm.problem import InputError
from bmrm.risk.products import Columns, row_norms
from bmrm.risk.scaling import SCALINGS
from bmrm.run import main
from tests.mpi.launch import work

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(30, 4)) * (RANDOM.random((30, 4)) < 0.7)
Y = np.where(X[:, 0] > 0.0, 1, -1)


@pytest.mark.parametrize("data", [X, csr_array(X), X.astype(np.float32)])
@pytest.mark.parametrize(
    "columns", [Columns(), Columns(scale=np.array([1.0, 2.0, 0.5, 3.0]), shift=np.array([0.1, -1.0, 0.0, 2.0]))]
)
def test_norms_of_scaled_rows(data, columns):
    shift = 0.0 if columns.shift is None else columns.shift
    dense = (X - shift) * (1.0 if columns.scale is None else columns.scale)
    norms = row_norms(Dataset.from_arrays(data, Y).X, columns)
    np.testing.assert_allclose(norms, np.linalg.norm(dense, axis=1), rtol=1e-6, atol=1e-7)


def test_rules():
    data = Dataset.from_arrays(X, Y)
    mean = np.linalg.norm(X, axis=1).mean()

    def value(**rule):
        return lambda_of(checked_rule(rule), data, Columns(), Alone())

    assert value() == pytest.approx(mean**2 / 30)
    assert value(over=1e8) == pytest.approx(mean**2 / 1e8)
    assert value(scale="none", times=10.0) == pytest.approx(10.0 / 30)
    weights = RANDOM.integers(0, 3, 30)
    weighted = Dataset.from_arrays(X, Y, weights)
    repeated = Dataset.from_arrays(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    rule = checked_rule({})
    assert lambda_of(rule, weighted, Columns(), Alone()) == pytest.approx(lambda_of(rule, repeated, Columns(), Alone()))
    with pytest.raises(InputError, match="all rows are 0"):
        lambda_of(rule, Dataset.from_arrays(0.0 * X, Y), Columns(), Alone())


@pytest.fixture
def config(tmp_path):
    lines = (
        f"{y} " + " ".join(f"{j + 1}:{x:.17g}" for j, x in enumerate(row) if x) for row, y in zip(X, Y, strict=True)
    )
    (tmp_path / "train.svm").write_text("\n".join(lines) + "\n")

    def write(rule, **data):
        settings = {
            "data": {"train": "train.svm", "dimension": 4, **data},
            "regularizer": {"name": "l2", "lambda": rule},
            "output": {"directory": "out"},
        }
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(settings))
        return path

    return write


@pytest.mark.parametrize("scale", ["none", "standardize", "unit_norm"])
def test_from_the_config_to_the_model(config, tmp_path, monkeypatch, scale):
    monkeypatch.chdir(tmp_path)
    path = config({"scale": "mean_norm_squared", "over": "m"}, scale=scale)
    assert main([str(path), "--quiet"]) == 0
    model = load_model(tmp_path / "out" / "model.npz")
    data = SCALINGS[scale].rows(Dataset.from_arrays(X, Y))
    columns = SCALINGS[scale].columns(data, Alone()) or Columns()
    lam = np.mean(row_norms(data.X, columns)) ** 2 / 30
    assert model.header["regularizer"]["lambda"] == pytest.approx(lam)
    kept = yaml.safe_load((tmp_path / "out" / "config.yaml").read_text())
    assert kept["regularizer"]["lambda"] == {"scale": "mean_norm_squared", "over": "m", "times": 1.0}


@pytest.mark.mpi
def test_ranks_agree(config, tmp_path):
    path = config({"over": 100})
    found = []
    for ranks in (1, 2):
        done = work(ranks, "bmrm.run", str(path), "--quiet", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found.append(load_model(tmp_path / "out" / "model.npz").header["regularizer"]["lambda"])
        assert json.loads((tmp_path / "out" / "summary.json").read_text())["ranks"] == ranks
    assert found[1] == pytest.approx(found[0], rel=1e-12)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"scal": "none"}, "did you mean 'scale'"),
        ({"scale": "mean_norm"}, "mean_norm_squared"),
        ({"scale": ["none"]}, "mean_norm_squared"),
        ({"over": 0}, "over to be m"),
        ({"over": "n"}, "over to be m"),
        ({"times": -1.0}, "times to be a number > 0"),
        ({"times": True}, "times to be a number > 0"),
    ],
)
def test_what_is_wrong_is_said(config, rule, message):
    with pytest.raises(InputError, match=r"regularizer.lambda.*" + message):
        load_settings(config(rule))


LEFT_OUT = {
    "no regularizer": {},
    "a name": {"regularizer": "l1"},
    "no lambda": {"regularizer": {"name": "l2"}},
    "null": {"regularizer": {"name": "l2", "lambda": None}},
}


@pytest.fixture
def weighted(tmp_path, monkeypatch):
    """c.yaml on 30 rows, of which 20 have a positive weight; a function that makes other configs of it."""
    monkeypatch.chdir(tmp_path)
    np.savez("train.npz", X=X, y=Y)
    np.savetxt("weights.txt", np.where(np.arange(30) < 20, 0.5, 0.0))

    def write(name="c.yaml", **sections):
        data = {"train": "train.npz", "weights": "weights.txt"}
        (tmp_path / name).write_text(yaml.safe_dump({"data": data, "output": {"directory": "out"}, **sections}))
        return name

    return write


@pytest.mark.parametrize("left_out", LEFT_OUT)
def test_a_lambda_that_is_left_out_is_one_over_the_rows_of_positive_weight(weighted, left_out, capsys):
    config = weighted(**LEFT_OUT[left_out])
    assert main([config]) == 0
    assert ", lambda 0.05 (1 / m)\n" in capsys.readouterr().out
    header = load_model("out/model.npz").header
    assert header["regularizer"]["lambda"] == 1 / 20
    assert json.loads(Path("out/summary.json").read_text())["regularizer"] == header["regularizer"]
    section = LEFT_OUT[left_out].get("regularizer")
    model = bmrm.fit(X, Y, loss="hinge", regularizer=section, sample_weight=np.where(np.arange(30) < 20, 0.5, 0.0))
    assert model.header["regularizer"] == header["regularizer"]
    assert model.solution.objective == pytest.approx(header["objective"], rel=2e-3)
    assert command(["show", "out"]) == 0
    assert ", lambda 0.05 (1 / m)\n" in capsys.readouterr().out


def test_without_a_config_it_is_the_same(weighted):
    weighted()
    assert command(["train", "train.npz", "--weights", "weights.txt", "--quiet", "--output", "o"]) == 0
    assert load_model("o/model.npz").header["regularizer"]["lambda"] == 1 / 20


@pytest.mark.mpi
def test_rows_of_all_ranks_count(weighted, tmp_path):
    done = work(2, "bmrm.run", weighted(), "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert load_model("out/model.npz").header["regularizer"]["lambda"] == 1 / 20


RULES = {
    "1 / m": (None, 0.05),
    "2 / m": ({"scale": "none", "times": 2}, 0.2),
    "mean_norm_squared / 100": ({"over": 100}, float(np.mean(np.linalg.norm(X[:20], axis=1)) ** 2 / 100)),
    "3 mean_norm_squared / m": ({"times": 3}, float(0.3 * np.mean(np.linalg.norm(X[:20], axis=1)) ** 2)),
}


@pytest.mark.parametrize("words", RULES)
def test_refusals_reports_and_comparisons_print_the_number(weighted, words, capsys):
    rule, value = RULES[words]
    assert main([weighted(regularizer={"lambda": rule}), "--quiet"]) == 0
    assert main([weighted("number.yaml", regularizer={"lambda": 0.5}), "--quiet"]) == 2
    said = f"{value:.6g} ({words})"
    message = capsys.readouterr().err
    assert f"regularizer.lambda is {said} there, 0.5 here" in message
    assert main([weighted("number.yaml", regularizer={"lambda": 0.5}), "--quiet", "--set", "output.directory=two"]) == 0
    assert main([weighted(regularizer={"lambda": rule}), "--quiet", "--set", "output.directory=two"]) == 2
    assert f"regularizer.lambda is 0.5 there, {said} here" in capsys.readouterr().err
    assert command(["compare", "out", "two"]) == 0
    printed = capsys.readouterr().out
    assert said in printed
    assert command(["report", "out", "two", "--out", "r.html"]) == 0
    page = Path("r.html").read_text()
    assert page.count(said) >= 2
    for text in (message, printed, page):
        assert "'scale'" not in text
        assert "&#x27;scale&#x27;" not in text


def test_the_number_and_the_rule_are_one_problem(weighted):
    assert main([weighted(), "--quiet"]) == 0
    before = Path("out/model.npz").stat().st_mtime_ns
    assert main([weighted(regularizer={"lambda": 0.05}), "--quiet", "--resume"]) == 0
    assert main([weighted(), "--quiet", "--resume"]) == 0
    assert Path("out/model.npz").stat().st_mtime_ns == before, "nothing was left to do"


def test_runs_of_older_versions_are_resumed(weighted):
    """They have the rule in their files, and not the number."""
    rule = {"scale": "none", "over": "m", "times": 1.0}
    assert main([weighted(schema=1, regularizer={"name": "l2", "lambda": rule}), "--quiet"]) == 0
    summary = json.loads(Path("out/summary.json").read_text())
    del summary["problem"]["lambda"], summary["regularizer"], summary["intercept"]
    assert summary["problem"]["bias"] == "none"
    Path("out/summary.json").write_text(json.dumps(summary))
    kept = yaml.safe_load(Path("out/config.yaml").read_text())
    assert (kept["data"]["bias"], kept["regularizer"]["lambda"]) == ("none", rule)
    Path("old.yaml").write_text(yaml.safe_dump({**kept, "schema": 1}))
    before = Path("out/model.npz").stat().st_mtime_ns
    for config in ("old.yaml", "out/config.yaml"):
        assert main([config, "--quiet", "--resume"]) == 0
        assert Path("out/model.npz").stat().st_mtime_ns == before
    assert command(["show", "out"]) == 0
    assert command(["report", "out"]) == 0


def test_a_rule_that_something_else_has_written_is_shown_as_it_is():
    from bmrm.app.config.relative import in_words

    assert in_words({"scale": "none", "times": "x"}, 1.0) == "{'scale': 'none', 'times': 'x'}"
    assert in_words(0.5) == 0.5
