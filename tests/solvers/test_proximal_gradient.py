"""Accelerated proximal gradient: exact zeros, its parameters, its passes."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, Status
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers.proximal_gradient import ProximalGradient
from tests import problems


def ill_conditioned(seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(80, 30)) * np.logspace(0.0, -1.5, 30)
    return X, X @ random.normal(size=30) + 0.1 * random.normal(size=80)


def run(regularizer, **options):
    X, y = ill_conditioned()
    solver = ProximalGradient(**{"tolerance": 1e-9, "max_iterations": 20000, **options})
    return solver.minimize(problems.ScoredRisk(X, y, "least_squares"), regularizer)


@pytest.mark.parametrize("risk_class", [problems.PlainRisk, problems.ScoredRisk])
def test_the_lasso_with_exact_zeros(risk_class):
    X, y = ill_conditioned()
    reference = Lasso(alpha=0.05, fit_intercept=False, tol=1e-12, max_iter=100000).fit(X, y)
    solution = ProximalGradient(tolerance=1e-10).minimize(risk_class(X, y, "least_squares"), L1(0.05))
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.w, reference.coef_, atol=1e-5)
    np.testing.assert_array_equal(solution.w == 0.0, reference.coef_ == 0.0)
    assert solution.objective == pytest.approx(problems.least_squares_l1_optimum(X, y, 0.05), rel=1e-8)


def test_momentum_and_restarts_save_iterations():
    fast, without_restart, slow = (
        run(L2(1e-4), tolerance=1e-7, **options) for options in ({}, {"restart": False}, {"momentum": False})
    )
    assert fast.details["restarts"] > 0
    assert without_restart.details["restarts"] == 0
    assert fast.iterations < 0.7 * without_restart.iterations
    assert fast.iterations < 0.2 * slow.iterations
    assert fast.objective == pytest.approx(slow.objective, rel=1e-6)


def test_without_momentum_every_step_is_a_proximal_step():
    X, y = ill_conditioned()
    options = {"momentum": False, "initial_curvature": 10.0, "tolerance": 0.0}
    points = [run(L1(0.05), max_iterations=k, **options).w for k in (1, 2)]
    w, curvature = np.zeros(30), 10.0
    for point in points:
        v = w - X.T @ (X @ w - y) / 80 / curvature
        w = np.sign(v) * np.maximum(np.abs(v) - 0.05 / curvature, 0.0)
        np.testing.assert_allclose(point, w, atol=1e-13)
        curvature *= 0.9


def test_a_first_curvature_that_is_too_small_is_mended():
    small, large = run(L1(0.01), initial_curvature=1e-6), run(L1(0.01), initial_curvature=1e6)
    assert small.status is large.status is Status.CONVERGED
    assert small.passes < large.passes


def test_one_pass_an_iteration_with_scores():
    solution = run(L1(0.05), tolerance=1e-6)
    assert solution.passes <= 1.25 * solution.iterations + 4
    X, y = ill_conditioned()
    plain = ProximalGradient(tolerance=1e-6).minimize(problems.PlainRisk(X, y, "least_squares"), L1(0.05))
    assert plain.passes == pytest.approx(2 * solution.passes, rel=0.2)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "softmax"])
def test_other_smooth_losses_sparse_and_weighted(loss):
    random = np.random.default_rng(3)
    X = random.normal(size=(90, 6)) * (random.random((90, 6)) < 0.5)
    y = random.integers(0, 3 if loss == "softmax" else 2, 90)
    from scipy.sparse import csr_array

    from bmrm.solvers.bundle import Bundle

    risk = LinearRisk(Dataset.from_arrays(csr_array(X), y, random.random(90)), LOSSES.make(loss))
    for regularizer in (L1(0.01), L2(0.01)):
        solution = ProximalGradient(tolerance=1e-6).minimize(risk, regularizer)
        assert solution.status is Status.CONVERGED
        other = Bundle(tolerance=1e-5, max_iterations=500).minimize(risk, regularizer)
        assert solution.objective <= other.objective * (1.0 + 1e-6)
        assert solution.objective >= other.lower_bound * (1.0 - 1e-9)


def test_what_cannot_be_served_is_refused():
    class Opaque:
        smooth = True

        def value(self, w):
            return 0.0

        def subgradient(self, w):
            return np.zeros_like(w)

    with pytest.raises(IncompatibleError, match="proximal map"):
        ProximalGradient().minimize(problems.ScoredRisk(*problems.data("logistic"), "logistic"), Opaque())
    with pytest.raises(IncompatibleError, match="smooth loss"):
        ProximalGradient().minimize(problems.ScoredRisk(*problems.data("hinge"), "hinge"), L2(1.0))
