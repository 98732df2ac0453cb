"""Gram matrices, curvatures by rows, and Moreau envelopes against what they are made of."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.kernels.workers import Workers
from bmrm.losses import LOSSES
from bmrm.losses.hinge import Hinge
from bmrm.losses.logistic import Logistic
from bmrm.problem import IncompatibleError, Scored, ability
from bmrm.problem.meter import Meter
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.linear_map import DataMap
from bmrm.risk.products import Columns


def features(kind: str) -> tuple[object, np.ndarray]:
    """A matrix as the package takes it, and dense."""
    rng = np.random.default_rng(3)
    table = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.6)
    if kind == "dense":
        return table, table
    if kind == "ones":
        table = (table != 0.0).astype(float)
    X = Csr.from_scipy(sp.csr_matrix(table))
    return (X.without_unit_values() if kind == "ones" else X), table


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("chosen", [None, [0, 2, 5], [1, 6]])
@pytest.mark.parametrize("kind", ["dense", "csr", "ones"])
def test_gram_is_that_of_the_scaled_inputs(kind, bias, scaled, chosen):
    if chosen is not None and 6 in chosen and not bias:
        chosen = [1, 4]
    X, table = features(kind)
    rng = np.random.default_rng(4)
    columns = Columns(scale=rng.random(6) + 0.5, shift=rng.normal(size=6)) if scaled else Columns()
    weights = rng.normal(size=40) * (rng.random(40) < 0.5)
    inputs = (table - columns.shift) * columns.scale if scaled else table
    if bias:
        inputs = np.column_stack([inputs, np.ones(40)])
    expected = inputs.T @ (weights[:, None] * inputs)
    pick = None if chosen is None else np.array(chosen)
    found = DataMap(X, columns=columns, bias=bias).gram(weights, pick)
    np.testing.assert_allclose(found, expected if pick is None else expected[np.ix_(pick, pick)], atol=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["dense", "csr", "ones"])
def test_gram_blocks_are_those_of_each_score(kind, threads):
    X, table = features(kind)
    rng = np.random.default_rng(6)
    weights = rng.random((40, 3))
    map = DataMap(X, scores_per_row=3, bias=True, workers=Workers(threads))
    inputs = np.column_stack([table, np.ones(40)])
    for least in (0.0, 0.8):
        kept = np.where(weights >= least * weights.mean(axis=0), weights, 0.0)
        expected = [inputs.T @ (kept[:, [k]] * inputs) for k in range(3)]
        np.testing.assert_allclose(map.gram_blocks(weights, least), expected, atol=1e-12)
    assert np.any(kept == 0.0)
    assert DataMap(X, scores_per_row=3).gram_blocks(weights).shape == (3, 6, 6)


@pytest.mark.parametrize("kind", ["dense", "csr", "ones"])
def test_gram_of_several_scores(kind):
    """Of diag(c) - c c' / sum(c) in each row; w has the scores of an input side by side."""
    X, table = features(kind)
    rng = np.random.default_rng(8)
    weights = rng.random((40, 3)) * (rng.random((40, 3)) < 0.6)
    weights[::4] = 0.0
    expected = np.zeros((7, 3, 7, 3))
    for x, c in zip(np.column_stack([table, np.ones(40)]), weights, strict=True):
        if c.any():
            expected += np.einsum("i,jk,l->ijlk", x, np.diag(c) - np.outer(c, c) / c.sum(), x)
    map = DataMap(X, scores_per_row=3, bias=True)
    np.testing.assert_allclose(map.gram(weights), expected.reshape(21, 21), atol=1e-12)
    assert map.active(weights) == np.count_nonzero(weights.any(axis=1))
    with pytest.raises(IncompatibleError, match="one score per row"):
        map.gram(weights, np.array([0, 1]))


@pytest.mark.parametrize("scores", [1, 3])
@pytest.mark.parametrize("kind", ["dense", "csr", "ones"])
def test_gram_product_is_that_of_the_matrix(kind, scores):
    rng = np.random.default_rng(9)
    shape = (40,) if scores == 1 else (40, scores)
    weights, w = rng.random(shape) * (rng.random(shape) < 0.6), rng.normal(size=7 * scores)
    weights[::4] = 0.0
    columns = Columns(scale=rng.random(6) + 0.5, shift=rng.normal(size=6))
    for threads in (1, 2):
        map = DataMap(features(kind)[0], scores_per_row=scores, columns=columns, bias=True, workers=Workers(threads))
        np.testing.assert_allclose(map.gram_product(weights, w), map.gram(weights) @ w, atol=1e-12)


@pytest.mark.parametrize("scores", [1, 3])
@pytest.mark.parametrize("kind", ["csr", "ones"])
def test_few_rows_are_copied_for_their_products(kind, scores, monkeypatch):
    monkeypatch.setattr("bmrm.risk.linear_map.LARGE", 0)
    rng = np.random.default_rng(11)
    shape, meter = (40,) if scores == 1 else (40, scores), Meter()
    X = sp.random(40, 60, density=0.05, rng=rng, format="csr")
    columns = Columns(scale=rng.random(60) + 0.5, shift=rng.normal(size=60))
    X.data[:] = 1.0 if kind == "ones" else X.data
    rows = Csr.from_scipy(X)
    map = DataMap(
        rows.without_unit_values() if kind == "ones" else rows, scores_per_row=scores, columns=columns, bias=True
    ).metered(meter)
    weights, w = np.zeros(shape), rng.normal(size=61 * scores)

    def check(active):
        before = meter.reading
        np.testing.assert_allclose(map.gram_product(weights, w), map.gram(weights) @ w, atol=1e-12)
        assert meter.reading - before == pytest.approx(0.5 + active)
        np.testing.assert_allclose(map.diagonal(weights), np.diagonal(map.gram(weights)), atol=1e-12)

    weights[[3, 7, 30]] = rng.random((3, *shape[1:]))
    for _ in range(2):
        check(3 / 40)
    weights[7] *= 2.0  # in place: the copy does not serve
    check(1.0)
    weights[[7, 8]] = weights[[8, 7]]
    check(1.0)
    weights = weights[::-1].copy()
    check(3 / 40)
    weights = np.ones(shape)
    check(1.0)


def test_shares_of_softmax_are_its_hessian():
    rng = np.random.default_rng(10)
    targets = rng.integers(0, 3, 30)
    data = Dataset.from_arrays(rng.normal(size=(30, 4)), targets, np.linspace(0.0, 2.0, 30))
    scored = ability(LinearRisk(data, LOSSES.make("softmax")), Scored)
    f, step = 3.0 * rng.normal(size=(30, 3)), rng.normal(size=12)
    expected = scored.map.rmatvec(scored.phi.hessian_product(f, scored.map.matvec(step)))
    assert scored.phi.facts.shared
    np.testing.assert_allclose(scored.map.gram_product(scored.phi.hessian_shares(f), step), expected, atol=1e-14)


def test_softmax_knows_the_diagonal_of_its_hessian():
    rng = np.random.default_rng(7)
    risk = LinearRisk(Dataset.from_arrays(rng.normal(size=(30, 4)), rng.integers(0, 3, 30)), LOSSES.make("softmax"))
    scored = ability(risk, Scored)
    f, unit = rng.normal(size=(30, 3)), np.zeros((30, 3))
    assert scored.phi.facts.diagonal
    assert scored.phi.facts.shift_invariant
    assert not scored.phi.facts.separable
    for k in range(3):
        unit[:] = 0.0
        unit[:, k] = 1.0
        column = scored.phi.hessian_product(f, unit)[:, k]
        np.testing.assert_allclose(scored.phi.hessian_diagonal(f)[:, k], column, rtol=1e-12)


def risk_of(loss, weights=None):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 4))
    return LinearRisk(Dataset.from_arrays(X, rng.integers(0, 2, 30), weights), loss)


def test_hessian_of_logistic_is_its_finite_difference():
    risk = risk_of(Logistic(), np.linspace(0.0, 2.0, 30))
    scored = ability(risk, Scored)
    w = np.array([0.3, -0.2, 0.1, 0.5])
    hessian = scored.map.gram(scored.phi.hessian_diagonal(scored.map.matvec(w)))
    slopes = [
        risk.value_and_subgradient(w + 1e-6 * e)[1] - risk.value_and_subgradient(w - 1e-6 * e)[1] for e in np.eye(4)
    ]
    np.testing.assert_allclose(hessian, np.array(slopes) / 2e-6, atol=1e-9)


@pytest.mark.parametrize("sigma", [0.1, 1.0, 30.0])
def test_envelope_minimises_loss_plus_distance(sigma):
    risk = risk_of(Hinge(), np.linspace(0.0, 2.0, 30))
    phi = ability(risk, Scored).phi
    z = np.random.default_rng(6).normal(scale=2.0, size=30)
    found = phi.moreau(z, sigma)
    y, s = risk.bound.whole.y, risk.bound.whole.weights
    each = [
        minimize_scalar(
            lambda f, i=i: s[i] * max(0.0, 1.0 - y[i] * f) + sigma / 2 * (f - z[i]) ** 2, bounds=(-50, 50)
        ).fun
        for i in range(30)
    ]
    assert found.value == pytest.approx(sum(each) / risk.mass, rel=1e-6)
    f = z - found.slope * risk.mass / sigma
    assert found.conjugate == pytest.approx(found.slope @ f - phi.value_and_slope(f)[0], abs=1e-12)
    steps = np.random.default_rng(7).normal(size=30) * 1e-7
    moved = phi.moreau(z + steps, sigma)
    np.testing.assert_allclose(moved.slope - found.slope, found.curvature * steps, atol=1e-13)
    g = np.random.default_rng(8).normal(size=(100, 30)) * 3.0
    for point in g:  # the conjugate: no score does better
        assert found.slope @ point - phi.value_and_slope(point)[0] <= found.conjugate + 1e-12


@pytest.mark.parametrize("weights", [None, np.linspace(0.0, 2.0, 30)])
def test_envelope_along_a_step_is_the_envelope(weights):
    phi = ability(risk_of(Hinge(), weights), Scored).phi
    z, step = np.random.default_rng(9).normal(scale=2.0, size=(2, 30))
    t = np.array([0.0, 0.3, 2.5])
    values, derivatives = phi.moreau_along(z, step, 0.7)(t)
    found = [phi.moreau(z + each * step, 0.7) for each in t]
    np.testing.assert_allclose(values, [each.value for each in found], rtol=1e-13)
    np.testing.assert_allclose(derivatives, [each.slope @ step for each in found], rtol=1e-12, atol=1e-15)


def test_free_intercept_hands_out_what_it_minimises():
    free = FreeIntercept(risk_of(Logistic()))
    scored = ability(free, Scored)
    phi = scored.intercept.phi
    assert phi is scored.of_rows is free.risk.phi
    assert not scored.phi.facts.separable
    with pytest.raises(IncompatibleError):
        scored.phi.hessian_diagonal(np.zeros(30))
    f = np.linspace(-1.0, 1.0, 30)
    best = minimize_scalar(lambda b: phi.value_and_slope(f + phi.constant(np.array([b])))[0])
    assert scored.phi.value_and_slope(f)[0] == pytest.approx(best.fun, rel=1e-9)


@pytest.mark.parametrize("size", [1.0, 1e6, 1e12, 1e18])
def test_slopes_of_an_envelope_at_huge_scores_are_still_slopes(size):
    """A slope beyond those of the loss would prove a bound above the minimum."""
    phi = ability(risk_of(Hinge(), np.linspace(0.0, 2.0, 30)), Scored).phi
    z = size * np.random.default_rng(6).normal(size=30)
    found = phi.moreau(z, 300.0)
    weights, y = np.linspace(0.0, 2.0, 30), risk_of(Hinge()).bound.whole.y
    duals = -y * found.slope * phi.facts.mass
    assert np.all(duals >= -1e-10)
    assert np.all(duals <= weights + 1e-10)
    assert found.conjugate == pytest.approx(-duals.sum() / phi.facts.mass, abs=1e-9 + 1e-15 * size)
