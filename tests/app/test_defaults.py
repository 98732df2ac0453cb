"""`bmrm.fit(X, y)` with nothing else: which problem it takes, and that it says so."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import Ridge

import bmrm
from bmrm.app.config.config import load_settings
from bmrm.app.defaults import default_loss
from bmrm.app.defaults import kinds_of as default_kinds
from bmrm.cli import main
from bmrm.data.dataset import Dataset
from bmrm.data.reading import read
from bmrm.mpi.group import Alone
from bmrm.problem import InputError

random = np.random.default_rng(0)
X = random.normal(size=(60, 3))
LABELS = {
    "two integers": (np.arange(60) % 2, "hinge"),
    "two floats": (np.where(np.arange(60) % 2, 1.0, -1.0), "hinge"),
    "text": (np.array(list("ab"))[np.arange(60) % 2], "hinge"),
    "truth": (np.arange(60) % 2 == 0, "hinge"),
    "three integers": (np.arange(60) % 3, "multiclass_hinge"),
    "three texts": (np.array(list("abc"))[np.arange(60) % 3], "multiclass_hinge"),
    "floats": (random.normal(size=60), "least_squares"),
    "whole floats": (np.arange(60.0) % 7, "least_squares"),
    "sets": ([{"a"} if k % 2 else {"a", "b"} if k % 3 else set() for k in range(60)], "multilabel_hinge"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_the_loss_by_the_kind_of_y(kind):
    y, loss = LABELS[kind]
    model = bmrm.fit(X, y)
    assert model.loss.name == loss
    assert model.header["regularizer"] == {"name": "l2", "lambda": 1 / 60, "engine": "active_set"}
    assert model.header["bias"] == "free"
    assert set(model.header["chosen"]) == {"loss", "lambda"}
    assert loss in repr(model)


FILES = {
    "two integers": ("+1 1:1\n-1 2:1\n+1 3:1\n", "hinge"),
    "three integers": ("0 1:1\n1 2:1\n2 3:1\n", "multiclass_hinge"),
    "numbers": ("0.5 1:1\n1 2:1\n2 3:1\n", "least_squares"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_config_without_a_loss_takes_that_of_fit(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text, loss = FILES[kind]
    Path("rows.svm").write_text(text)
    assert main(["train", "rows.svm", "--tolerance", "1e-9"]) == 0
    model, python = bmrm.load_model("runs/rows/model.npz"), bmrm.fit(read("rows.svm"), tolerance=1e-9)
    assert model.loss.name == python.loss.name == loss
    assert model.header["objective"] == pytest.approx(python.solution.objective, rel=1e-8)
    assert f"bmrm: loss: {loss} for " in capsys.readouterr().err
    written = yaml.safe_load(Path("runs/rows/config.yaml").read_text())
    assert (written["loss"]["name"], written["data"]["bias"]) == (loss, "free")
    assert main(["train", "rows.svm", "--tolerance", "1e-9", "--resume"]) == 0
    assert "nothing is left to do" in capsys.readouterr().err


def test_a_config_of_schema_1_without_a_loss_stays_that_of_hinge(tmp_path):
    config = tmp_path / "old.yaml"
    config.write_text("schema: 1\ndata: {train: rows.svm}\n")
    assert load_settings(config).plain()["loss"] == {"name": "hinge"}


def test_a_config_without_a_loss_asks_what_may_mean_several_things(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("many.svm").write_text("".join(f"{k} 1:1\n" for k in range(300)))
    assert main(["train", "many.svm"]) == 2
    assert "data.train holds 300 different integers, expected a loss by name" in capsys.readouterr().err
    assert not Path("runs").exists()


class Shares(Alone):
    """Rank 0 of two, which hears of the other's targets."""

    size = 2

    def __init__(self, other):
        self.other = other

    def gather(self, value):
        return [value, None if value is None else default_kinds(self.other)]


@pytest.mark.parametrize("kind", LABELS)
def test_ranks_take_the_loss_that_one_of_them_would_take_of_all_rows(kind):
    y, loss = LABELS[kind]
    half = Dataset.from_arrays(X[:2], y[:2]), Dataset.from_arrays(X[2:], y[2:])
    assert default_loss(half[0], Shares(half[1]))[0] == loss
    assert default_loss(half[1], Shares(half[0]))[0] == loss


def test_the_defaults_are_those_of_the_written_problem():
    X, y = load_breast_cancer(return_X_y=True)
    plain = bmrm.fit(X, y, scale="standardize", tolerance=1e-8)
    written = bmrm.fit(
        X, y, loss="hinge", regularizer=bmrm.L2(1 / len(y)), bias="free", scale="standardize", tolerance=1e-8
    )
    assert plain.solution.objective == written.solution.objective
    assert (plain.predict(X) == y).mean() > 0.98
    X, y = load_diabetes(return_X_y=True)
    ridge = Ridge(alpha=1.0).fit(X, y)  # lambda 1 / m
    np.testing.assert_allclose(bmrm.fit(X, y, tolerance=1e-12).weights, ridge.coef_, rtol=1e-5)


def test_a_named_regularizer_takes_lambda():
    y = np.arange(60) % 2
    model = bmrm.fit(X, y, loss="logistic", regularizer="l2", lam=1e-3, tolerance=1e-8)
    written = bmrm.fit(X, y, loss="logistic", regularizer=bmrm.L2(1e-3), bias="free", tolerance=1e-8)
    assert model.solution.objective == written.solution.objective
    assert "chosen" not in model.header
    assert bmrm.fit(X, y, regularizer="l1").header["chosen"]["lambda"] == "1 / m"
    with pytest.raises(InputError, match=r"options lam beside a regularizer .* expected lam in L2\("):
        bmrm.fit(X, y, regularizer=bmrm.L2(1.0), lam=1.0)


SPELLINGS = {
    "lam": {"lam": 1e-2},
    "a name and lam": {"regularizer": "l2", "lam": 1e-2},
    "an instance": {"regularizer": bmrm.L2(1e-2)},
    "a mapping": {"regularizer": {"name": "l2", "lambda": 1e-2}},
}


@pytest.mark.parametrize("bias", [None, "free", "regularized", "none"])
@pytest.mark.parametrize("loss", ["hinge", "roc_area"])
def test_the_intercept_does_not_depend_on_how_lambda_is_spelled(loss, bias):
    y = np.arange(60) % 2
    if loss == "roc_area" and bias == "free":
        for spelling in SPELLINGS.values():
            with pytest.raises(bmrm.IncompatibleError, match="a free intercept has no meaning"):
                bmrm.fit(X + 3.0, y, loss=loss, bias=bias, **spelling)
        return
    models = [bmrm.fit(X + 3.0, y, loss=loss, bias=bias, **spelling) for spelling in SPELLINGS.values()]
    expected = bias or ("free" if loss == "hinge" else "none")
    assert [model.header["bias"] for model in models] == [expected] * len(models)
    assert {model.solution.objective for model in models} == {models[0].solution.objective}
    assert (models[0].intercept == [0.0]) == (expected == "none")


def test_a_loss_without_a_free_intercept_has_none():
    model = bmrm.fit(X, np.arange(60) % 2, loss="roc_area")
    assert model.header["bias"] == "none"
    assert bmrm.fit(np.abs(X), loss="novelty").intercept == [0.0]


def test_rows_of_weight_0_do_not_count():
    weights = np.where(np.arange(60) < 40, 1.0, 0.0)
    y = np.where(np.arange(60) < 40, np.arange(60) % 2, 5)
    model = bmrm.fit(X, y, sample_weight=weights)
    assert model.loss.name == "hinge"
    assert model.header["regularizer"]["lambda"] == 1 / 40


def test_a_dataset_brings_all():
    X, y = load_iris(return_X_y=True)
    data = bmrm.Dataset.from_arrays(X, y)
    assert bmrm.fit(data).solution.objective == bmrm.fit(X, y).solution.objective
    with pytest.raises(InputError, match="beside a Dataset"):
        bmrm.fit(data, y)


def test_what_may_mean_several_things_is_asked():
    with pytest.raises(InputError, match="y is None, expected a label or a number"):
        bmrm.fit(X)
    with pytest.raises(
        InputError, match=r"y has shape \(60, 2\), expected one label or number per row, or a loss by name"
    ):
        bmrm.fit(X, np.ones((60, 2)))


def test_many_integers_are_asked_about():
    rows = np.ones((300, 1))
    with pytest.raises(InputError, match="300 different integers, expected a loss by name: least_squares"):
        bmrm.fit(rows, np.arange(300))
