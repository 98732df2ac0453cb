"""Smooth losses with l2 along lambdas, second derivatives kept: what it claims is so from the rows, by few passes."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import bmrm
from tests.solvers.walk_problems import TALL, targets_of

RNG = np.random.default_rng(1)
KEPT = "second derivatives kept"
NOISE = RNG.normal(size=(150, 60))
"""Columns that make little data, which are solved at once, too wide for that."""


@pytest.mark.parametrize(
    ("loss", "bias"),
    [
        ("logistic", "free"),
        ("squared_hinge", "none"),
        ("huber", "free"),
        ("poisson", "free"),
        ("least_squares", "free"),
    ],
)
@pytest.mark.parametrize("name", TALL)
def test_objectives_and_bounds_are_those_of_the_rows(name, loss, bias):
    X, f = np.hstack((TALL[name][0], NOISE)), TALL[name][1]
    y, weights = targets_of(loss, f), RNG.uniform(0.5, 2.0, len(f))
    given = {"loss": loss, "bias": bias, "sample_weight": weights}
    found = bmrm.path(X, y, n_lambdas=8, tolerance=1e-5, **given)
    assert sum(KEPT in model.solution.solver for model in found.models) >= 6
    for k, (lam, model) in enumerate(zip(found.lambdas, found.models)):
        assert found.gaps[k] <= 1e-5 * (1.0 + 1e-9)
        best = bmrm.fit(X, y, lam=lam, tolerance=1e-8, **given).solution
        rounding = 1e-12 * abs(best.objective)  # Poisson losses may be negative
        assert found.lower_bounds[k] <= best.objective + rounding
        assert best.lower_bound <= found.objectives[k] + rounding
        if loss == "logistic":
            w = model.weights.astype(np.longdouble)
            margins = (2.0 * y - 1.0) * (X.astype(np.longdouble) @ w + model.intercept[0])
            J = np.average(np.logaddexp(0.0, -margins), weights=weights) + 0.5 * lam * (w @ w)
            assert found.objectives[k] == pytest.approx(float(J), rel=1e-9)


def test_it_is_ridge_regression():
    X, f = np.hstack((TALL["plain"][0], NOISE)), TALL["plain"][1]
    found = bmrm.path(X, f, loss="least_squares", bias="free", lambdas=np.geomspace(10.0, 1e-2, 6), tolerance=1e-9)
    for lam, model in zip(found.lambdas, found.models):
        assert KEPT in model.solution.solver
        other = Ridge(alpha=lam * len(f)).fit(X, f)
        for mine, its in ((model.weights, other.coef_), (model.intercept, other.intercept_)):
            assert mine == pytest.approx(its, abs=1e-4)


@pytest.mark.parametrize(
    ("loss", "least"), [("logistic", 3.0), ("least_squares", 2.0), ("squared_hinge", 1.7), ("poisson", 3.0)]
)
def test_points_take_few_passes(loss, least):
    X = RNG.normal(size=(1_000, 70))
    y = targets_of(loss, X[:, :5].sum(axis=1) * 0.5 + RNG.normal(size=1_000))
    found = bmrm.path(X, y, loss=loss, n_lambdas=20, tolerance=1e-3)
    given = {"loss": loss, "tolerance": 1e-3, "solver": "newton"}
    alone = sum(bmrm.fit(X, y, lam=lam, **given).solution.passes for lam in found.lambdas)
    assert least * found.passes.sum() <= alone


def test_sparse_rows_give_what_full_ones_do():
    X = RNG.normal(size=(300, 70)) * (RNG.uniform(size=(300, 70)) < 0.3)
    y = (X[:, :3].sum(axis=1) > 0.0).astype(float)
    for scale in ("none", "standardize"):
        given = {"loss": "logistic", "scale": scale, "n_lambdas": 6, "tolerance": 1e-8}
        full, thin = (bmrm.path(rows, y, **given) for rows in (X, sp.csr_matrix(X)))
        assert full.objectives == pytest.approx(thin.objectives, rel=2e-8)
        for found in (full, thin):
            assert all(KEPT in model.solution.solver for model in found.models)


def test_a_limit_of_steps_holds():
    X, f = np.hstack((TALL["plain"][0], NOISE)), TALL["plain"][1]
    found = bmrm.path(X, targets_of("logistic", f), loss="logistic", lambdas=[1e-4], max_iterations=1)
    assert found.statuses[0] is bmrm.Status.ITERATION_LIMIT
    assert found.lower_bounds[0] <= found.objectives[0]


def test_wide_rows_and_hard_tolerances_are_left_to_the_solvers():
    X = RNG.normal(size=(60, 80))
    y = (X[:, 0] > 0.0).astype(float)
    wide = bmrm.path(X, y, loss="logistic", n_lambdas=3)
    hard = bmrm.path(X[:, :5], y, loss="logistic", n_lambdas=3, tolerance=1e-11)
    for found in (wide, hard):
        assert not any(KEPT in model.solution.solver for model in found.models)
