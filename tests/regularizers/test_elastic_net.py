"""The elastic net, trained by the bundle methods, against scikit-learn and cvxopt."""

import cvxopt
import numpy as np
import pytest
from sklearn.linear_model import ElasticNet as Peer

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
from tests import problems


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("solver", ["bundle", "line_search_bundle", "proximal_gradient"])
def test_least_squares_is_that_of_scikit_learn(ratio, solver):
    X, y = problems.data("least_squares", rows=80, features=12)
    peer = Peer(alpha=0.1, l1_ratio=ratio, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y)
    regularizer = ElasticNet(0.1, ratio)
    options = {"bias": "none", "solver": solver, "tolerance": 1e-9}
    found = bmrm.fit(X, y, loss="least_squares", regularizer=regularizer, **options).solution
    best = 0.5 * np.mean((X @ peer.coef_ - y) ** 2) + regularizer.value(peer.coef_)
    assert found.converged
    assert found.objective == pytest.approx(best, rel=2e-9)
    assert found.lower_bound <= best * (1 + 1e-14)
    np.testing.assert_allclose(found.w, peer.coef_, atol=2e-4)
    if solver == "proximal_gradient":
        np.testing.assert_array_equal(found.w == 0.0, peer.coef_ == 0.0)


def hinge_optimum(X, y, l1, l2):
    """By cvxopt's QP in (u, v, slacks), w = u - v."""
    m, d = X.shape
    eye = np.eye(d)
    P = np.zeros((2 * d + m, 2 * d + m))
    P[: 2 * d, : 2 * d] = l2 * np.block([[eye, -eye], [-eye, eye]])
    q = np.concatenate((np.full(2 * d, l1), np.full(m, 1.0 / m)))
    yX = y[:, None] * X
    G = np.block([[-yX, yX, -np.eye(m)], [-np.eye(2 * d + m)]])
    h = np.concatenate((-np.ones(m), np.zeros(2 * d + m)))
    solution = cvxopt.solvers.qp(*map(cvxopt.matrix, (P, q, G, h)), options=problems.QUIET)
    return solution["primal objective"]


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.95])
@pytest.mark.parametrize(("solver", "engine"), [("bundle", "active_set"), ("line_search_bundle", "cvxopt")])
def test_hinge_is_that_of_the_quadratic_program(ratio, solver, engine):
    X, y = problems.data("hinge")
    regularizer = ElasticNet(0.02, ratio, engine)
    options = {"bias": "none", "solver": solver, "tolerance": 1e-8}
    found = bmrm.fit(X, y, loss="hinge", regularizer=regularizer, **options).solution
    best = hinge_optimum(X, y, regularizer.l1, regularizer.l2)
    assert found.converged
    assert found.objective == pytest.approx(best, rel=2e-8)
    assert found.lower_bound <= best * (1 + 1e-10)


def test_a_path_of_lambdas_and_shares_keeps_its_planes():
    X, y = problems.data("hinge", rows=120, features=15)
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("hinge"))
    solver = SOLVERS.make("line_search_bundle", {"tolerance": 1e-7, "keep_planes": True})
    planes, zeros = None, []
    for lam, ratio in ((0.1, 0.9), (0.03, 0.9), (0.03, 0.2), (0.01, 0.5)):
        regularizer = ElasticNet(lam, ratio)
        cold = solver.minimize(risk, regularizer)
        warm = solver.minimize(risk, regularizer, planes=planes) if planes is not None else cold
        assert warm.converged
        assert warm.objective == pytest.approx(cold.objective, rel=2e-7)
        assert warm.lower_bound <= cold.objective
        assert warm is cold or warm.iterations < cold.iterations
        planes = warm.planes
        zeros.append(int((warm.w == 0.0).sum()))
    assert zeros[0] > zeros[1] >= zeros[2]


def test_values_by_hand():
    omega, w, v = ElasticNet(0.4, 0.25), np.array([3.0, 0.0, -4.0]), np.array([0.5, -1.0, 0.1])
    assert (omega.l1, omega.l2, omega.modulus) == pytest.approx((0.1, 0.3, 0.3))
    assert omega.value(w) == pytest.approx(0.7 + 3.75)
    np.testing.assert_allclose(omega.subgradient(w), [1.0, 0.0, -1.3])
    assert omega.conjugate(v) == pytest.approx((0.4**2 + 0.9**2) / 0.6)
    assert omega.feasible(v) == 1.0
    np.testing.assert_allclose(omega.prox(w, 5.0), [1.0, 0.0, -1.4])


def test_it_lies_between_l1_and_l2():
    rng = np.random.default_rng(0)
    w, step, t = rng.normal(size=9), rng.normal(size=9), np.array([-1.0, 0.3, 2.0])
    omega, one, two = ElasticNet(0.5, 0.3), L1(0.15), L2(0.35)
    assert omega.value(w) == pytest.approx(one.value(w) + two.value(w))
    for mine, a, b in zip(omega.along(w, step)(t), one.along(w, step)(t), two.along(w, step)(t)):
        np.testing.assert_allclose(mine, a + b)
    assert (one.l1, one.l2, two.l1, two.l2) == (0.15, 0.0, 0.0, 0.35)
