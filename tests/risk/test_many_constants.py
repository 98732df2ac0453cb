"""Free intercepts of many classes: second derivatives in one pass, and time limits that are kept."""

import time

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import Scored, Status, ability, unchecked
from bmrm.problem.abilities import DualBlocks
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import Meter
from bmrm.regularizers.l2 import L2
from bmrm.risk.constants import newton
from bmrm.risk.constants.mixture import point_at
from bmrm.risk.dual import ascent as dual_ascent
from bmrm.risk.dual import balance
from bmrm.risk.dual.many import ManyScoreRows
from bmrm.risk.dual.visits import AscentRows
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.score_function import LossPhi
from bmrm.solvers import SOLVERS

TREE = [["a", "root"], ["b", "root"], ["c", "a"], ["d", "a"]]
SEVERAL = {
    "softmax": ({}, lambda r: r.integers(0, 4, 30).astype(float)),
    "multivariate_least_squares": (
        {"M": [[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]]},
        lambda r: r.normal(size=(30, 3)),
    ),
    "ontology_logistic": ({"edges": TREE}, lambda r: r.choice(np.array(["b", "c", "d"]), 30)),
}


def many(classes, rows=400, features=6, weights=None):
    r = np.random.default_rng(0)
    X = r.normal(size=(rows, features))
    y = (X @ r.normal(size=(features, classes)) + r.gumbel(size=(rows, classes))).argmax(axis=1)
    y[:classes] = np.arange(classes)
    return Dataset.from_arrays(X, y.astype(float), weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SEVERAL)
def test_the_second_derivative_in_constants_is_the_sum_of_that_in_scores(name, weighted):
    r = np.random.default_rng(1)
    parameters, targets = SEVERAL[name]
    weights = r.uniform(0.0, 3.0, 30) * (r.random(30) < 0.8) if weighted else None
    risk = LinearRisk(Dataset.from_arrays(r.normal(size=(30, 2)), targets(r), weights), LOSSES.make(name, parameters))
    phi = ability(risk, Scored).phi
    f = 3.0 * r.normal(size=(30, phi.facts.scores_per_row))
    columns = [phi.total(phi.hessian_product(f, phi.constant(unit))) for unit in np.eye(f.shape[1])]
    np.testing.assert_allclose(phi.hessian_total(f), columns, atol=1e-14)


def test_the_second_derivative_keeps_what_is_left_of_sure_rows():
    risk = LinearRisk(Dataset.from_arrays(np.ones((3, 1)), np.arange(3.0)), LOSSES.make("softmax"))
    f = np.array([[50.0, 0.0, -1.0], [0.0, 60.0, 0.0], [0.0, 0.0, 55.0]])
    small = np.exp(f - f.max(axis=1, keepdims=True))
    small[small == 1.0] = 0.0
    others = small.sum(axis=1)  # 1 - p of the surest class, and p of the others, up to their squares
    expected = (small.sum(axis=0) + others) / 3.0
    np.testing.assert_allclose(np.diag(ability(risk, Scored).phi.hessian_total(f)), expected, rtol=1e-12)


def test_a_search_for_constants_takes_no_pass_for_each(monkeypatch):
    passes = []
    inner = LossPhi.hessian_product
    monkeypatch.setattr(LossPhi, "hessian_product", lambda *given: passes.append(1) or inner(*given))
    risk = FreeIntercept(LinearRisk(many(40), LOSSES.make("softmax")))
    value, _ = risk.value_and_subgradient(np.full(risk.dim, 0.1))
    assert np.isfinite(value)
    assert np.abs(risk.phi.total(risk.phi.value_and_slope(risk.map.matvec(np.full(risk.dim, 0.1)))[1])).max() < 1e-12
    assert not passes


@pytest.mark.parametrize("share", [1.0, 0.3])
@pytest.mark.parametrize("loss", ["softmax", "multiclass_hinge"])
def test_the_derivative_of_sums_of_slopes_is_that_of_differences(loss, share):
    risk = LinearRisk(many(5, rows=60), LOSSES.make(loss))
    ascent = ability(risk, DualBlocks).ascent(0.0, 0.01, seed=0, intercept=True)
    for _ in range(3):
        ascent.sweep()
    rows = ascent._rows
    for shift in (np.zeros(5), np.array([0.3, -0.2, 0.05, 0.0, 0.1])):
        before = rows.slope()
        expected = AscentRows.derivative(rows, shift, share)
        np.testing.assert_allclose(rows.derivative(shift, share), expected, atol=2e-5 * np.abs(expected).max())
        np.testing.assert_array_equal(rows.slope(), before)


def test_the_dual_balances_many_classes_in_few_passes(monkeypatch):
    passes = []
    inner = ManyScoreRows.totals
    monkeypatch.setattr(ManyScoreRows, "totals", lambda *given, **more: passes.append(1) or inner(*given, **more))
    risk = FreeIntercept(LinearRisk(many(60), LOSSES.make("softmax")))
    found = SOLVERS.make("dual_coordinate", {"tolerance": 1e-5}).minimize(risk, L2(1e-2))
    assert found.status is Status.CONVERGED
    assert len(passes) < 60  # by differences a single matrix took as many


@pytest.mark.parametrize("solver", ["dual_coordinate", "bundle", "lbfgs", "line_search_bundle"])
def test_a_time_limit_is_kept_with_many_classes(solver):
    risk = FreeIntercept(LinearRisk(many(200, rows=1000), LOSSES.make("multiclass_hinge")))
    SOLVERS.make(solver, {"max_iterations": 1, "time_limit": 0.1}).minimize(risk, L2(1e-3))  # compiles
    begin = time.process_time()
    found = SOLVERS.make(solver, {"tolerance": 1e-9, "time_limit": 0.3}).minimize(risk, L2(1e-3))
    assert found.status is Status.TIME_LIMIT
    assert time.process_time() - begin < 3.0
    b = risk.intercept(found.w)
    phi = risk.phi.phi
    again = phi.value_and_slope(risk.map.matvec(found.w) + phi.constant(b))[0] + L2(1e-3).value(found.w)
    assert found.lower_bound <= found.objective == pytest.approx(again, rel=1e-12)


def test_newtons_step_for_many_constants_needs_no_spectrum(monkeypatch):
    phi = ability(LinearRisk(many(150), LOSSES.make("softmax")), Scored).phi
    f = np.random.default_rng(3).normal(size=(400, 150))
    here = point_at(phi, f, np.zeros(150))
    matrix, least = phi.hessian_total(f), np.full(150, 1e-16)
    monkeypatch.setattr(newton, "FEW", 150)
    expected = newton.step_to_zero(newton.Curvature(matrix), here, least, unchecked)
    monkeypatch.undo()
    asked = []
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: pytest.fail("a spectrum"))
    step = newton.step_to_zero(newton.Curvature(matrix), here, least, lambda: asked.append(1))
    np.testing.assert_allclose(step - step.mean(), expected - expected.mean(), atol=1e-6 * np.abs(expected).max())
    assert abs(step.mean()) < 10.0 * np.abs(step).max()
    assert len(asked) > 3  # a time limit ends it


def test_a_step_that_takes_many_products_is_found_by_the_spectrum():
    """Groups of classes that hardly meet: 300 eigenvalues over ten decades, not along the axes."""
    r = np.random.default_rng(4)
    Q, _ = np.linalg.qr(r.normal(size=(300, 300)))
    matrix, sums = (Q * np.logspace(-5, 5, 300)) @ Q.T, r.normal(size=300)
    here = newton.Point(np.zeros(300), 1.0, None, sums)
    curvature = newton.Curvature(0.5 * (matrix + matrix.T))
    step = newton.step_to_zero(curvature, here, np.zeros(300), unchecked)
    assert curvature.resolved
    # the ridge, 1e-10 of the mean eigenvalue, is a tenth of the smallest one
    assert np.abs(matrix @ step + sums).max() < 0.2 * np.abs(sums).max()


def test_the_inverse_for_many_constants_is_the_pseudoinverse_where_sums_are_0():
    phi = ability(LinearRisk(many(150), LOSSES.make("softmax")), Scored).phi
    matrix = phi.hessian_total(np.random.default_rng(5).normal(size=(400, 150)))
    sums = np.random.default_rng(6).normal(size=150)
    sums -= sums.mean()
    found, expected = newton.inverse_of(matrix, unchecked) @ sums, np.linalg.pinv(matrix, hermitian=True) @ sums
    np.testing.assert_allclose(found - found.mean(), expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["softmax", "multiclass_hinge"])
def test_slopes_are_evened_out_where_time_leaves_no_room_for_a_balance(loss, weighted, monkeypatch):
    spent, random = [], np.random.default_rng(3)
    weights = np.where(random.random(300) < 0.2, 0.0, random.exponential(size=300)) if weighted else None
    data = many(20, rows=300, weights=weights)
    risk = metered_risk(FreeIntercept(LinearRisk(data, LOSSES.make(loss))), Meter(spent=lambda: bool(spent)))
    ascent = ability(risk, DualBlocks).ascent(0.0, 0.1, seed=0, intercept=True)
    for _ in range(3):
        ascent.sweep()
    monkeypatch.setattr(dual_ascent, "GRACE", 0.0)
    spent.append(True)
    a, b = ascent.plane(anew=True)
    quick = b - a @ a / 0.2
    assert np.abs(ascent.slope().sum(axis=0)).max() < 1e-13
    for scale in (0.0, 0.1, 1.0, 10.0):  # a plane below R
        w = scale * random.normal(size=risk.dim)
        assert a @ w + b <= risk.value_and_subgradient(w)[0] + 1e-12
    np.testing.assert_allclose(ascent.weights, -a / 0.1, rtol=1e-12)
    monkeypatch.setattr(dual_ascent, "GRACE", 60.0)
    a, b = ascent.plane(anew=True)
    best = b - a @ a / 0.2
    assert risk.infimum < 0.9 * best < quick
    assert best <= risk.value_and_subgradient(np.zeros(risk.dim))[0]


def test_a_search_for_a_balance_makes_one_factor(monkeypatch):
    """Steps by Broyden's updates solved a system each, of as many equations as classes."""
    made = []
    monkeypatch.setattr(balance, "Inverse", lambda matrix, make=balance.Inverse: made.append(make(matrix)) or made[-1])
    random = np.random.default_rng(4)
    A = random.normal(size=(30, 10))
    A -= A.mean(axis=1, keepdims=True)
    target = A.T @ np.tanh(random.normal(size=30))

    def totals(c):
        return A.T @ np.tanh(A @ c) - target

    def derivative(c):
        return A.T @ ((1.0 - np.tanh(A @ c)[:, None] ** 2) * A)

    found = balance.Balance(10, 30.0).find(totals, derivative)
    assert np.abs(totals(found)).max() <= 1e-11
    (only,) = made[-1:]
    assert len(only) > 2
    step = random.normal(size=9)
    only.update(step, random.normal(size=9))
    left, change = random.normal(size=9), random.normal(size=9)
    only.update(left, change)
    np.testing.assert_allclose(only.times(change), left, rtol=1e-9)


def test_searches_along_a_step_are_no_longer_than_they_need_be():
    """Sums that are nearly steps: with searches to rounding 253 evaluations."""
    random, calls = np.random.default_rng(5), []
    A = random.normal(size=(2000, 4))
    A -= A.mean(axis=1, keepdims=True)
    kinks = random.normal(size=2000)
    target = A.T @ np.clip(1e4 * (A @ np.array([0.3, -0.2, 0.1, 0.0]) - kinks), -1.0, 1.0)

    def totals(c):
        calls.append(c)
        return A.T @ np.clip(1e4 * (A @ c - kinks), -1.0, 1.0) - target

    def derivative(c):
        return 1e4 * A.T @ ((np.abs(1e4 * (A @ c - kinks)) < 1.0)[:, None] * A)

    found = balance.Balance(4, 2000.0).find(totals, derivative)
    assert np.abs(totals(found)).max() <= 1e-10
    assert len(calls) < 200


def test_a_matrix_without_a_factor_is_inverted_whole():
    flat = np.diag([2.0, -1.0, 0.5])
    np.testing.assert_allclose(balance.Inverse(flat).times(np.ones(3)), [0.5, -1.0, 2.0])
    np.testing.assert_allclose(balance.Inverse(np.diag([2.0, 0.0])).times(np.array([1.0, 0.0])), [0.5, 0.0])


def test_a_balance_that_rounding_hides_is_not_looked_for_again_and_again(monkeypatch):
    """Classes of weight 1 beside those of 1e12: between two constants the sums jump over 0."""
    passes, random = [], np.random.default_rng(19)
    inner = ManyScoreRows.totals
    monkeypatch.setattr(ManyScoreRows, "totals", lambda *given, **more: passes.append(1) or inner(*given, **more))
    n, d, K = int(random.integers(15, 60)), int(random.integers(2, 8)), int(random.integers(3, 7))
    X, y = random.normal(size=(n, d)) * 10.0 ** random.uniform(-1, 1, size=d), random.integers(0, K, size=n)
    y[:K] = np.arange(K)
    data = Dataset.from_arrays(X, y.astype(float), np.where(y == 2, 1e12, 1.0))
    risk = FreeIntercept(LinearRisk(data, LOSSES.make("multiclass_hinge")))
    found = SOLVERS.make("dual_coordinate", {"max_iterations": 40}).minimize(risk, L2(0.0475))
    assert 0.0 < found.lower_bound <= found.objective
    assert len(passes) < 4000  # a hundred for each evaluation; 10,000 each before
