"""Proximal Newton and coordinate descent: l1 and elastic net with every smooth loss by rows."""

import cvxopt
import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.linear_model import ElasticNet as PeerElasticNet
from sklearn.linear_model import Lasso, LogisticRegression

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, Status
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns
from bmrm.solvers import SOLVERS
from bmrm.solvers._core import working_set_newton
from bmrm.solvers._core.gram_model import minimum
from tests import problems
from tests.targets import default_instance, targets_for

NAMES = ["proximal_newton", "coordinate_descent"]
SMOOTH = [
    entry.name
    for entry in LOSSES.all()
    if entry.cls.smooth and hasattr(entry.cls, "curvature") and entry.cls.task in ("binary", "regression")
]
ROWS = 90


def solve(name, risk, regularizer, **options):
    return SOLVERS.make(name, {"tolerance": 1e-10, **options}).minimize(risk, regularizer)


def targets(loss, X, seed=1):
    """Targets inside the loss's domain that depend on the features."""
    random = np.random.default_rng(seed)
    f = X @ random.normal(size=X.shape[1]) * 0.3 + 0.3 * random.normal(size=len(X))
    if loss.task == "binary":
        return np.where(f > 0.2, 1.0, -1.0)
    drawn = np.sort(np.asarray(targets_for(loss, rows=len(X)), float))
    return drawn[np.argsort(np.argsort(f))] if np.all(drawn >= 0.0) else f


def case(loss_name, weights=False, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(ROWS, 12)) * (random.random((ROWS, 12)) < 0.6)
    loss = default_instance(LOSSES.get(loss_name))
    counts = random.integers(0, 3, ROWS).astype(float) if weights else None
    return Dataset.from_arrays(X, targets(loss, X), counts), loss


def optimum(risk, l1, l2, free=False):
    """By cvxopt's interior point method in (u, v) >= 0 with w = u - v, and the intercept."""
    A = np.array([risk.map.matvec(unit) for unit in np.eye(risk.dim)]).T
    Z = np.hstack((A, -A, np.ones((len(A), 1)))) if free else np.hstack((A, -A))
    n = 2 * risk.dim
    c = np.concatenate((np.full(n, l1), np.zeros(int(free))))
    S = np.block([[np.eye(risk.dim), -np.eye(risk.dim)], [-np.eye(risk.dim), np.eye(risk.dim)]])
    Q = np.zeros((c.size, c.size))
    Q[:n, :n] = l2 * S

    def objective(x=None, z=None):
        if x is None:
            return 0, cvxopt.matrix(np.concatenate((np.full(n, 0.1), np.zeros(int(free)))))
        at = np.array(x).ravel()
        value, slope = risk.phi.value_and_slope(Z @ at)
        if not np.isfinite(value):
            return None, None
        gradient = cvxopt.matrix((Z.T @ slope + c + Q @ at)[None, :])
        total = value + c @ at + 0.5 * at @ Q @ at
        if z is None:
            return total, gradient
        second = risk.phi.hessian_diagonal(Z @ at)
        return total, gradient, cvxopt.matrix(z[0] * ((Z.T * second) @ Z + Q + 1e-13 * np.eye(c.size)))

    G = np.zeros((n, c.size))
    G[:, :n] = -np.eye(n)
    solution = cvxopt.solvers.cp(objective, cvxopt.matrix(G), cvxopt.matrix(0.0, (n, 1)), options=problems.QUIET)
    return objective(solution["x"])[0]


def check(solution, reference, tolerance=1e-9):
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(reference, rel=tolerance)
    for line in solution.history:
        assert line.lower_bound <= reference * (1.0 + tolerance)
        assert line.objective >= reference * (1.0 - tolerance)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("loss_name", SMOOTH)
@pytest.mark.parametrize("name", NAMES)
def test_every_smooth_loss_by_rows(name, loss_name, free):
    data, loss = case(loss_name, weights=True)
    risk = LinearRisk(data, loss)
    wrapped = FreeIntercept(risk) if free and not loss.no_free_intercept else risk
    for regularizer in (L1(0.01), ElasticNet(0.05, 0.4)):
        solution = solve(name, wrapped, regularizer)
        assert solution.status in (Status.CONVERGED, Status.STALLED)
        assert solution.relative_gap <= 1e-8
        reference = optimum(risk, regularizer.l1, regularizer.l2, free=wrapped is not risk)
        assert solution.objective == pytest.approx(reference, rel=2e-9, abs=1e-12)
        assert solution.lower_bound <= reference * (1.0 + 1e-9) + 1e-13
        assert solution.objective == pytest.approx(
            wrapped.value_and_subgradient(solution.w)[0] + regularizer.value(solution.w), rel=1e-12
        )


@pytest.mark.parametrize("name", NAMES)
def test_lasso_and_elastic_net_of_scikit_learn(name):
    random = np.random.default_rng(3)
    X = random.normal(size=(80, 30)) * np.logspace(0.0, -1.5, 30)
    y = X @ random.normal(size=30) + 0.1 * random.normal(size=80)
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("least_squares"))
    exact = {"fit_intercept": False, "tol": 1e-13, "max_iter": 100000}
    for regularizer, peer in (
        (L1(0.05), Lasso(alpha=0.05, **exact)),
        (ElasticNet(0.05, 0.7), PeerElasticNet(alpha=0.05, l1_ratio=0.7, **exact)),
    ):
        w = peer.fit(X, y).coef_
        solution = solve(name, risk, regularizer, tolerance=1e-12)
        check(solution, risk.value_and_subgradient(w)[0] + regularizer.value(w))
        np.testing.assert_allclose(solution.w, w, atol=1e-5)
        np.testing.assert_array_equal(solution.w == 0.0, w == 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_logistic_regression_of_scikit_learn(name):
    data, loss = case("logistic")
    risk = LinearRisk(data, loss)
    old = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8)  # which had another option for it
    kind = {"penalty": "l1"} if old else {"l1_ratio": 1.0}
    peer = LogisticRegression(**kind, solver="saga", C=1.0 / (0.01 * ROWS), fit_intercept=False)
    w = peer.set_params(tol=1e-12, max_iter=100000).fit(data.X, data.targets.y).coef_.ravel()
    check(solve(name, risk, L1(0.01)), risk.value_and_subgradient(w)[0] + 0.01 * np.abs(w).sum())


@pytest.mark.parametrize("name", NAMES)
def test_dense_sparse_valueless_and_scaled_features_alike(name):
    random = np.random.default_rng(5)
    X = (random.random((70, 40)) < 0.3).astype(float)
    y = np.where(X @ random.normal(size=40) + 0.3 * random.normal(size=70) > 0.0, 1.0, -1.0)
    sparse = Dataset.from_arrays(csr_array(X), y)
    forms = [
        Dataset.from_arrays(X, y),
        sparse,
        Dataset(sparse.X.without_unit_values(), sparse.targets),
        Dataset.from_arrays(X.astype(np.float32), y),
    ]
    scale, shift = random.uniform(0.5, 2.0, 40), random.normal(size=40)
    loss = LOSSES.make("logistic")
    for columns in (None, Columns(scale, None), Columns(scale, shift)):
        for bias in (False, True):
            raw = X if columns is None else (X - (0.0 if columns.shift is None else shift)) * scale
            plain = np.hstack((raw, np.ones((70, 1)))) if bias else raw
            reference = solve(name, LinearRisk(Dataset.from_arrays(plain, y), loss), L1(0.003), tolerance=1e-11)
            for data in forms:
                solution = solve(name, LinearRisk(data, loss, bias=bias, columns=columns), L1(0.003), tolerance=1e-11)
                assert solution.objective == pytest.approx(reference.objective, rel=1e-10)
                np.testing.assert_allclose(solution.w, reference.w, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_working_sets_that_are_too_small_at_first_grow(name):
    random = np.random.default_rng(7)
    X = random.normal(size=(60, 500))
    y = X[:, :50] @ random.normal(size=50)
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("least_squares"))
    w = Lasso(alpha=0.02, fit_intercept=False, tol=1e-12, max_iter=100000).fit(X, y).coef_
    reference = risk.value_and_subgradient(w)[0] + 0.02 * np.abs(w).sum()
    for first in (1, 10, 1000):
        check(solve(name, risk, L1(0.02), first_columns=first), reference)


def test_a_model_with_more_weights_in_use_than_rows():
    random = np.random.default_rng(3)
    Z = random.normal(size=(30, 200)) + 2.0 * random.normal(size=(30, 1))
    H, c, start = Z.T @ Z / 30, Z.T @ random.normal(size=30) / 30, random.normal(size=200)
    x, left = minimum(H + 1e-12 * np.eye(200), H @ start + c, start, 0.01, 0.0, 1e-8)
    assert left <= 1e-8
    slope = H @ x + c
    assert np.abs(slope).max() <= 0.01 + 1e-7
    assert np.abs(slope[x != 0.0] + 0.01 * np.sign(x[x != 0.0])).max() <= 1e-7
    assert np.count_nonzero(x) <= 30


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_so_large_that_nothing_is_used(name):
    data, loss = case("logistic")
    solution = solve(name, LinearRisk(data, loss), L1(10.0))
    assert solution.status is Status.CONVERGED
    assert not solution.w.any()
    assert solution.iterations == 0


@pytest.mark.parametrize("name", NAMES)
def test_empty_and_equal_columns(name):
    random = np.random.default_rng(9)
    x = random.normal(size=(50, 3))
    X = np.hstack((x, x, np.zeros((50, 2))))
    y = np.where(x[:, 0] > 0.3, 1.0, -1.0)
    for loss in ("logistic", "squared_hinge"):
        risk, few = (LinearRisk(Dataset.from_arrays(Z, y), LOSSES.make(loss)) for Z in (X, x))
        check(solve(name, risk, L1(1e-3)), optimum(few, 1e-3, 0.0))


@pytest.mark.parametrize("name", NAMES)
def test_a_loss_that_is_flat_in_most_rows_at_the_start(name):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 40)) * (random.random((60, 40)) < 0.5)
    y = X[:, :6] @ random.normal(size=6) + 0.3 * random.normal(size=60) + 0.5
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("huber"))
    check(solve(name, risk, L1(0.005)), optimum(risk, 0.005, 0.0))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_refused_says_what_would_do(name):
    data, logistic = case("logistic")
    with pytest.raises(IncompatibleError, match=f"{name}.* newton"):
        solve(name, LinearRisk(data, logistic), L2(0.1))
    with pytest.raises(IncompatibleError, match=f"{name}.* line_search_bundle"):
        solve(name, LinearRisk(data, LOSSES.make("hinge")), L1(0.1))
    rows = Dataset.from_arrays(data.X, np.arange(ROWS) % 3)
    with pytest.raises(IncompatibleError, match=f"{name}.* proximal_gradient"):
        solve(name, LinearRisk(rows, LOSSES.make("softmax")), L1(0.1))
    with pytest.raises(IncompatibleError, match=f"{name}.*bundle"):
        solve(name, problems.PlainRisk(data.X, data.targets.y, "logistic"), L1(0.1))


def test_the_gram_matrix_of_least_squares_is_kept():
    data, loss = case("least_squares")
    solution = solve("proximal_newton", LinearRisk(data, loss), L1(0.01))
    assert solution.details["grams"] == 1
    always = solve("proximal_newton", LinearRisk(data, loss), L1(0.01), reuse=0.0)
    assert always.details["grams"] == always.iterations


def test_feasible_slopes_prove_sooner(monkeypatch):
    """Of texts at small lambda: the bound comes with fewer passes, and stays below the minimum."""
    rng = np.random.default_rng(4)
    X = csr_array((rng.random(6000) + 0.2, (np.repeat(np.arange(1000), 6), rng.integers(0, 800, 6000))), (1000, 800))
    y = np.where(X @ rng.normal(size=800) + 0.3 * rng.normal(size=1000) > 0.0, 1.0, -1.0)
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("squared_hinge"))
    solver, lam = SOLVERS.make("coordinate_descent", {"tolerance": 1e-3}), 1e-4
    best = SOLVERS.make("coordinate_descent", {"tolerance": 1e-9}).minimize(risk, L1(lam))
    made = solver.minimize(risk, L1(lam))
    monkeypatch.setattr(working_set_newton.Run, "_prove", lambda self, at: None)
    without = solver.minimize(risk, L1(lam))
    assert made.converged
    assert made.lower_bound <= best.objective
    assert made.passes < without.passes
