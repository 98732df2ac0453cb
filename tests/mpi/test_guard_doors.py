"""Every command beside `data.guard`: it is guarded, one process at work, or refused before rows are read."""

import json

import numpy as np
import pytest

from bmrm.cli import COLLECTIVE, COMMANDS, main
from bmrm.data.dataset import Dataset
from bmrm.data.writers import write_svmlight
from tests.mpi.launch import work

CONFIG = """
data: {train: "part-{rank}.svm", guard: true}
loss: logistic
regularizer: l2
"""
REFUSED = {
    "complete": (["complete", "config.yaml", "new.svm", "--out", "missing.txt"], "`bmrm complete` is not guarded"),
    "complete of all rows": (["complete", "whole.yaml", "new.svm", "--json"], "`bmrm complete` is not guarded"),
    "cv": (["cv", "config.yaml", "--folds", "3", "--out", "cv"], "cross-validation is not guarded"),
    "cv of a calibration": (
        ["cv", "config.yaml", "--set", "calibrate=sigmoid"],
        "calibrate: calibration would gather scores",
    ),
    "cv of folds": (["cv", "whole.yaml", "--parallel", "folds"], "cross-validation is not guarded"),
    "cv of lambdas": (["cv", "config.yaml", "--n-lambdas", "3"], "cross-validation is not guarded"),
    "path": (["path", "config.yaml", "--out", "path", "--models"], "a path is not guarded"),
    "train by a search": (
        ["train", "config.yaml", "--set", "search={regularizer.lambda: [1, 2], folds: 3}"],
        "search: a search would gather scores",
    ),
    "train with calibration": (
        ["train", "config.yaml", "--set", "calibrate=sigmoid"],
        "calibrate: calibration would gather scores",
    ),
    "train with a measured end": (
        ["train", "config.yaml", "--set", "solver={name: lbfgs, stop: {measure: accuracy}}"],
        "solver.stop: measures would gather scores",
    ),
    "train with measures": (
        ["train", "config.yaml", "--set", "output.follow=[auc]"],
        "output.follow: measures would gather scores",
    ),
    "train with test rows": (["train", "config.yaml", "--test", "new.svm"], "data.test: rows that are measured"),
    "info": (["info", "config.yaml"], "config.yaml: a config by its name"),
    "evaluate": (["evaluate", "out/model.npz", "config.yaml"], "out/model.npz"),
    "predict": (["predict", "out/model.npz", "config.yaml"], "out/model.npz"),
    "project": (["project", "config.yaml", "few.npz"], "config.yaml: a config by its name"),
    "convert": (["convert", "config.yaml", "all.store"], "config.yaml: a config by its name"),
}
"""Command lines, and what is said of them, where no file of rows exists: what reads rows would say so instead."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "whole.yaml").write_text(CONFIG.replace("part-{rank}.svm", "whole.svm"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(path, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(60, 3))
    write_svmlight(path, Dataset.from_arrays(X, np.where(X.sum(axis=1) + random.normal(size=60) > 0.0, 1, -1)))


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def said_once(message, said):
    assert said in message
    assert message.startswith("bmrm: ")
    assert message.count("\n") == 1, message


def test_every_command_that_all_ranks_work_for_is_tried():
    assert {words[0] for words, _ in REFUSED.values()} >= set(COLLECTIVE)


@pytest.mark.mpi
@pytest.mark.parametrize("case", REFUSED)
def test_ranks_refuse_what_is_not_guarded_before_rows_are_read(case, folder):
    words, said = REFUSED[case]
    before = files(folder)
    done = work(2, "bmrm.cli", *words, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    said_once(done.stderr, said)
    assert files(folder) == before


@pytest.mark.parametrize("case", REFUSED)
def test_one_process_refuses_it_too(case, folder, capsys):
    words, said = REFUSED[case]
    before = files(folder)
    assert main(words) == 2
    out, message = capsys.readouterr()
    assert out == ""
    said_once(message, said)
    assert files(folder) == before


UNGUARDED = {
    "complete": ["complete", "config.yaml", "new.svm"],
    "cv": ["cv", "config.yaml", "--folds", "3"],
    "cv of folds": ["cv", "whole.yaml", "--parallel", "folds"],
    "path": ["path", "config.yaml"],
    "train": ["train", "config.yaml", "--quiet"],
    "convert": ["convert", "whole.svm", "all.store"],
}
"""Command lines of a job without a guard, which an owner who asks for one does not take part in."""


def test_an_owner_is_asked_by_every_command_that_all_ranks_work_for():
    assert {words[0] for words in UNGUARDED.values()} == set(COLLECTIVE)


@pytest.mark.mpi
@pytest.mark.parametrize("case", UNGUARDED)
def test_an_owner_who_asks_for_a_guard_takes_no_part_without(case, folder):
    for name in ("config.yaml", "whole.yaml"):
        (folder / name).write_text((folder / name).read_text().replace(", guard: true", ""))
    before = files(folder)
    done = work(2, "tests.mpi.owners", "{min_rows: 20}", *UNGUARDED[case], cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    said_once(done.stderr, "rank 1: the owner of this rank asks for data.guard: {'min_rows': 20, ")
    assert files(folder) == before


@pytest.mark.mpi
def test_ranks_convert_where_no_owner_asks_for_a_guard(folder):
    rows_of(folder / "whole.svm", 0)
    assert work(2, "bmrm.cli", "convert", "whole.svm", "all.store", cwd=folder).returncode == 0
    assert (folder / "all.store").is_dir()


ALONE = {
    "evaluate": ["runs/config", "part-1.svm", "--json"],
    "predict": ["runs/config", "part-1.svm"],
    "show": ["runs/config"],
    "export": ["runs/config", "--to", "liblinear", "--out", "model.txt"],
    "compare": ["runs/config", "runs/config"],
    "report": ["runs/config", "--out", "page.html"],
    "info": ["part-0.svm"],
    "project": ["part-0.svm", "few.npz", "--method", "random", "--components", "2"],
    "convert": ["part-0.svm", "own.store"],
}
"""What an owner does alone with his own rows and a model that was trained by a guarded job."""
NO_ROWS = {"init", "losses", "regularizers", "solvers", "measures", "check", "warm", "schema", "completion"}
"""Commands without a config of rows; `init` looks at the rows of this process."""


def test_no_command_is_forgotten():
    assert {words[0] for words, _ in REFUSED.values()} | set(ALONE) | NO_ROWS == set(COMMANDS)


@pytest.mark.mpi
def test_owners_train_by_the_command_and_use_the_model_alone(folder, capsys, monkeypatch):
    monkeypatch.setenv("BMRM_GUARD", "true")
    for rank in range(2):
        rows_of(folder / f"part-{rank}.svm", rank)
    done = work(2, "tests.mpi.owners", "{min_rows: 5}", "train", "config.yaml", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert not (folder / "runs" / "config" / "curves.json").exists()
    for command, words in ALONE.items():
        status = main([command, *words])
        out, message = capsys.readouterr()
        assert status == 0, message
        if command == "evaluate":
            assert "accuracy" in json.dumps(json.loads(out))
