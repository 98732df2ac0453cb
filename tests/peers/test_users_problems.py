"""Problems of other programs' users: group lasso, hinge with l1, counts with exposure; same minimum and support."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import gammaln

import bmrm

TIGHT = {"tolerance": 1e-12}
GROUPS, SIZE, ROWS = 20, 5, 120


@pytest.fixture(scope="module")
def grouped():
    """Rows, targets, lambda and weights of groups; about a third of the groups are in."""
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, GROUPS * SIZE))
    w = np.zeros((GROUPS, SIZE))
    w[:5] = random.normal(size=(5, SIZE))
    y = X @ w.ravel() + random.normal(size=ROWS) + 3.0
    return X, y, 0.15, random.uniform(1.0, 3.0, GROUPS)


def by_celer(X, y, lam, weights):
    celer = pytest.importorskip("celer")
    found = celer.GroupLasso(groups=SIZE, alpha=lam, weights=weights, tol=1e-12, max_iter=500).fit(X, y)
    return found.coef_, found.intercept_


def by_skglm(X, y, lam, weights):
    skglm = pytest.importorskip("skglm")
    found = skglm.GroupLasso(groups=SIZE, alpha=lam, weights=weights, tol=1e-10, max_iter=500).fit(X, y)
    return found.coef_, found.intercept_


def by_adelie(X, y, lam, weights):
    adelie = pytest.importorskip("adelie")
    state = adelie.grpnet(
        X=np.asfortranarray(X),
        glm=adelie.glm.gaussian(y=y),
        groups=np.arange(0, GROUPS * SIZE, SIZE),
        penalty=weights,
        lmda_path=[10.0 * lam, lam],
        tol=1e-14,
        progress_bar=False,
        early_exit=False,
    )
    return state.betas[-1].toarray().ravel(), float(state.intercepts[-1])


@pytest.mark.parametrize("peer", [by_celer, by_skglm, by_adelie], ids=lambda peer: peer.__name__[3:])
def test_group_lasso(grouped, peer):
    X, y, lam, weights = grouped
    coefficients, intercept = peer(X, y, lam, weights)
    groups = tuple(tuple(range(k * SIZE, (k + 1) * SIZE)) for k in range(GROUPS))
    omega = bmrm.GroupL2(lam, groups=groups, weights=tuple(weights))
    model = bmrm.fit(X, y, loss="least_squares", regularizer=omega, **TIGHT)

    def objective(w, b):
        norms = np.linalg.norm(w.reshape(GROUPS, SIZE), axis=1)
        return 0.5 * np.mean((X @ w + b - y) ** 2) + lam * weights @ norms

    theirs = objective(coefficients, intercept)
    assert model.solution.objective == pytest.approx(objective(model.weights, model.intercept[0]), rel=1e-12)
    assert model.solution.objective == pytest.approx(theirs, rel=1e-6)
    assert model.solution.lower_bound <= theirs
    assert np.array_equal(model.weights != 0.0, coefficients != 0.0)
    assert 3 <= np.count_nonzero(model.weights) // SIZE < GROUPS


@pytest.mark.parametrize("lam", [0.02, 0.1])
def test_hinge_with_l1_is_a_linear_program(grouped, lam):
    """HiGHS on the whole program: w = p - n, b, slacks."""
    X, y = grouped[0][:, :30], np.where(grouped[1] > 3.0, 1.0, -1.0)
    m, d = X.shape
    cost = np.concatenate([np.full(2 * d, lam), [0.0], np.full(m, 1.0 / m)])
    rows = np.hstack([-y[:, None] * X, y[:, None] * X, -y[:, None], -np.eye(m)])
    limits = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * m
    truth = linprog(cost, rows, -np.ones(m), bounds=limits, method="highs")
    theirs = truth.x[:d] - truth.x[d : 2 * d]
    model = bmrm.fit(X, y, loss="hinge", regularizer=bmrm.L1(lam), tolerance=1e-9)
    assert model.solution.objective == pytest.approx(truth.fun, rel=1e-6)
    assert model.solution.lower_bound <= truth.fun * (1.0 + 1e-12)
    assert np.array_equal(model.weights != 0.0, theirs != 0.0)
    np.testing.assert_allclose(model.weights, theirs, atol=1e-6)


@pytest.fixture(scope="module")
def policies():
    """Features, claims, years insured."""
    random = np.random.default_rng(1)
    X, years = random.normal(size=(300, 4)), random.uniform(0.1, 3.0, 300)
    return X, random.poisson(years * np.exp(0.3 * X[:, 0] - 0.5 * X[:, 2])).astype(float), years


def test_counts_with_exposure_are_those_of_statsmodels(policies):
    statsmodels = pytest.importorskip("statsmodels.api")
    X, y, years = policies
    peer = statsmodels.GLM(y, statsmodels.add_constant(X), family=statsmodels.families.Poisson(), exposure=years)
    found = peer.fit(tol=1e-14)
    model = bmrm.fit(X, y, loss="poisson", regularizer="none", offset=np.log(years), **TIGHT)
    np.testing.assert_allclose(np.r_[model.intercept, model.weights], found.params, atol=1e-8)
    np.testing.assert_allclose(model.predict(X, offset=np.log(years)), found.fittedvalues, rtol=1e-7)
    likelihood = -model.solution.objective * len(y) - gammaln(y + 1.0).sum()
    assert likelihood == pytest.approx(found.llf, rel=1e-9)


def test_counts_with_exposure_are_those_of_glum(policies):
    glum = pytest.importorskip("glum")
    X, y, years = policies
    peer = glum.GeneralizedLinearRegressor(family="poisson", alpha=0.01, l1_ratio=0, gradient_tol=1e-12)
    found = peer.fit(X, y, offset=np.log(years))
    model = bmrm.fit(X, y, loss="poisson", lam=0.01, offset=np.log(years), **TIGHT)
    np.testing.assert_allclose(np.r_[model.intercept, model.weights], np.r_[found.intercept_, found.coef_], atol=1e-8)
