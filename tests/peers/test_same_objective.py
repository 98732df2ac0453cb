"""The same objective as independent software, on real data."""

import warnings

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.problem import Solution
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS


def minimize(data, loss, regularizer, solver="auto", tolerance=1e-8, **options) -> Solution:
    risk = LinearRisk(data, LOSSES.make(loss, options))
    return SOLVERS.make(solver, {"tolerance": tolerance}).minimize(risk, regularizer)


def liblinear(data, lam):
    """J of LIBLINEAR's dual coordinate descent (-s 3, no bias), judged on the float64 objective, and its w."""
    from liblinear.liblinearutil import train
    from scipy.sparse import csr_matrix

    X = csr_matrix(data.X.to_scipy())
    y = np.where(data.targets.y > 0, 1.0, -1.0)
    model = train(y, X, f"-s 3 -c {1.0 / (lam * len(y))} -e 1e-6 -B -1 -q")
    w = np.array(model.get_decfun()[0])
    w = np.pad(w, (0, X.shape[1] - len(w)))
    return np.maximum(0.0, 1.0 - y * (X @ w)).mean() + 0.5 * lam * w @ w


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("lam", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("name", ["a9a", "w8a"])
def test_hinge_against_liblinear(name, lam, shared_data):
    data = read(shared_data / f"{name}.svm.xz")
    peer = liblinear(data, lam)
    for solver in ("bundle", "line_search_bundle"):
        solution = minimize(data, "hinge", L2(lam), solver, tolerance=1e-6)
        assert solution.converged
        assert solution.relative_gap <= 1e-6
        assert solution.objective <= peer * (1.0 + 1e-6)
        assert solution.lower_bound <= peer
        if lam == 1e-3:
            assert solution.objective == pytest.approx(peer, rel=1e-5)
        print(f"{name} lambda {lam:g} {solver}: ours / LIBLINEAR - 1 = {solution.objective / peer - 1.0:.1e}")


@pytest.mark.shared_data
def test_logistic_against_scikit_learn(shared_data):
    from sklearn.linear_model import LogisticRegression

    data, lam = read(shared_data / "a9a.svm.xz"), 1e-4
    X, y = data.X.to_scipy(), data.targets.y
    peer = LogisticRegression(C=1.0 / (lam * len(y)), fit_intercept=False, tol=1e-10, solver="newton-cholesky")
    w = peer.fit(X, y).coef_[0]
    reference = np.logaddexp(0.0, -y * (X @ w)).mean() + 0.5 * lam * w @ w
    solution = minimize(data, "logistic", L2(lam))
    assert solution.converged
    assert solution.objective == pytest.approx(reference, rel=1e-8)
    assert solution.lower_bound <= reference * (1.0 + 1e-12)


def test_logistic_with_a_free_intercept_against_scikit_learn():
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import scale

    raw = read("sklearn:breast_cancer")
    data, lam = Dataset.from_arrays(scale(raw.X), raw.targets.y), 1e-2
    y = np.where(data.targets.y == data.targets.y.max(), 1.0, -1.0)
    peer = LogisticRegression(C=1.0 / (lam * len(y)), tol=1e-12, max_iter=1000, solver="newton-cholesky").fit(data.X, y)
    w, b = peer.coef_[0], peer.intercept_[0]
    reference = np.logaddexp(0.0, -y * (data.X @ w + b)).mean() + 0.5 * lam * w @ w
    risk = FreeIntercept(LinearRisk(data, LOSSES.make("logistic")))
    solution = SOLVERS.make("auto", {"tolerance": 1e-8}).minimize(risk, L2(lam))
    assert solution.converged
    assert solution.objective == pytest.approx(reference, rel=2e-8)
    assert risk.intercept(solution.w)[0] == pytest.approx(b, rel=1e-2)


def test_l1_least_squares_against_lasso():
    from sklearn.linear_model import Lasso

    raw, lam = read("sklearn:diabetes"), 0.3
    data = Dataset.from_arrays(raw.X * 20.0, (raw.targets.y - raw.targets.y.mean()) / 50.0)
    w = Lasso(alpha=lam, fit_intercept=False, tol=1e-12).fit(data.X, data.targets.y).coef_
    r = data.X @ w - data.targets.y
    reference = 0.5 * (r @ r) / len(r) + lam * np.abs(w).sum()
    solution = minimize(data, "least_squares", L1(lam))
    assert solution.converged
    assert solution.objective == pytest.approx(reference, rel=1e-8)
    assert set(np.flatnonzero(np.abs(solution.w) > 1e-6)) == set(np.flatnonzero(w))


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_quantile_against_quantile_regressor(tau):
    from sklearn.linear_model import QuantileRegressor

    raw, lam = read("sklearn:diabetes"), 0.01
    data = Dataset.from_arrays(raw.X[:200] * 20.0, raw.targets.y[:200] / 100.0)
    y = data.targets.y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = QuantileRegressor(quantile=tau, alpha=lam, solver="highs").fit(data.X, y)
    r = y - data.X @ peer.coef_ - peer.intercept_
    reference = np.maximum(tau * r, (tau - 1.0) * r).mean() + lam * np.abs(peer.coef_).sum()
    risk = FreeIntercept(LinearRisk(data, LOSSES.make("quantile", {"tau": tau})))
    solution = SOLVERS.make("auto", {"tolerance": 1e-8}).minimize(risk, L1(lam))
    assert solution.converged
    assert solution.objective == pytest.approx(reference, rel=1e-7)


def test_roc_area_against_all_pairs():
    raw = read("sklearn:breast_cancer")
    data = Dataset.from_arrays((raw.X - raw.X.mean(0)) / raw.X.std(0), raw.targets.y)
    y, lam = data.targets.y, 1e-2
    solution = minimize(data, "roc_area", L2(lam))
    f = data.X @ solution.w
    pairs = 1.0 - (f[y == y.max()][:, None] - f[y != y.max()][None, :])
    assert solution.converged
    assert solution.objective == pytest.approx(
        np.maximum(0.0, pairs).mean() + 0.5 * lam * solution.w @ solution.w, rel=1e-10
    )
