"""Link completion: against plain loops of `bmrm.fit`, and at every door."""

import gzip
import json

import numpy as np
import pytest
import scipy.sparse as sp

import bmrm
from bmrm.cli import main
from bmrm.data.dataset import Dataset
from bmrm.data.writers import write_svmlight
from bmrm.problem import InputError
from tests.mpi.launch import work

rng = np.random.default_rng(5)
GROUPS = rng.integers(0, 4, 90)
X = ((np.arange(12) % 4 == GROUPS[:, None]) & (rng.random((90, 12)) < 0.8)).astype(float)
X[:, 10], X[:, 11] = 0.0, 1.0  # nobody has one, all have the other
TRAIN, NEW = X[:70], X[70:].copy()
NEW[:, 10:] = 0.0
TIGHT = {"lam": 1e-2, "tolerance": 1e-8}


def by_loops():
    """Probabilities of each missing feature by a model that has not seen its column."""
    found = np.full(NEW.shape, -np.inf)
    for k in range(10):
        rest = np.delete(np.arange(12), k)
        model = bmrm.fit(TRAIN[:, rest], TRAIN[:, k], loss="logistic", regularizer=bmrm.L2(1e-2), tolerance=1e-8)
        found[:, k] = np.where(NEW[:, k] > 0, -np.inf, model.predict_proba(NEW[:, rest])[:, 1])
    return found


EXPECTED = by_loops()


@pytest.mark.parametrize("kind", [np.array, sp.csr_matrix])
def test_it_is_a_model_for_each_feature_without_its_column(kind):
    train, new = kind(TRAIN), kind(NEW)
    found = bmrm.complete(train, new, top=3, **TIGHT)
    assert (found.trained, found.constant, found.converged, found.probabilities) == (10, 2, 10, True)
    best = -np.sort(-EXPECTED, axis=1)[:, :3]
    np.testing.assert_allclose(found.values, best, atol=1e-4)
    rows = np.arange(len(NEW))[:, None]
    np.testing.assert_allclose(EXPECTED[rows, found.features], best, atol=1e-4)
    assert not NEW[rows, found.features].any()
    np.testing.assert_array_equal(TRAIN, X[:70])  # the caller's rows are as they were
    assert sp.issparse(train) is sp.issparse(new)


def test_it_finds_what_was_taken_away():
    full = np.flatnonzero(NEW.sum(axis=1) >= 2)
    taken, lacking = [], NEW[full].copy()
    for row in lacking:
        taken.append(int(np.flatnonzero(row)[0]))
        row[taken[-1]] = 0.0
    found = bmrm.complete(TRAIN, lacking, top=1, lam=1e-2)
    kinds = found.features[:, 0] % 4 == np.array(taken) % 4
    assert kinds.mean() > 0.9


def test_fewer_candidates_than_places_and_losses_without_probabilities():
    row = np.ones((1, 12))
    row[0, :2] = 0.0
    found = bmrm.complete(TRAIN, row, top=5, loss="hinge", lam=1e-2)
    assert not found.probabilities
    assert sorted(found.features[0]) == [-1, -1, -1, 0, 1]
    assert np.isnan(found.values[0]).sum() == 3
    assert [k for k, _ in found.row(0)] == found.features[0, :2].tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bmrm.complete(TRAIN, np.ones((2, 13))), "have 13 features, expected at most 12"),
        (lambda: bmrm.complete(np.ones((5, 3)), np.ones((2, 3))), "nothing can be learned"),
        (lambda: bmrm.complete(TRAIN, NEW, loss="least_squares"), "expected a loss of two classes"),
        (lambda: bmrm.complete(TRAIN, NEW, top=0), "top is 0"),
    ],
)
def test_what_cannot_be(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in (("a.svm", TRAIN), ("b.svm", NEW)):
        write_svmlight(name, Dataset.from_arrays(sp.csr_matrix(rows), np.zeros(len(rows))))
    return tmp_path


OPTIONS = ["--top", "3", "--lambda", "1e-2", "--tolerance", "1e-8"]


def test_the_command(files, capsys):
    assert main(["complete", "a.svm", "b.svm", *OPTIONS, "--json"]) == 0
    out = capsys.readouterr()
    assert "10 features trained, 10 to the tolerance, 2 that all rows have or none left out" in out.err
    found = [json.loads(line) for line in out.out.splitlines()]
    best = -np.sort(-EXPECTED, axis=1)[:, :3]
    np.testing.assert_allclose([[value for _, value in row] for row in found], best, atol=1e-4)
    assert main(["complete", "a.svm", "b.svm", *OPTIONS, "--out", "c.txt.gz", "--quiet"]) == 0
    lines = gzip.decompress((files / "c.txt.gz").read_bytes()).decode().splitlines()
    numbers = [[int(pair.split()[0]) - 1 for pair in line.split(",")] for line in lines]  # as the file has them, from 1
    assert numbers == [[k for k, _ in row] for row in found]
    assert capsys.readouterr() == ("", "")


def test_a_config(files, capsys):
    (files / "a.yaml").write_text(
        "data: {train: a.svm, bias: free}\nloss: logistic\nregularizer: {name: l2, lambda: 1.0e-2}\n"
        "solver: {name: auto, tolerance: 1.0e-8}\n"
    )
    assert main(["complete", "a.yaml", "b.svm", "--top", "3", "--quiet"]) == 0
    by_config = capsys.readouterr().out
    assert main(["complete", "a.svm", "b.svm", *OPTIONS, "--quiet"]) == 0
    assert capsys.readouterr().out == by_config


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.svm"], "expected TRAIN and TEST"),
        (["a.svm", "c.svm"], "c.svm"),
        (["a.svm", "b.svm", "--scale", "unit_norm"], "unit_norm is not for `bmrm complete`"),
        (["a.svm", "b.svm", "--classes", "one_vs_rest"], "data.classes is not for `bmrm complete`"),
        (["a.svm", "b.svm", "--features", "svd"], "data.features is not for `bmrm complete`"),
        (["a.svm", "b.svm", "--loss", "softmax"], "expected a loss of two classes"),
    ],
)
def test_a_wrong_command(files, capsys, words, message):
    assert main(["complete", *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.mpi
def test_three_ranks_find_what_one_does(files, capsys):
    assert main(["complete", "a.svm", "b.svm", *OPTIONS, "--out", "one.txt", "--quiet"]) == 0
    words = ["complete", "a.svm", "b.svm", *OPTIONS, "--out", "three.txt", "--quiet"]
    done = work(3, "bmrm.cli", *words, cwd=files)
    assert (done.returncode, done.stderr) == (0, "")
    assert (files / "three.txt").read_text() == (files / "one.txt").read_text()
