"""Exact steps of blocks with a norm, in single fits: against cone programs, formulas and each other."""

import cvxopt
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from bmrm.data.dataset import Dataset
from bmrm.kernels.blocks import exact, separable
from bmrm.losses import LOSSES
from bmrm.numerics.block_sweeps import gram_starts, grams_of
from bmrm.problem import Space, Status, bound
from bmrm.regularizers import REGULARIZERS
from bmrm.regularizers._core.blocks import Partition, blocks
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

PARTS = ([0], [1, 2], [3, 9, 5], [4, 6, 7, 8, 10, 11], [12])
LAM = 0.05
KINDS = ("plain", "zero", "duplicate", "far", "sparse")


def data(kind, rows, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 13)) * (random.random((rows, 13)) < 0.7)
    if kind == "zero":
        X[:, [2, 6, 12]] = 0.0
    elif kind == "duplicate":
        X[:, [5, 7, 8]] = X[:, [3, 4, 4]]
    elif kind == "far":
        X *= np.geomspace(1e-3, 1e3, 13)
    return X, X @ (random.normal(size=13) / np.maximum(1.0, np.abs(X).max(axis=0))) + 0.3 * random.normal(size=rows)


def solve(X, y, loss="least_squares", tolerance=1e-9, **options):
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(loss))
    omega = REGULARIZERS.make("group_l2", {"lambda": LAM, "groups": PARTS})
    solver = SOLVERS.make("coordinate_descent", {"tolerance": tolerance, **options})
    return solver.minimize(risk, bound(omega, risk))


def by_cones(X, y):
    """The least 1/(2 m) ||X w - y||^2 + lam sum sqrt(size) ||w_g||, of a program over cones."""
    (rows, features), count = X.shape, len(PARTS)
    P = np.zeros((features + count,) * 2)
    P[:features, :features] = X.T @ X / rows
    q = np.concatenate([-X.T @ y / rows, [LAM * np.sqrt(len(part)) for part in PARTS]])
    unit = np.eye(features + count)
    G = -np.array([unit[j] for k, part in enumerate(PARTS) for j in (features + k, *part)])
    options = {"show_progress": False, "abstol": 1e-12, "reltol": 1e-12, "feastol": 1e-12}
    dims = {"l": 0, "q": [len(part) + 1 for part in PARTS], "s": []}
    found = cvxopt.solvers.coneqp(*map(cvxopt.matrix, (P, q, G, np.zeros(len(G)))), dims=dims, options=options)
    return found["primal objective"] + float(y @ y) / (2.0 * rows)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [9, 200])
def test_single_fits_reach_the_optimum_of_a_program_over_cones(kind, rows):
    X, y = data(kind, rows)
    least = by_cones(X, y)
    for tolerance in (1e-3, 1e-9):
        found = solve(csr_array(X) if kind == "sparse" else X, y, tolerance=tolerance)
        assert found.status is Status.CONVERGED
        assert found.lower_bound <= least * (1.0 + 1e-9)
        assert least * (1.0 - 1e-9) <= found.objective <= least * (1.0 + max(tolerance, 1e-8))
    if kind == "zero":
        assert not found.w[[2, 6, 12]].any()


@pytest.mark.parametrize("loss", ["logistic", "huber", "squared_hinge"])
@pytest.mark.parametrize("kind", KINDS)
def test_other_losses_agree_with_proximal_steps(loss, kind, monkeypatch):
    X, y = data(kind, 150)
    y = y if loss == "huber" else np.where(y > 0.0, 1.0, -1.0)
    full, thin = solve(X, y, loss, 1e-8), solve(csr_array(X), y, loss, 1e-8)
    monkeypatch.setattr("bmrm.solvers._core.covariance.AFRESH", 0.0)
    by_columns = solve(X, y, loss, 1e-8)
    assert full.details["grams"] > 0 == by_columns.details["grams"]
    for found in (thin, by_columns):
        assert found.status is full.status is Status.CONVERGED
        assert found.objective == pytest.approx(full.objective, rel=1e-7)
        assert max(found.lower_bound, full.lower_bound) <= min(found.objective, full.objective) * (1.0 + 1e-12)


def one_block(size, strength, l2, seed=0, scale=1.0):
    random = np.random.default_rng(seed)
    partition = Partition(Space(size))
    partition.add(np.arange(size), strength)
    penalty = blocks(Space(size), "one", partition=partition.arrays(), l2=l2).penalty
    A = scale * random.normal(size=(2 * size, size))
    G, w, slope = A.T @ A, random.normal(size=size), scale * random.normal(size=size)
    return penalty, G, grams_of(penalty, gram_starts(penalty), G.ravel().copy(), G.diagonal().copy()), w, slope


@pytest.mark.parametrize("strength", [1e-3, 1.0, 5.0, 1e3])
@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_a_step_is_the_minimum_and_tells_no_more_than_it_falls(strength, l2):
    penalty, G, grams, w, slope = one_block(6, strength, l2)
    at, v, beta = np.zeros(6), np.zeros(6), np.zeros(6)
    assert exact.has_minimum(0, grams, tuple(penalty))
    fallen = exact.group_minimum(0, w, slope, grams, tuple(penalty), v, at, beta)

    def value(x):
        return slope @ (x - w) + 0.5 * (x - w) @ G @ (x - w) + strength * np.linalg.norm(x) + 0.5 * l2 * x @ x

    assert 0.0 <= fallen <= value(w) - value(at) + 1e-9 * abs(value(w))
    for direction in np.random.default_rng(1).normal(size=(20, 6)):
        t = minimize_scalar(lambda t, d=direction: value(at + t * d), bracket=(-1e-3, 1e-3), tol=1e-12)
        assert t.fun >= value(at) - 1e-9 * max(1.0, abs(value(at)))


def test_numbers_without_squares_are_left_to_proximal_steps():
    penalty, _, grams, w, slope = one_block(4, 1.0, 0.0, scale=1e70)
    at, v, after = np.zeros(4), np.zeros(4), np.zeros(4)
    assert exact.group_minimum(0, w, slope, grams, tuple(penalty), v, at, after) == -1.0
    assert not exact.has_minimum(0, grams, tuple(penalty._replace(strengths=np.array([1e200]))))
    assert not exact.has_minimum(0, grams, tuple(penalty._replace(l1=np.full(4, 0.1))))


@pytest.mark.parametrize("size", [1.0, 1e-90, 1e-120, 1e-160, 1e150])
def test_slopes_that_are_clearly_inside_are_no_others_than_by_roots(size):
    penalty, *_ = one_block(5, size, 0.0)
    arrays = tuple(penalty)
    for factor in (0.1, 1.0 - 1e-12, 1.0, 1.0 + 1e-12, 1.0 + 1e-6, 10.0):
        v = size * factor * np.array([0.6, 0.0, -0.8, 0.0, 0.0])
        assert separable.conjugate(v, arrays) == (0.0 if factor <= 1.0 + 1e-13 else np.inf)
        assert separable.feasible(v, arrays) == pytest.approx(min(1.0, 1.0 / factor), rel=1e-14)
        assert separable.inside(0, v, 1.0, arrays) in ((False,) if factor > 0.5 else (False, True))
