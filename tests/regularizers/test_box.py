"""box: against scipy's nnls and lsq_linear, and HiGHS on the whole linear program; starts, units, bad bounds."""

import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear, nnls

import bmrm
from bmrm.regularizers.box import Box

LAM = 0.05


def data(rows=90):
    random = np.random.default_rng(3)
    X = random.normal(size=(rows, 7))
    return X, X @ [2.0, -1.0, 0.5, 0.0, 0.3, -0.2, 1.0] + random.normal(size=rows)


def ridge_rows(X, y, lam):
    """Rows whose squares are those of the problem: mean of halves, and lambda/2 ||w||^2."""
    m, d = X.shape
    return np.vstack([X / np.sqrt(m), np.sqrt(lam) * np.eye(d)]), np.concatenate([y / np.sqrt(m), np.zeros(d)])


@pytest.mark.parametrize("solver", ["auto", "proximal_gradient", "bundle", "line_search_bundle"])
def test_non_negative_least_squares(solver):
    X, y = data()
    weights, residual = nnls(*ridge_rows(X, y, LAM))
    model = bmrm.fit(
        X,
        y,
        loss="least_squares",
        regularizer={"name": "box", "lambda": LAM},
        solver=solver,
        bias="none",
        tolerance=1e-8,
    )
    assert model.solution.status.name == "CONVERGED"
    assert model.solution.objective == pytest.approx(0.5 * residual**2, rel=1e-8)
    assert model.weights == pytest.approx(weights, abs=1e-3)
    assert np.array_equal(model.weights == 0.0, weights == 0.0)


def test_bounds_by_feature():
    X, y = data()
    lower, upper = np.full(7, -np.inf), np.full(7, np.inf)
    lower[1], upper[0], lower[5], upper[5] = -0.25, 1.5, 0.1, 0.2
    found = lsq_linear(*ridge_rows(X, y, LAM), bounds=(lower, upper), tol=1e-14)
    lists = Box(LAM, lower=[None if np.isinf(x) else x for x in lower], upper=tuple(upper))
    for box in (Box(LAM, lower={1: -0.25, 5: 0.1}, upper={"0": 1.5, 5: 0.2}), lists):
        model = bmrm.fit(X, y, loss="least_squares", regularizer=box, bias="none", tolerance=1e-10)
        assert model.solution.objective == pytest.approx(found.cost, rel=1e-9)
        assert model.weights[[0, 1, 5]].tolist() == [1.5, -0.25, 0.1]


def hinge_program(X, y, lam, lower, upper):
    """min mean hinge + lam ||w||_1 within bounds, with a free constant: w = p - n, b, slack."""
    m, d = X.shape
    cost = np.concatenate([np.full(2 * d, lam), [0.0], np.full(m, 1.0 / m)])
    rows = np.hstack([-y[:, None] * X, y[:, None] * X, -y[:, None], -np.eye(m)])
    both = np.hstack([np.eye(d), -np.eye(d), np.zeros((d, 1 + m))])
    limits = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * m
    return linprog(
        cost,
        np.vstack([rows, both, -both]),
        np.concatenate([-np.ones(m), np.full(d, upper), np.full(d, -lower)]),
        bounds=limits,
        method="highs",
    )


@pytest.mark.parametrize("solver", ["auto", "bundle", "line_search_bundle"])
def test_hinge_with_l1_in_a_box(solver):
    X, y = data()
    y = np.where(y > 0.5, 1.0, -1.0)
    truth = hinge_program(X, y, 0.02, -0.3, 0.7).fun
    box = Box(0.02, lower=-0.3, upper=0.7, norm="l1")
    model = bmrm.fit(X, y, loss="hinge", regularizer=box, solver=solver, tolerance=1e-7)
    assert model.solution.status.name == "CONVERGED"
    assert model.solution.lower_bound <= truth + 1e-9
    assert model.solution.objective == pytest.approx(truth, rel=2e-7)
    assert np.all((model.weights >= -0.3) & (model.weights <= 0.7))


def test_bounds_that_leave_out_0():
    """J(0) is infinite there: runs begin within the bounds, whatever the start is."""
    X, y = data()
    box = Box(LAM, lower=0.4, upper=0.6)
    found = lsq_linear(*ridge_rows(X, y, LAM), bounds=(0.4, 0.6), tol=1e-14)
    for solver in ("auto", "bundle", "line_search_bundle", "proximal_gradient"):
        for start in (None, np.full(7, -9.0)):
            model = bmrm.fit(
                X, y, loss="least_squares", regularizer=box, solver=solver, bias="none", start=start, tolerance=1e-8
            )
            assert model.solution.status.name == "CONVERGED"
            assert model.solution.objective == pytest.approx(found.cost, rel=1e-7)
            assert all(np.isfinite(line.objective) for line in model.solution.history)


@pytest.mark.parametrize("scale", ["standardize", "max_abs"])
def test_bounds_are_those_of_the_weights_of_the_model(scale):
    X, y = data()
    X = X * [100.0, 1.0, 0.01, 1.0, 3.0, 1.0, 1.0]
    box = Box(1e-6, lower=-0.5, upper={0: 0.01, 2: 20.0, 6: 0.5})
    model = bmrm.fit(X, y, loss="least_squares", regularizer=box, scale=scale, tolerance=1e-8)
    assert model.weights[[0, 1, 2, 6]] == pytest.approx([0.01, -0.5, 20.0, 0.5], rel=1e-12)


def test_a_feature_may_only_raise_the_score_by_its_name():
    pandas = pytest.importorskip("pandas")
    X, y = data()
    X = pandas.DataFrame(X, columns=["age", "b", "c", "d", "e", "f", "g"])
    options = {"name": "box", "lambda": 1e-3, "lower": {"b": 0.0}}
    model = bmrm.fit(X, y, loss="huber", regularizer=options, tolerance=1e-6)
    assert model.weights[1] == 0.0
    assert model.weights[5] < 0.0
    higher = X.assign(b=X["b"] + 10.0)
    assert np.all(model.predict(higher) >= model.predict(X))
    with pytest.raises(bmrm.InputError, match=r"Box: lower: there is no feature 'agee'.*age"):
        bmrm.fit(X, y, loss="huber", regularizer=Box(1e-3, lower={"agee": 0.0}))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lower": 1.0, "upper": 0.0}, "lower is 1, above upper, which is 0"),
        ({"lower": {2: 1.0}, "upper": 0.5}, "lower of feature 2 is 1, above upper, which is 0.5"),
        ({"lower": (0.0, 1.0)}, "lower has 2 numbers, expected one for each of 7 features"),
        ({"lower": {9: 1.0}}, "lower: feature 9, expected 0 to 6"),
        ({"lower": float("nan")}, "lower is nan, expected a finite number"),
        ({"upper": "much"}, "upper is 'much', expected a finite number"),
        ({"upper": float("-inf")}, "upper is -inf, expected a finite number"),
        ({"norm": "l3"}, "norm is 'l3', expected one of l2, l1"),
    ],
)
def test_bad_bounds_get_one_message(options, said):
    X, y = data()
    with pytest.raises(bmrm.InputError, match=said):
        bmrm.fit(X, y, loss="least_squares", regularizer={"name": "box", "lambda": 0.1, **options})


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "irls", "nonlinear_cg", "pegasos", "probe", "dual_coordinate"])
def test_solvers_that_cannot_name_one_that_can(solver):
    X, y = data()
    with pytest.raises(bmrm.IncompatibleError, match=r"Box.*use .*proximal_gradient"):
        bmrm.fit(X, y > 0.0, loss="logistic", regularizer=Box(0.1), solver=solver, bias="none")
