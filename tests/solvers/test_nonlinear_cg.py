"""CG-MLE: linear CG on quadratics, its line search, and Komarek's stopping rules."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmrm.problem import IncompatibleError, Status
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.solvers.nonlinear_cg import UPDATES, NonlinearCG, secant_search
from tests import problems

LAM = 0.02
TIGHT = {"tolerance": 0.0, "slope_relative": 1e-12}


def linear_cg(A, b, steps):
    """Algorithm 1 of the thesis, from zero."""
    x, r = np.zeros_like(b), b
    d, points = r, [x]
    for _ in range(steps):
        alpha = (r @ r) / (d @ A @ d)
        x = x + alpha * d
        after = r - alpha * A @ d
        d = after + (after @ after) / (r @ r) * d
        r = after
        points.append(x)
    return points


@pytest.mark.parametrize("risk_class", [problems.PlainRisk, problems.ScoredRisk])
@pytest.mark.parametrize("update", UPDATES)
def test_on_a_quadratic_it_is_linear_cg(update, risk_class):
    X, y = problems.data("least_squares")
    points = linear_cg(X.T @ X / 60 + LAM * np.eye(7), X.T @ y / 60, 6)
    for steps in range(1, 7):
        solver = NonlinearCG(update=update, max_iterations=steps, **TIGHT)
        solution = solver.minimize(risk_class(X, y, "least_squares"), L2(LAM))
        np.testing.assert_allclose(solution.w, points[steps], atol=1e-9)
        assert solution.details["restarts"] == 1


def differing(**options):
    X, y = problems.data("logistic", rows=40, features=12, seed=5)
    solver = NonlinearCG(**{"tolerance": 0.0, "max_iterations": 6, **options})
    return solver.minimize(problems.ScoredRisk(X, y, "logistic"), L2(1e-4))


def test_updates_restarts_and_line_searches_make_a_difference():
    plain = differing()
    for options in (
        {"update": "polak_ribiere", "slope_relative": 0.5},
        {"update": "hestenes_stiefel"},
        {"update": "fletcher_reeves"},
        {"restart_every": 1},
        {"powell": 1e-6},
        {"slope_relative": 1e-9},
        {"slope_absolute": 0.05},
        {"initalpha": 0.5},
    ):
        assert not np.array_equal(plain.w, differing(**options).w), options
    assert differing(restart_every=2).details["restarts"] == 3
    assert differing(restart_every=1).details["restarts"] == 6
    assert plain.details["trials"] < differing(slope_relative=1e-9).details["trials"]


def test_restarts_each_step_are_steepest_descent():
    X, y = problems.data("logistic")
    risk = problems.PlainRisk(X, y, "logistic")
    solution = NonlinearCG(restart_every=1, max_iterations=3, **TIGHT).minimize(risk, L2(LAM))
    w = np.zeros(7)
    for _ in range(3):
        g = risk.value_and_subgradient(w)[1] + LAM * w
        low, high = 0.0, 100.0
        for _ in range(200):
            t = 0.5 * (low + high)
            v = w - t * g
            slope = -(risk.value_and_subgradient(v)[1] + LAM * v) @ g
            low, high = (t, high) if slope < 0.0 else (low, t)
        w = w - low * g
    np.testing.assert_allclose(solution.w, w, atol=1e-8)


def test_powell_restarts_where_gradients_are_not_orthogonal():
    """Eq. 2.20, followed from the outside: the points come from runs of 0, 1, 2, ... iterations."""
    X, y = problems.data("logistic", rows=40, features=12, seed=5)
    risk, v = problems.PlainRisk(X, y, "logistic"), 0.01

    def run(steps, powell):
        options = {"tolerance": 0.0, "update": "fletcher_reeves", "slope_relative": 0.3, "powell": powell}
        return NonlinearCG(max_iterations=steps, **options).minimize(risk, L2(1e-4))

    points = [np.zeros(12)] + [run(steps, v).w for steps in range(1, 10)]
    gradients = [risk.value_and_subgradient(w)[1] + 1e-4 * w for w in points]
    lost = [g @ h > v * (h @ h) for h, g in itertools.pairwise(gradients)]
    assert run(10, v).details["restarts"] == 1 + sum(lost) > 1
    assert run(10, None).details["restarts"] == 1


@pytest.mark.parametrize("risk_class", [problems.PlainRisk, problems.ScoredRisk])
def test_the_thesis_rules(risk_class):
    X, y = problems.data("logistic")
    risk = risk_class(X, y, "logistic")
    solution = NonlinearCG(preset="thesis", tolerance=0.0).minimize(risk, L2(LAM))
    risks = solution.details["risk"]
    assert solution.status is Status.OWN_RULE
    if "cgeps" in solution.solver:
        assert abs(risks[-2] - risks[-1]) / risks[-1] < 5e-4
        assert abs(risks[-3] - risks[-2]) / risks[-2] >= 5e-4
    else:
        assert "cgwindow" in solution.solver
        assert risks[-1] > min(risks[:-1])
    assert risk.value_and_subgradient(solution.w)[0] == pytest.approx(risks.min(), rel=1e-12)
    assert solution.objective == pytest.approx(risks[np.argmin(risks)] + L2(LAM).value(solution.w), rel=1e-12)
    assert solution.lower_bound > 0.0


def test_each_rule_has_an_effect():
    # a large penalty: the deviance falls at first and rises again while J falls
    X, y = problems.data("logistic")
    risk, far = problems.ScoredRisk(X, y, "logistic"), np.full(7, 3.0)
    options = {"tolerance": 0.0, "slope_relative": 1e-6}
    window = NonlinearCG(cgwindow=1, **options).minimize(risk, L2(3.0), start=0.3 * far)
    assert window.status is Status.OWN_RULE
    assert "cgwindow" in window.solver
    decay = NonlinearCG(cgdecay=1.0, **options).minimize(risk, L2(3.0), start=0.3 * far)
    assert "cgdecay" in decay.solver or "cgdecay" in str(decay)
    change = NonlinearCG(cgeps=0.1, **options).minimize(risk, L2(LAM))
    assert "cgeps" in change.solver
    most = NonlinearCG(cgmax=2, **options).minimize(risk, L2(LAM))
    assert most.status is Status.ITERATION_LIMIT
    assert most.iterations == 2
    best, last = (
        NonlinearCG(cgmax=30, returns=r, **options).minimize(risk, L2(3.0)) for r in ("deviance", "objective")
    )
    assert risk.value_and_subgradient(best.w)[0] < risk.value_and_subgradient(last.w)[0]
    assert best.objective > last.objective


def test_the_thesis_penalty_is_ours_with_lam_twice_ridge_over_m():
    """ln L - ridge beta'beta, maximised by another routine."""
    from scipy.optimize import minimize

    X, y = problems.data("logistic")
    ridge = 1.7

    def thesis(beta):
        return np.logaddexp(0.0, -y * (X @ beta)).sum() + ridge * beta @ beta

    reference = minimize(thesis, np.zeros(7), method="BFGS", options={"gtol": 1e-9})
    ours = NonlinearCG(tolerance=1e-12).minimize(problems.ScoredRisk(X, y, "logistic"), L2(2.0 * ridge / 60))
    np.testing.assert_allclose(ours.w, reference.x, atol=1e-6)
    assert ours.objective * 60 == pytest.approx(thesis(ours.w), rel=1e-12)


def test_a_line_search_costs_no_pass_with_scores():
    X, y = problems.data("logistic")
    solution = NonlinearCG(tolerance=1e-9, slope_relative=1e-6).minimize(problems.ScoredRisk(X, y, "logistic"), L2(LAM))
    assert solution.details["trials"] > 1.5 * solution.iterations
    assert solution.passes <= solution.iterations + 3


def test_kinks_are_refused():
    with pytest.raises(IncompatibleError, match="smooth loss"):
        NonlinearCG().minimize(problems.ScoredRisk(*problems.data("hinge"), "hinge"), L2(1.0))
    with pytest.raises(IncompatibleError, match="smooth regularizer L1"):
        NonlinearCG().minimize(problems.ScoredRisk(*problems.data("logistic"), "logistic"), L1(1.0))


def curve(seed):
    """A sum of softplus functions and a parabola, with its minimiser by bisection."""
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(2, 20)) * random.choice([0.1, 1.0, 10.0], size=(2, 1))
    c = 10.0 ** random.uniform(-4.0, 1.0)

    def function(t):
        z = a[:, None] + b[:, None] * t
        value = np.logaddexp(0.0, z).sum(axis=0) + 0.5 * c * (t - 5.0) ** 2
        return value, (b[:, None] / (1.0 + np.exp(np.clip(-z, -700, 700)))).sum(axis=0) + c * (t - 5.0)

    return function


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 10**6), st.sampled_from([1e-8, 1e-3, 1.0, 1e3]), st.sampled_from([0.1, 1e-3, 1e-8]))
def test_the_slope_becomes_small(seed, first, relative):
    function = curve(seed)
    slope = float(function(np.array([0.0]))[1][0])
    if slope > -1e-6:
        return
    found, trials = secant_search(function, slope, first=first, relative=relative, absolute=0.0)
    assert abs(found.derivative) <= relative * abs(slope)
    assert trials <= 60
    assert found.value <= function(np.array([0.0]))[0][0] + 1e-9


def test_absolute_slopes_and_walls():
    def parabola(t):
        return (t - 0.7) ** 2, 2.0 * (t - 0.7)

    found, trials = secant_search(parabola, -1.4, first=1e-8, relative=1e-3, absolute=0.0)
    assert found.t == pytest.approx(0.7, abs=1e-3)
    assert trials <= 3
    rough, _ = secant_search(parabola, -1.4, first=0.5, relative=1e-9, absolute=0.5)
    assert rough.t == 0.5

    def wall(t):
        return np.where(t > 1.0, np.inf, (t - 0.7) ** 2), np.where(t > 1.0, np.inf, 2.0 * (t - 0.7))

    found, _ = secant_search(wall, -1.4, first=1e6, relative=1e-3, absolute=0.0)
    assert found.t == pytest.approx(0.7, abs=1e-3)
    nothing, _ = secant_search(
        lambda t: (np.full(1, np.inf), np.full(1, np.inf)), -1.0, first=1.0, relative=0.1, absolute=0.0
    )
    assert nothing is None
    falling, _ = secant_search(lambda t: (-t, np.full(1, -1.0)), -1.0, first=1.0, relative=0.1, absolute=0.0)
    assert falling.derivative == -1.0
