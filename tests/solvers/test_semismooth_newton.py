"""semismooth_newton against cvxopt, LIBLINEAR's relatives in scikit-learn, and the bundle."""

import warnings

import cvxopt
import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.svm import SVC

from bmrm.data.dataset import Dataset
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, Scored, Status, ability
from bmrm.problem.abilities import RowParts
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.augmented_lagrangian import WIDE, AugmentedLagrangian, KeptGram, Subproblem
from bmrm.solvers._core.newton.row_space import RowQuadratic, rank_of, vectors_of
from bmrm.solvers._core.newton.system import newton_step, solve_positive
from bmrm.solvers.semismooth_newton import SemismoothNewton
from tests import problems

TIGHT = SemismoothNewton(tolerance=1e-10)


def made(loss="hinge", rows=300, features=8, weights=None, seed=0, **options):
    """A risk of noisy targets, sparse rows with a weight of 0 among those that have weights."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, features)) * (random.random((rows, features)) < 0.6)
    y = X @ random.normal(size=features) + 0.7 * random.normal(size=rows) + 0.4
    y = np.where(y > 0.0, 1, 0) if LOSSES.get(loss).cls.task == "binary" else y
    counts = random.integers(0, 4, rows).astype(float) if weights else None
    return LinearRisk(Dataset.from_arrays(csr_array(X), y, counts), LOSSES.make(loss, options))


@pytest.mark.parametrize("lam", [1.0, 1e-2, 1e-5])
def test_hinge_against_cvxopt(lam):
    X, y = problems.data("hinge", rows=200)
    solution = TIGHT.minimize(LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("hinge")), L2(lam))
    optimum = problems.hinge_l2_optimum(X, y, lam)
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(optimum, rel=1e-9)
    assert all(line.lower_bound <= optimum * (1.0 + 1e-9) for line in solution.history)


LOSS_CASES = [
    ("least_absolute_deviation", {}),
    ("quantile", {"tau": 0.9}),
    ("epsilon_insensitive", {"epsilon": 0.3}),
    ("cost_sensitive_hinge", {"cost_negative": 3.0}),
    ("huber", {}),
    ("logistic", {}),
]


@pytest.mark.parametrize(("loss", "options"), LOSS_CASES)
@pytest.mark.parametrize("free", [False, True])
def test_every_loss_with_a_proximal_map_against_the_bundle(loss, options, free):
    risk = made(loss, weights=True, **options)
    risk = FreeIntercept(risk) if free else risk
    solution = TIGHT.minimize(risk, L2(1e-3))
    other = SOLVERS.make("line_search_bundle", {"tolerance": 1e-9}).minimize(risk, L2(1e-3))
    assert solution.status is Status.CONVERGED
    assert other.lower_bound * (1.0 - 1e-9) <= solution.objective <= other.objective * (1.0 + 1e-9)
    assert solution.lower_bound <= other.objective * (1.0 + 1e-10)


PIECES = {
    "least_absolute_deviation": ({}, lambda y: [(1.0, -y), (-1.0, y)]),
    "quantile": ({"tau": 0.9}, lambda y: [(0.1, -0.1 * y), (-0.9, 0.9 * y)]),
    "epsilon_insensitive": ({"epsilon": 0.3}, lambda y: [(1.0, -y - 0.3), (-1.0, y - 0.3)]),
    "hinge": ({}, lambda y: [(-(2.0 * y - 1.0), np.ones(y.size))]),
}
"""Options, and the linear functions (slope, constant) of a score whose largest, or 0, is the loss."""


def minimum(risk, loss, lam, ratio, free):
    """J at the minimum, by cvxopt: over w, b, bounds of |w| and of the losses, the ones smaller than these by lines."""
    X, y, weights = risk.data.X.to_dense(), risk.data.targets.y, risk.data.targets.weights
    m, d = X.shape
    share = (np.ones(m) if weights is None else weights) / (m if weights is None else weights.sum())
    n, of_row = 2 * d + 1 + m, np.hstack((np.zeros((m, 2 * d + 1)), -np.eye(m)))
    eye, zeros = np.eye(d), np.zeros((d, n - 2 * d))
    lines, limits = [np.hstack((s * eye, -eye, zeros)) for s in (1.0, -1.0)] + [of_row], [np.zeros(2 * d + m)]
    for slope, constant in PIECES[loss][1](y):
        slopes = slope * np.ones(m)
        at = np.hstack((slopes[:, None] * X, np.zeros((m, d)), free * slopes[:, None], np.zeros((m, m))))
        lines.append(at + of_row)
        limits.append(-constant)
    P, q = np.zeros((n, n)), np.concatenate((np.zeros(d), np.full(d, lam * ratio), [0.0], share))
    P[range(d), range(d)] = lam * (1.0 - ratio)
    P[2 * d, 2 * d] = 0.0 if free else 1.0
    parts = map(cvxopt.matrix, (P, q, np.vstack(lines), np.concatenate(limits)))
    return cvxopt.solvers.qp(*parts, options=problems.QUIET)["primal objective"]


@pytest.mark.parametrize("loss", PIECES)
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("weights", [None, True])
@pytest.mark.parametrize(("lam", "ratio"), [(3e-2, 1.0), (1e-4, 1.0), (3e-2, 0.7)])
def test_l1_against_cvxopt(loss, free, weights, lam, ratio):
    risk = made(loss, rows=60, weights=weights, **PIECES[loss][0])
    regularizer = L1(lam) if ratio == 1.0 else ElasticNet(lam, ratio)
    solution = TIGHT.minimize(FreeIntercept(risk) if free else risk, regularizer)
    optimum = minimum(risk, loss, lam, ratio, free)
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(optimum, rel=1e-8)
    assert all(line.lower_bound <= optimum * (1.0 + 1e-8) for line in solution.history)


@pytest.mark.parametrize("loss", ["hinge", "least_absolute_deviation", "quantile"])
def test_a_large_l1_leaves_the_intercept_alone(loss):
    """All weights 0: the multipliers are still found, though no step moves."""
    risk = made(loss, rows=61, **PIECES[loss][0])
    solution = TIGHT.minimize(FreeIntercept(risk), L1(1e2))
    assert solution.status is Status.CONVERGED
    assert not solution.w.any()
    y = 2.0 * risk.data.targets.y - 1.0 if loss == "hinge" else risk.data.targets.y
    values = [np.maximum(0.0, 1.0 - y * b).mean() if loss == "hinge" else problem(loss, y - b) for b in np.unique(y)]
    assert solution.objective == pytest.approx(min(values), rel=1e-10)


def problem(loss, residuals):
    """The mean absolute deviation, or that of the quantile .9."""
    tau = {"least_absolute_deviation": (1.0, 1.0), "quantile": (0.9, 0.1)}[loss]
    return np.mean(np.where(residuals > 0.0, tau[0] * residuals, -tau[1] * residuals))


@pytest.mark.parametrize("copies", [1, 3])
def test_l1_with_few_rows_ties_and_columns_that_are_equal(copies):
    """More columns than rows, each there twice, targets whole numbers; repeated rows change nothing."""
    random = np.random.default_rng(4)
    X, y = random.normal(size=(40, 60)), random.integers(0, 4, 40).astype(float)
    both = np.tile(np.hstack((X, X)), (copies, 1))
    risk = LinearRisk(Dataset.from_arrays(csr_array(both), np.tile(y, copies)), LOSSES.make("least_absolute_deviation"))
    once = LinearRisk(Dataset.from_arrays(csr_array(X), y), LOSSES.make("least_absolute_deviation"))
    solution = TIGHT.minimize(risk, L1(0.02))
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(minimum(once, "least_absolute_deviation", 0.02, 1.0, False), rel=1e-8)


def test_auto_takes_it_for_kinks_with_l1():
    risk = FreeIntercept(made("quantile", tau=0.9))
    for regularizer in (L1(1e-3), ElasticNet(1e-3)):
        solution = SOLVERS.make("auto", {"tolerance": 1e-6}).minimize(risk, regularizer)
        assert solution.solver.startswith("semismooth_newton (kinked, one score, rows, l1")
        assert solution.status is Status.CONVERGED


class Sixth:
    """||w||_6^6 / 6: not made of l1 and l2."""

    smooth, modulus = True, 0.0

    def value(self, w):
        return np.sum(w**6) / 6.0

    def subgradient(self, w):
        return w**5


def several(rows=400, features=6, classes=4, weights=False, seed=2, **options):
    """A risk of noisy classes."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, features)) * (random.random((rows, features)) < 0.7)
    y = np.argmax(X @ random.normal(size=(features, classes)) + random.normal(size=(rows, classes)), axis=1)
    counts = random.integers(0, 4, rows).astype(float) if weights else None
    return LinearRisk(Dataset.from_arrays(csr_array(X), y, counts), LOSSES.make("multiclass_hinge", options), bias=True)


@pytest.mark.parametrize("cost", [None, ((0, 2, 1), (1, 0, 1), (3, 1, 0))])
@pytest.mark.parametrize("lam", [1.0, 1e-3, 1e-6])
def test_several_scores_against_dual_ascent_and_planes(cost, lam):
    """At the smallest lambda dual ascent comes near only, the planes all the way."""
    risk = several(classes=3 if cost else 4, weights=True, cost=cost)
    solution = TIGHT.minimize(risk, L2(lam))
    assert solution.status is Status.CONVERGED
    dual, planes = (
        SOLVERS.make(name, {"tolerance": 1e-5, "max_iterations": 10_000}).minimize(risk, L2(lam))
        for name in ("dual_coordinate", "bundle")
    )
    assert dual.lower_bound <= solution.objective <= dual.objective
    assert planes.status is Status.CONVERGED
    assert planes.lower_bound <= solution.objective <= planes.objective * (1.0 + 1e-9)
    assert solution.lower_bound <= planes.objective
    assert all(line.lower_bound <= solution.objective for line in solution.history)


def test_several_scores_against_cvxopt():
    risk = several(rows=60, features=3, classes=3)
    X = np.column_stack((risk.data.X.to_dense(), np.ones(60)))
    y, lam, m, d = risk.data.targets.y.astype(int), 0.02, 60, 12
    P = np.zeros((d + m, d + m))
    P[:d, :d] = lam * np.eye(d)
    q = np.concatenate((np.zeros(d), np.full(m, 1.0 / m)))
    lines, limits = [], []
    for i in range(m):
        for k in range(3):  # cost(y_i, k) + <w_k - w_y, x_i> <= t_i
            line = np.zeros((4, 3))
            line[:, k] += X[i]
            line[:, y[i]] -= X[i]
            lines.append(np.concatenate((line.ravel(), -np.eye(m)[i])))
            limits.append(-float(k != y[i]))
    parts = map(cvxopt.matrix, (P, q, np.array(lines), np.array(limits)))
    optimum = cvxopt.solvers.qp(*parts, options=problems.QUIET)["primal objective"]
    assert TIGHT.minimize(risk, L2(lam)).objective == pytest.approx(optimum, rel=1e-8)


def test_a_free_intercept_is_that_of_a_kernel_machine():
    risk = FreeIntercept(made(rows=150))
    lam = 1e-2
    X, y = risk.risk.data.X.to_dense(), risk.risk.data.targets.y
    solution = TIGHT.minimize(risk, L2(lam))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = SVC(C=1.0 / (lam * len(y)), kernel="linear", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(solution.w, machine.coef_[0], atol=1e-6)
    np.testing.assert_allclose(risk.intercept(solution.w), machine.intercept_, atol=1e-5)


def test_weights_are_repetition_and_0_is_absence():
    random = np.random.default_rng(4)
    X, y = problems.data("hinge", rows=120)
    counts = random.integers(0, 3, 120)
    weighted = LinearRisk(Dataset.from_arrays(X, y, counts), LOSSES.make("hinge"))
    repeated = LinearRisk(Dataset.from_arrays(np.repeat(X, counts, 0), np.repeat(y, counts)), LOSSES.make("hinge"))
    one, other = (TIGHT.minimize(risk, L2(1e-3)) for risk in (weighted, repeated))
    assert one.objective == pytest.approx(other.objective, rel=1e-9)


def test_unscaled_features_reach_a_tight_gap():
    X, y = problems.data("hinge", rows=400)
    scales = 10.0 ** np.arange(-3, 4)
    risk = LinearRisk(Dataset.from_arrays(X * scales, y), LOSSES.make("hinge"))
    solution = SemismoothNewton(tolerance=1e-6).minimize(risk, L2(1e-6))
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize(("make", "features", "lam"), [(made, 20, 1e-4), (several, 10, 1e-5)])
def test_starts_from_a_sample_and_follows_rows_near_kinks(make, features, lam):
    """The same optimum from a sample or not, and mostly steps on few rows, so that passes are fewer than steps."""
    risk = make(rows=6000, features=features)
    found = [SemismoothNewton(tolerance=1e-9, sample=share).minimize(risk, L2(lam)) for share in (0.0, 0.05)]
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-8)
    assert all(each.status is Status.CONVERGED for each in found)
    assert found[1].details["steps"] > found[1].iterations


@pytest.mark.parametrize("make", [made, several])
def test_slopes_of_a_solution_are_a_start(make):
    risk = make(rows=2000)
    first = TIGHT.minimize(risk, L2(1e-4))
    sharp = SemismoothNewton(tolerance=1e-8, sigma=1e3)
    again = sharp.minimize(risk, L2(1e-4), start=first.w, slope=first.details["slope"])
    assert again.iterations <= 3
    assert again.history[0].relative_gap < 1e-8


def test_what_is_missing_is_told():
    risk = made()
    with pytest.raises(IncompatibleError, match="l2, l1 or elastic_net, not Sixth"):
        TIGHT.minimize(risk, Sixth())
    three = Dataset.from_arrays(np.eye(6), np.arange(6) % 3)
    with pytest.raises(IncompatibleError, match="line_search_bundle"):
        TIGHT.minimize(LinearRisk(three, LOSSES.make("weston_watkins")), L2(0.1))
    with pytest.raises(IncompatibleError, match="one score per row"):
        TIGHT.minimize(FreeIntercept(LinearRisk(three, LOSSES.make("multiclass_hinge"))), L2(0.1))
    for regularizer in (L1(0.1), ElasticNet(0.1, 0.5)):
        with pytest.raises(IncompatibleError, match=r"l1 with one score per row only; .* line_search_bundle"):
            TIGHT.minimize(LinearRisk(three, LOSSES.make("multiclass_hinge")), regularizer)


@pytest.mark.parametrize("lam", [1e-1, 1e-3])
@pytest.mark.parametrize("make", [made, several], ids=["one score", "several"])
def test_conjugate_gradients_find_what_the_matrix_finds(make, lam, monkeypatch):
    risk = make(rows=400)
    expected = TIGHT.minimize(risk, L2(lam))
    monkeypatch.setattr("bmrm.solvers.semismooth_newton.Run._inexact", lambda *_: True)
    monkeypatch.setattr("bmrm.solvers.semismooth_newton.Run._few_rows", lambda *_: False)
    found = TIGHT.minimize(risk, L2(lam), callback=lambda line: False)
    assert found.status is expected.status is Status.CONVERGED
    assert found.objective == pytest.approx(expected.objective, rel=1e-10)
    assert all(line.lower_bound <= expected.objective * (1.0 + 1e-10) for line in found.history)


@pytest.mark.parametrize(("loss", "options"), [("hinge", {}), *LOSS_CASES])
@pytest.mark.parametrize("weights", [None, True])
def test_conjugate_gradients_with_a_free_intercept(loss, options, weights, monkeypatch):
    risk = FreeIntercept(made(loss, weights=weights, **options))
    expected = TIGHT.minimize(risk, L2(1e-2))
    monkeypatch.setattr("bmrm.solvers.semismooth_newton.Run._inexact", lambda *_: True)
    found = TIGHT.minimize(risk, L2(1e-2), callback=lambda line: False)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
    assert all(line.lower_bound <= expected.objective * (1.0 + 1e-9) for line in found.history)


@pytest.mark.parametrize("free", [False, True])
def test_more_features_than_a_matrix_can_hold(free):
    random = np.random.default_rng(6)
    X = random_array((12_000, 9_000), density=1e-3, rng=random, format="csr")
    y = np.where(X @ random.normal(size=9_000) + 0.3 * random.normal(size=12_000) > 0.0, 1, -1)
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("hinge"))
    risk = FreeIntercept(risk) if free else risk
    found = SemismoothNewton(tolerance=1e-8).minimize(risk, L2(1e-4))
    expected = SOLVERS.make("dual_coordinate", {"tolerance": 1e-8}).minimize(risk, L2(1e-4))
    assert found.status is expected.status is Status.CONVERGED
    assert found.objective == pytest.approx(expected.objective, rel=2e-8)
    assert found.lower_bound <= expected.objective
    assert expected.lower_bound <= found.objective


@pytest.mark.parametrize("free", [False, True])
def test_the_step_is_newtons(free):
    """Near a minimum of the augmented Lagrangian a full step finds it: its gradient vanishes."""
    risk = FreeIntercept(made("least_absolute_deviation")) if free else made("least_absolute_deviation")
    scored = ability(risk, Scored)
    state = AugmentedLagrangian.at(Subproblem(scored.map, scored.of_rows, 0.0, 0.1, free), np.zeros(8), 0.5)
    for _ in range(15):
        state.step()
    assert np.abs(state.gradient).max() < 1e-14
    assert abs(state.rest) < 1e-14
    assert state.objective() - state.bound >= -1e-15


@pytest.mark.parametrize("loss", ["hinge", "multiclass_hinge"])
def test_the_step_by_rows_is_that_of_the_dense_matrix(loss):
    risk = several(rows=40) if loss == "multiclass_hinge" else made(rows=40)
    scored, parts = ability(risk, Scored), ability(risk, RowParts)
    random = np.random.default_rng(3)
    f = scored.map.matvec(random.normal(size=risk.dim))
    # with several scores as a smooth loss would have them: unequal, and not all classes
    curvature = random.random(f.shape) * (random.random(f.shape) < 0.6)
    rows, vectors = vectors_of(curvature)
    assert len(rows) == rank_of(curvature)
    if curvature.ndim == 2:
        for i, c in enumerate(curvature):
            whole = np.diag(c) - np.outer(c, c) / max(c.sum(), 1e-300)
            np.testing.assert_allclose(vectors[rows == i].T @ vectors[rows == i], whole, atol=1e-15)
    w, slope, linear = random.normal(size=risk.dim), random.normal(size=f.shape), random.normal(size=risk.dim)
    gradient = 0.01 * w + linear + scored.map.rmatvec(slope)
    hessian = scored.map.gram(curvature) + 0.01 * np.eye(risk.dim)
    expected = -np.linalg.solve(hessian, gradient)
    quadratic = RowQuadratic(
        scored.map, parts.products(), vectors_of(curvature), scored.map.matvec(w), slope, 0.01, linear
    )
    np.testing.assert_allclose(quadratic.minimum()[0] - w, expected, rtol=1e-8)
    np.testing.assert_allclose(quadratic.step(w, gradient, 0.0)[0], expected, rtol=1e-8)
    near = RowQuadratic(quadratic.map, quadratic.products, quadratic.vectors, 0.0 * f, 0.0 * f, 0.01, gradient)
    np.testing.assert_allclose(near.minimum()[0], expected, rtol=1e-8)


def test_the_step_by_rows_of_a_free_intercept_is_that_of_the_bordered_matrix():
    risk = made(rows=40)
    scored, parts = ability(risk, Scored), ability(risk, RowParts)
    random = np.random.default_rng(3)
    w, slope, linear, b = random.normal(size=risk.dim), random.normal(size=40), random.normal(size=risk.dim), 0.3
    curvature = random.random(40) * (random.random(40) < 0.6)
    gradient, rest = 0.01 * w + linear + scored.map.rmatvec(slope), slope.sum() + b
    border = scored.map.rmatvec(curvature)
    hessian = scored.map.gram(curvature) + 0.01 * np.eye(risk.dim)
    both = np.block([[hessian, border[:, None]], [border[None, :], np.array([[curvature.sum()]])]])
    expected = -np.linalg.solve(both, np.append(gradient, rest))
    Z, f = vectors_of(curvature), scored.map.matvec(w)
    point, shift = RowQuadratic(scored.map, parts.products(), Z, f, slope, 0.01, linear, b).minimum()
    np.testing.assert_allclose(np.append(point - w, shift), expected, rtol=1e-8)
    step = RowQuadratic(scored.map, parts.products(), Z, 0.0 * f, 0.0 * f, 0.01, gradient, rest).minimum()
    np.testing.assert_allclose(np.append(*step), expected, rtol=1e-8)


@pytest.mark.parametrize(("loss", "features"), [("hinge", 700), ("hinge", 130), ("multiclass_hinge", 700)])
@pytest.mark.parametrize("free", [False, True])
def test_few_rows_in_many_dimensions(loss, features, free):
    """Where steps go by rows, all of them or some."""
    if free and loss == "multiclass_hinge":
        return
    random = np.random.default_rng(5)
    X, y = random.normal(size=(120, features)), np.arange(120) % (2 if loss == "hinge" else 3)
    risk = LinearRisk(Dataset.from_arrays(X, y, random.integers(0, 3, 120).astype(float)), LOSSES.make(loss))
    risk = FreeIntercept(risk) if free else risk
    solution = SemismoothNewton(tolerance=1e-9).minimize(risk, L2(1e-3))
    assert solution.status is Status.CONVERGED
    other = SOLVERS.make("dual_coordinate", {"tolerance": 1e-8}).minimize(risk, L2(1e-3))
    assert solution.objective == pytest.approx(other.objective, rel=1e-7)


def test_newton_systems():
    random = np.random.default_rng(0)
    A = random.normal(size=(9, 6))
    H, g = A.T @ A, random.normal(size=6)
    np.testing.assert_allclose(solve_positive(H.copy(), g), np.linalg.solve(H, g), rtol=1e-9)
    singular = np.outer(A[0], A[0])
    x = solve_positive(singular.copy(), singular @ g)
    np.testing.assert_allclose(singular @ x, singular @ g, rtol=1e-5)
    border, corner, rest = A.sum(axis=0), 9.0, 0.7
    both = np.block([[H, border[:, None]], [border[None, :], np.array([[corner]])]])
    expected = -np.linalg.solve(both, np.append(g, rest))
    np.testing.assert_allclose(newton_step(H.copy(), g, border, corner, rest), expected, rtol=1e-8)


def test_cvxopt_agrees_on_quantiles():
    """As the linear-quadratic program that quantile regression is."""
    risk = made("quantile", rows=80, features=4, tau=0.3)
    X, y = risk.data.X.to_dense(), risk.data.targets.y
    m, d, lam, tau = 80, 4, 0.01, 0.3
    P = np.zeros((d + 2 * m, d + 2 * m))
    P[:d, :d] = lam * np.eye(d)
    q = np.concatenate((np.zeros(d), np.full(m, tau / m), np.full(m, (1.0 - tau) / m)))
    A = np.hstack((X, np.eye(m), -np.eye(m)))
    G = np.hstack((np.zeros((2 * m, d)), -np.eye(2 * m)))
    parts = map(cvxopt.matrix, (P, q, G, np.zeros(2 * m), A, y))
    optimum = cvxopt.solvers.qp(*parts, options=problems.QUIET)["primal objective"]
    assert TIGHT.minimize(risk, L2(lam)).objective == pytest.approx(optimum, rel=1e-9)


@pytest.mark.parametrize("free", [False, True])
def test_few_rows_in_more_dimensions_than_a_dense_matrix_can_have(free):
    random = np.random.default_rng(1)
    X, y = random.normal(size=(30, 9000)), np.arange(30) % 2
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("squared_hinge"))
    risk = FreeIntercept(risk) if free else risk
    solution = SemismoothNewton(tolerance=1e-8).minimize(risk, L2(1e-2))
    other = SOLVERS.make("dual_coordinate", {"tolerance": 1e-8}).minimize(risk, L2(1e-2))
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(other.objective, rel=1e-7)
    assert solution.passes < 30.0


def test_a_step_at_which_no_row_is_at_a_kink_is_one_without_second_derivative():
    data = read("synthetic:multiclass?rows=600&features=60&classes=8&seed=1")
    risk = LinearRisk(data, LOSSES.make("multiclass_hinge"))
    solution = SemismoothNewton(tolerance=1e-6).minimize(risk, L2(1e-2))
    assert solution.status is Status.CONVERGED
    other = SOLVERS.make("dual_coordinate", {"tolerance": 1e-6}).minimize(risk, L2(1e-2))
    assert solution.lower_bound <= other.objective
    assert other.lower_bound <= solution.objective


def test_a_matrix_is_corrected_by_the_rows_that_have_changed():
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(300, WIDE)), np.sign(rng.normal(size=300))
    scored = ability(LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("hinge")), Scored)
    model, kept = Subproblem(scored.map, scored.phi, 0.0, 1e-3, False), KeptGram()
    curvature = np.where(rng.random(300) < 0.6, 1.0, 0.0)
    for sigma, moved in ((1.0, 5), (1.0, 0), (4.0, 7), (4.0, 200)):
        rows = rng.choice(300, moved, replace=False)
        curvature[rows] = 1.0 - curvature[rows]
        found = kept.of(model, sigma * curvature, sigma, WIDE)
        np.testing.assert_allclose(found, scored.map.gram(sigma * curvature), atol=1e-11)
    assert kept.corrections == 0
