"""The ability QuadraticModel: models of chosen columns against NumPy."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import ability
from bmrm.problem.abilities import QuadraticModel
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import Meter
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns

ROWS, FEATURES = 70, 11


def risk_of(form, scaled, bias):
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, FEATURES)) * (random.random((ROWS, FEATURES)) < 0.5)
    if form == "valueless":
        X = (X != 0.0).astype(float)
    y = X @ random.normal(size=FEATURES)
    data = Dataset.from_arrays(X if form.startswith("dense") else csr_array(X), y)
    if form == "valueless":
        data = Dataset(data.X.without_unit_values(), data.targets)
    elif form == "dense float32":
        data = Dataset.from_arrays(X.astype(np.float32), y)
    columns = Columns(random.uniform(0.5, 2.0, FEATURES), random.normal(size=FEATURES)) if scaled else None
    return LinearRisk(data, LOSSES.make("least_squares"), bias=bias, columns=columns)


def distance(z, x, l1):
    return np.where(x != 0.0, np.abs(z + l1 * np.sign(x)), np.maximum(np.abs(z) - l1, 0.0))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("form", ["sparse", "valueless", "dense", "dense float32"])
def test_a_model_is_minimised(form, scaled, bias, free):
    risk = risk_of(form, scaled, bias)
    meter = Meter()
    offer = ability(metered_risk(risk, meter), QuadraticModel)
    random = np.random.default_rng(1)
    curvature = random.random(ROWS) * (random.random(ROWS) < 0.8) / ROWS
    A = np.array([risk.map.matvec(unit) for unit in np.eye(risk.dim)]).T
    l1, l2 = 0.02, 0.003
    for chosen in ([0, 2, 3], [1, 2, 7, risk.dim - 1]):  # the second asks for more columns
        W = np.array(chosen)
        model = offer.model(W, curvature, free)
        gradient, w = 0.2 * random.normal(size=W.size), random.normal(size=W.size)
        x, left = model.minimise(gradient, w, l1, l2, 1e-7, 0.0, 10000)
        d = A[:, W] @ (x - w)
        constant = -(curvature @ d) / curvature.sum() if free else 0.0
        np.testing.assert_allclose(model.scores, d + constant, atol=1e-6 if free else 1e-12)
        z = gradient + A[:, W].T @ (curvature * (d + constant)) + l2 * x
        assert distance(z, x, l1).max() < 3e-7  # entries of models are float32
        assert left <= 1e-7
        assert meter.passes > 0.0


def test_slow_sweeps_are_helped_by_conjugate_gradients():
    random = np.random.default_rng(2)
    X = random.normal(size=(200, 60)) @ (0.1 * np.eye(60) + np.ones((60, 60)) / 60.0)
    risk = LinearRisk(Dataset.from_arrays(X, X[:, 0]), LOSSES.make("least_squares"))
    W, curvature, w = np.arange(60), np.full(200, 1.0 / 200), np.zeros(60)
    gradient = random.normal(size=60) * 0.1
    l1 = 1e-3
    objective = {}
    for sweeps in (8, 40):
        model = ability(risk, QuadraticModel).model(W, curvature)
        x, _ = model.minimise(gradient, w, l1, 0.0, 0.0, 0.0, sweeps)
        objective[sweeps] = gradient @ x + 0.5 * np.mean((X @ x) ** 2) + l1 * np.abs(x).sum()
    plain, q = np.zeros(60), gradient.copy()
    H = X.T @ X / 200
    for _ in range(200):
        for j in range(60):
            z = H[j, j] * plain[j] - q[j]
            step = np.sign(z) * max(abs(z) - l1, 0.0) / H[j, j] - plain[j]
            plain[j] += step
            q += step * H[j]
    slow = gradient @ plain + 0.5 * plain @ H @ plain + l1 * np.abs(plain).sum()
    assert objective[40] < objective[8]
    assert objective[40] < slow


def test_the_distance_of_a_rough_solution_is_exact():
    for form in ("sparse", "dense"):
        risk = risk_of(form, True, False)
        random = np.random.default_rng(4)
        curvature = random.random(ROWS) / ROWS
        A = np.array([risk.map.matvec(unit) for unit in np.eye(risk.dim)]).T
        W = np.arange(risk.dim)
        for free in (False, True):
            model = ability(risk, QuadraticModel).model(W, curvature, free)
            assert model.distance() == np.inf
            gradient, w = 0.2 * random.normal(size=W.size), random.normal(size=W.size)
            x, _ = model.minimise(gradient, w, 0.02, 0.003, 0.0, 0.0, 2)
            z = gradient + A.T @ (curvature * model.scores) + 0.003 * x
            assert model.distance() == pytest.approx(distance(z, x, 0.02).max(), rel=1e-4, abs=1e-6)


def test_signs_that_flip_along_flat_directions_do_not_stop_conjugate_gradients():
    random = np.random.default_rng(7)
    base = random.normal(size=(300, 20))
    X = np.hstack([base + 0.05 * random.normal(size=(300, 20)) for _ in range(4)])
    y = X @ (random.normal(size=80) * (random.random(80) < 0.3)) + random.normal(size=300)
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("least_squares"))
    gradient, l1 = -(X.T @ y) / 300, 1e-3
    model = ability(risk, QuadraticModel).model(np.arange(80), np.full(300, 1.0 / 300))
    x, _ = model.minimise(gradient, np.zeros(80), l1, 0.0, 1e-6, 0.0, 400)
    assert distance(gradient + X.T @ (X @ x) / 300, x, l1).max() <= 3e-6  # 1e-2 where the steps are only cut off


def test_who_has_it():
    X = np.random.default_rng(0).normal(size=(30, 3))
    data = Dataset.from_arrays(X, np.arange(30) % 2)
    for loss, has in (("logistic", True), ("squared_hinge", True), ("hinge", False), ("roc_area", False)):
        risk = LinearRisk(data, LOSSES.make(loss))
        assert (ability(risk, QuadraticModel) is not None) is has
    assert (
        ability(LinearRisk(Dataset.from_arrays(X, np.arange(30) % 3), LOSSES.make("softmax")), QuadraticModel) is None
    )
    risk = LinearRisk(data, LOSSES.make("logistic"))
    assert ability(FreeIntercept(risk), QuadraticModel) is ability(risk, QuadraticModel)
