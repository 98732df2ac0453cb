"""Losses with kinks and l2 along lambdas, multipliers kept: what it claims is so from the rows, by few passes."""

import numpy as np
import pytest
import scipy.sparse as sp

import bmrm
from tests.solvers.walk_problems import TALL

RNG = np.random.default_rng(2)
KEPT = "multipliers kept"
TIMES = 4
NOISE = RNG.normal(size=(TIMES * 150, 60))
"""Columns that make little data, which are solved at once, too wide for that."""
LOSSES = ("hinge", "quantile", "least_absolute_deviation", "epsilon_insensitive")


def rows_of(name):
    X, f = TALL[name]
    return np.hstack((np.tile(X, (TIMES, 1)), NOISE)), np.tile(f, TIMES)


def targets_of(loss, f):
    return (f > 0.0).astype(float) if loss == "hinge" else f


def value_of(loss, margin, y):
    """A row's loss where its score is `margin`."""
    if loss == "hinge":
        return np.maximum(0.0, 1.0 - (2.0 * y - 1.0) * margin)
    return np.abs(y - margin)


@pytest.mark.parametrize(("loss", "bias"), [(loss, "free") for loss in LOSSES] + [("hinge", "none")])
@pytest.mark.parametrize("name", TALL)
def test_objectives_and_bounds_are_those_of_the_rows(name, loss, bias):
    X, f = rows_of(name)
    y, weights = targets_of(loss, f), RNG.uniform(0.5, 2.0, len(f))
    given = {"loss": loss, "bias": bias, "sample_weight": weights}
    found = bmrm.path(X, y, n_lambdas=8, tolerance=1e-5, **given)
    assert sum(KEPT in model.solution.solver for model in found.models) >= 4
    for k, (lam, model) in enumerate(zip(found.lambdas, found.models)):
        assert found.gaps[k] <= 1e-5 * (1.0 + 1e-9)
        best = bmrm.fit(X, y, lam=lam, tolerance=1e-8, **given).solution
        rounding = 1e-12 * abs(best.objective)
        assert found.lower_bounds[k] <= best.objective + rounding
        assert best.lower_bound <= found.objectives[k] + rounding
        if loss in ("hinge", "least_absolute_deviation"):
            w = model.weights.astype(np.longdouble)
            scores = X.astype(np.longdouble) @ w + model.intercept[0]
            J = np.average(value_of(loss, scores, y), weights=weights) + 0.5 * lam * (w @ w)
            assert found.objectives[k] == pytest.approx(float(J), rel=1e-9)


@pytest.mark.parametrize(("tolerance", "least"), [(1e-3, 4.0), (1e-5, 2.5)])
@pytest.mark.parametrize("loss", ["hinge", "quantile"])
def test_points_take_few_passes(loss, tolerance, least):
    X = RNG.normal(size=(4_000, 40))
    y = targets_of(loss, X[:, :5].sum(axis=1) * 0.5 + RNG.normal(size=4_000))
    found = bmrm.path(X, y, loss=loss, n_lambdas=20, tolerance=tolerance)
    given = {"loss": loss, "tolerance": tolerance}
    alone = sum(bmrm.fit(X, y, lam=lam, **given).solution.passes for lam in found.lambdas)
    assert all(KEPT in model.solution.solver for model in found.models)
    assert least * found.passes.sum() <= alone


@pytest.mark.parametrize("loss", ["hinge", "quantile"])
def test_sparse_rows_give_what_full_ones_do(loss):
    X = RNG.normal(size=(700, 70)) * (RNG.uniform(size=(700, 70)) < 0.3)
    y = targets_of(loss, X[:, :3].sum(axis=1))
    for scale in ("none", "standardize"):
        given = {"loss": loss, "scale": scale, "n_lambdas": 6, "tolerance": 1e-7}
        full, thin = (bmrm.path(rows, y, **given) for rows in (X, sp.csr_matrix(X)))
        assert full.objectives == pytest.approx(thin.objectives, rel=2e-7)
        assert full.gaps.max() <= 1e-7
        assert thin.gaps.max() <= 1e-7


@pytest.mark.parametrize("first", [1e-1, 1e-3, 1e-6])
def test_lambdas_may_begin_anywhere(first):
    X = RNG.normal(size=(3_000, 55))
    y = (X[:, 0] + RNG.normal(size=3_000) > 0.5).astype(float)
    found = bmrm.path(X, y, loss="hinge", lambdas=[first, 0.5 * first, 0.4 * first], tolerance=1e-5)
    for lam, objective, gap in zip(found.lambdas, found.objectives, found.gaps):
        assert gap <= 1e-5
        assert objective == pytest.approx(
            bmrm.fit(X, y, loss="hinge", lam=lam, tolerance=1e-5).solution.objective, rel=2e-5
        )


def test_targets_in_other_units_take_the_same_way():
    X = RNG.normal(size=(2_000, 80))
    y = X[:, :4].sum(axis=1) + RNG.normal(size=2_000)
    passes = [
        bmrm.path(X, unit * y, loss="quantile", n_lambdas=10, tolerance=1e-5).passes.sum() for unit in (1.0, 1e4, 1e-4)
    ]
    assert max(passes) <= 1.5 * min(passes)


def test_a_limit_of_steps_holds():
    X, f = rows_of("plain")
    found = bmrm.path(X, targets_of("hinge", f), loss="hinge", lambdas=[1e-4], max_iterations=1)
    assert found.statuses[0] is bmrm.Status.ITERATION_LIMIT
    assert found.lower_bounds[0] <= found.objectives[0]


def test_wide_rows_and_hard_tolerances_are_left_to_the_solvers():
    X = RNG.normal(size=(60, 80))
    y = (X[:, 0] > 0.0).astype(float)
    wide = bmrm.path(X, y, loss="hinge", n_lambdas=3)
    hard = bmrm.path(np.hstack((X, X))[:, :5], y, loss="hinge", n_lambdas=3, tolerance=1e-10)
    for found in (wide, hard):
        assert not any(KEPT in model.solution.solver for model in found.models)
