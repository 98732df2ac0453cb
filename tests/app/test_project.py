"""Few directions: `bmrm project` and the maps `svd` and `random_projection`, against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import GaussianRandomProjection

import bmrm
from bmrm.app.pipeline.features import GroupRows
from bmrm.cli import main
from bmrm.data.dataset import Dataset
from bmrm.data.features import FEATURES
from bmrm.data.matrix import Csr
from bmrm.data.reading import read
from bmrm.data.writers import write_svmlight
from bmrm.mpi.group import Alone
from bmrm.problem import InputError
from tests.mpi.launch import work

X, Y = load_wine(return_X_y=True)


def made(options, rows):
    matrix = Csr.from_scipy(rows) if sp.issparse(rows) else rows
    return FEATURES.instance(options).fitted(GroupRows(matrix, matrix, Alone()))


def up_to_signs(a, b):
    return np.abs(np.sum(a * b, axis=0)) / (np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0))


@pytest.mark.parametrize("features", [30, 300])  # all eigenvectors, and ARPACK
@pytest.mark.parametrize("sparse", [True, False])
def test_svd_is_that_of_scikit_learn(features, sparse):
    rows = sp.random(200, features, density=0.1, random_state=0, format="csr")
    rows = rows if sparse else rows.toarray()
    map, found = made({"name": "svd", "rank": 5}, rows)
    theirs = TruncatedSVD(5, algorithm="arpack", random_state=0).fit(rows)
    np.testing.assert_allclose(up_to_signs(map.directions, theirs.components_.T), 1.0, atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), theirs.singular_values_, rtol=1e-8)
    largest = np.abs(map.directions).argmax(axis=0)
    assert (map.directions[largest, np.arange(5)] > 0).all()


def test_a_smaller_rank_gives_fewer_features():
    left = np.random.default_rng(0).standard_normal((40, 3))
    map, _ = made({"name": "svd", "rank": 10}, left @ np.random.default_rng(1).standard_normal((3, 20)))
    assert map.outputs == 3
    assert made({"name": "svd", "rank": 10}, np.zeros((4, 3)))[0].outputs == 1


def test_random_directions_are_those_of_scikit_learn():
    _, found = made({"name": "random_projection", "rank": 7, "seed": 4}, X)
    np.testing.assert_allclose(found, GaussianRandomProjection(7, random_state=4).fit_transform(X))


def test_a_model_keeps_its_map(tmp_path):
    model = bmrm.fit(X, Y, loss="softmax", features={"name": "svd", "rank": 4}, scale="standardize", lam=1e-3)
    model.save(tmp_path / "m.npz")
    again = bmrm.load_model(tmp_path / "m.npz")
    assert again.weights.shape == (4, 3)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert np.mean(again.predict(X) == Y) > 0.95


def test_principal_components_at_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["project", "sklearn:wine", "p.csv", "--scale", "standardize", "--components", "3", "--save", "m.npz"]
    assert main(words) == 0
    assert "p.csv: 178 rows, 3 features" in capsys.readouterr().out
    found = read("p.csv")
    theirs = PCA(3).fit_transform(StandardScaler().fit_transform(X))
    np.testing.assert_allclose(up_to_signs(found.X, theirs), 1.0, atol=1e-8)
    np.testing.assert_array_equal(found.targets.y, Y)
    assert main(["project", "sklearn:wine", "q.csv", "--load", "m.npz"]) == 0
    assert (tmp_path / "q.csv").read_text() == (tmp_path / "p.csv").read_text()


def test_other_rows_by_the_same_map(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = (np.random.default_rng(0).random((50, 9)) < 0.5).astype(float)
    rows[:30, 8] = 1.0
    write_svmlight("a.svm", Dataset.from_arrays(sp.csr_matrix(rows[:30]), np.zeros(30)))
    write_svmlight("b.svm", Dataset.from_arrays(sp.csr_matrix(rows[30:, :8]), np.ones(20)))
    for method in ("svd", "random"):
        assert main(["project", "a.svm", "a.npz", "--method", method, "--components", "4", "--save", "m.npz"]) == 0
        assert main(["project", "b.svm", "b.npz", "--load", "m.npz"]) == 0
        V = np.load("m.npz")["features_directions"]
        np.testing.assert_allclose(read("a.npz").X, rows[:30] @ V, atol=1e-12)
        np.testing.assert_allclose(read("b.npz").X, rows[30:, :8] @ V[:8], atol=1e-12)
        assert read("b.npz").targets.y.tolist() == [1.0] * 20


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["sklearn:wine", "a.csv", "--load", "m.npz", "--method", "svd"],
            "--method beside --load",
        ),
        (["sklearn:wine", "a.xyz"], "expected a name that ends in one of"),
        (["sklearn:wine", "a.csv", "--load", "no.npz"], "no.npz"),
        (["sklearn:wine", "a.csv", "--load", "wine.npz"], "wine.npz: not a map of `bmrm project`"),
        (["sklearn:iris", "a.csv", "--load", "m.npz"], "columns"),
    ],
)
def test_a_wrong_command(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["project", "sklearn:wine", "wine.npz", "--save", "m.npz"]) == 0
    capsys.readouterr()
    assert main(["project", *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "a.csv").exists()


def test_columns_of_text_have_no_map_in_a_file(tmp_path, monkeypatch):
    from bmrm.app.project import project

    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,town,y\n1,x,0\n2,z,1\n3,x,0\n4,z,1\n")
    with pytest.raises(InputError, match="columns of text and categories are no features yet"):
        project("t.csv", "u.csv", components=1, save="m.npz")
    assert project("t.csv", "u.csv", components=1).features == 1


@pytest.mark.mpi
def test_three_ranks_find_the_directions_of_all_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = sp.random(90, 200, density=0.1, random_state=2, format="csr")
    y = np.where(np.asarray(rows[:, :20].sum(axis=1)).ravel() > 1.0, 1.0, -1.0)
    write_svmlight("a.svm", Dataset.from_arrays(rows, y))
    words = ["train", "a.svm", "--loss", "logistic", "--lambda", "1e-3", "--tolerance", "1e-8", "--quiet", "--features"]
    assert main([*words, "{name: svd, rank: 5}", "--output", "one"]) == 0
    done = work(3, "bmrm.cli", *words, "{name: svd, rank: 5}", "--output", "three", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    one, three = (bmrm.load_model(f"{name}/model.npz") for name in ("one", "three"))
    np.testing.assert_allclose(three.features.map.directions, one.features.map.directions, atol=1e-9)
    np.testing.assert_allclose(three.decision_function(rows), one.decision_function(rows), atol=1e-4)
