"""Feature maps at every door, against scikit-learn's and against a factor that is computed in plain loops."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
import yaml
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import bmrm
from bmrm.app.pipeline.features import GroupRows
from bmrm.cli import main
from bmrm.data.features import FEATURES
from bmrm.data.matrix import Csr
from bmrm.data.writers import write_svmlight
from bmrm.mpi.group import Alone
from bmrm.problem import IncompatibleError, InputError
from tests.mpi.launch import work

random = np.random.default_rng(7)
X = random.normal(size=(150, 5)) * [1.0, 3.0, 1.0, 1.0, 0.2]
Y = np.where((X**2).sum(axis=1) > 10.0, "out", "in")
TIGHT = {"loss": "hinge", "lam": 1e-3, "tolerance": 1e-9}
NAMES = ("incomplete_cholesky", "nystroem", "random_fourier", "polynomial")
GIVEN = {
    "incomplete_cholesky": {"rank": 20, "gamma": 0.1},
    "nystroem": {"rank": 20, "gamma": 0.1},
    "random_fourier": {"rank": 30, "gamma": 0.1},
    "polynomial": {"degree": 2},
}


def section(name, **options):
    return {"name": name, **GIVEN[name], **options}


def made(options, X):
    """What a map makes of rows, and the map."""
    matrix = Csr.from_scipy(X) if sp.issparse(X) else X
    map, found = FEATURES.instance(options).fitted(GroupRows(matrix, matrix, Alone()))
    return map, found.to_dense() if isinstance(found, Csr) else found


def own_kernel(X, Y):
    """(1 + <x, y>)^2, as `polynomial` has it with gamma 1."""
    return (1.0 + np.asarray(X @ Y.T)) ** 2


def factor_of(K, rank, share):
    """Pivots and factor by plain loops, the whole matrix in hand."""
    left, pivots, L = K.diagonal().copy(), [], np.zeros((len(K), 0))
    for _ in range(rank):
        if left.sum() <= share * K.trace():
            break
        p = int(np.argmax(left))
        column = (K[:, p] - L @ L[p]) / np.sqrt(left[p])
        L = np.column_stack((L, column))
        left = left - column**2
        pivots.append(p)
    return pivots, L


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial", "linear", "cosine"])
@pytest.mark.parametrize("sparse", [False, True])
def test_incomplete_cholesky_is_the_factor(kernel, sparse):
    rows = X * (random.random(X.shape) < 0.7)
    rows[0] += 1.0  # the kernel of the first is the largest, or as large as any
    K = pairwise_kernels(rows, metric=kernel, filter_params=True, gamma=0.2, degree=2.0, coef0=1.0)
    rank = {"linear": 4, "cosine": 4, "polynomial": 12}.get(kernel, 25)
    map, found = made(
        {"name": "incomplete_cholesky", "kernel": kernel, "gamma": 0.2, "degree": 2.0, "rank": rank},
        sp.csr_matrix(rows) if sparse else rows,
    )
    pivots = [int(np.flatnonzero((rows == row).all(axis=1))[0]) for row in dense(map.pivots)]
    residual = K - found @ found.T
    assert np.abs(residual[pivots]).max() <= 1e-9 * K.max()
    # each pivot had the most left
    left = K.diagonal().copy()
    for k, p in enumerate(pivots):
        assert left[p] >= left.max() * (1.0 - 1e-9)
        left -= found[:, k] ** 2
    np.testing.assert_allclose(dense(map.apply(map.pivots)), found[pivots], atol=1e-6 * np.sqrt(K.max()))
    first = pivots[0]
    if kernel in ("polynomial", "linear"):  # without ties the plain loops say all
        same, L = factor_of(K, rank, 0.0)
        assert pivots == same
        assert first == int(np.argmax(K.diagonal()))
        np.testing.assert_allclose(found, L, atol=1e-9 * np.sqrt(K.max()))


def dense(matrix):
    return matrix.to_dense() if isinstance(matrix, Csr) else matrix


def test_it_stops_by_the_trace_and_by_the_rank_of_the_kernel():
    K = pairwise_kernels(X, metric="polynomial", gamma=0.2, degree=2.0, coef0=1.0)
    given = {"name": "incomplete_cholesky", "kernel": "polynomial", "gamma": 0.2, "degree": 2.0}
    map, found = made({**given, "trace": 0.05}, X)
    pivots, _ = factor_of(K, 150, 0.05)
    assert map.outputs == len(pivots) < 21
    assert np.trace(K - found @ found.T) <= 0.05 * K.trace()
    map, found = made(given, X)  # 21 monomials of degree 2 at most in 5 variables
    assert map.outputs == 21
    np.testing.assert_allclose(found @ found.T, K, atol=1e-6 * K.max())


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial", "sigmoid", "cosine"])
def test_nystroem_is_that_of_scikit_learn(kernel):
    map, found = made({"name": "nystroem", "kernel": kernel, "gamma": 0.1, "rank": 12, "seed": 3}, X)
    known = {"polynomial": {"degree": 3, "coef0": 1}, "sigmoid": {"coef0": 1}}.get(kernel, {})
    gamma = {} if kernel == "cosine" else {"gamma": 0.1}
    theirs = Nystroem(kernel, **gamma, **known, n_components=12).fit(map.pivots)
    order = [int(np.flatnonzero((theirs.components_ == row).all(axis=1))[0]) for row in map.pivots]
    expected = theirs.transform(X)[:, order]
    if kernel != "sigmoid":  # singular vectors of an indefinite matrix have signs of their own
        np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-5)
    assert all((row == X).all(axis=1).any() for row in map.pivots)
    order = random.permutation(len(X))
    again, _ = made({"name": "nystroem", "kernel": kernel, "rank": 12, "seed": 3}, X[order])
    np.testing.assert_array_equal(again.pivots, map.pivots)
    other, _ = made({"name": "nystroem", "kernel": kernel, "rank": 12, "seed": 4}, X)
    assert not np.array_equal(other.pivots, map.pivots)


def test_random_fourier_and_polynomial_are_those_of_scikit_learn():
    _, found = made({"name": "random_fourier", "rank": 40, "gamma": 0.3, "seed": 5}, X)
    expected = RBFSampler(gamma=0.3, n_components=40, random_state=5).fit_transform(X)
    np.testing.assert_allclose(found, expected, atol=1e-14)
    for degree, only in ((2, False), (3, True)):
        given = {"name": "polynomial", "degree": degree, "interaction_only": only}
        expected = PolynomialFeatures(degree, interaction_only=only, include_bias=False).fit_transform(X)
        map, found = made(given, X)
        assert map.outputs == expected.shape[1]
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        np.testing.assert_allclose(made(given, sp.csr_matrix(X))[1], expected, rtol=1e-14)


@pytest.mark.parametrize("scale", ["none", "standardize", "max_abs", "unit_norm"])
@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_raw_rows(name, scale, tmp_path):
    """The same as a model of the features that a map makes of scaled rows."""
    model = bmrm.fit(X, Y, features=section(name), scale=scale, **TIGHT)
    scaled = {
        "none": X,
        "standardize": StandardScaler().fit_transform(X),
        "max_abs": X / np.abs(X).max(axis=0),
        "unit_norm": X / np.linalg.norm(X, axis=1, keepdims=True),
    }[scale]
    plain = bmrm.fit(model.features.map.apply(scaled), Y, **TIGHT)
    assert model.solution.objective == pytest.approx(plain.solution.objective, rel=1e-7)
    new = random.normal(size=(30, 5))
    model.save(tmp_path / "m.npz")
    again = bmrm.load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.decision_function(new), model.decision_function(new))
    np.testing.assert_allclose(again.decision_function(sp.csr_matrix(new)), model.decision_function(new), atol=1e-9)
    assert (again.inputs, again.dim) == (5, model.features.map.outputs)
    assert model.top_weights(1)[0].feature.startswith(name)
    with pytest.raises(InputError, match="the data have 6 features, the model has 5"):
        again.predict(np.zeros((1, 6)))


def test_the_options_have_an_effect():
    for name in NAMES:
        plain = FEATURES.instance(section(name))
        _, before = made(plain, X)
        for field in FEATURES.get(name).parameters:
            if field.name in ("degree", "coef0") and name != "polynomial":
                base = FEATURES.instance(section(name, kernel="polynomial"))
            else:
                base = plain
            changed = {**FEATURES.describe(base), field.name: field.metadata["example"]}
            _, one = made(base, X) if base is not plain else (None, before)
            _, two = made(changed, X)
            assert one.shape != two.shape or not np.allclose(one, two), (name, field.name)


def test_a_kernel_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = bmrm.fit(X, Y, features=section("nystroem", kernel="polynomial", gamma=1.0, degree=2.0), **TIGHT)
    mine = bmrm.fit(X, Y, features=section("nystroem", kernel=own_kernel), **TIGHT)
    named = bmrm.fit(X, Y, features=section("nystroem", kernel="tests.app.test_features:own_kernel"), **TIGHT)
    for model in (mine, named):
        np.testing.assert_allclose(model.decision_function(X), known.decision_function(X), atol=1e-5)
    with pytest.raises(InputError, match="a model whose kernel is a function cannot be saved"):
        mine.save("m.npz")
    assert list(tmp_path.iterdir()) == []
    named.save("m.npz")
    loaded = bmrm.load_model("m.npz")
    with pytest.raises(
        InputError, match=r"kernel tests.app.test_features:own_kernel; hand it over: load_model\(path, k"
    ):
        loaded.predict(X)
    again = bmrm.load_model("m.npz", kernel=own_kernel)
    np.testing.assert_array_equal(again.decision_function(X), named.decision_function(X))
    write_svmlight("rows.svm", bmrm.Dataset.from_arrays(X, (Y == "in").astype(int)))
    assert main(["predict", "m.npz", "rows.svm", "--kernel", "tests.app.test_features:own_kernel", "--out", "f"]) == 0
    np.testing.assert_allclose(np.loadtxt("f"), named.decision_function(X), rtol=1e-9)
    assert main(["predict", "m.npz", "rows.svm", "--kernel", "tests.app.test_features:other", "--out", "g"]) == 2


def test_a_transformer(tmp_path):
    pca = PCA(3, whiten=True)
    model = bmrm.fit(X, Y, features=pca, **TIGHT)
    assert not hasattr(pca, "components_")
    plain = bmrm.fit(PCA(3, whiten=True).fit_transform(X), Y, **TIGHT)
    assert model.solution.objective == pytest.approx(plain.solution.objective, rel=1e-8)
    np.testing.assert_allclose(
        model.predict(X[:5]) == Y[:5], plain.predict(PCA(3, whiten=True).fit_transform(X))[:5] == Y[:5]
    )
    with pytest.raises(InputError, match="features a PCA makes cannot be saved, its file has arrays only"):
        model.save(tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sparse", [False, True])
def test_a_transformer_makes_a_row_for_each(sparse):
    class Halves(PCA):
        def transform(self, X):
            return sp.csr_matrix(X[::2]) if sparse else X[::2]

    with pytest.raises(InputError, match=r"Halves gave float64 of shape \(75, 5\), expected numbers \(150, features\)"):
        bmrm.fit(X, Y, features=Halves(3), **TIGHT)


def test_estimators_with_calibration():
    given = section("incomplete_cholesky")
    classifier = bmrm.Classifier("hinge", alpha=1e-3, tol=1e-9, features=given, calibrate="sigmoid").fit(X, Y)
    model = bmrm.fit(X, Y, features=given, calibrate="sigmoid", **TIGHT)
    np.testing.assert_array_equal(classifier.predict_proba(X), model.predict_proba(X))
    assert classifier.score(X, Y) > np.mean(Y == "in") + 0.2
    assert classifier.n_features_in_ == 5
    regressor = bmrm.Regressor("least_squares", alpha=1e-4, features={"name": "polynomial"}).fit(X, (X**2).sum(axis=1))
    assert regressor.score(X, (X**2).sum(axis=1)) > 0.99


def test_frames_are_known_by_their_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = bmrm.fit(frame, Y, features=section("nystroem"), **TIGHT)
    model.save(tmp_path / "m.npz")
    again = bmrm.load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.predict(frame[list("edcba")]), model.predict(frame))
    with pytest.raises(InputError, match="no column 'a'"):
        again.predict(frame.drop(columns="a"))
    for format in ("liblinear", "vw", "c", "onnx"):
        with pytest.raises(IncompatibleError, match="features that are made of others"):
            again.export(tmp_path / "x", format)
    again.export(tmp_path / "x", "json")
    assert json.loads((tmp_path / "x").read_text())["feature_map"]["name"] == "nystroem"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nystrom", "unknown feature map 'nystrom' (did you mean 'nystroem'?)"),
        ({"name": "nystroem", "rank": 0}, "rank is 0, expected a whole number >= 1"),
        ({"name": "nystroem", "kernel": "gauss"}, "nystroem: kernel is 'gauss', expected one of additive_chi2, chi2"),
        ({"name": "nystroem", "kernel": "no_module:f"}, "features: kernel 'no_module:f' cannot be imported"),
        ({"name": "nystroem", "kernel": "chi2"}, "features: kernel chi2: X contains negative values"),
        ({"name": "nystroem", "kernel": lambda X, Y: np.ones(3)}, "of shape (3,), expected finite numbers (150, 150)"),
        ({"name": "polynomial", "gamma": 1.0}, "feature map 'polynomial' has no option 'gamma'"),
        (3, "features is 3, expected one of incomplete_cholesky, nystroem"),
        (PCA, "features is the class PCA, expected an instance: PCA()"),
    ],
    ids=range(9),
)
def test_what_is_wrong_is_said(given, said):
    with pytest.raises(InputError) as found:
        bmrm.fit(X, Y, features=given)
    assert said in str(found.value)


@pytest.mark.parametrize("sparse", [False, True])
def test_more_than_there_is_memory_for_is_refused_before_it_is_made(sparse):
    wide = np.zeros((200, 4000))
    wide[:, :: 1 if not sparse else 40] = 1.0
    with pytest.raises(InputError, match=r"of the 200 rows of data.train take .* GiB while they are made; .* are free"):
        bmrm.fit(
            sp.csr_matrix(wide) if sparse else wide,
            np.arange(200) % 2,
            features={"name": "polynomial", "degree": 3 if not sparse else 6},
        )


def test_more_than_there_can_be_columns():
    with pytest.raises(InputError, match="polynomial of 100000 features makes 5000150000, too many"):
        bmrm.fit(sp.eye(20, 100_000, format="csr"), np.arange(20) % 2, features="polynomial")


@pytest.mark.parametrize("damage", ["name", "shape", "type"])
def test_damaged_files(damage, tmp_path):
    bmrm.fit(X, Y, features=section("nystroem"), **TIGHT).save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        members = dict(file)
    if damage == "name":
        members["header"] = np.array(str(members["header"][()]).replace('"nystroem"', '"other"'))
    elif damage == "shape":
        members["features_pivots"] = members["features_pivots"][:, :4].copy()
    else:
        members["features_table"] = members["features_table"].astype(str)
    np.savez(tmp_path / "m.npz", **members)
    with pytest.raises(InputError, match="not a model file: "):
        bmrm.load_model(tmp_path / "m.npz")


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    y = (Y == "in").astype(int)
    write_svmlight("rows.svm", bmrm.Dataset.from_arrays(X[:100], y[:100]))
    write_svmlight("held.svm", bmrm.Dataset.from_arrays(X[100:], y[100:]))
    return y


WORDS = ("--loss", "hinge", "--lambda", "1e-3", "--tolerance", "1e-9", "--quiet")


@pytest.mark.parametrize("name", NAMES)
def test_command_line_and_config(name, job, capsys):
    options = [word for key, value in GIVEN[name].items() for word in (f"--data.features.{key}", str(value))]
    words = (*WORDS, "--features", name, *options, "--test", "held.svm", "--scale", "standardize", "--output", "a")
    assert main(["train", "rows.svm", *words]) == 0
    model = bmrm.fit(X[:100], job[:100], features=section(name), scale="standardize", **TIGHT)
    found = bmrm.load_model("a/model.npz")
    np.testing.assert_allclose(found.decision_function(X), model.decision_function(X), atol=1e-4)
    with open("a/summary.json") as file:
        summary = json.load(file)
    assert summary["metrics"]["test"]["accuracy"] == pytest.approx(np.mean(found.predict(X[100:]) == job[100:]))
    with open("a/config.yaml") as file:
        kept = yaml.safe_load(file)
    assert kept["data"]["features"]["name"] == name
    kept["output"]["directory"] = "b"
    with open("b.yaml", "w") as file:
        yaml.safe_dump(kept, file)
    assert main(["train", "b.yaml", "--quiet"]) == 0
    np.testing.assert_array_equal(bmrm.load_model("b/model.npz").weights, found.weights)
    capsys.readouterr()
    assert main(["evaluate", "a", "held.svm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == summary["metrics"]["test"]["accuracy"]
    assert main(["show", "a"]) == 0
    assert f"made of 5 by {name}" in capsys.readouterr().out
    assert main(["train", "rows.svm", *WORDS, "--output", "a"]) == 2  # another problem
    assert "features" in capsys.readouterr().err


def test_cross_validation(job, capsys):
    given = {"lambdas": [1e-3, 1e-2], "folds": 3, "loss": "hinge", "tolerance": 1e-9}
    found = bmrm.cross_validate(X[:100], job[:100], features=section("nystroem"), scale="standardize", **given)
    mapped = found.model.features.map.apply(StandardScaler().fit_transform(X[:100]))
    plain = bmrm.fit(mapped, job[:100], loss="hinge", lam=found.model.header["regularizer"]["lambda"], tolerance=1e-9)
    assert found.model.solution.objective == pytest.approx(plain.solution.objective, rel=1e-8)  # of all rows' map
    assert found.model.inputs == 5
    classifier = bmrm.ClassifierCV("hinge", features=section("nystroem"), cv=3).fit(X[:100], job[:100])
    assert classifier.model_.inputs == classifier.n_features_in_ == 5
    with pytest.raises(InputError, match=r"data.scale cannot be tried beside data.features"):
        bmrm.cross_validate(X, Y, features="polynomial", search={"data.scale": ["none", "max_abs"]}, loss="hinge")
    words = ("--features", json.dumps(section("nystroem")), "--scale", "standardize", "--tolerance", "1e-9")
    assert main(["cv", "rows.svm", "--loss", "hinge", *words, "--folds", "3", "--out", "cv", "--quiet"]) == 0
    assert bmrm.load_model("cv/model.npz").inputs == 5


def test_paths(job, tmp_path):
    given = {"lambdas": [1e-1, 1e-3], "loss": "hinge", "tolerance": 1e-9}
    found = bmrm.path(X[:100], job[:100], features=section("polynomial"), scale="max_abs", **given)
    for model, lam in zip(found.models, given["lambdas"], strict=True):
        plain = bmrm.fit(
            X[:100], job[:100], loss="hinge", lam=lam, tolerance=1e-9, features=section("polynomial"), scale="max_abs"
        )
        assert model.solution.objective == pytest.approx(plain.solution.objective, rel=1e-7)
        np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-3)
    own = bmrm.Classifier("hinge", features=section("polynomial"), tol=1e-9).path(X[:100], job[:100], alphas=[1e-1])
    assert own.models[0].inputs == 5
    words = ("--features", json.dumps(section("polynomial")), "--scale", "max_abs", "--tolerance", "1e-9")
    words = ("rows.svm", "--loss", "hinge", *words, "--validation", "held.svm", "--lambdas", "1e-1", "1e-3")
    assert main(["path", *words, "--out", "path", "--models", "--quiet"]) == 0
    again = bmrm.load_model("path/models/1.npz")
    np.testing.assert_allclose(again.decision_function(X), found.models[1].decision_function(X), atol=1e-3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nystrom", "unknown feature map 'nystrom'"),
        ("{name: nystroem, rank: 0}", "data.features.rank is 0"),
        ("{rank: 3}", "data.features has options but no name"),
        ("3", "data.features is 3, expected a name"),
    ],
)
def test_a_wrong_one_is_refused_before_rows_are_read(text, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "rows.svm", "--features", text, "--quiet"]) == 2
    found = capsys.readouterr().err
    assert said in found
    assert found.count("\n") == 1


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["incomplete_cholesky", "nystroem"])
def test_over_ranks_pivots_are_chosen_from_all_rows(name, job, tmp_path):
    rows = sp.csr_matrix(X * (random.random(X.shape) < 0.6)) if name == "nystroem" else X
    place = np.argsort(job, kind="stable")
    for rank, part in enumerate((place[:70], place[70:71], place[71:])):
        write_svmlight(f"part-{rank}.svm", bmrm.Dataset.from_arrays(rows[part], job[part]))
    write_svmlight("all.svm", bmrm.Dataset.from_arrays(rows[place], job[place]))
    words = (*WORDS, "--features", json.dumps(section(name)), "--dimension", "5")
    assert main(["train", "all.svm", *words, "--output", "one"]) == 0
    done = work(3, "bmrm.cli", "train", "part-{rank}.svm", *words, "--output", "three", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    one, three = bmrm.load_model("one/model.npz"), bmrm.load_model("three/model.npz")
    np.testing.assert_allclose(dense(three.features.map.pivots), dense(one.features.map.pivots), rtol=1e-12)
    np.testing.assert_allclose(three.decision_function(X), one.decision_function(X), atol=1e-4)
