"""`bmrm path`: tables, files and pages of many lambdas, alone and over ranks."""

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import bmrm
from bmrm.app.path_kept import KeptPoints
from bmrm.cli import main
from bmrm.data.writers import write_svmlight
from tests.mpi.launch import work

GIVEN = ["--loss", "least_squares", "--regularizer", "l1", "--n-lambdas", "6", "--ratio", "0.01"]


def test_files_of_a_path(tmp_path, capsys):
    out = tmp_path / "out"
    words = ["sklearn:diabetes", *GIVEN, "--scale", "standardize", "--validation", "sklearn:diabetes"]
    assert main(["path", *words, "--metrics", "r2", "--out", str(out), "--models"]) == 0
    told = capsys.readouterr().out
    assert "6 points, lambda 45.16 to 0.4516, 0 to 8 features" in told
    assert {path.name for path in out.iterdir()} == {
        "path.json",
        "table.csv",
        "weights.csv",
        "path.svg",
        "path.html",
        "models",
    }
    plain = json.loads((out / "path.json").read_text())
    assert plain["exact"]
    with (out / "table.csv").open() as stream:
        table = list(csv.DictReader(stream))
    assert [float(line["lambda"]) for line in table] == [line["lambda"] for line in plain["points"]]
    model = bmrm.load_model(out / "models" / "3.npz")
    assert model.header["regularizer"]["lambda"] == plain["points"][3]["lambda"]
    with (out / "weights.csv").open() as stream:
        lines = [line for line in csv.DictReader(stream) if float(line["lambda"]) == plain["points"][3]["lambda"]]
    weights = {line["feature"]: float(line["weight"]) for line in lines}
    assert weights.pop("(intercept)") == model.intercept[0]
    assert weights == {name: w for name, w in zip(model.column_names, model.weights.tolist()) if w}
    page = (out / "path.html").read_text()
    assert "lambda_max is 45.16" in page
    assert page.count("<svg") == 5
    assert main(["path", *words, "--metrics", "r2", "--out", str(out), "--json"]) == 0  # replaces them
    assert json.loads(capsys.readouterr().out)["points"] == [
        {**line, "seconds": pytest.approx(line["seconds"], abs=60.0)} for line in plain["points"]
    ]
    assert not (out / "models" / "3.npz").exists()


def test_a_config(tmp_path, capsys):
    config = tmp_path / "path.yaml"
    config.write_text(
        "data: {train: 'sklearn:breast_cancer', scale: standardize}\nloss: logistic\n"
        "regularizer: {name: elastic_net, l1_ratio: 0.9}\n"
    )
    assert main(["path", str(config), "--lambdas", "0.1", "0.01", "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    X, y = load_breast_cancer(return_X_y=True)
    given = {"loss": "logistic", "scale": "standardize", "regularizer": {"name": "elastic_net", "l1_ratio": 0.9}}
    found = bmrm.path(X, y, lambdas=[0.1, 0.01], **given)
    assert [line["objective"] for line in points] == pytest.approx(found.objectives.tolist(), rel=1e-9)
    assert main(["path", str(config), "--most-features", "3", "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert points[-1]["nonzeros"] >= 3 > points[-2]["nonzeros"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--lambda", "0.1"], "regularizer.lambda is given, but a path chooses it; use --lambdas"),
        (["--lambdas", "0.1", "0.2"], "lambdas: number 1 is 0.2 after 0.1, expected decreasing numbers, each once"),
        (["--lambdas", "x"], "--lambdas: 'x', expected a number > 0"),
        (["--regularizer", "none"], "regularizer 'none' has no lambda, of which a path has many"),
        (["--metrics", "r2"], "--metrics measure validation rows, expected --validation"),
        (["--resume"], "--resume without --out, expected the folder that a path was written to"),
        (["--models"], "--models without --out, expected the folder that they are written to"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_cannot_be(words, said, capsys):
    assert main(["path", "sklearn:diabetes", "--loss", "least_squares", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_of_something_else_stays(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["path", "sklearn:diabetes", *GIVEN, "--out", str(tmp_path)]) == 2
    assert "it holds mine.txt, but no path.json; choose another folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def killed(words, monkeypatch, after=3):
    """Run it, and end it in the middle of a point."""
    with monkeypatch.context() as patched:
        whole, done = KeptPoints.put, []

        def put(self, lam, found):
            if len(done) == after:
                raise SystemExit(9)
            done.append(lam)
            whole(self, lam, found)

        patched.setattr(KeptPoints, "put", put)
        assert main(words) != 0


@pytest.mark.parametrize("solver", ["auto", "line_search_bundle"])
def test_a_killed_path_goes_on(tmp_path, monkeypatch, capsys, solver):
    words = ["path", "sklearn:diabetes", *GIVEN, "--scale", "standardize", "--solver", solver, "--tolerance", "1e-6"]
    assert main([*words, "--json"]) == 0
    straight = json.loads(capsys.readouterr().out)["points"]
    out = tmp_path / "out"
    words += ["--out", str(out), "--json"]
    killed(words, monkeypatch)
    assert [path.name for path in out.iterdir()] == ["points"]
    assert len([*(out / "points").iterdir()]) == 3
    written, whole = [], KeptPoints.put
    monkeypatch.setattr(KeptPoints, "put", lambda self, lam, found: (written.append(lam), whole(self, lam, found)))
    assert main([*words, "--resume"]) == 0
    assert len(written) == 3
    points = json.loads(capsys.readouterr().out)["points"]
    for one, other in zip(straight, points, strict=True):
        assert other["objective"] == pytest.approx(one["objective"], rel=2e-6)
        assert other["relative_gap"] <= 1e-6
        assert other["lambda"] == one["lambda"]
    assert not (out / "points").exists()


@pytest.mark.parametrize("change", [["--tolerance", "1e-5"], ["--scale", "max_abs"], ["--bias", "none"]])
def test_points_of_another_problem_are_not_taken(tmp_path, monkeypatch, change):
    words = ["path", "sklearn:diabetes", *GIVEN, "--quiet", "--lambdas", "1.0", "0.5", "0.2", "0.1"]
    words = [word for word in words if word not in ("--n-lambdas", "6", "--ratio", "0.01")]
    words += ["--out", str(tmp_path / "out")]
    killed(words, monkeypatch)
    written = []
    with monkeypatch.context() as patched:
        patched.setattr(KeptPoints, "put", lambda self, lam, found: written.append(lam))
        assert main([*words, *change, "--resume"]) == 0
    assert written == [1.0, 0.5, 0.2, 0.1]
    killed(words, monkeypatch, 2)  # without --resume a path begins anew
    assert len([*(tmp_path / "out" / "points").iterdir()]) == 2


@pytest.mark.parametrize("left", [b"", b"PK", None])
def test_a_damaged_point_is_walked_again(tmp_path, monkeypatch, left):
    words = ["path", "sklearn:diabetes", *GIVEN, "--quiet", "--out", str(tmp_path / "out")]
    killed(words, monkeypatch)
    for file in (tmp_path / "out" / "points").iterdir():
        file.write_bytes(file.read_bytes()[:-30] if left is None else left)
    written = []
    monkeypatch.setattr(KeptPoints, "put", lambda self, lam, found: written.append(lam))
    assert main([*words, "--resume"]) == 0
    assert len(written) == 6


def test_points_around_another_model_of_the_same_name_are_not_taken(tmp_path, monkeypatch):
    X, y = load_diabetes(return_X_y=True)
    center = tmp_path / "center.npz"
    words = ["path", "sklearn:diabetes", "--loss", "least_squares", "--scale", "none", "--lambdas", "1.0", "0.5", "0.2"]
    words += ["--regularizer", json.dumps({"name": "l2", "center": str(center)}), "--out", str(tmp_path / "out")]
    bmrm.fit(X, y, loss="least_squares", lam=1e-1).save(center)
    killed(words, monkeypatch, 2)
    bmrm.fit(X, y, loss="least_squares", lam=1e-3).save(center)
    written = []
    monkeypatch.setattr(KeptPoints, "put", lambda self, lam, found: written.append(lam))
    assert main([*words, "--resume"]) == 0
    assert written == [1.0, 0.5, 0.2]


def test_three_ranks_go_on_with_what_one_has_left(tmp_path, monkeypatch):
    words = ["path", "sklearn:diabetes", "--loss", "least_squares", "--regularizer", "l1", "--tolerance", "1e-6"]
    words += ["--lambdas", "1.0", "0.5", "0.2", "0.1", "--out", "out", "--json"]
    monkeypatch.chdir(tmp_path)
    killed(words, monkeypatch)
    done = work(3, "bmrm.cli", *words, "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    points = json.loads(done.stdout)["points"]
    assert [point["lambda"] for point in points] == [1.0, 0.5, 0.2, 0.1]
    assert all(point["relative_gap"] <= 1e-6 for point in points)


def test_progress_is_told_point_by_point():
    X, y = load_breast_cancer(return_X_y=True)
    told = []
    given = {"loss": "least_squares", "regularizer": "l1", "n_lambdas": 4}
    bmrm.path(X, y, progress=lambda done, total: told.append((done, total)), **given)
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.raises(bmrm.InputError, match="progress is 3, expected a function of two numbers"):
        bmrm.path(X, y, progress=3, **given)


@pytest.mark.parametrize("loss", ["least_squares", "logistic"])
def test_three_ranks_find_what_one_does(tmp_path, loss):
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 6))
    y = X[:, 0] - X[:, 1] + 0.5 * random.normal(size=120)
    rows = bmrm.Dataset.from_arrays(X, y if loss == "least_squares" else (y > 0.0).astype(float))
    write_svmlight(tmp_path / "rows.svm", rows)
    words = ["path", "rows.svm", "--loss", loss, "--regularizer", "l1", "--n-lambdas", "4", "--tolerance", "1e-8"]
    found = []
    for ranks in (1, 3):
        done = work(ranks, "bmrm.cli", *words, "--validation", "rows.svm", "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout)["points"])
    for one, other in zip(*found, strict=True):
        for name, value in one.items():
            if name not in ("seconds", "passes", "relative_gap", "status"):
                assert other[name] == pytest.approx(value, rel=1e-5, abs=1e-7), name


def test_three_ranks_say_once_what_is_wrong(tmp_path):
    done = work(3, "bmrm.cli", "path", "sklearn:diabetes", *GIVEN, "--lambdas", "0.1", "0.2", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("beside lambdas" if "beside" in done.stderr else "expected decreasing numbers") == 1
