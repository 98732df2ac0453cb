"""Coordinate descent for least squares in few features: covariance updates, and who chooses them."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import ElasticNet as PeerElasticNet

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import Status
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns
from bmrm.solvers import SOLVERS
from bmrm.solvers._core import covariance

ROWS, FEATURES = 300, 14


def features(kind="plain", seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(ROWS, FEATURES)) * (random.random((ROWS, FEATURES)) < 0.6)
    if kind == "correlated":
        X = 0.05 * X + random.normal(size=(ROWS, 2)) @ random.normal(size=(2, FEATURES))
    elif kind == "duplicate":
        X[:, 7:] = X[:, :7]
    elif kind == "zero":
        X[:, [0, 5, 13]] = 0.0
    elif kind == "far":
        X += 1e7
    return X


def targets(X, seed=1):
    random = np.random.default_rng(seed)
    weights = random.normal(size=X.shape[1]) * (random.random(X.shape[1]) < 0.7)
    return (X - X.mean(axis=0)) @ weights + 2.0 + random.normal(size=len(X))


def risk_of(X, y, weights=None, **options):
    return LinearRisk(Dataset.from_arrays(X, y, weights), LOSSES.make("least_squares"), **options)


def solve(risk, regularizer, **options):
    return SOLVERS.make("coordinate_descent", {"tolerance": 1e-9, **options}).minimize(risk, regularizer)


def gap_at(A, y, s, w, l1, l2, free):
    """J(w) and J(w) less a dual value, by hand: s sums to 1, and a constant is added to all scores if `free`."""
    residual = A @ w - y
    residual = residual - s @ residual if free else residual
    objective = 0.5 * s @ residual**2 + l1 * np.abs(w).sum() + 0.5 * l2 * w @ w
    gradient = A.T @ (s * residual)
    t = 1.0 if l2 else min(1.0, l1 / np.abs(gradient).max())
    beyond = np.maximum(np.abs(t * gradient) - l1, 0.0)
    conjugate = 0.5 * (beyond**2).sum() / l2 if l2 else 0.0
    return objective, objective + 0.5 * t**2 * s @ residual**2 + t * s @ (residual * y) + conjugate


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("kind", ["plain", "correlated", "duplicate", "zero"])
def test_the_optimum_of_scikit_learn_with_a_gap_from_the_residual(kind, free):
    X = features(kind)
    y, counts = targets(X), np.random.default_rng(2).integers(0, 4, ROWS).astype(float)
    s = counts / counts.sum()
    for l1, l2 in ((0.1, 0.0), (0.002, 0.0), (0.02, 0.05)):
        risk = risk_of(X, y, counts)
        solution = solve(FreeIntercept(risk) if free else risk, ElasticNet(l1 + l2, l1 / (l1 + l2)) if l2 else L1(l1))
        assert solution.status is Status.CONVERGED
        assert solution.details["grams"] == 1
        objective, gap = gap_at(X, y, s, solution.w, l1, l2, free)
        assert solution.objective == pytest.approx(objective, rel=1e-12)
        assert -1e-12 * objective <= gap <= 1e-8 * objective  # no mixture of planes here
        options = {"tol": 1e-14, "max_iter": 100_000, "fit_intercept": free}
        peer = PeerElasticNet(alpha=l1 + l2, l1_ratio=l1 / (l1 + l2), **options).fit(X, y, sample_weight=counts)
        best = gap_at(X, y, s, peer.coef_, l1, l2, free)[0]
        assert objective <= best * (1.0 + 1e-9)
        assert solution.lower_bound <= best * (1.0 + 1e-12)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_scale_shift_and_bias(form, bias):
    X = features()
    y, random = targets(X), np.random.default_rng(3)
    scale, shift = random.uniform(0.5, 2.0, FEATURES), random.normal(size=FEATURES)
    A = (X - shift) * scale
    A = np.hstack((A, np.ones((ROWS, 1)))) if bias else A
    data = csr_array(X) if form == "sparse" else X
    solution = solve(risk_of(data, y, columns=Columns(scale, shift), bias=bias), L1(0.05))
    objective, gap = gap_at(A, y, np.full(ROWS, 1.0 / ROWS), solution.w, 0.05, 0.0, False)
    assert solution.details["grams"] == 1
    assert solution.objective == pytest.approx(objective, rel=1e-12)
    assert gap <= 1e-8 * objective


def test_one_gram_matrix_is_charged_as_what_it_costs_and_serves_the_run():
    X = features()
    solution = solve(risk_of(X, targets(X)), L1(0.01))
    assert solution.details["grams"] == 1
    assert solution.history[0].passes_gram == 0.0
    products = FEATURES * (FEATURES + 1) / 2.0 / (2.0 * FEATURES)  # a pass is two products an entry
    assert solution.history[-1].passes_gram == pytest.approx(products / 10.0)  # of full rows ten for one
    assert solution.passes - products / 10.0 <= 3.0


def test_residuals_are_updated_where_there_are_more_features_than_rows_or_the_curvature_changes():
    wide = features().T
    assert solve(risk_of(wide, targets(wide)), L1(0.1), tolerance=1e-3).details["grams"] == 0
    X = features()
    data = Dataset.from_arrays(X, np.where(targets(X) > 2.0, 1.0, -1.0))
    for loss in ("logistic", "squared_hinge"):
        assert solve(LinearRisk(data, LOSSES.make(loss)), L1(0.01)).details["grams"] == 0


def test_a_dear_gram_matrix_is_formed_once_sweeps_have_cost_as_much(monkeypatch):
    X = features("correlated")
    y = targets(X)
    monkeypatch.setattr(covariance, "AT_ONCE", 0.0)
    few = solve(risk_of(X, y), L1(10.0))
    assert few.details["grams"] == 0
    many = solve(risk_of(X, y), L1(1e-4))
    assert many.details["grams"] == 1
    assert many.relative_gap <= 1e-9
    monkeypatch.setattr(covariance, "PRODUCTS", 1e-6)  # so dear that it is never formed
    swept = solve(risk_of(X, y), L1(1e-4))
    assert swept.details["grams"] == 0
    assert swept.objective == pytest.approx(many.objective, rel=1e-8)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
def test_features_far_from_0_whose_gram_matrix_is_mostly_rounding(tolerance):
    X = features("far")
    y, s = targets(X), np.full(ROWS, 1.0 / ROWS)
    near = X - 1e7  # with a free intercept the same problem
    reference = solve(FreeIntercept(risk_of(near, y)), L1(0.01)).objective
    solution = solve(FreeIntercept(risk_of(X, y)), L1(0.01), tolerance=tolerance, max_iterations=300)
    objective, _ = gap_at(near, y, s, solution.w, 0.01, 0.0, True)
    assert solution.objective == pytest.approx(objective, rel=1e-7)
    assert solution.lower_bound <= reference * (1.0 + 1e-7)
    assert solution.status is Status.CONVERGED
    assert objective <= reference * (1.0 + tolerance + 1e-6)
    assert solution.passes < 50.0


@pytest.mark.parametrize("free", [False, True])
def test_copies_of_dense_columns_keep_what_features_far_from_0_differ_in(free):
    X = features("far")
    y = np.sign(targets(X))
    shifts = None if free else Columns(shift=np.full(FEATURES, 1e7))
    risks = [
        LinearRisk(Dataset.from_arrays(A, y), LOSSES.make("logistic"), columns=of)
        for A, of in ((X, shifts), (X - 1e7, None))
    ]
    far, near = (solve(FreeIntercept(risk) if free else risk, L1(0.003), tolerance=1e-7) for risk in risks)
    assert far.status is near.status is Status.CONVERGED
    assert far.objective == pytest.approx(near.objective, rel=2e-7)
    assert far.passes < near.passes + 15.0  # one iteration, and J(0)


def test_working_sets_smaller_than_the_features():
    X = features()
    y = targets(X)
    whole = solve(risk_of(X, y), L1(0.01))
    for first in (1, 5):
        solution = solve(risk_of(X, y), L1(0.01), first_columns=first)
        assert solution.objective == pytest.approx(whole.objective, rel=1e-8)
        assert solution.details["grams"] > 1
