"""Smooth losses with l1 along lambdas, on copies of the columns in use: what it claims is so from the rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

import bmrm
from tests.solvers.walk_problems import DESIGNS, targets_of

RNG = np.random.default_rng(1)
KEPT = "columns kept"
ELASTIC = {"name": "elastic_net", "l1_ratio": 0.4}


@pytest.mark.parametrize(
    ("loss", "family", "bias"),
    [
        ("logistic", "l1", "free"),
        ("logistic", ELASTIC, "none"),
        ("squared_hinge", "l1", "none"),
        ("huber", ELASTIC, "free"),
        ("poisson", "l1", "free"),
    ],
)
@pytest.mark.parametrize("name", DESIGNS)
def test_objectives_and_bounds_are_those_of_the_rows(name, loss, family, bias):
    X, f = DESIGNS[name]
    y, weights = targets_of(loss, f), RNG.uniform(0.5, 2.0, len(f))
    given = {"loss": loss, "bias": bias, "sample_weight": weights}
    ratio = 0.05 if name == "wide" else 0.02
    found = bmrm.path(X, y, regularizer=family, n_lambdas=8, ratio=ratio, tolerance=1e-5, **given)
    assert sum(KEPT in model.solution.solver for model in found.models) >= 4
    for k, (lam, model) in enumerate(zip(found.lambdas, found.models)):
        assert found.gaps[k] <= 1e-5 * (1.0 + 1e-9)
        section = {"name": family} if isinstance(family, str) else family
        best = bmrm.fit(X, y, regularizer={**section, "lambda": lam}, tolerance=1e-9, **given).solution
        rounding = 1e-12 * abs(best.objective)  # Poisson losses may be negative
        assert found.lower_bounds[k] <= best.objective + rounding
        assert best.lower_bound <= found.objectives[k] + rounding
        if loss == "logistic":
            w = model.weights.astype(np.longdouble)
            margins = (2.0 * y - 1.0) * (X.astype(np.longdouble) @ w + model.intercept[0])
            share = section.get("l1_ratio", 1.0)
            omega = share * np.abs(w).sum() + 0.5 * (1.0 - share) * w @ w
            J = np.average(np.logaddexp(0.0, -margins), weights=weights) + lam * omega
            assert found.objectives[k] == pytest.approx(float(J), rel=1e-9)


def test_it_is_the_minimum_that_liblinear_finds():
    X, f = DESIGNS["plain"]
    y = targets_of("squared_hinge", f)
    given = {"loss": "squared_hinge", "regularizer": "l1", "bias": "none", "tolerance": 1e-7}
    found = bmrm.path(X, y, n_lambdas=6, **given)
    for lam, w in zip(found.lambdas[1:], found.weights[1:]):
        C = 0.5 / (lam * len(y))
        other = LinearSVC(penalty="l1", dual=False, C=C, fit_intercept=False, tol=1e-10, max_iter=100_000)
        assert w == pytest.approx(other.fit(X, y).coef_[0], abs=2e-3)


@pytest.mark.parametrize("scale", ["none", "standardize"])
def test_sparse_rows_give_what_full_ones_do(scale):
    X = RNG.normal(size=(60, 80)) * (RNG.uniform(size=(60, 80)) < 0.5)
    y = (X[:, :3].sum(axis=1) > 0.0).astype(float)
    given = {"loss": "logistic", "regularizer": "l1", "scale": scale, "n_lambdas": 10, "tolerance": 1e-6}
    full, thin = (bmrm.path(rows, y, **given) for rows in (X, sp.csr_matrix(X)))
    assert full.objectives == pytest.approx(thin.objectives, rel=2e-6)
    for found in (full, thin):
        assert all(KEPT in model.solution.solver for model in found.models)
        assert found.passes.sum() < 25.0


def test_thin_rows_and_hard_tolerances_are_left_to_the_solvers():
    X = RNG.normal(size=(60, 80)) * (RNG.uniform(size=(60, 80)) < 0.05)
    y = (RNG.normal(size=60) > 0.0).astype(float)
    given = {"loss": "logistic", "regularizer": "l1", "n_lambdas": 3}
    thin = bmrm.path(sp.csr_matrix(X), y, **given)
    hard = bmrm.path(X, y, tolerance=1e-11, **given)
    for found in (thin, hard):
        assert not any(KEPT in model.solution.solver for model in found.models)


def test_slopes_whose_squares_overflow_prove_no_more_than_the_infimum():
    """Without a warning."""
    X, y = np.eye(3) + 0.1, np.array([1e170, 1.0, 2.0])
    given = {"loss": "gamma", "regularizer": "l1", "bias": "none", "max_iterations": 3}
    found = bmrm.path(X, y, lambdas=[1e171, 1e169], **given)
    assert found.lower_bounds[0] <= found.objectives[0]
    assert found.lower_bounds[1] <= found.objectives[1]
