"""none: against statsmodels and HiGHS, with bounds where there are some; and problems without a minimum."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import bmrm
from bmrm.regularizers.none import NoRegularizer
from tests.mpi.launch import work

SMOOTH = ["auto", "newton", "lbfgs", "irls", "nonlinear_cg", "proximal_gradient"]


def data(rows=200):
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 5)) * [1.0, 3.0, 0.2, 1.0, 1.0] + [0.0, 1.0, 0.0, 2.0, 0.0]
    score = X @ [1.0, -0.3, 2.0, 0.0, 0.2] - 0.5
    return X, score, random


@pytest.mark.parametrize("solver", SMOOTH)
def test_maximum_likelihood_is_that_of_statsmodels(solver):
    statsmodels = pytest.importorskip("statsmodels.api")
    X, score, random = data()
    design = statsmodels.add_constant(X)
    y = random.random(len(X)) < 1.0 / (1.0 + np.exp(-score))
    counts = random.poisson(np.exp(0.3 * score))
    numbers = score + random.normal(size=len(X))
    peers = {
        "logistic": (y, statsmodels.Logit(y, design).fit(disp=0, tol=1e-12)),
        "poisson": (counts, statsmodels.Poisson(counts, design).fit(disp=0, tol=1e-12)),
        "least_squares": (numbers, statsmodels.OLS(numbers, design).fit()),
    }
    for loss, (target, peer) in peers.items():
        model = bmrm.fit(X, target, loss=loss, regularizer="none", solver=solver, tolerance=1e-9)
        solution = model.solution
        assert solution.status.name == "CONVERGED", (loss, solution.message)
        assert solution.relative_gap <= 1e-9
        found = np.concatenate([[float(np.squeeze(model.intercept))], model.weights])
        assert found == pytest.approx(np.asarray(peer.params), abs=1e-3 if solver != "newton" else 1e-6)
        if loss == "logistic":
            assert solution.objective == pytest.approx(-peer.llf / len(X), rel=1e-9)
            assert solution.lower_bound <= -peer.llf / len(X) * (1 + 1e-12)


def quantile_program(X, y, tau):
    """min over w, b of the mean of tau p + (1 - tau) n with p - n = y - Xw - b, as one linear program."""
    m, d = X.shape
    cost = np.concatenate([np.zeros(d + 1), np.full(m, tau / m), np.full(m, (1.0 - tau) / m)])
    rows = np.hstack([X, np.ones((m, 1)), np.eye(m), -np.eye(m)])
    return linprog(cost, A_eq=rows, b_eq=y, bounds=[(None, None)] * (d + 1) + [(0, None)] * (2 * m), method="highs").fun


@pytest.mark.parametrize("solver", ["auto", "bundle", "line_search_bundle"])
@pytest.mark.parametrize("tau", [0.5, 0.9])
def test_quantiles_are_those_of_the_linear_program(solver, tau):
    X, score, random = data()
    y = score + random.normal(size=len(X))
    truth = quantile_program(X, y, tau)
    loss = {"name": "quantile", "tau": tau}
    model = bmrm.fit(X, y, loss=loss, regularizer="none", solver=solver, tolerance=1e-7)
    assert model.solution.status.name == "CONVERGED"
    assert model.solution.lower_bound <= truth * (1 + 1e-9)
    assert model.solution.objective == pytest.approx(truth, rel=2e-7)


def test_whole_sample_losses_and_hinges():
    X, score, random = data(80)
    y = score + random.normal(size=len(X)) > 0.0
    for loss, bias in (("hinge", "free"), ("roc_area", "none")):
        solutions = [
            bmrm.fit(X, y, loss=loss, regularizer="none", solver=solver, bias=bias, tolerance=1e-6).solution
            for solver in ("auto", "line_search_bundle")
        ]
        assert [solution.status.name for solution in solutions] == ["CONVERGED", "CONVERGED"]
        assert solutions[0].objective == pytest.approx(solutions[1].objective, rel=2e-6)


def test_separable_classes_have_no_minimum_and_the_run_says_so():
    X, score, _ = data()
    for solver in ("auto", "lbfgs"):
        solution = bmrm.fit(X, score > 0.0, loss="logistic", regularizer="none", solver=solver).solution
        assert solution.status.name != "CONVERGED"
        assert solution.lower_bound == -np.inf
        assert "there is no minimum: the classes are separable, a plane has all rows on their sides" in solution.message
    # all margins at 1 up to rounding, by which J is 1e-32 or 0
    reached = bmrm.fit(X, score > 0.0, loss="squared_hinge", regularizer="none", absolute_tolerance=1e-20).solution
    assert reached.status.name == "CONVERGED"
    assert reached.objective <= 1e-12


def test_rows_that_are_separated_are_named():
    X, score, random = data()
    y = random.random(len(X)) < 1.0 / (1.0 + np.exp(-score))
    X = np.column_stack([X, np.zeros(len(X))])
    X[[7, 9], 5], y[[7, 9]] = 1.0, True  # a feature of two rows, both of them positive
    for rows in (X, sparse.csr_array(X)):
        solution = bmrm.fit(rows, y, loss="logistic", regularizer="none", tolerance=1e-8).solution
        assert solution.status.name != "CONVERGED"
        assert "a plane separates 2 of 200 rows, the first of them row 7" in solution.message


def softmax_minimum(A, y, K):
    """min of the mean loss by Newton's method with halved steps, until the gradient is rounding."""

    def at(W):
        f = A @ W
        top = f.max(axis=1, keepdims=True)
        total = np.exp(f - top).sum(axis=1, keepdims=True)
        P = np.exp(f - top) / total
        return float((np.log(total[:, 0]) + top[:, 0] - f[np.arange(len(y)), y]).mean()), P

    W = np.zeros((A.shape[1], K))
    for _ in range(50):
        value, P = at(W)
        gradient = A.T @ (P - np.eye(K)[y]) / len(y)
        H = np.einsum("ij,ik,ia,ab->jakb", A, A, P, np.eye(K)) - np.einsum("ij,ik,ia,ib->jakb", A, A, P, P)
        step = np.linalg.lstsq(H.reshape(W.size, W.size) / len(y), gradient.ravel(), rcond=1e-13)[0].reshape(W.shape)
        t = 1.0
        while at(W - t * step)[0] > value + 1e-15 and t > 1e-6:
            t *= 0.5
        W = W - t * step
    return at(W)[0]


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("solver", ["auto", "newton", "irls", "nonlinear_cg"])
def test_multinomial_maximum_likelihood_has_a_bound(solver, bias):
    X, score, random = data()
    y = np.digitize(score + 2.0 * random.normal(size=len(X)), [-1.0, 1.0])
    truth = softmax_minimum(np.c_[X, np.ones(len(X))] if bias == "free" else X, y, 3)
    for rows in (X, sparse.csr_array(X)):
        solution = bmrm.fit(rows, y, loss="softmax", regularizer="none", solver=solver, bias=bias).solution
        assert solution.status.name == "CONVERGED"
        assert solution.lower_bound <= truth * (1.0 + 1e-12)
        assert truth * (1.0 - 1e-12) <= solution.objective <= truth * (1.0 + 1.1e-4)


@pytest.mark.parametrize("loss", ["multiclass_hinge", "scaled_multiclass_hinge", "weston_watkins"])
def test_hinges_of_several_classes_have_the_bound_of_mixed_planes(loss):
    X, score, random = data(60)
    y = np.digitize(score + 2.0 * random.normal(size=len(X)), [-1.0, 1.0])
    found = bmrm.fit(X, y, loss=loss, regularizer="none", tolerance=1e-4).solution
    small = bmrm.fit(X, y, loss=loss, lam=1e-7, tolerance=1e-7).solution
    assert found.status.name == "CONVERGED"
    assert found.lower_bound <= small.objective  # which is above the minimum without a regularizer
    assert found.objective <= small.objective * (1.0 + 2e-4)


def test_several_outputs_are_those_of_least_squares():
    X, score, random = data()
    Y = np.c_[score, -score] + random.normal(size=(len(X), 2))
    A = np.c_[X, np.ones(len(X))]
    truth = 0.5 * float(((A @ np.linalg.lstsq(A, Y, rcond=None)[0] - Y) ** 2).sum(axis=1).mean())
    solution = bmrm.fit(X, Y, loss="multivariate_least_squares", regularizer="none", tolerance=1e-8).solution
    assert solution.status.name == "CONVERGED"
    assert solution.objective == pytest.approx(truth, rel=2e-8)
    assert solution.lower_bound <= truth * (1.0 + 1e-12)


def test_several_classes_that_are_separable():
    X, score, _ = data()
    y = np.digitize(score, [-1.0, 1.0])
    solution = bmrm.fit(X, y == 1, loss="logistic", regularizer="none").solution
    assert solution.status.name in ("CONVERGED", "OWN_RULE")
    X = np.column_stack([X, 50.0 * np.eye(3)[y]])
    solution = bmrm.fit(X, y, loss="softmax", regularizer="none", solver="lbfgs").solution
    assert solution.status.name != "CONVERGED"
    assert solution.lower_bound in (-np.inf, 0.0)
    assert "there seems to be no minimum" in solution.message


def test_every_door_takes_it(tmp_path, capsys):
    from bmrm.cli import main

    X, score, random = data()
    y = score + random.normal(size=len(X))
    truth = bmrm.fit(X, y, loss="least_squares", regularizer=NoRegularizer(), tolerance=1e-9)
    estimator = bmrm.Regressor("least_squares", alpha=0.0, tol=1e-9).fit(X, y)
    assert estimator.coef_ == pytest.approx(truth.weights, rel=1e-6)
    file = tmp_path / "train.csv"
    np.savetxt(file, np.column_stack([y, X]), delimiter=",", header="y,a,b,c,d,e", comments="")
    for given in ("none", "{name: none}"):
        out = tmp_path / given[:3].strip("{")
        parts = ["train", str(file), "--format", "{name: csv, label: y}", "--loss", "least_squares"]
        assert main([*parts, "--regularizer", given, "--tolerance", "1e-9", "--output", str(out)]) == 0
        model = bmrm.load_model(out / "model.npz")
        assert model.weights == pytest.approx(truth.weights, rel=1e-6)
        assert model.header["regularizer"] == {"name": "none"}
    capsys.readouterr()


@pytest.mark.parametrize("solver", ["bundle", "lbfgs"])
def test_ranks_end_where_there_is_no_minimum(tmp_path, solver):
    X, score, _ = data()
    file = tmp_path / "train.csv"
    np.savetxt(file, np.column_stack([score > 0.0, X]), delimiter=",", header="y,a,b,c,d,e", comments="")
    parts = ["train", str(file), "--format", "{name: csv, label: y}", "--loss", "logistic", "--regularizer", "none"]
    parts += ["--solver", solver, "--max-iterations", "30", "--output", str(tmp_path / "run")]
    done = work(2, "bmrm.cli", *parts, timeout=60)
    assert done.returncode == 3, done.stderr
    assert "there seems to be no minimum" in done.stderr
    header = bmrm.load_model(tmp_path / "run" / "model.npz").header
    assert header["status"] != "converged"
    assert header["lower_bound"] in (0.0, None)


def test_a_lambda_of_0_is_told_of_none():
    X, score, _ = data()
    for call in (lambda: bmrm.L2(0), lambda: bmrm.fit(X, score, loss="least_squares", lam=0.0)):
        with pytest.raises(bmrm.InputError, match=r"expected a number > 0 .*; without a regularizer take `none`"):
            call()
