"""The examples run without the shared data: bundled or generated rows instead, the same config."""

import importlib
from pathlib import Path

import pytest

from bmrm.app.config.config import load_settings
from bmrm.app.pipeline.train import train
from bmrm.mpi.group import Alone
from bmrm.problem import Status
from mpi_examples.outputs import OWN_RANKS
from mpi_examples.prepare import HERE, prepare
from mpi_examples.ranking_ndcg import lambdarank
from tests.mpi.launch import work

PREPARED = sorted(path.parent.name for path in HERE.glob("*/data.py"))
FOLDERS = sorted(path.parent.name for path in HERE.glob("*/config.yaml"))


@pytest.mark.parametrize("name", FOLDERS)
def test_every_example_has_a_readme_that_says_how_it_runs(name):
    text = (HERE / name / "README.md").read_text()
    assert f"mpirun -n 2 python -m bmrm.run mpi_examples/{name}/config.yaml" in text
    assert (f"python -m mpi_examples.prepare {name}" in text) == (name in PREPARED)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in PREPARED if name not in OWN_RANKS])
def test_an_example_with_data_of_its_own_making(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = prepare(name, None)
    assert said.startswith("no ../shared/data")
    settings = load_settings(HERE / name / "config.yaml", ["solver.tolerance=1e-2"]).plain()
    outcome = train(settings, Alone(), quiet=True)
    assert outcome.status is Status.CONVERGED
    assert (Path("runs") / name / "model.npz").exists()
    assert all(value is not None for value in outcome.summary["metrics"]["test"].values())


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("ranking_ndcg", ["--repeats", "1", "--lambdas", "1", "1e-2"], "lightgbm `lambdarank`"),
        ("roc_area", ["--splits", "1", "--lambdas", "1e-3", "1e-4"], "`hinge`, free intercept"),
        ("f_measure", ["--splits", "1", "--lambdas", "1e-3"], "`search: f_measure`"),
    ],
)
def test_lambda_is_chosen_by_a_script(name, arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tune = importlib.import_module(f"mpi_examples.{name}.tune")
    if name == "ranking_ndcg":  # fewer to choose among
        monkeypatch.setattr(tune, "FOLDS", 2)
        monkeypatch.setattr(lambdarank, "LEAVES", (4, 8))
        monkeypatch.setattr(lambdarank, "TREES", (5, 20))
        monkeypatch.setattr(lambdarank, "MOST_TREES", 50)
    tune.main(["--without-shared", *arguments])
    printed = capsys.readouterr().out
    assert printed.startswith("no ../shared/data")
    assert said in printed


@pytest.mark.mpi
def test_two_owners_train_together_and_refuse_the_curious(tmp_path):
    prepare("two_owners", None, tmp_path / "runs" / "data")
    config = str(HERE / "two_owners" / "config.yaml")
    done = work(2, "bmrm.run", config, "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = work(2, "bmrm.run", config, "--set", "solver=mpi_examples.two_owners.curious:Curious", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("data.guard refuses a request") == 1


@pytest.mark.nightly
@pytest.mark.mpi
def test_an_example_over_two_ranks(tmp_path):
    prepare("poisson_counts", None, tmp_path / "runs" / "data")
    done = work(2, "bmrm.run", str(HERE / "poisson_counts" / "config.yaml"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "CONVERGED" in done.stdout
