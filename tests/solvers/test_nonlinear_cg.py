"""CG-MLE: linear CG on quadratics, its line search, and Komarek's stopping rules."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, InputError, Status
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
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
    solution = NonlinearCG(preset="thesis", tolerance=0.0, binitmean=False).minimize(risk, L2(LAM))
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


# -- Algorithm 8, dense and literal: sums over rows, exact line searches, no shared code ---------------------------


def algorithm_8(X, y, ridge, *, cgeps=5e-4, cgwindow=1, cgmax=100, margin=0.0, modelmin=0.0, modelmax=1.0):
    """Iterates and their deviances; the constant feature stands last, and line 8.2 starts it at the mean of y."""
    o = np.where(y > 0, 1.0 - margin, margin)

    def mean(beta):
        return np.clip(expit(X @ beta), modelmin, modelmax)

    def gradient(beta):
        return X.T @ (o - mean(beta)) - 2.0 * ridge * beta

    def deviance(beta):
        return -2.0 * (o * np.log(mean(beta)) + (1.0 - o) * np.log(1.0 - mean(beta))).sum()

    beta = np.zeros(X.shape[1])
    beta[-1] = y.mean()
    betas, devs, window, devmin = [beta], [deviance(beta)], cgwindow, np.inf
    r = before = d = gradient(beta)
    for i in range(cgmax):
        if i > 0 and abs((devs[-2] - devs[-1]) / devs[-1]) < cgeps:
            break
        if window <= 0:
            break
        gamma = max(0.0, r @ (r - before) / (before @ before)) if i % len(beta) else 0.0
        d = r + gamma * d
        far = 1e-3
        while gradient(beta + far * d) @ d > 0.0:
            far *= 2.0
        beta = beta + brentq(lambda t, beta=beta, d=d: gradient(beta + t * d) @ d, 0.0, far, xtol=1e-16) * d
        before, r = r, gradient(beta)
        betas.append(beta)
        devs.append(deviance(beta))
        window = cgwindow if devs[-1] <= devmin else window - 1
        devmin = min(devmin, devs[-1])
    return betas, np.array(devs)


def one_in_four(rows=90):
    """Two classes with an offset, features with a constant one last, and the risk with that feature of its own."""
    random = np.random.default_rng(4)
    X = random.normal(size=(rows, 5)) * [1.0, 2.0, 0.5, 1.0, 0.7]
    y = (X @ random.normal(size=5) + random.normal(size=rows) > 1.2).astype(float)
    return (
        np.column_stack((X, np.ones(rows))),
        y,
        LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("logistic"), bias=True),
    )


EXACT = {"tolerance": 0.0, "slope_relative": 1e-10, "initalpha": 1e-3}


@pytest.mark.parametrize(
    ("ridge", "options"),
    [
        (0.5, {}),
        (0.01, {"cgeps": 1e-7}),
        (40.0, {"cgeps": 1e-9, "cgwindow": 2}),
        (0.5, {"margin": 0.08, "cgeps": 1e-6}),
        (0.5, {"modelmin": 0.05, "modelmax": 0.9, "cgmax": 7, "cgeps": 0.0, "cgwindow": 7}),
        (0.5, {"margin": 0.02, "modelmin": 0.1, "cgmax": 5, "cgeps": 0.0, "cgwindow": 5}),
    ],
)
def test_the_preset_is_algorithm_8(ridge, options):
    X, y, risk = one_in_four()
    betas, devs = algorithm_8(X, y, ridge, **options)
    assert len(betas) > 3
    solution = NonlinearCG(preset="thesis", **EXACT, **options).minimize(risk, L2(2.0 * ridge / len(y)))
    np.testing.assert_allclose(2.0 * len(y) * solution.details["risk"], devs, rtol=1e-7)
    best = betas[int(np.argmin(devs))]
    np.testing.assert_allclose(solution.w, best, atol=1e-6)
    assert solution.status is (Status.ITERATION_LIMIT if "cgmax" in options else Status.OWN_RULE)
    judged = np.logaddexp(0.0, -(2.0 * y - 1.0) * (X @ solution.w)).mean() + ridge / len(y) * solution.w @ solution.w
    assert solution.objective == pytest.approx(judged, rel=1e-12)
    assert solution.lower_bound <= NonlinearCG(tolerance=1e-10).minimize(risk, L2(2.0 * ridge / len(y))).objective


def test_a_first_step_to_a_larger_deviance_does_not_fill_the_window():
    """devmin is infinite until the first step is made: with cgwindow 1 a second one follows."""
    X, y, _ = one_in_four()
    y, ridge = 1.0 - y, 1000.0
    _, devs = algorithm_8(X, y, ridge, cgeps=0.0)
    assert devs[1] > devs[0]
    risk = LinearRisk(Dataset.from_arrays(X[:, :-1], y), LOSSES.make("logistic"), bias=True)
    solution = NonlinearCG(preset="thesis", cgeps=0.0, **EXACT).minimize(risk, L2(2.0 * ridge / len(y)))
    assert "cgwindow" in solution.solver
    assert solution.iterations == len(devs) - 1 > 1
    assert solution.w[-1] == y.mean()


def test_the_preset_starts_at_the_mean_target_and_says_what_that_needs():
    X, y, risk = one_in_four()
    solution = NonlinearCG(preset="thesis", cgmax=1).minimize(risk, L2(LAM))
    expected = np.where(y > 0, np.logaddexp(0.0, -y.mean()), np.logaddexp(0.0, y.mean())).mean()
    assert solution.details["risk"][0] == pytest.approx(expected, rel=1e-14)
    given = NonlinearCG(preset="thesis", cgmax=1).minimize(risk, L2(LAM), start=np.zeros(6))
    plain = NonlinearCG(preset="thesis", cgmax=1, binitmean=False).minimize(risk, L2(LAM))
    np.testing.assert_array_equal(given.w, plain.w)
    assert plain.details["risk"][0] == pytest.approx(np.log(2.0))
    data = Dataset.from_arrays(X, y)
    for bare in (LinearRisk(data, LOSSES.make("logistic")), problems.ScoredRisk(X, 2.0 * y - 1.0, "logistic")):
        with pytest.raises(IncompatibleError, match=r"data\.bias: regularized, or binitmean: false"):
            NonlinearCG(preset="thesis").minimize(bare, L2(LAM))
    with pytest.raises(IncompatibleError, match="nonlinear_cg: this risk cannot serve margin, modelmin and modelmax"):
        NonlinearCG(margin=0.1).minimize(problems.ScoredRisk(X, 2.0 * y - 1.0, "logistic"), L2(LAM))
    with pytest.raises(IncompatibleError, match="cannot be changed by margin"):
        NonlinearCG(margin=0.1).minimize(LinearRisk(data, LOSSES.make("squared_hinge")), L2(LAM))
    with pytest.raises(InputError, match=r"modelmin is 0\.6, expected less than modelmax"):
        NonlinearCG(modelmin=0.6, modelmax=0.5)


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


def test_a_bracket_with_one_end_of_a_huge_slope_is_halved():
    """There the secant reaches 0 at the other end but for rounding, which once ended the search."""

    def tail(t):
        return np.exp(t - 60.0) - t, np.exp(t - 60.0) - 1.0

    found, trials = secant_search(tail, -1.0, first=0.01, relative=0.01, absolute=0.0)
    assert abs(found.derivative) <= 0.01
    assert trials <= 40
