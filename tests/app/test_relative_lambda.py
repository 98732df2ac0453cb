"""A lambda that follows the data, from the config to the model."""

import json

import numpy as np
import pytest
import yaml
from scipy.sparse import csr_array

from bmrm.app.config.config import load_settings
from bmrm.app.config.relative import checked_rule, lambda_of
from bmrm.app.model import load_model
from bmrm.data.dataset import Dataset
from bmrm.mpi.group import Alone
from bmrm.problem import InputError
from bmrm.risk.products.columns import Columns
from bmrm.risk.products.row_norms import row_norms
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
