"""Targets that are shares of labels: successes of trials, probabilities of classes, at every door."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import bmrm
from bmrm.cli import main
from bmrm.problem import IncompatibleError, InputError
from bmrm.solvers import SOLVERS
from tests.mpi.launch import work

LAM = 1e-2
TIGHT = {"lam": LAM, "tolerance": 1e-9}


@pytest.fixture(scope="module")
def rows():
    """Features, shares of two classes, shares of three, weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    p = 1.0 / (1.0 + np.exp(-X @ [1.0, -2.0, 0.5] + rng.normal(size=40)))
    p[:4] = 0.0, 1.0, 1.0, 0.0
    P = rng.dirichlet(np.ones(3), 40)
    P[0] = 0.0, 1.0, 0.0
    return X, p, P, rng.uniform(0.5, 2.0, 40)


def j_of(w, b, X, shares, weights, lam=LAM):
    """J by the formula: the cross entropy of shares and probabilities."""
    f = X @ w + b
    if shares.ndim == 1:
        each = shares * np.logaddexp(0.0, -f) + (1.0 - shares) * np.logaddexp(0.0, f)
    else:
        each = np.log(np.exp(f).sum(axis=1)) - (shares * f).sum(axis=1)
    return 0.5 * lam * np.sum(w**2) + float(weights @ each / weights.sum())


def least(X, shares, weights, lam=LAM):
    """min J with a free intercept, by SciPy."""
    shape = (X.shape[1] + 1, *shares.shape[1:])

    def objective(v):
        w = v.reshape(shape)
        return j_of(w[:-1], w[-1], X, shares, weights, lam)

    return minimize(objective, np.zeros(int(np.prod(shape))), method="BFGS", options={"gtol": 1e-7}).fun


def at(model, X, shares, weights):
    b = model.intercept[0] if model.weights.ndim == 1 else model.intercept
    return j_of(model.weights, b, X, shares, weights, model.header["regularizer"]["lambda"])


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_every_solver_finds_the_least_cross_entropy(rows, loss, weighted):
    X, p, P, given = rows
    shares, weights = p if loss == "logistic" else P, given if weighted else np.ones(40)
    truth, found = least(X, shares, weights), 0
    for entry in SOLVERS.all():
        how = {"lam": LAM, "tolerance": 1e-6, "time_limit": 0.5, "solver": entry.name}
        try:
            model = bmrm.fit(X, shares, loss=loss, sample_weight=given if weighted else None, **how)
        except IncompatibleError:
            continue
        solution, found = model.solution, found + 1
        assert solution.objective == pytest.approx(at(model, X, shares, weights), rel=1e-12)
        assert solution.lower_bound <= truth + 2e-9
        if solution.status.name == "CONVERGED":
            assert solution.objective <= truth * (1.0 + 2e-6), entry.name
    assert found >= 8


def test_they_are_two_weighted_rows(rows):
    X, p, _, weights = rows
    model = bmrm.fit(X, p, loss="logistic", sample_weight=weights, **TIGHT)
    twice = np.r_[weights * p, weights * (1.0 - p)]
    labels = np.r_[np.ones(40, int), np.zeros(40, int)]
    other = bmrm.fit(np.r_[X, X], labels, loss="logistic", sample_weight=twice, **TIGHT)
    assert model.solution.objective == pytest.approx(other.solution.objective, rel=1e-9)
    assert model.labels.tolist() == other.labels.tolist() == [0, 1]
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-4)
    assert model.evaluate(X, p)["log_loss"] == pytest.approx(
        j_of(model.weights, model.intercept[0], X, p, np.ones(40), 0)
    )
    scores = model.decision_function(X)
    assert model.evaluate_scores(scores, p) == model.evaluate(X, p)


def test_successes_of_trials(rows):
    X, _, _, _ = rows
    rng = np.random.default_rng(1)
    trials = rng.integers(1, 9, 40)
    successes = rng.binomial(trials, 0.4)
    model = bmrm.fit(X, np.c_[successes, trials], loss="logistic", **TIGHT)
    truth = least(X, successes / trials, trials.astype(float))
    assert model.solution.objective == pytest.approx(truth, rel=1e-8)
    one_each = np.repeat(np.arange(40), trials)
    y = np.concatenate([[1] * k + [0] * (n - k) for k, n in zip(successes, trials, strict=True)])
    assert model.solution.objective == pytest.approx(
        bmrm.fit(X[one_each], y, loss="logistic", **TIGHT).solution.objective, rel=1e-8
    )


def test_two_values_are_two_labels(rows):
    X = rows[0]
    y = np.where(X[:, 0] > 0.0, 0.75, 0.25)
    assert bmrm.fit(X, y, loss="logistic").labels.tolist() == [0.25, 0.75]
    shares = bmrm.fit(X, np.c_[y, np.ones(40)], loss="logistic", **TIGHT)
    assert shares.labels.tolist() == [0, 1]
    assert shares.solution.objective == pytest.approx(least(X, y, np.ones(40)), rel=1e-8)


def test_lambda_is_that_of_the_rows(rows):
    X, p, P, _ = rows
    for y, loss in ((p, "logistic"), (P, "softmax")):
        assert bmrm.fit(X, y, loss=loss).header["regularizer"]["lambda"] == 1.0 / 40


def test_offsets_and_class_weights_go_with_them(rows):
    X, p, _, _ = rows
    offset = np.random.default_rng(2).normal(size=40)
    model = bmrm.fit(X, p, loss="logistic", offset=offset, class_weight={1: 3.0}, **TIGHT)
    twice, labels = np.r_[3.0 * p, 1.0 - p], np.r_[np.ones(40, int), np.zeros(40, int)]
    other = bmrm.fit(np.r_[X, X], labels, loss="logistic", offset=np.r_[offset, offset], sample_weight=twice, **TIGHT)
    assert model.solution.objective == pytest.approx(other.solution.objective, rel=1e-8)
    assert model.evaluate(X, p, offset=offset)["log_loss"] > 0.0


@pytest.mark.parametrize(
    ("loss", "spoilt", "said"),
    [
        ("logistic", lambda p, P: np.r_[p[:7], 1.5, p[8:]], "row 7 has the targets 1.5, expected a share in [0, 1]"),
        ("logistic", lambda p, P: np.c_[3.0 * p, 2.0 * p + 0.1], "expected 0 <= successes <= trials"),
        ("logistic", lambda p, P: P, "y has shape (40, 3), expected shares (rows,), or successes and trials (rows, 2)"),
        ("softmax", lambda p, P: np.r_[P[:5], P[5:6] * 1.1, P[6:]], "expected shares >= 0 that sum to 1"),
        (
            "softmax",
            lambda p, P: np.r_[P[:5], [[1.5, -0.5, 0.0]], P[6:]],
            "row 5 has the targets 1.5, -0.5, 0, expected",
        ),
        ("hinge", lambda p, P: p, "expected two classes"),
    ],
    ids=["outside", "trials", "wide", "sum", "negative", "hinge"],
)
def test_what_is_wrong_is_said(rows, loss, spoilt, said):
    X, p, P, _ = rows
    with pytest.raises(InputError) as found:
        bmrm.fit(X, spoilt(p, P), loss=loss)
    assert said in str(found.value)


def test_the_classifier_takes_columns(rows):
    X, p, P, weights = rows
    classifier = bmrm.Classifier("softmax", alpha=LAM, tol=1e-9).fit(X, P, weights)
    model = bmrm.fit(X, P, loss="softmax", sample_weight=weights, **TIGHT)
    assert classifier.solution_.objective == model.solution.objective
    assert classifier.classes_.tolist() == [0, 1, 2]
    trials = bmrm.Classifier("logistic", alpha=LAM, class_weight={1: 2.0}).fit(X, np.c_[p, np.ones(40)])
    assert trials.predict_proba(X).shape == (40, 2)
    assert trials.coef_.shape == (1, 3)


@pytest.fixture
def files(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, p, P, _ = rows
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.assign(share=p).to_csv("share.csv", index=False)
    frame.assign(one=P[:, 0], two=P[:, 1], three=P[:, 2]).to_csv("shares.csv", index=False)
    return X, p, P


def summary(folder):
    with open(f"{folder}/summary.json") as file:
        return json.load(file)


@pytest.mark.parametrize("case", ["logistic", "softmax"])
def test_command_line(files, case, capsys):
    X, p, P = files
    source = (
        ("share.csv",) if case == "logistic" else ("shares.csv", "--format", "{name: csv, label: [one, two, three]}")
    )
    y = p if case == "logistic" else P
    words = ("--loss", case, "--tolerance", "1e-9", "--quiet", "--test", source[0])
    assert main(["train", *source, *words, "--output", "a"]) == 0
    model = bmrm.fit(X, y, loss=case, tolerance=1e-9)
    found = summary("a")
    assert found["objective"] == pytest.approx(model.solution.objective, rel=1e-8)
    assert found["rows"] == 40
    assert found["metrics"]["test"]["log_loss"] == pytest.approx(model.evaluate(X, y)["log_loss"], rel=1e-6)
    assert main(["evaluate", "a", source[0], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["log_loss"] == pytest.approx(
        found["metrics"]["test"]["log_loss"], rel=1e-12
    )
    assert main(["predict", "a", source[0], "--probabilities", "--quiet"]) == 0


def test_a_share_outside_is_said_in_one_line(files, capsys):
    X, p, _ = files
    pd.DataFrame(X, columns=list("abc")).assign(share=np.r_[p[:-1], 1.25]).to_csv("bad.csv", index=False)
    assert main(["train", "bad.csv", "--loss", "logistic", "--quiet", "--output", "a"]) == 2
    said = capsys.readouterr().err
    assert "the targets 1.25, expected a share in [0, 1]" in said
    assert said.count("\n") == 1


@pytest.mark.mpi
def test_over_ranks(files, tmp_path):
    X, p, _ = files
    words = ("--loss", "logistic", "--tolerance", "1e-9", "--quiet", "--output", "o")
    done = work(3, "bmrm.cli", "train", "share.csv", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert summary("o")["objective"] == pytest.approx(
        bmrm.fit(X, p, loss="logistic", tolerance=1e-9).solution.objective
    )
