"""dual_coordinate for losses of several scores: the optimum of others, true bounds, and refusals."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import Scored, Status, ability
from bmrm.problem.abilities import DualBlocks
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns
from bmrm.solvers._core.certificate import plane_bound
from bmrm.solvers.dual_coordinate import DualCoordinate
from bmrm.solvers.line_search_bundle import LineSearchBundle

LOSSES_OF_MANY = ["multiclass_hinge", "softmax"]
ROWS, FEATURES = 120, 5
SCALED = Columns(np.linspace(0.5, 2.0, FEATURES), np.linspace(-0.4, 0.6, FEATURES))


def data(classes=4, seed=0, ones=False):
    random = np.random.default_rng(seed)
    X = np.where(random.random((ROWS, FEATURES)) < 0.6, random.normal(size=(ROWS, FEATURES)), 0.0)
    X[3] = 0.0
    y = (X @ random.normal(size=(FEATURES, classes)) + random.gumbel(size=(ROWS, classes))).argmax(axis=1)
    y[:classes] = np.arange(classes)
    return (X != 0.0).astype(float) if ones else X, y.astype(float), random.integers(0, 3, ROWS).astype(float)


def risk_of(loss, X, y, weights=None, **options):
    return LinearRisk(Dataset.from_arrays(X, y, weights), LOSSES.make(loss, options.pop("parameters", {})), **options)


@pytest.mark.parametrize("regularizer", [L2(0.01), ElasticNet(0.02, 0.3)], ids=["l2", "elastic_net"])
@pytest.mark.parametrize("loss", LOSSES_OF_MANY)
def test_the_optimum_of_the_bundle(loss, regularizer):
    X, y, weights = data()
    risk = risk_of(loss, X, y, weights, bias=True)
    ours = DualCoordinate(tolerance=1e-7).minimize(risk, regularizer)
    theirs = LineSearchBundle(tolerance=1e-7, max_iterations=3000).minimize(risk, regularizer)
    assert ours.status is Status.CONVERGED
    assert ours.lower_bound <= theirs.objective * (1.0 + 1e-12)
    assert theirs.lower_bound * (1.0 - 1e-12) <= ours.objective <= theirs.objective * (1.0 + 3e-7)
    for line in ours.history:
        assert line.lower_bound <= theirs.objective * (1.0 + 1e-12)


def test_softmax_as_by_scikit_learn():
    X, y, _ = data(3)
    lam = 0.02
    theirs = LogisticRegression(C=1.0 / (lam * ROWS), fit_intercept=False, tol=1e-10, max_iter=10000).fit(X, y)
    ours = DualCoordinate(tolerance=1e-10).minimize(risk_of("softmax", X, y), L2(lam))
    np.testing.assert_allclose(ours.w.reshape(FEATURES, 3).T, theirs.coef_, atol=2e-4)


STORES = {
    "dense": lambda X: X,
    "dense float32": lambda X: X.astype(np.float32),
    "csr": csr_array,
    "csr float32": lambda X: csr_array(X.astype(np.float32)),
}
SCALINGS = {"raw": Columns(), "scale": Columns(SCALED.scale), "shift": Columns(None, SCALED.shift), "both": SCALED}


@pytest.mark.parametrize("regularizer", [L2(0.02), ElasticNet(0.02, 0.3)], ids=["l2", "elastic_net"])
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("store", STORES)
def test_every_way_to_store_and_scale_features_has_the_same_optimum(store, scaling, regularizer):
    X, y, weights = data()
    X = X.astype(np.float32).astype(np.float64)
    columns = SCALINGS[scaling]
    scaled = (X - (0.0 if columns.shift is None else columns.shift)) * (1.0 if columns.scale is None else columns.scale)
    plain = risk_of("multiclass_hinge", scaled, y, weights, bias=True)
    risk = risk_of("multiclass_hinge", STORES[store](X), y, weights, bias=True, columns=columns)
    ours = DualCoordinate(tolerance=1e-5).minimize(risk, regularizer)
    assert ours.status is Status.CONVERGED
    same = plain.value_and_subgradient(ours.w)[0] + regularizer.value(ours.w)
    assert ours.objective == pytest.approx(same, rel=1e-9)
    other = DualCoordinate(tolerance=1e-5).minimize(plain, regularizer)
    assert ours.objective == pytest.approx(other.objective, rel=2e-5)


def test_rows_of_ones_need_no_values():
    X, y, weights = data(ones=True)
    for loss in LOSSES_OF_MANY:
        first, second = (
            DualCoordinate(tolerance=1e-6).minimize(risk_of(loss, Z, y, weights), L2(0.02)) for Z in (X, csr_array(X))
        )
        np.testing.assert_allclose(first.w, second.w, rtol=1e-8, atol=1e-10)


def test_a_matrix_of_costs():
    cost = ((0.0, 2.0, 1.0), (1.0, 0.0, 1.0), (3.0, 1.0, 0.0))
    X, y, _ = data(3)
    risk = risk_of("multiclass_hinge", X, y, parameters={"cost": cost})
    ours = DualCoordinate(tolerance=1e-6).minimize(risk, L2(0.01))
    theirs = LineSearchBundle(tolerance=1e-7, max_iterations=3000).minimize(risk, L2(0.01))
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES_OF_MANY)
def test_every_state_is_a_plane_below_the_risk(loss):
    X, y, weights = data()
    risk = risk_of(loss, csr_array(X), y, weights, columns=SCALED)
    random, scored = np.random.default_rng(2), ability(risk, Scored)
    good = DualCoordinate(tolerance=1e-6).minimize(risk, L2(0.02))
    scores = scored.map.matvec(good.w)
    wild = random.normal(size=scores.shape)
    starts = [{}, {"near": scores}, {"start": good.details["slope"]}, {"start": wild}, {"start": wild, "near": scores}]
    for options in starts:
        ascent = ability(risk, DualBlocks).ascent(0.0, 0.02, seed=1, **options)
        for sweeps in range(4):
            a, b = ascent.plane()
            for scale in (0.1, 1.0, 10.0):
                w = scale * random.normal(size=risk.dim)
                assert a @ w + b <= risk.value_and_subgradient(w)[0] + 1e-11
            if sweeps or options:
                np.testing.assert_allclose(scored.map.rmatvec(ascent.slope()), a, atol=1e-12)
                np.testing.assert_allclose(ascent.weights, -a / 0.02, atol=1e-10)
            ascent.sweep()


@pytest.mark.parametrize("loss", LOSSES_OF_MANY)
def test_good_slopes_are_kept(loss):
    X, y, _ = data()
    risk = risk_of(loss, X, y)
    good = DualCoordinate(tolerance=1e-9).minimize(risk, L2(0.02))
    scores = ability(risk, Scored).map.matvec(good.w)
    for options, loss_of_bound in (({"near": scores}, 1e-6), ({}, 1e-3)):
        ascent = ability(risk, DualBlocks).ascent(0.0, 0.02, seed=1, start=good.details["slope"], **options)
        bound = plane_bound(L2(0.02), *ascent.plane(), 0.0)
        assert good.objective * (1.0 - loss_of_bound) <= bound <= good.objective * (1.0 + 1e-12)


def test_rows_are_set_aside_and_come_back():
    X, y, _ = data()
    risk = risk_of("multiclass_hinge", 3.0 * X, y)
    ascent = ability(risk, DualBlocks).ascent(0.0, 0.05, seed=1)
    shares = [ascent.sweep().visits for _ in range(60)]
    assert shares[0] == 1.0
    assert min(shares) < 0.9
    ascent.unshrink()
    assert ascent.sweep().visits >= 1.0


@pytest.mark.parametrize("regularizer", [L2(0.02), ElasticNet(0.02, 0.3)], ids=["l2", "elastic_net"])
@pytest.mark.parametrize("loss", LOSSES_OF_MANY)
def test_a_free_intercept(loss, regularizer):
    X, y, weights = data()
    risk = FreeIntercept(risk_of(loss, X, y, weights, columns=SCALED))
    ours = DualCoordinate(tolerance=1e-6).minimize(risk, regularizer)
    theirs = LineSearchBundle(tolerance=1e-7, max_iterations=3000).minimize(risk, regularizer)
    assert ours.status is Status.CONVERGED
    assert theirs.lower_bound * (1.0 - 1e-12) <= ours.objective <= theirs.objective * (1.0 + 2e-6)
    for line in ours.history:
        assert line.lower_bound <= theirs.objective * (1.0 + 1e-12)
    np.testing.assert_allclose(ours.details["slope"].sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES_OF_MANY)
def test_every_state_with_a_free_intercept_is_a_plane_below_the_risk(loss):
    X, y, weights = data()
    risk = FreeIntercept(risk_of(loss, csr_array(X), y, weights))
    random, scored = np.random.default_rng(2), ability(risk, Scored)
    good = DualCoordinate(tolerance=1e-6).minimize(risk, L2(0.02))
    scores = scored.map.matvec(good.w)
    for options in ({}, {"near": scores}, {"start": good.details["slope"]}, {"near": random.normal(size=scores.shape)}):
        ascent = ability(risk, DualBlocks).ascent(0.0, 0.02, seed=1, **options)
        for _ in range(4):
            a, b = ascent.plane()
            for scale in (0.1, 1.0, 10.0):
                w = scale * random.normal(size=risk.dim)
                assert a @ w + b <= risk.value_and_subgradient(w)[0] + 1e-11
            ascent.sweep()
        assert plane_bound(L2(0.02), *ascent.plane(), 0.0) > 0.5 * good.objective


def test_a_free_intercept_takes_slopes_over():
    X, y, weights = data()
    for loss in LOSSES_OF_MANY:
        risk = FreeIntercept(risk_of(loss, X, y, weights))
        first = DualCoordinate(tolerance=1e-5).minimize(risk, L2(1e-2))
        second = DualCoordinate(tolerance=1e-5).minimize(risk, L2(1e-2), start=first.w, slope=first.details["slope"])
        assert second.status is Status.CONVERGED
        assert second.details["sweeps"] <= 0.6 * first.details["sweeps"]


def test_softmax_with_a_free_intercept_as_by_scikit_learn():
    X, y, _ = data(3)
    lam = 0.02
    theirs = LogisticRegression(C=1.0 / (lam * ROWS), tol=1e-10, max_iter=10000).fit(X, y)
    risk = FreeIntercept(risk_of("softmax", X, y))
    ours = DualCoordinate(tolerance=1e-10).minimize(risk, L2(lam))
    np.testing.assert_allclose(ours.w.reshape(FEATURES, 3).T, theirs.coef_, atol=2e-4)
    constants = risk.intercept(ours.w)
    np.testing.assert_allclose(constants - constants.mean(), theirs.intercept_ - theirs.intercept_.mean(), atol=2e-4)


def test_a_class_with_hardly_any_weight_has_a_free_intercept_too():
    X, y, _ = data()
    weights = np.where(y == 3.0, 1e-6, 1.0)
    for loss in LOSSES_OF_MANY:
        risk = FreeIntercept(risk_of(loss, X, y, weights))
        ours = DualCoordinate(tolerance=1e-5).minimize(risk, L2(0.02))
        theirs = LineSearchBundle(tolerance=1e-6, max_iterations=3000).minimize(risk, L2(0.02))
        assert ours.lower_bound <= theirs.objective * (1.0 + 1e-12)
        assert ours.objective == pytest.approx(theirs.objective, rel=2e-5)


def test_losses_without_row_functions_have_no_dual_steps():
    X, y, _ = data()
    assert ability(risk_of("weston_watkins", X, y), DualBlocks) is None
    assert ability(risk_of("scaled_multiclass_hinge", X, y), DualBlocks) is None


@pytest.mark.parametrize("lam", [1e-8, 1e-5])
@pytest.mark.parametrize("loss", LOSSES_OF_MANY)
def test_bounds_hold_from_near_and_far_starts(loss, lam):
    """Steps of 1e7, beside which scores of 1 have few digits: the heights of planes cannot come from them."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        X = random.normal(size=(9, 1))
        risk = risk_of(loss, X, np.arange(9.0) % 3)
        best = LineSearchBundle(tolerance=1e-9, max_iterations=3000).minimize(risk, L2(lam))
        for start in (best.w, 1e3 * random.normal(size=3), 1e6 * random.normal(size=3)):
            found = DualCoordinate(tolerance=1e-9, max_iterations=50).minimize(risk, L2(lam), start=start)
            assert found.status in (Status.CONVERGED, Status.ITERATION_LIMIT, Status.STALLED)
            assert found.lower_bound <= best.objective * (1.0 + 1e-14)
