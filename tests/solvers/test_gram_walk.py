"""Least squares with l1 along lambdas on one Gram matrix: what it claims is so from the rows, to the last digit."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import lars_path

import bmrm
from bmrm.losses import LOSSES
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.walk import walk

RNG = np.random.default_rng(0)
FAMILIES = ["l1", {"name": "elastic_net", "l1_ratio": 0.4}]
ONE = "one Gram matrix"


def designs():
    X = RNG.normal(size=(300, 8))
    y = X @ np.array([3.0, -2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.1]) + RNG.normal(size=300)
    yield "plain", X, y
    yield "collinear", np.hstack((X, X[:, :3], X[:, :1] + X[:, 1:2])), y
    yield "far from 0", X + 300.0, y + 1000.0
    yield "uneven", X * 10.0 ** np.arange(-4.0, 4.0), y
    yield "empty columns", np.hstack((X, np.zeros((300, 2)))), y
    yield "exact", X, X @ np.arange(8.0)
    wide = RNG.normal(size=(40, 300)) + 2.0 * RNG.normal(size=(40, 1))
    yield "wide", wide, wide[:, :5].sum(axis=1) + 0.1 * RNG.normal(size=40)
    yield "thin", wide * (np.abs(wide) > 1.5), wide[:, 0] + RNG.normal(size=40)


DESIGNS = {name: (X, y) for name, X, y in designs()}


def objective(model, X, y, weights=None):
    """J as it is said in the docs, in long doubles."""
    X, y, w = X.astype(np.longdouble), y.astype(np.longdouble), model.weights.astype(np.longdouble)
    section = model.header["regularizer"]
    share = section.get("l1_ratio", 1.0)
    left = X @ w + model.intercept[0] - y
    loss = 0.5 * np.average(left**2, weights=weights)
    return float(loss + section["lambda"] * (share * np.abs(w).sum() + 0.5 * (1.0 - share) * w @ w))


@pytest.mark.parametrize("bias", ["free", "none", "regularized"])
@pytest.mark.parametrize("family", FAMILIES, ids=["l1", "elastic_net"])
@pytest.mark.parametrize("name", DESIGNS)
def test_objectives_and_bounds_are_those_of_the_rows(name, family, bias):
    X, y = DESIGNS[name]
    weights = RNG.uniform(0.5, 2.0, len(y))
    found = bmrm.path(
        X, y, loss="least_squares", regularizer=family, bias=bias, n_lambdas=12, tolerance=1e-5, sample_weight=weights
    )
    tight = {"loss": "least_squares", "bias": bias, "tolerance": 1e-10, "sample_weight": weights}
    for k, (lam, model) in enumerate(zip(found.lambdas, found.models)):
        assert found.gaps[k] <= 1e-5 * (1.0 + 1e-9)
        if bias != "regularized":
            assert found.objectives[k] == pytest.approx(objective(model, X, y, weights), rel=1e-9)
        section = {"name": family} if isinstance(family, str) else family
        best = bmrm.fit(X, y, regularizer={**section, "lambda": lam}, **tight).solution
        assert found.lower_bounds[k] <= best.objective * (1.0 + 1e-12)
        assert best.lower_bound <= found.objectives[k] * (1.0 + 1e-12)


def test_it_is_taken_and_reads_the_rows_seldom():
    X, y = DESIGNS["plain"]
    found = bmrm.path(X, y, loss="least_squares", regularizer="l1")
    assert all(ONE in model.solution.solver for model in found.models)
    assert found.passes.sum() < 20.0
    alone = bmrm.path(X, y, loss="least_squares", regularizer="l1", solver="proximal_newton")
    assert not any(ONE in model.solution.solver for model in alone.models)


def test_a_tolerance_that_rounding_decides_is_left_to_the_solvers():
    X, y = DESIGNS["plain"]
    found = bmrm.path(X, y, loss="least_squares", regularizer="l1", tolerance=1e-13, n_lambdas=4)
    assert not any(ONE in model.solution.solver for model in found.models)


def test_least_angle_regression_goes_through_its_points():
    X, y = DESIGNS["plain"]
    lambdas, _, weights = lars_path(X, y, method="lasso")
    found = bmrm.path(X, y, loss="least_squares", regularizer="l1", bias="none", lambdas=lambdas[:-1], tolerance=1e-8)
    assert found.weights == pytest.approx(weights.T[:-1], abs=2e-4)


@pytest.mark.parametrize("count", [1, 25, 26])
def test_points_are_proved_some_at_a_time(count):
    X, y = DESIGNS["plain"]
    lambdas = np.geomspace(1.0, 0.01, 26)[-count:]
    found = bmrm.path(X, y, loss="least_squares", regularizer="l1", lambdas=lambdas)
    assert len(found) == count
    assert all(ONE in model.solution.solver for model in found.models)


def test_few_columns_of_many_are_taken_in():
    X, y = DESIGNS["wide"]
    for rows in (X, sp.csr_matrix(X)):
        found = bmrm.path(rows, y, loss="least_squares", regularizer="l1", tolerance=1e-6)
        assert all(ONE in model.solution.solver for model in found.models)
        assert 1 < found.models[-1].solution.details["grams"] < 30
        assert found.passes.sum() < 60.0


def test_nothing_is_taken_in_beyond_the_rows_of_a_start():
    """A walk may begin at other weights than 0."""
    X, y = DESIGNS["wide"]
    risk = LinearRisk(bmrm.Dataset.from_arrays(X, y), LOSSES.make("least_squares"))
    start = np.zeros(300)
    start[[7, 250]] = 3.0
    omegas = [bmrm.L1(lam) for lam in (1.0, 0.1)]
    for given in (None, start):
        found = list(walk(risk, omegas, SOLVERS.make("auto", {"tolerance": 1e-8}), start=given))
        for omega, one in zip(omegas, found):
            best = bmrm.minimize(risk, omega, tolerance=1e-10)
            assert one.converged
            assert one.objective == pytest.approx(best.objective, rel=2e-8)
            assert one.lower_bound <= best.objective
