"""Little data: the whole run at once, with the same optimum and a bound that holds; and where it is not done."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import Status, ability
from bmrm.problem.abilities import AtOnce
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.little.rows import Rows, errors
from bmrm.risk.products import Columns
from bmrm.solvers import SOLVERS
from bmrm.solvers._core import at_once
from bmrm.solvers._core.at_once import REASON

SMOOTH = "logistic", "squared_hinge", "least_squares", "poisson"
KINKED = "hinge", "least_absolute_deviation", "quantile", "epsilon_insensitive"
SEVERAL = "softmax", "multiclass_hinge"
ROWS, FEATURES = 60, 4


def rows(loss, many=ROWS, features=FEATURES, whole=False):
    """With weights, some of them 0, and offsets; not if `whole`."""
    random = np.random.default_rng(5)
    X = 3.0 + random.normal(size=(many, features)) * np.geomspace(1.0, 20.0, features)
    y = (X - 3.0) @ random.normal(size=features) + 5.0 * random.normal(size=many)
    if LOSSES.make(loss).task == "binary":
        y = np.where(y > 1.0, 1.0, -1.0)
    if loss == "poisson":
        y = random.poisson(np.exp(np.clip(0.1 * y, -2.0, 2.0))).astype(float)
    if loss in SEVERAL:
        y = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    if whole or loss in SEVERAL:
        return X, y, Dataset.from_arrays(X, y, None if whole else random.integers(0, 4, many) * 0.7)
    return X, y, Dataset.from_arrays(X, y, random.integers(0, 4, many) * 0.7, offset=random.normal(size=many))


def made(loss, free=True, **shape):
    X, _, data = rows(loss, **shape)
    risk = LinearRisk(data, LOSSES.make(loss), columns=Columns(1.0 / X.std(axis=0), X.mean(axis=0)))
    return FreeIntercept(risk) if free else risk


def auto(risk, lam, regularizer=None, callback=None, start=None, **options):
    solver = SOLVERS.make("auto", {"tolerance": 1e-6} | options)
    omega = bmrm.L2(lam) if regularizer is None else regularizer
    return solver.minimize(risk, omega, callback=callback, start=start)


FEW = {"many": 30, "features": 300}
"""Fewer rows than weights."""


@pytest.mark.parametrize(
    ("loss", "shape"),
    [*((loss, {}) for loss in (*SMOOTH, *KINKED, *SEVERAL)), *((loss, FEW) for loss in (*SMOOTH, *KINKED))],
    ids=str,
)
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("lam", [1e-5, 0.1])
def test_the_optimum_is_that_of_a_run_that_keeps_account(loss, shape, free, lam):
    risk = made(loss, free, **shape)
    found, kept = auto(risk, lam), auto(risk, lam, callback=lambda line: None)
    assert REASON in found.solver
    assert REASON not in kept.solver
    assert found.status is Status.CONVERGED
    assert found.relative_gap <= 1e-6
    size = 1e-13 * abs(kept.objective)
    assert max(found.lower_bound, kept.lower_bound) <= min(found.objective, kept.objective) + size
    assert [line.objective for line in found.history] == [found.objective]
    value = risk.value_and_subgradient(found.w)[0] + 0.5 * lam * float(found.w @ found.w)
    most = 1e-12 if not shape else 1e-11  # targets are a thousand times the residuals
    assert value <= found.objective * (1.0 + most * np.sign(found.objective))
    if free and loss not in SEVERAL:  # the constant that J was evaluated with
        b = found.details["intercept"]
        assert risk.intercept(found.w) == pytest.approx([b])
        phi = risk.phi.phi
        told = phi.value_and_slope(risk.map.matvec(found.w) + phi.constant(b))[0] + value
        assert told - risk.value_and_subgradient(found.w)[0] == pytest.approx(found.objective, rel=most)


@pytest.mark.parametrize("loss", ["logistic", "huber", "hinge", "least_absolute_deviation"])
@pytest.mark.parametrize("kind", ["again", "zeros", "constant"])
def test_few_rows_that_depend_on_one_another(loss, kind):
    """Products of rows without an inverse; the minimum is that of another solver."""
    X, y, _ = rows(loss, whole=True, **FEW)
    X = {"again": np.vstack((X, X, X[:5])), "zeros": np.vstack((X, 0.0 * X)), "constant": 0.0 * X + 3.0}[kind]
    y = np.resize(y, len(X))
    given = {"loss": loss, "lam": 1e-3, "tolerance": 1e-7}
    found, kept = (bmrm.fit(X, y, **given, callback=callback) for callback in (None, lambda line: None))
    assert REASON in found.solution.solver
    assert REASON not in kept.solution.solver
    size = 1e-13 * abs(kept.solution.objective)
    assert found.solution.lower_bound <= kept.solution.objective + size
    assert kept.solution.lower_bound <= found.solution.objective + size


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("free", [False, True])
def test_few_rows_go_on_from_a_start(loss, free):
    risk = made(loss, free, **FEW)
    found = auto(risk, 1e-3)
    again = auto(risk, 1e-3, start=found.w)
    assert REASON in again.solver
    assert again.iterations == 0
    assert np.array_equal(again.w, found.w)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("lam", [1e-4, 0.03, 100.0])
def test_sparse_optima_are_those_of_a_run_that_keeps_account(loss, free, share, lam):
    risk = made(loss, free)
    omega = bmrm.ElasticNet(lam, share) if share < 1.0 else bmrm.L1(lam)
    found, kept = auto(risk, lam, omega), auto(risk, lam, omega, callback=lambda line: None)
    assert REASON in found.solver
    assert REASON not in kept.solver
    assert found.relative_gap <= 1e-6
    size = 1e-13 * abs(kept.objective)
    assert max(found.lower_bound, kept.lower_bound) <= min(found.objective, kept.objective) + size
    value = risk.value_and_subgradient(found.w)[0] + omega.value(found.w)
    assert value <= found.objective * (1.0 + 1e-12 * np.sign(found.objective))
    if lam == 100.0 and loss != "poisson":
        assert np.array_equal(found.w != 0.0, kept.w != 0.0)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 2.0])
def test_lasso_is_that_of_scikit_learn(alpha):
    from sklearn.linear_model import Lasso

    X, y, _ = rows("least_squares", whole=True)
    found = bmrm.fit(X, y, loss="least_squares", regularizer="l1", lam=alpha, tolerance=1e-10)
    assert REASON in found.solution.solver
    theirs = Lasso(alpha=alpha, tol=1e-14, max_iter=1_000_000).fit(X, y)
    w = found.solution.w
    np.testing.assert_allclose(w, theirs.coef_, rtol=1e-4, atol=1e-5)
    assert np.array_equal(w != 0.0, theirs.coef_ != 0.0)


@pytest.mark.parametrize("cost", [None, [[0.0, 1.0, 3.0], [2.0, 0.0, 1.0], [0.5, 1.0, 0.0]]])
def test_crammer_and_singer_with_any_cost_matrix(cost):
    """J is that of the formula; bounds are below what another solver reaches."""
    X, y, data = rows("multiclass_hinge", whole=True)
    risk = LinearRisk(data, LOSSES.make("multiclass_hinge", {} if cost is None else {"cost": cost}))
    table = 1.0 - np.eye(3) if cost is None else np.array(cost)
    for lam in (1e-3, 0.1, 10.0):
        found, kept = auto(risk, lam, tolerance=1e-8), auto(risk, lam, tolerance=1e-8, callback=lambda line: None)
        assert REASON in found.solver
        f = X @ found.w.reshape(FEATURES, 3)
        formula = np.max(table[y] + f - f[np.arange(ROWS), y][:, None], axis=1)
        assert found.objective == pytest.approx(formula.mean() + 0.5 * lam * float(found.w @ found.w), rel=1e-12)
        assert found.lower_bound <= kept.objective * (1.0 + 1e-12)
        assert kept.lower_bound <= found.objective * (1.0 + 1e-12)


@pytest.mark.parametrize("lam", [1e-9, 1e-3, 10.0])
def test_ridge_is_its_formula_in_more_digits(lam):
    """The bound is below the minimum in extended precision."""
    X, y, data = rows("least_squares", whole=True)
    found = auto(LinearRisk(data, LOSSES.make("least_squares")), lam)
    wide = X.astype(np.longdouble)
    w = np.linalg.solve(X.T @ X + lam * ROWS * np.eye(FEATURES), X.T @ y).astype(np.longdouble)
    for _ in range(3):  # refined
        left = wide.T @ (y - wide @ w) - lam * ROWS * w
        w += np.linalg.solve(X.T @ X + lam * ROWS * np.eye(FEATURES), left.astype(float))
    least = float(0.5 * np.mean((wide @ w - y) ** 2) + 0.5 * np.longdouble(lam) * (w @ w))
    assert found.lower_bound <= least <= found.objective * (1.0 + 1e-15)
    np.testing.assert_allclose(found.w, w.astype(float), rtol=1e-7)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", *SEVERAL])
def test_fit_from_python_keeps_its_results(loss):
    """Model, labels and scores are those of a run that somebody watches; raw features, a free intercept."""
    X, y, _ = rows(loss, whole=True)
    found, kept = (
        bmrm.fit(X, y, loss=loss, lam=0.01, tolerance=1e-9, callback=callback) for callback in (None, lambda line: None)
    )
    assert REASON in found.solution.solver
    assert REASON not in kept.solution.solver
    scores = [model.decision_function(X) for model in (found, kept)]
    if loss in SEVERAL:  # what is added to all scores of a row changes nothing
        scores = [one - one.mean(axis=1, keepdims=True) for one in scores]
    np.testing.assert_allclose(*scores, rtol=1e-3, atol=1e-3)
    assert np.array_equal(found.predict(X), kept.predict(X))


@pytest.mark.parametrize(
    "given",
    [
        {"callback": lambda line: None},
        {"start": bmrm.Start(np.ones(FEATURES))},
        {"tolerance": 1e-13},
        {"max_iterations": 1},
    ],
    ids=lambda given: next(iter(given)),
)
def test_others_keep_account(given):
    risk = made("logistic", free=False)
    assert REASON in auto(risk, 0.1).solver
    assert REASON not in auto(risk, 0.1, **given).solver


@pytest.mark.parametrize("loss", ["hinge", "logistic", *SEVERAL])
def test_a_limit_of_time_is_kept_at_once(loss):
    risk = made(loss, free=True)
    assert REASON in auto(risk, 0.1, time_limit=60.0).solver
    late = auto(risk, 0.1, tolerance=1e-9, time_limit=1e-9)
    assert late.status is Status.TIME_LIMIT
    assert REASON not in late.solver


@pytest.mark.parametrize(("spent", "left"), [(20.0, 40.0), (70.0, 0.0)])
def test_what_could_not_be_done_at_once_has_the_rest_of_the_time(spent, left, monkeypatch):
    """A clock that tells a step of so many seconds, whose gap is out of reach."""
    given, ticks = [], itertools.chain([0.0, 0.0], itertools.repeat(spent))
    monkeypatch.setattr(at_once, "working_clock", lambda: next(ticks))
    monkeypatch.setattr("bmrm.solvers.auto.Turns.minimize", lambda turns, *_, **__: given.append(turns.time_limit))
    auto(made("logistic", free=False), 0.1, max_iterations=1, time_limit=60.0)
    assert given == pytest.approx([left], abs=1e-6)
    assert given[0] > 0.0


def test_much_data_and_other_losses_are_not_done_at_once():
    assert REASON not in auto(made("logistic", free=False, features=65, many=70), 0.1).solver
    assert REASON not in auto(made("logistic", free=False, features=250, many=201), 0.1).solver
    assert REASON not in auto(made("logistic", free=False, **FEW), 0.1, bmrm.ElasticNet(0.1)).solver
    assert REASON in auto(made("logistic", free=False, many=40_000), 0.1, tolerance=1e-3).solver
    assert REASON not in auto(made("logistic", free=False, many=40_001), 0.1, tolerance=1e-3).solver
    assert REASON not in auto(made("logistic", free=False, many=20_000, features=16), 0.1, tolerance=1e-3).solver
    assert REASON not in auto(made("softmax", free=False, many=20_000), 0.1, tolerance=1e-3).solver
    classes = Dataset.from_arrays(np.eye(6), np.arange(6) % 3)
    assert ability(LinearRisk(classes, LOSSES.make("scaled_multiclass_hinge")), AtOnce) is None
    assert ability(LinearRisk(classes, LOSSES.make("softmax")), AtOnce) is not None
    for loss in ("hinge", "softmax"):
        assert REASON not in auto(made(loss, free=False), 0.1, regularizer=bmrm.L1(0.01)).solver


@pytest.mark.parametrize("loss", ["hinge", "logistic", *SEVERAL])
@pytest.mark.parametrize("free", [False, True])
def test_a_start_is_never_left_for_a_worse_point(loss, free):
    """Whether it is near to the minimum or far; and a near one takes fewer steps."""
    risk = made(loss, free)
    best, random = auto(risk, 1e-3, tolerance=1e-10), np.random.default_rng(2)
    for away in (1e-6, 1e-2, 1e2):
        start = best.w + away * random.normal(size=best.w.shape)
        value = risk.value_and_subgradient(start)[0] + 0.5e-3 * float(start @ start)
        found = auto(risk, 1e-3, tolerance=1e-3, start=start)
        assert found.objective <= value * (1.0 + 1e-12)
        assert found.lower_bound <= best.objective * (1.0 + 1e-12)
        assert found.status is Status.CONVERGED


@pytest.mark.parametrize("loss", ["hinge", "quantile", "least_absolute_deviation", "logistic"])
def test_a_wide_gap_is_no_reason_to_end_above_weights_of_0(loss):
    for seed in range(8):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(12, 2)), np.where(random.random(12) < 0.3, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        risk = LinearRisk(Dataset.from_arrays(X, y, offset=2.0 * random.normal(size=12)), LOSSES.make(loss))
        value, _ = risk.value_and_subgradient(np.zeros(2))
        for lam in (0.1, 1.0, 10.0):
            found = auto(FreeIntercept(risk), lam, tolerance=1e-4, absolute_tolerance=0.3)
            assert found.objective <= value * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["hinge", "quantile", "epsilon_insensitive"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_bounds_of_kinked_losses_are_below_what_others_reach(loss, scale):
    """In any unit of the features; J is that of the formula at its weights."""
    X, y, _ = rows(loss, whole=True)
    y, lam = (y, 1e-4 * scale * scale) if loss == "hinge" else (y * scale, 1e-4 * scale)
    data = Dataset.from_arrays(X * scale, y)
    risk = LinearRisk(data, LOSSES.make(loss))
    found, kept = auto(risk, lam, tolerance=1e-8), auto(risk, lam, tolerance=1e-8, callback=lambda line: None)
    assert REASON in found.solver
    left = y - scale * X @ found.w
    formula = {
        "hinge": np.maximum(0.0, 1.0 - scale * y * (X @ found.w)),
        "quantile": np.maximum(0.5 * left, -0.5 * left),
        "epsilon_insensitive": np.maximum(0.0, np.abs(left) - LOSSES.make("epsilon_insensitive").epsilon),
    }[loss]
    assert found.objective == pytest.approx(np.mean(formula) + 0.5 * lam * float(found.w @ found.w), rel=1e-12)
    assert found.lower_bound <= kept.objective * (1.0 + 1e-12)
    assert kept.lower_bound <= found.objective * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "quantile", *SEVERAL])
@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_path_is_walked_at_once(loss, bias):
    """Each point as a fit of its own, and fewer steps than those."""
    X, y, _ = rows(loss, whole=True)
    told = []
    given = {"loss": loss, "bias": bias, "scale": "standardize", "tolerance": 1e-6}
    found = bmrm.path(X, y, lambdas=np.geomspace(1.0, 1e-4, 12), callback=told.append, **given)
    alone = [bmrm.fit(X, y, lam=float(lam), **given).solution for lam in found.lambdas]
    assert all(REASON in model.solution.solver for model in found.models)
    assert len(told) == len(found)
    assert found.gaps.max() <= 1e-6
    assert found.objectives == pytest.approx([one.objective for one in alone], rel=2e-6)
    assert np.all(found.lower_bounds <= [one.objective * (1.0 + 1e-12) for one in alone])
    assert found.passes.sum() < sum(one.passes for one in alone)


def test_a_path_that_somebody_ends_ends():
    X, y, _ = rows("logistic", whole=True)
    found = bmrm.path(X, y, loss="logistic", n_lambdas=12, callback=lambda line: line.objective < 0.6)
    assert 0 < len(found) < 12


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_sparse_rows_are_as_full_ones(share):
    X, y, _ = rows("logistic", whole=True)
    X = X * (np.random.default_rng(1).random(X.shape) < share)
    full, sparse = (bmrm.fit(table, y, loss="logistic", lam=0.01, tolerance=1e-9) for table in (X, csr_array(X)))
    assert REASON in sparse.solution.solver
    assert sparse.solution.objective == pytest.approx(full.solution.objective, rel=1e-8)


def outliers(many, features, loss):
    """Targets some of which lie so far away that nearly no row has a curvature at weights of 0."""
    random = np.random.default_rng(8)
    X = random.normal(size=(many, features)) * np.geomspace(0.1, 10.0, features)
    f = X @ (random.normal(size=features) / X.std(axis=0))
    y = 10.0 * f + random.standard_t(2, many) * 10.0
    return X, np.sign(y) if loss == "logistic" else y


@pytest.mark.parametrize("regularizer", [bmrm.L1(1e-5), bmrm.L1(1e-2), bmrm.L2(1e-6), bmrm.L2(1e-2)], ids=str)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-7])
@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_neither_rows_without_curvature_nor_flat_values_end_it(loss, tolerance, regularizer):
    """Steps whose fall is rounding, and rows in the linear part of a loss, once left it to the rules."""
    X, y = outliers(7_000, 13, loss)
    for free in (False, True):
        risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(loss))
        risk = FreeIntercept(risk) if free else risk
        found = auto(risk, 0.0, regularizer, tolerance=tolerance)
        assert REASON in found.solver
        assert found.iterations <= 40
        other = auto(risk, 0.0, regularizer, callback=lambda line: None, tolerance=tolerance)
        assert REASON not in other.solver
        assert found.lower_bound <= other.objective
        assert other.lower_bound <= found.objective


def test_sums_by_blocks_are_as_exact_as_is_said():
    random = np.random.default_rng(4)
    many = 40_000
    X, u = np.exp(3.0 * random.normal(size=(many, 3))), random.normal(size=many)
    u -= u.mean()
    rows = Rows(X, LinearRisk(Dataset.from_arrays(X, u), LOSSES.make("huber")).bound.bare, None, 1.0)
    exact = [math.fsum(u * column) for column in X.T]
    said, _ = errors(rows, np.zeros(3), 0.0, u, u, 1.0, 0.0, summed=True)
    plain, _ = errors(rows, np.zeros(3), 0.0, u, u, 1.0, 0.0)
    assert np.all(np.abs(rows.summed(u) - exact) <= said)
    assert np.all(said < 0.02 * plain)
