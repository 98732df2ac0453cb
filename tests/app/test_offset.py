"""What is added to the scores of rows, outside the weights: Poisson with exposure and others, at every door."""

import json

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.optimize import minimize

import bmrm
from bmrm.cli import main
from bmrm.data.writers import write_svmlight
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, InputError, ability
from bmrm.problem.abilities import Fingerprint
from bmrm.solvers import SOLVERS
from tests.mpi.launch import work

LAM = 1e-3
TIGHT = {"lam": LAM, "tolerance": 1e-13}


@pytest.fixture(scope="module")
def counts():
    """Features, counts, logarithms of exposures, weights."""
    rng = np.random.default_rng(0)
    X, exposure = rng.standard_normal((60, 4)), rng.uniform(0.1, 12.0, 60)
    y = rng.poisson(exposure * np.exp(0.4 * X @ rng.standard_normal(4) - 0.5)).astype(float)
    return X, y, np.log(exposure), rng.uniform(0.5, 2.0, 60)


def poisson(X, y, offset, weights, lam):
    """Weights and a free intercept by Newton's method (Nelder & Wedderburn 1972), and the mean of each row."""
    A, omega = np.c_[X, np.ones(len(y))], lam * np.diag([1.0] * X.shape[1] + [0.0])
    w, share = np.zeros(A.shape[1]), weights / weights.sum()
    for _ in range(50):
        mean = np.exp(A @ w + offset)
        step = np.linalg.solve((A.T * (share * mean)) @ A + omega, A.T @ (share * (mean - y)) + omega @ w)
        w = w - step
    return w, np.exp(A @ w + offset)


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "irls"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_poisson_with_exposure_is_that_of_newtons_method(counts, solver, weighted):
    X, y, offset, weights = counts
    w, mean = poisson(X, y, offset, weights if weighted else np.ones(60), LAM)
    given = {"sample_weight": weights if weighted else None, "offset": offset}
    model = bmrm.fit(X, y, loss="poisson", solver=solver, **given, **TIGHT)
    np.testing.assert_allclose(np.r_[model.weights, model.intercept], w, atol=1e-8)
    np.testing.assert_allclose(model.predict(X, offset=offset), mean, rtol=1e-7)


def scores_of(model, X, offset):
    return X @ model.weights + (model.intercept[0] if model.weights.ndim == 1 else model.intercept) + offset


FORMULAS = {
    "logistic": lambda f, y: np.logaddexp(0.0, -y * f),
    "hinge": lambda f, y: np.maximum(0.0, 1.0 - y * f),
    "quantile": lambda f, y: np.maximum(0.5 * (y - f), 0.5 * (f - y)),
    "softmax": lambda f, y: np.log(np.exp(f).sum(axis=1)) - f[np.arange(len(y)), y],
    "multiclass_hinge": lambda f, y: (f + 1.0 - np.eye(f.shape[1])[y]).max(axis=1) - f[np.arange(len(y)), y],
}


def j_of(loss, model, X, y, offset, lam):
    """J by the formulas."""
    return 0.5 * lam * float(np.sum(model.weights**2)) + float(FORMULAS[loss](scores_of(model, X, offset), y).mean())


def problem(loss, rows=40, features=3):
    rng = np.random.default_rng(3)
    X, several = rng.standard_normal((rows, features)), loss in ("softmax", "multiclass_hinge")
    offset = 1.5 * rng.standard_normal((rows, 3) if several else rows)
    f = X @ rng.standard_normal((features, 3) if several else features) + offset + rng.normal(size=offset.shape)
    return X, f.argmax(axis=1) if several else f if loss == "quantile" else np.sign(f), offset


def least_smooth(loss, X, y, offset, lam):
    """min J with a free intercept, by SciPy's BFGS without derivatives from the package."""
    A, shape = np.c_[X, np.ones(len(y))], (X.shape[1] + 1, *offset.shape[1:])

    def objective(v):
        w = v.reshape(shape)
        return 0.5 * lam * np.sum(w[:-1] ** 2) + FORMULAS[loss](A @ w + offset, y).mean()

    return minimize(objective, np.zeros(int(np.prod(shape))), method="BFGS", options={"gtol": 1e-7}).fun


def pieces(loss, A, y, offset):
    """(row, slope in the weights, height) of each linear piece of the losses of the rows."""
    for i in range(len(y)):
        if loss == "quantile":
            yield from ((i, sign * 0.5 * A[i], sign * 0.5 * (offset[i] - y[i])) for sign in (1.0, -1.0))
        elif loss == "hinge":
            yield from ((i, 0.0 * A[i], 0.0), (i, -y[i] * A[i], 1.0 - y[i] * offset[i]))
        else:
            for k in range(offset.shape[1]):
                slope = np.outer(A[i], np.eye(offset.shape[1])[k] - np.eye(offset.shape[1])[y[i]])
                yield i, slope.ravel(), float(k != y[i]) + offset[i, k] - offset[i, y[i]]


def least_kinked(loss, X, y, offset, lam):
    """min J with a free intercept: the quadratic program of the weights and the losses of the rows, by cvxopt."""
    cvxopt = pytest.importorskip("cvxopt")
    rows, slopes, heights = zip(*pieces(loss, np.c_[X, np.ones(len(y))], y, offset), strict=True)
    n, m, k = len(slopes[0]), len(y), len(slopes[0]) // (X.shape[1] + 1)
    drop = int(k > 1)  # the same for all intercepts changes nothing: the last is 0
    bent = np.r_[np.full(n - k, lam), np.zeros(k - drop + m)]
    G = np.c_[np.array(slopes)[:, : n - drop], -np.eye(m)[list(rows)]]
    matrix = cvxopt.matrix
    tight = {"show_progress": False, "abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11}
    found = cvxopt.solvers.qp(
        matrix(np.diag(bent)),
        matrix(np.r_[np.zeros(n - drop), np.full(m, 1.0 / m)]),
        matrix(G),
        matrix(-np.array(heights)),
        options=tight,
    )
    return found["primal objective"]


@pytest.mark.parametrize("loss", FORMULAS)
def test_every_solver_finds_the_minimum_of_a_reference(loss):
    X, y, offset = problem(loss)
    lam, found = 1e-2, 0
    least = (least_smooth if loss in ("logistic", "softmax") else least_kinked)(loss, X, y, offset, lam)
    for entry in SOLVERS.all():
        try:
            model = bmrm.fit(X, y, loss=loss, lam=lam, offset=offset, solver=entry.name, tolerance=1e-6, time_limit=0.5)
        except IncompatibleError:
            continue
        solution, found = model.solution, found + 1
        assert solution.objective == pytest.approx(j_of(loss, model, X, y, offset, lam), rel=1e-12)
        assert solution.lower_bound <= least + 2e-9 < solution.objective + 4e-9
        if solution.status.name == "CONVERGED":
            assert solution.objective <= least * (1.0 + 2e-6), entry.name
    assert found >= 6


@pytest.mark.parametrize("loss", ["roc_area", "ordinal", "rank_hinge", "multilabel_hinge", "poisson"])
def test_a_loss_with_an_offset_is_one_with_a_feature_of_weight_1(loss):
    """A start at w = (0, 1) for the features and the offset has the value that w = 0 has with the offset."""
    rng = np.random.default_rng(5)
    X, offset = rng.standard_normal((40, 3)), rng.standard_normal(40)
    y = rng.integers(0, 3, 40).astype(float) if loss != "roc_area" else np.sign(offset + rng.normal(size=40))
    groups = np.arange(40) // 5 if loss == "rank_hinge" else None
    if loss == "multilabel_hinge":
        y, offset = [{int(k)} for k in y], rng.standard_normal((40, 3))
    made = LOSSES.make(loss)
    with_offset = bmrm.LinearRisk(bmrm.Dataset.from_arrays(X, y, groups=groups, offset=offset), made)
    columns = offset.reshape(40, -1)
    wide = bmrm.LinearRisk(bmrm.Dataset.from_arrays(np.c_[X, columns], y, groups=groups), made)
    w = rng.standard_normal(with_offset.dim)
    whole = np.concatenate((w, np.eye(columns.shape[1]).ravel()))
    value, slope = with_offset.value_and_subgradient(w)
    expected, wider = wide.value_and_subgradient(whole)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(slope, wider[: w.size], rtol=1e-12, atol=1e-14)


def test_the_start_the_weights_and_the_fingerprint_know_it():
    X, y, offset = problem("logistic")
    model = bmrm.fit(X, y, loss="logistic", lam=1e-2, offset=offset, tolerance=1e-9)
    again = bmrm.fit(X, y, loss="logistic", lam=1e-2, offset=offset, tolerance=1e-9, start=model)
    assert again.solution.iterations <= model.solution.iterations
    assert again.solution.objective == pytest.approx(model.solution.objective, rel=1e-9)
    data = [bmrm.Dataset.from_arrays(X, y, offset=one) for one in (None, offset, -offset)]
    prints = [ability(bmrm.LinearRisk(one, LOSSES.make("logistic")), Fingerprint).fingerprint() for one in data]
    assert len(set(prints)) == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros(3), "offset has 3 entries, X has 40 rows"),
        (np.full(40, np.nan), "offset: row 0 is nan, expected finite numbers"),
        (["x"] * 40, "offset holds text"),
        (np.zeros((40, 2)), "logistic: the offset has shape (40, 2), expected (rows,)"),
        ("exposure", "offset is 'exposure', expected numbers or the name of a column; the columns have no names"),
    ],
    ids=["short", "nan", "text", "wide", "name"],
)
def test_what_is_wrong_is_said(given, said):
    X, y, _ = problem("logistic")
    with pytest.raises(InputError) as found:
        bmrm.fit(X, y, loss="logistic", offset=given)
    assert said in str(found.value)


def test_what_an_offset_cannot_be_for():
    X, y, offset = problem("softmax")
    with pytest.raises(InputError, match="added to all scores of a row alike changes nothing"):
        bmrm.fit(X, y, loss="softmax", offset=offset[:, 0])
    with pytest.raises(IncompatibleError, match="an offset is for losses of scores alone"):
        bmrm.fit(X, y, loss="chain_crf", groups=np.arange(40) // 4, offset=offset)
    data = bmrm.Dataset.from_arrays(X, y, offset=offset)
    with pytest.raises(InputError, match="y, sample_weight, offset or groups beside a Dataset"):
        bmrm.fit(data, loss="softmax", offset=offset)


def test_a_model_asks_for_what_it_was_trained_with(counts, tmp_path):
    X, y, offset, _ = counts
    bmrm.fit(X, y, loss="poisson", offset=offset).save(tmp_path / "model.npz")
    model = bmrm.load_model(tmp_path / "model.npz")
    assert model.offset == "offset"
    for ask in (model.predict, model.decision_function, lambda X: model.evaluate(X, y)):
        with pytest.raises(InputError, match="no offset, with which the model was trained; expected a number for each"):
            ask(X)
    assert model.evaluate(X, y, offset=offset) == model.evaluate(bmrm.Dataset.from_arrays(X, y, offset=offset))
    with pytest.raises(InputError, match="the model was trained without one"):
        bmrm.fit(X, y, loss="poisson").predict(X, offset=offset)


def test_a_column_of_a_frame(counts):
    X, y, offset, _ = counts
    frame = pd.DataFrame(X, columns=list("abcd")).assign(log_exposure=offset)
    model = bmrm.fit(frame, y, loss="poisson", offset="log_exposure", lam=LAM)
    plain = bmrm.fit(X, y, loss="poisson", offset=offset, lam=LAM)
    np.testing.assert_array_equal(model.weights, plain.weights)
    assert model.feature_names == tuple("abcd")
    np.testing.assert_array_equal(model.predict(frame), plain.predict(X, offset=offset))
    np.testing.assert_array_equal(model.predict(frame[list("dcba")], offset=offset), plain.predict(X, offset=offset))
    with pytest.raises(InputError, match="no offset 'log_exposure', with which the model was trained"):
        model.predict(frame[list("abcd")])


def test_a_column_of_a_frame_with_categories(counts, tmp_path):
    X, y, offset, _ = counts
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        log_exposure=offset, town=np.array(["Oslo", "Bonn"])[y.astype(int) % 2]
    )
    model = bmrm.fit(frame, y, loss="poisson", offset="log_exposure", lam=LAM)
    assert set(model.feature_names) == {*"abcd", "town=Bonn", "town=Oslo"}
    model.save(tmp_path / "model.npz")
    again = bmrm.load_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    plain = np.c_[X, frame.town == "Bonn", frame.town == "Oslo"].astype(float)
    truth = bmrm.fit(plain, y, loss="poisson", offset=offset, lam=LAM)
    np.testing.assert_allclose(model.predict(frame), truth.predict(plain, offset=offset), rtol=1e-2)
    frame.assign(claims=y).to_csv(tmp_path / "rows.csv", index=False)
    words = ("--loss", "poisson", "--lambda", str(LAM), "--quiet", "--output", str(tmp_path / "a"))
    source = str(tmp_path / "rows.csv")
    column = ("--format", "{name: csv, label: claims}", "--offset", "log_exposure")
    assert main(["train", source, *column, *words]) == 0
    assert objective(tmp_path / "a") == pytest.approx(model.solution.objective, rel=1e-4)
    assert main(["predict", str(tmp_path / "a"), source, "--quiet", "--out", str(tmp_path / "scores.txt")]) == 0
    np.testing.assert_allclose(
        np.loadtxt(tmp_path / "scores.txt"), model.decision_function(frame), rtol=2e-2, atol=2e-2
    )


def test_estimators(counts):
    X, y, offset, weights = counts
    plain = bmrm.fit(X, y, loss="poisson", offset=offset, sample_weight=weights, lam=LAM)
    regressor = bmrm.Regressor("poisson", alpha=LAM).fit(X, y, weights, offset=offset)
    np.testing.assert_array_equal(regressor.predict(X, offset=offset), plain.predict(X, offset=offset))
    assert regressor.score(X, y, offset=offset) > regressor.score(X, y, offset=0.0 * offset)
    with pytest.raises(InputError, match="no offset"):
        regressor.predict(X)
    X, y, offset = problem("softmax")
    classifier = bmrm.Classifier("softmax").fit(X, y, offset=offset)
    assert classifier.score(X, y, offset=offset) == np.mean(classifier.predict(X, offset) == y)
    assert classifier.predict_proba(X, offset).shape == (40, 3)


@pytest.fixture
def files(counts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, offset, _ = counts
    frame = pd.DataFrame(X, columns=list("abcd")).assign(log_exposure=offset, claims=y)
    frame.to_csv("rows.csv", index=False)
    frame.to_parquet("rows.parquet")
    write_svmlight("rows.svm", bmrm.Dataset.from_arrays(X, y))
    np.savetxt("offset.txt", offset, fmt="%.17g")
    return bmrm.fit(X, y, loss="poisson", offset=offset, **TIGHT).solution.objective


def objective(folder):
    with open(f"{folder}/summary.json") as file:
        return json.load(file)["objective"]


WORDS = ("--loss", "poisson", "--lambda", str(LAM), "--tolerance", "1e-13", "--quiet")
COLUMN = ("--format", "{name: csv, label: claims}", "--offset", "log_exposure")


@pytest.mark.parametrize(
    "source",
    [
        ("rows.csv", *COLUMN),
        ("rows.parquet", "--format", "{name: arrow, label: claims}", "--offset", "log_exposure"),
        ("rows.svm", "--offset", "offset.txt"),
        ("rows.svm", "--test", "rows.svm", "--offset", "{train: offset.txt, test: offset.txt}"),
    ],
    ids=["csv", "parquet", "file", "files"],
)
def test_command_line_and_config(files, counts, source, capsys):
    assert main(["train", *source, *WORDS, "--output", "a"]) == 0
    assert objective("a") == pytest.approx(files, rel=1e-12)
    with open("a/config.yaml") as file:
        kept = yaml.safe_load(file)
    kept["output"]["directory"] = "b"
    with open("b.yaml", "w") as file:
        yaml.safe_dump(kept, file)
    assert main(["train", "b.yaml", "--quiet"]) == 0
    assert objective("b") == objective("a")
    capsys.readouterr()
    more = () if "log_exposure" in source else ("--offset", "offset.txt")
    assert main(["predict", "a", source[0], "--quiet", "--labels", *more]) == 0
    X, _, offset, _ = counts
    np.testing.assert_allclose(
        np.array(capsys.readouterr().out.split(), float), bmrm.load_model("a/model.npz").predict(X, offset=offset)
    )
    assert main(["evaluate", "a", source[0], *more]) == 0
    assert "poisson_deviance" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rows.svm", "--offset", "no.txt"), "data.offset is 'no.txt', expected the name of a column or a file"),
        (("rows.csv", *COLUMN[:3], "log_exposur"), "did you mean 'log_exposure'"),
        (("rows.svm", "--offset", "short.txt"), "short.txt: the offset of 2 rows, data.train has 60 rows"),
        (("rows.svm", "--offset", "bad.txt"), "bad.txt, line 2: 'x', expected finite numbers"),
        (("rows.svm", "--test", "rows.svm", "--offset", "offset.txt"), "data.test has none"),
        (("rows.svm", "--offset", "[1]"), "data.offset"),
    ],
    ids=["no-file", "misspelt", "short", "bad", "test", "list"],
)
def test_what_is_wrong_is_said_in_one_line(files, words, said, capsys):
    with open("short.txt", "w") as file:
        file.write("1\n2\n")
    with open("bad.txt", "w") as file:
        file.write("1\nx\n")
    assert main(["train", *words, *WORDS, "--output", "a"]) == 2
    found = capsys.readouterr().err
    assert said in found
    assert found.count("\n") == 1


def test_an_offset_that_predict_lacks_is_named(files, capsys):
    assert main(["train", "rows.csv", *COLUMN, *WORDS, "--output", "a"]) == 0
    pd.read_csv("rows.csv").drop(columns="log_exposure").to_csv("without.csv", index=False)
    assert main(["predict", "a", "without.csv"]) == 2
    assert "no offset 'log_exposure', with which the model was trained" in capsys.readouterr().err
    assert main(["train", "rows.csv", *COLUMN, *WORDS, "--test", "without.csv", "--output", "b"]) == 2
    assert "data.test: no column 'log_exposure', which is data.offset" in capsys.readouterr().err


@pytest.mark.mpi
@pytest.mark.parametrize("source", [("rows.csv", *COLUMN), ("rows.svm", "--offset", "offset.txt")], ids=["csv", "file"])
def test_over_ranks_it_goes_with_the_rows(files, source, tmp_path):
    done = work(3, "bmrm.cli", "train", *source, *WORDS, "--output", "o", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert objective("o") == pytest.approx(files, rel=1e-12)


def test_formats_without_a_place_for_it_refuse_to_be_written(files, capsys):
    assert main(["train", "rows.csv", *COLUMN, *WORDS, "--output", "a"]) == 0
    assert main(["export", "a", "--to", "c", "--out", "model.c"]) == 2
    assert "an offset that is added to its scores" in capsys.readouterr().err
    assert main(["export", "a", "--to", "json", "--out", "model.json"]) == 0
    with open("model.json") as file:
        assert json.load(file)["header"]["offset"] == "log_exposure"
