"""Free intercepts far from the minimum, at scales where losses overflow or are nearly linear: no cut is false."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import Scored, Status, ability
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept, ProfiledPhi
from bmrm.risk.linear import LinearRisk
from bmrm.risk.score_function import LossPhi

IRIS_MINIMUM = 0.22428890  # of softmax with 0.01/2 ||w||^2, by two solvers that know nothing of cuts; so many digits


def softmax_objective(model, X, y, lam):
    """J at the weights and the intercept of a model, by its formula."""
    f = X @ model.weights + model.intercept
    top = f.max(axis=1)
    logs = np.log(np.exp(f - top[:, None]).sum(axis=1)) + top
    return float(np.mean(logs - f[np.arange(len(y)), y.astype(int)]) + 0.5 * lam * np.sum(model.weights**2))


def few_rows(seed, rows=13, features=3, classes=3):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.r_[np.arange(classes), rng.integers(0, classes, rows - classes)]).astype(float)
    return 3.0 * rng.normal(size=(rows, features)), y


@pytest.mark.parametrize("solver", ["bundle", "line_search_bundle", "lbfgs", "newton"])
def test_softmax_on_iris(solver):
    X, y = load_iris(return_X_y=True)
    model = bmrm.fit(X, y, loss="softmax", regularizer=L2(1e-2), solver=solver, bias="free", tolerance=1e-4)
    found = model.solution
    assert found.status is Status.CONVERGED
    assert found.lower_bound - 1e-8 <= IRIS_MINIMUM <= found.objective + 1e-8
    assert found.objective == pytest.approx(IRIS_MINIMUM, rel=2e-4)
    assert softmax_objective(model, X, y, 1e-2) == pytest.approx(found.objective, rel=1e-12)


def test_softmax_on_iris_with_l1_by_auto():
    X, y = load_iris(return_X_y=True)
    found = bmrm.fit(X, y, loss="softmax", regularizer=L1(1e-2), bias="free", tolerance=1e-4).solution
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(0.211893, rel=2e-4)
    assert found.lower_bound <= 0.2118933


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("solver", ["bundle", "line_search_bundle"])
def test_softmax_of_few_rows(seed, solver):
    X, y = few_rows(seed)
    options = {"loss": "softmax", "regularizer": L2(1e-2), "bias": "free"}
    true = bmrm.fit(X, y, solver="lbfgs", tolerance=1e-10, **options).solution
    model = bmrm.fit(X, y, solver=solver, tolerance=1e-5, **options)
    found = model.solution
    assert found.lower_bound <= true.objective * (1.0 + 1e-9)
    assert found.objective >= true.lower_bound * (1.0 - 1e-9)
    assert softmax_objective(model, X, y, 1e-2) == pytest.approx(found.objective, rel=1e-11)


MANY = ["softmax", "multiclass_hinge", "scaled_multiclass_hinge", "weston_watkins"]


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("name", MANY)
def test_cuts_of_several_scores_at_every_scale(name, scale):
    """Slopes sum to 0 within rounding, planes lie below values met elsewhere, values below those at any constant."""
    rng = np.random.default_rng(5)
    for seed in range(6):
        X, y = few_rows(seed, rows=int(rng.integers(6, 30)), classes=int(rng.integers(2, 6)))
        risk = FreeIntercept(LinearRisk(Dataset.from_arrays(scale * X, y), LOSSES.make(name)))
        scored, planes = ability(risk, Scored), []
        for spread in (1e-3, 1.0, 1e3):
            w = spread * rng.normal(size=risk.dim)
            f = scored.map.matvec(w)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                value, slope = scored.phi.value_and_slope(f)
            sizes = np.abs(slope).sum(axis=0)
            assert np.all(np.abs(slope.sum(axis=0)) <= 1e-14 * (1.0 + sizes))
            inner, b = risk.phi.phi, risk.intercept(w)
            reached = inner.value_and_slope(f + inner.constant(b))[0]
            noise = 1e-12 * reached + 1e-14 * float(np.abs(f + b).max())
            assert value - noise <= reached <= value + noise + 1e-12 * abs(value)
            planes.append((w, value, risk.map.rmatvec(slope)))
        for w, value, a in planes:
            for v, other, _ in planes:
                magnitude = abs(value) + np.abs(a) @ (np.abs(v) + np.abs(w)) + abs(other)
                assert other >= value + a @ (v - w) - 1e-13 * magnitude


@pytest.mark.parametrize("seed", [0, 5, 7, 14, 23, 30, 31, 34])
def test_steep_losses_on_separable_rows(seed):
    """Scores so far apart that the exponential overflows at every constant: +inf there, and the run goes on."""
    rng = np.random.default_rng(seed)
    rows, features = int(rng.integers(3, 20)), int(rng.integers(1, 4))
    X = rng.normal(size=(rows, features))
    y = (X @ rng.normal(size=features) > 0.0).astype(float)
    y[:2] = 0.0, 1.0
    X, lam = 10.0 ** rng.uniform(-2, 7) * X, 10.0 ** rng.uniform(-8, 0)
    options = {"loss": "exponential", "solver": "line_search_bundle", "bias": "free", "max_iterations": 60}
    start = 2.0 * np.sqrt(y.mean() * (1.0 - y.mean()))  # J at w = 0 and the best constant
    for regularizer in (L1(lam), L2(lam)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = bmrm.fit(X, y, regularizer=regularizer, **options).solution
        assert found.lower_bound <= found.objective <= start * (1.0 + 1e-12)


def test_a_loss_that_overflows_at_every_constant_is_infinite():
    risk = FreeIntercept(
        LinearRisk(Dataset.from_arrays(np.array([[1.0], [-1.0]]), np.array([0.0, 1.0])), LOSSES.make("exponential"))
    )
    value, subgradient = risk.value_and_subgradient(np.array([1e4]))
    assert value == np.inf
    assert np.all(np.isfinite(subgradient))
    assert risk.value_and_subgradient(np.array([1.0]))[0] == pytest.approx(np.e)


@pytest.mark.parametrize("regularizer", [L2(1e-3), bmrm.ElasticNet(1e-3, l1_ratio=0.5)], ids=["l2", "elastic_net"])
def test_slopes_too_steep_for_their_squares_say_nothing(regularizer):
    """No bound, and no warning either."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert regularizer.conjugate(np.array([1e200, -1e200])) == np.inf
        found = bmrm.fit(
            np.array([[1e153], [-1e153], [2e153]]),
            np.array([0.0, 1.0, 1.0]),
            loss="least_squares",
            regularizer=regularizer,
            solver="probe",
            max_iterations=20,
        ).solution
    assert found.lower_bound <= found.objective <= 1.0 / 3.0 + 1e-12


@pytest.mark.parametrize("name", ["multiclass_hinge", "weston_watkins", "softmax"])
def test_several_constants_cost_the_bundle_little(name, monkeypatch):
    """Evaluations of phi and passes a fit needs, beside those with a regularized intercept; and J of the model."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 8))
    y = np.argmax(X[:, :6] + 0.7 * rng.normal(size=(3000, 6)) + 0.4 * np.arange(6), axis=1).astype(float)
    calls, evaluate = [0], LossPhi.value_and_slope

    def counted(phi, f):
        calls[0] += 1
        return evaluate(phi, f)

    monkeypatch.setattr(LossPhi, "value_and_slope", counted)
    used, lam = {}, 1e-4
    for bias in ("regularized", "free"):
        calls[0] = 0
        model = bmrm.fit(X, y, loss=name, regularizer=L2(lam), solver="line_search_bundle", bias=bias)
        assert model.solution.status is Status.CONVERGED
        used[bias] = calls[0], model.solution.passes
    assert used["free"][0] <= 8 * used["regularized"][0]
    assert used["free"][1] <= 5 * used["regularized"][1]
    phi = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(name)).phi
    reached = evaluate(phi, X @ model.weights + model.intercept)[0] + 0.5 * lam * np.sum(model.weights**2)
    assert model.solution.objective == pytest.approx(reached, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", MANY)
def test_planes_mixed_until_the_constants_cancel(name, seed):
    """The line-search bundle, which never minimises over the constants, against the bundle, which always does."""
    X, y = few_rows(seed, rows=20 + 5 * seed, classes=3 + seed % 3)
    options = {"loss": name, "regularizer": [L2(1e-2), L1(1e-3)][seed % 2], "bias": "free", "tolerance": 1e-5}
    exact = bmrm.fit(X, y, solver="bundle", **options).solution
    found = bmrm.fit(X, y, solver="line_search_bundle", **options).solution
    assert found.status is Status.CONVERGED
    assert found.lower_bound <= exact.objective * (1.0 + 1e-12)
    assert exact.lower_bound <= found.objective * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["least_absolute_deviation", "quantile", "huber", "epsilon_insensitive"])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_minima_that_are_0_are_no_contradiction(loss, rows):
    """Scores of 1e-25 about targets of 0: a bracket of width 1 around them rounds more than all that is left."""
    random = np.random.default_rng(rows)
    parameters = {"tau": 0.94} if loss == "quantile" else {}
    for size in (1e-174, 1e-25, 1e-9, 1.0):
        f = size * random.normal(size=rows)
        risk = LinearRisk(Dataset.from_arrays(np.eye(rows), np.zeros(rows)), LOSSES.make(loss, parameters))
        phi = ProfiledPhi(risk.phi, 0.0)
        value, slope = phi.value_and_slope(f)
        least = min(risk.phi.value_and_slope(f - b)[0] for b in np.append(f, 0.0))
        assert 0.0 <= value <= least * (1.0 + 1e-14)
        if loss in ("least_absolute_deviation", "quantile"):  # the minimum is at one of the scores
            assert value == pytest.approx(least, rel=1e-12, abs=0.0)
        assert abs(slope.sum()) <= 1e-12
    for seed in range(8):
        random = np.random.default_rng([rows, seed])
        X, start = random.normal(size=(rows, 2)), random.normal(size=2)
        for solver in ("auto", "probe", "line_search_bundle", "semismooth_newton"):
            problem = {"loss": {"name": loss, **parameters}, "regularizer": bmrm.L2(1e-2), "bias": "free"}
            try:
                found = bmrm.fit(X, np.zeros(rows), **problem, solver=solver, start=start, tolerance=1e-6).solution
            except bmrm.IncompatibleError:
                continue  # probe and epsilon_insensitive
            assert found.status.name != "NOT_CONVEX"
            assert found.objective >= 0.0
