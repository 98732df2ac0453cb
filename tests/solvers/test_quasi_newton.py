"""Limited-memory BFGS: its inverse Hessian against the two loops as they are written down, its steps, its points."""

import numpy as np
import pytest
import scipy.sparse

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import Status
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.certificate import plane_bound
from bmrm.solvers.lbfgs import InverseHessian
from tests import problems


def by_two_loops(pairs, g):
    """Liu & Nocedal 1989, p. 507, on vectors."""
    q, alphas = g.copy(), []
    for s, y in reversed(pairs):
        alphas.append(s @ q / (s @ y))
        q -= alphas[-1] * y
    s, y = pairs[-1]
    r = s @ y / (y @ y) * q
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        r += (alpha - y @ r / (s @ y)) * s
    return r


def test_the_direction_is_that_of_the_two_loops():
    rng = np.random.default_rng(3)
    dim, memory, t = 30, 4, 0.7
    Q = rng.standard_normal((dim, dim))
    Q = Q @ Q.T + np.eye(dim)
    inverse, w, pairs = InverseHessian(dim, memory), rng.standard_normal(dim), []
    g = Q @ w
    d, slope = inverse.times_minus(g)
    np.testing.assert_array_equal(d, -g)
    for _ in range(3 * memory):
        step = 0.1 * (d + rng.standard_normal(dim))
        after = Q @ (w + t * step)
        inverse.learn(step, t, after, g)
        pairs = [*pairs, (t * step, after - g)][-memory:]
        w, g = w + t * step, after
        d, slope = inverse.times_minus(g)
        expected = by_two_loops(pairs, g)
        np.testing.assert_allclose(-d, expected, rtol=0.0, atol=1e-6 * np.abs(expected).max())
        assert slope == pytest.approx(d @ g, rel=1e-9)
        assert slope < 0.0
    assert len(inverse) == memory
    inverse.forget()
    np.testing.assert_array_equal(inverse.times_minus(g)[0], -g)


def test_a_pair_without_curvature_is_not_kept():
    rng = np.random.default_rng(4)
    g, step = rng.standard_normal((2, 8))
    inverse = InverseHessian(8, 3)
    inverse.learn(step, 1.0, g, g)
    inverse.learn(np.zeros(8), 1.0, 2.0 * g, g)
    inverse.learn(step, 1.0, g - step, g)  # a concave function
    assert len(inverse) == 0
    inverse.learn(step, 1.0, g + step, g)
    assert len(inverse) == 1
    np.testing.assert_allclose(inverse.times_minus(g)[0], -g, rtol=1e-6)


def test_planes_on_both_sides_of_a_kink_certify_together():
    X, y = problems.data("hinge", 200, 6)
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("roc_area", {}))
    solution = SOLVERS.make("lbfgs", {"tolerance": 1e-7}).minimize(risk, L2(1e-2))
    exact = SOLVERS.make("bundle", {"tolerance": 1e-10}).minimize(risk, L2(1e-2))
    assert solution.lower_bound <= exact.objective
    assert solution.lower_bound == pytest.approx(exact.objective, rel=1e-4)
    alone = [
        plane_bound(L2(1e-2), a, value - float(a @ w), 0.0)
        for w in [solution.w]
        for value, a in [risk.value_and_subgradient(w)]
    ]
    assert solution.lower_bound > max(alone)


@pytest.mark.parametrize(("rows", "features"), [(60, 9), (30, 80)])
@pytest.mark.parametrize("sparse", [False, True])
def test_points_with_and_without_scores_reach_the_optimum(rows, features, sparse):
    X, y = problems.data("logistic", rows, features)
    if sparse:
        X = scipy.sparse.csr_matrix(X * (np.random.default_rng(1).random(X.shape) < 0.3))
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("logistic", {}))
    ours = SOLVERS.make("lbfgs", {"tolerance": 1e-10}).minimize(risk, L2(1e-3))
    other = SOLVERS.make("newton", {"tolerance": 1e-12}).minimize(risk, L2(1e-3))
    assert ours.status is Status.CONVERGED
    assert ours.objective == pytest.approx(other.objective, rel=1e-9)
    value, _ = risk.value_and_subgradient(ours.w)
    assert ours.objective == pytest.approx(value + L2(1e-3).value(ours.w), rel=1e-14)


def test_further_trials_are_free_of_passes_with_scores():
    X, y = problems.data("logistic", 30, 80)
    plain = problems.PlainRisk(10.0 * X, y, "logistic")
    scored = problems.ScoredRisk(10.0 * X, y, "logistic")
    passes = {}
    for name, risk in (("plain", plain), ("scored", scored)):
        solution = SOLVERS.make("lbfgs", {"tolerance": 1e-6}).minimize(risk, L2(1e-3))
        assert solution.status is Status.CONVERGED
        passes[name] = solution.passes - solution.iterations
    assert passes["scored"] < passes["plain"], passes
