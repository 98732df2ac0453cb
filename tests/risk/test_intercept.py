"""Free intercepts: valid cuts, the true minimum, and the same models as cvxopt and scikit-learn."""

import dataclasses

import cvxopt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, QuantileRegressor

from bmrm.data.dataset import Dataset
from bmrm.losses.base import RegressionLoss
from bmrm.losses.hinge import Hinge
from bmrm.losses.least_squares import LeastSquares
from bmrm.losses.logistic import Logistic
from bmrm.losses.multiclass_hinge import MulticlassHinge
from bmrm.losses.quantile import Quantile
from bmrm.losses.roc_area import RocArea
from bmrm.losses.softmax import Softmax
from bmrm.losses.squared_hinge import SquaredHinge
from bmrm.problem import IncompatibleError, Scored, ability
from bmrm.problem.abilities import Blocks, RowSubsets
from bmrm.problem.risk import Settled
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.constants.mixture import rounding_of_sums
from bmrm.risk.constants.search import minimum_over_constant
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers.bundle import Bundle
from bmrm.solvers.lbfgs import LBFGS

ROWS, FEATURES = 60, 4
LOSSES = [Hinge(), SquaredHinge(), Logistic(), LeastSquares(), Quantile(0.3), Softmax(), MulticlassHinge()]


def data(loss, rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, FEATURES))
    if loss.task == "regression":
        y = X @ rng.normal(size=FEATURES) + rng.standard_t(3, size=rows) + 5.0
    else:
        classes = 2 if loss.task == "binary" else 3
        y = np.argmax(X[:, :classes] + rng.normal(size=(rows, classes)) + np.arange(classes), axis=1).astype(float)
    return Dataset.from_arrays(X, y)


def free(loss, seed=0):
    return FreeIntercept(LinearRisk(data(loss, seed=seed), loss))


def points(risk, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=risk.dim) * scale for scale in (0.0, 0.1, 1.0, 3.0)]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_cuts_are_valid_and_tight(loss):
    risk = free(loss)
    planes = [(w, *risk.value_and_subgradient(w)) for w in points(risk)]
    for w, value, subgradient in planes:
        for v, other, _ in planes:
            assert other >= value + subgradient @ (v - w) - 1e-12 * (1.0 + abs(other))
    scored = ability(risk, Scored)
    for w in points(risk):
        f = scored.map.matvec(w)
        value, slope = scored.phi.value_and_slope(f)
        np.testing.assert_allclose(scored.phi.total(slope), 0.0, atol=1e-13)
        b = risk.intercept(w)
        at_b = risk.phi.phi.value_and_slope(f + risk.phi.phi.constant(b))[0]
        # The rows are summed in another order.
        assert value - 4 * np.spacing(value) <= at_b <= value + 2e-12 * abs(value)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_no_constant_does_better(loss):
    risk, rng = free(loss), np.random.default_rng(2)
    inner = risk.phi.phi
    for w in points(risk):
        f, value = risk.map.matvec(w), risk.value_and_subgradient(w)[0]
        best = risk.intercept(w)
        for scale in (1e-6, 1e-3, 0.1, 1.0, 10.0):
            for _ in range(5):
                b = best + scale * rng.normal(size=best.size)
                assert inner.value_and_slope(f + inner.constant(b))[0] >= value - 1e-13 * abs(value)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_curve_is_that_of_the_values(loss):
    risk = free(loss)
    scored = ability(risk, Scored)
    _, w, step, _ = points(risk)
    f, g = scored.map.matvec(w), scored.map.matvec(step)
    ts = np.array([0.3, -0.4, 2.0])
    values, derivatives = scored.phi.along(f, g)(ts)
    for t, value, derivative in zip(ts, values, derivatives, strict=True):
        expected, subgradient = risk.value_and_subgradient(w + t * step)
        assert value == pytest.approx(expected, rel=1e-11)
        h = 1e-5
        ahead, behind = (risk.value_and_subgradient(w + (t + s) * step)[0] for s in (h, -h))
        assert (expected - behind) / h - 1e-6 <= derivative <= (ahead - expected) / h + 1e-6
        if scored.phi.facts.smooth:
            assert derivative == pytest.approx(subgradient @ step, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("loss", [Logistic(), LeastSquares(), Softmax(), SquaredHinge()], ids=str)
def test_curvature_is_the_derivative_of_the_slope(loss):
    scored = ability(free(loss), Scored)
    rng = np.random.default_rng(3)
    shape = (ROWS,) if scored.phi.facts.scores_per_row == 1 else (ROWS, scored.phi.facts.scores_per_row)
    f, step, h = rng.normal(size=shape), rng.normal(size=shape), 1e-6
    ahead, behind = (scored.phi.value_and_slope(f + s * step)[1] for s in (h, -h))
    product = scored.phi.hessian_product(f, step)
    np.testing.assert_allclose(product, (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(scored.phi.total(product), 0.0, atol=1e-13)


def test_settled_constants_are_the_best_that_were_told_of_the_same_weights():
    settled, w, good, bad = Settled(), np.ones(3), np.array([1.0, 2.0]), np.array([5.0, 6.0])
    settled.note(w, good, 0.5)
    settled.note(w, bad, 0.7)
    assert settled.of(w) is good
    settled.note(w, good.copy(), 0.6)  # evaluated anew, it was said too low before
    assert settled.of(w, 0.55) is None
    settled.note(w, bad, 0.4)
    assert settled.of(w) is bad


@pytest.mark.parametrize("loss", [Logistic(), Softmax()], ids=str)
def test_second_derivatives_follow_scores_that_change_in_place(loss):
    rng = np.random.default_rng(3)
    phi = ability(free(loss), Scored).phi
    f = rng.normal(size=phi.constant(np.zeros(phi.facts.scores_per_row)).shape)
    step = rng.normal(size=f.shape)
    before = phi.hessian_product(f, step)
    f *= 3.0
    after, fresh = phi.hessian_product(f, step), ability(free(loss), Scored).phi.hessian_product(f.copy(), step)
    np.testing.assert_allclose(after, fresh, rtol=1e-6, atol=1e-9)
    assert np.abs(after - before).max() > 1e-3 * np.abs(before).max()


@given(
    f=st.lists(st.floats(-50, 50) | st.integers(-3, 3).map(float), min_size=4, max_size=12),
    loss=st.sampled_from([Hinge(), Quantile(0.9), Logistic(), SquaredHinge()]),
)
def test_any_scores(f, loss):
    """One feature that is the score itself, ties and kinks included."""
    f = np.array(f)
    y = np.arange(f.size) % 2.0
    phi = LinearRisk(Dataset.from_arrays(f[:, None], y), loss).phi
    profiled = FreeIntercept(LinearRisk(Dataset.from_arrays(f[:, None], y), loss)).phi
    value, slope = profiled.value_and_slope(f)
    assert abs(slope.sum()) <= 1e-12
    z = 2.0 * y - 1.0
    kinks = np.concatenate([z - f, y - f]) if loss.task == "regression" else z - f
    candidates = np.concatenate([kinks, np.linspace(-100, 100, 41)])
    least = min(phi.value_and_slope(f + b)[0] for b in candidates)
    assert value <= least + 1e-12 * (1.0 + abs(least))
    if not phi.facts.smooth:
        assert value == pytest.approx(least, rel=1e-11, abs=1e-13)


def quadratic_program(P, q, G, h):
    cvxopt.solvers.options.update(show_progress=False, abstol=1e-12, reltol=1e-12, feastol=1e-12)
    solution = cvxopt.solvers.qp(*(cvxopt.matrix(np.asarray(each, float)) for each in (P, q, G, h)))
    return solution["primal objective"], np.array(solution["x"]).ravel()


def test_hinge_as_by_cvxopt():
    lam, examples = 0.02, data(Hinge())
    X, z = examples.X, 2.0 * examples.targets.y - 1.0
    size = FEATURES + 1 + ROWS
    P, q = np.zeros((size, size)), np.zeros(size)
    P[:FEATURES, :FEATURES] = lam * np.eye(FEATURES)
    q[FEATURES + 1 :] = 1.0 / ROWS
    margins = -z[:, None] * np.hstack([X, np.ones((ROWS, 1))])
    G = np.block([[margins, -np.eye(ROWS)], [np.zeros((ROWS, FEATURES + 1)), -np.eye(ROWS)]])
    objective, x = quadratic_program(P, q, G, np.concatenate([-np.ones(ROWS), np.zeros(ROWS)]))
    risk = free(Hinge())
    found = Bundle(tolerance=1e-10).minimize(risk, L2(lam))
    assert found.objective == pytest.approx(objective, rel=1e-8)
    assert found.lower_bound <= objective * (1 + 1e-10)
    np.testing.assert_allclose(found.w, x[:FEATURES], atol=1e-4)


def test_multiclass_hinge_as_by_cvxopt():
    lam, examples, K = 0.05, data(MulticlassHinge()), 3
    X, y = examples.X, examples.targets.y.astype(int)
    weights, size = FEATURES * K, FEATURES * K + K + ROWS
    P, q = np.zeros((size, size)), np.zeros(size)
    P[:weights, :weights] = lam * np.eye(weights)
    P[weights : weights + K, weights : weights + K] = 1e-9 * np.eye(K)
    q[weights + K :] = 1.0 / ROWS
    lines, limits = [], []
    for i in range(ROWS):
        for k in range(K):
            line = np.zeros(size)
            table, b = line[:weights].reshape(FEATURES, K), line[weights : weights + K]
            table[:, k] += X[i]
            table[:, y[i]] -= X[i]
            b[k] += 1.0
            b[y[i]] -= 1.0
            line[weights + K + i] = -1.0
            lines.append(line)
            limits.append(-float(k != y[i]))
    objective, _ = quadratic_program(P, q, np.array(lines), np.array(limits))
    found = Bundle(tolerance=1e-9).minimize(free(MulticlassHinge()), L2(lam))
    assert found.objective == pytest.approx(objective, rel=1e-7)


@pytest.mark.parametrize("loss", [Logistic(), Softmax()], ids=str)
def test_logistic_as_by_scikit_learn(loss):
    lam, examples = 0.03, data(loss)
    model = LogisticRegression(C=1.0 / (lam * ROWS), tol=1e-12, max_iter=10000).fit(examples.X, examples.targets.y)
    risk = free(loss)
    found = LBFGS(tolerance=1e-10).minimize(risk, L2(lam))
    intercept = risk.intercept(found.w)
    if loss.task == "binary":
        np.testing.assert_allclose(found.w, model.coef_[0], atol=1e-4)
        assert intercept[0] == pytest.approx(model.intercept_[0], abs=1e-4)
    else:
        np.testing.assert_allclose(found.w.reshape(FEATURES, 3), model.coef_.T, atol=1e-4)
        centred = model.intercept_ - model.intercept_.mean()
        np.testing.assert_allclose(intercept - intercept.mean(), centred, atol=1e-4)


def test_quantile_as_by_scikit_learn():
    alpha, examples = 0.05, data(Quantile(0.8))
    X, y = examples.X, examples.targets.y
    model = QuantileRegressor(quantile=0.8, alpha=alpha, solver="highs").fit(X, y)
    miss = y - model.predict(X)
    objective = np.mean(np.maximum(0.8 * miss, -0.2 * miss)) + alpha * np.abs(model.coef_).sum()
    found = Bundle(tolerance=1e-9).minimize(free(Quantile(0.8)), L1(alpha))
    assert found.objective == pytest.approx(objective, rel=1e-8)


def test_row_abilities_are_withheld():
    risk = free(Hinge())
    assert ability(risk, RowSubsets) is None
    assert ability(risk, Blocks) is None


def test_a_shift_that_changes_nothing_is_refused():
    with pytest.raises(IncompatibleError, match="does not change when a constant is added"):
        free(RocArea())


def test_a_risk_without_scores_is_refused():
    class Bare:
        dim, infimum = 2, 0.0

        def value_and_subgradient(self, w):
            return 0.0, np.zeros(2)

    with pytest.raises(IncompatibleError, match="needs a risk with scores"):
        FreeIntercept(Bare())


def test_a_risk_without_a_minimum_is_refused():
    class Falling(Hinge):
        def value(self, f, y):
            return -f

        def slope(self, f, y):
            return -np.ones_like(f)

        kernel = along_kernel = None

    risk = FreeIntercept(LinearRisk(data(Hinge()), Falling()))
    with pytest.raises(IncompatibleError, match="no minimum over a free intercept"):
        risk.value_and_subgradient(np.zeros(FEATURES))


def test_many_classes_with_ties():
    """Slopes that are whole multiples of 1 / rows make the small linear programs degenerate."""
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 2, size=(400, 6)).astype(float), rng.integers(0, 9, 400).astype(float)
    risk = FreeIntercept(LinearRisk(Dataset.from_arrays(X, y), MulticlassHinge()))
    w = rng.integers(-2, 3, size=risk.dim) / 4.0
    value, subgradient = risk.value_and_subgradient(w)
    for scale in (0.01, 1.0):
        v = w + scale * rng.normal(size=risk.dim)
        assert risk.value_and_subgradient(v)[0] >= value + subgradient @ (v - w) - 1e-12


def test_a_users_formula_that_overflows_far_off_is_not_refused():
    @dataclasses.dataclass(frozen=True)
    class PseudoHuber(RegressionLoss):
        smooth = True

        def value(self, f, y):
            return np.sqrt(1.0 + (f - y) ** 2) - 1.0

        def slope(self, f, y):
            return (f - y) / np.sqrt(1.0 + (f - y) ** 2)  # 0 where the square overflows

    with np.errstate(over="ignore"):
        risk = FreeIntercept(LinearRisk(data(Quantile(0.5)), PseudoHuber()))
    assert risk.intercept(np.zeros(risk.dim))[0] == pytest.approx(5.0, abs=1.0)


class OneSide:
    """A score function whose curves have the slope before a kink; `value_and_slope` has that behind it."""

    def __init__(self, phi):
        self.phi = phi

    def __getattr__(self, name):
        return getattr(self.phi, name)

    def along(self, f, step):
        curve = self.phi.along(f, step)
        return lambda ts: (curve(ts)[0], curve(ts - 1e-9)[1])


def test_of_kinks_side_by_side_none_is_passed_over():
    """Slopes at a kink are of either side, by rounding: the step that leads to the other may pass the next kink."""
    f, y, weights = np.array([2.00003, 2.0, 10.0]), np.array([1.0, 1.0, 0.0]), np.array([2.0, 2.0, 1.0])
    sign = 2.0 * y - 1.0
    phi = OneSide(ability(LinearRisk(Dataset.from_arrays(f[:, None], y, weights=weights), Hinge()), Scored).phi)
    least = min(np.average(np.maximum(0.0, 1.0 - sign * (f + b)), weights=weights) for b in sign - f)
    for start in [*(sign - f), 0.0]:
        for reach in 10.0 ** np.arange(-6, 2):
            found = minimum_over_constant(phi, f, start, reach, rounding_of_sums(phi), 0.0)
            assert found.value == pytest.approx(least, rel=1e-12)
