"""Weights that are proved to be 0 early: never one that is not, and the lengths behind the proof."""

import math

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import Scored, Status, ability
from bmrm.problem.meter import Meter
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns
from bmrm.solvers import SOLVERS
from bmrm.solvers._core import gap_safe
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.gap_safe import SafeZeros
from bmrm.solvers._core.rowwise import RowwiseRisk
from tests.targets import default_instance

NAMES = ["proximal_newton", "coordinate_descent"]
LOSS_NAMES = ["least_squares", "logistic", "squared_hinge", "huber", "log_cosh", "modified_huber"]
BOUNDED = [
    entry.name
    for entry in LOSSES.all()
    if entry.cls.smooth
    and entry.cls.task in ("binary", "regression")
    and math.isfinite(getattr(default_instance(entry), "hessian_bound", math.inf))
]
ROWS, FEATURES = 60, 40


def risk_of(loss, seed, weights=False, scaled=False, free=False):
    random = np.random.default_rng(seed)
    X = random.normal(size=(ROWS, FEATURES)) * (random.random((ROWS, FEATURES)) < 0.5)
    f = X[:, :6] @ random.normal(size=6) + 0.3 * random.normal(size=ROWS) + 0.5
    y = np.where(f > 0.5, 1.0, -1.0) if LOSSES.get(loss).cls.task == "binary" else f
    counts = random.integers(0, 3, ROWS).astype(float) if weights else None
    columns = Columns(random.uniform(0.5, 2.0, FEATURES), random.normal(size=FEATURES)) if scaled else None
    risk = LinearRisk(Dataset.from_arrays(X, y, counts), LOSSES.make(loss), columns=columns)
    return FreeIntercept(risk) if free else risk


@pytest.fixture
def at_once(monkeypatch):
    """Screening from the first iteration on; what every run has found comes out as a list."""
    made = []
    monkeypatch.setattr(gap_safe, "NEAR", math.inf)
    monkeypatch.setattr(gap_safe, "PATIENCE", 0.0)
    begin = SafeZeros.__init__

    def kept(self, *arguments):
        begin(self, *arguments)
        made.append(self)

    monkeypatch.setattr(SafeZeros, "__init__", kept)
    return made


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("name", NAMES)
def test_only_weights_that_are_zero_at_the_minimum_are_found(name, loss, free, at_once, monkeypatch):
    found = 0
    for seed, (weights, scaled) in enumerate([(False, False), (True, False), (False, True), (True, True)]):
        risk = risk_of(loss, seed, weights, scaled, free)
        zero = np.abs(risk.value_and_subgradient(np.zeros(FEATURES))[1]).max()
        for regularizer in (L1(0.2 * zero), L1(0.02 * zero), ElasticNet(0.1 * zero, 0.6)):
            at_once.clear()
            solution = SOLVERS.make(name, {"tolerance": 1e-11}).minimize(risk, regularizer)
            screened = at_once[-1]
            assert solution.details["screened"] == screened.count
            with monkeypatch.context() as without:
                without.setattr(gap_safe, "PATIENCE", math.inf)
                reference = SOLVERS.make("proximal_newton", {"tolerance": 1e-13}).minimize(risk, regularizer)
            assert reference.relative_gap <= 1e-8
            assert reference.details["screened"] == 0
            assert solution.status in (Status.CONVERGED, Status.STALLED)
            assert solution.objective <= reference.objective * (1.0 + 1e-9)
            assert all(line.lower_bound <= reference.objective * (1.0 + 1e-12) for line in solution.history)
            if screened.found is None:
                continue
            # Stronger than w = 0: the slope is inside, and stays there for anything near.
            _, slope = risk.value_and_subgradient(reference.w)
            assert np.all(np.abs(slope[screened.found]) < regularizer.l1 * (1.0 + 1e-6))
            assert not reference.w[screened.found].any()
            found += screened.count
    assert found > 50


@pytest.mark.parametrize("name", NAMES)
def test_a_start_with_weights_that_must_go(name, at_once):
    risk = risk_of("logistic", 5)
    start = np.random.default_rng(0).normal(size=FEATURES)
    solution = SOLVERS.make(name, {"tolerance": 1e-10}).minimize(risk, L1(0.02), start=start)
    assert solution.status is Status.CONVERGED
    assert at_once[-1].count > 0
    assert not solution.w[at_once[-1].found].any()


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_lengths_are_those_of_columns_weighted_by_the_curvature(scaled, free):
    risk = risk_of("logistic", 3, weights=True, scaled=scaled, free=free)
    most = ability(risk, Scored).of_rows.hessian_most()
    A = np.array([risk.map.matvec(unit) for unit in np.eye(FEATURES)]).T
    weights = (risk.risk if free else risk).data.targets.weights
    np.testing.assert_allclose(most, 0.25 * weights / weights.sum())
    c = most
    centred = A - (c @ A) / c.sum() if free else A
    rows = RowwiseRisk.of("any", risk)
    zeros = SafeZeros(_Line(risk, 0.0), rows, 0.1)
    lengths = zeros._lengths(most)
    np.testing.assert_allclose(lengths, np.sqrt(c @ centred**2), rtol=1e-6)
    assert np.all(lengths >= np.sqrt(c @ centred**2))


class _Line:
    """What screening asks of the bookkeeping of a run."""

    def __init__(self, risk, objective):
        self.risk, self.objective, self.relative_gap = risk, objective, 0.0
        self.meter = Meter()
        self.meter.charge(1e9)


def test_a_bound_that_meets_the_objective_leaves_rounding_only():
    risk = risk_of("least_squares", 1)
    regularizer = L1(0.05)
    solution = SOLVERS.make("proximal_newton", {"tolerance": 1e-13}).minimize(risk, regularizer)
    value, a = risk.value_and_subgradient(solution.w)
    certificate = Certificate(regularizer, risk.infimum)
    certificate.take(solution.w, value, a)
    zeros = SafeZeros(_Line(risk, solution.objective), RowwiseRisk.of("any", risk), regularizer.l1)
    zeros.update(certificate)
    np.testing.assert_array_equal(zeros.found, solution.w == 0.0)


@pytest.mark.parametrize("loss_name", BOUNDED)
def test_no_slope_rises_faster_than_the_curvature_bound(loss_name):
    loss = default_instance(LOSSES.get(loss_name))
    random = np.random.default_rng(1)
    f, g = random.normal(size=(2, 4000)) * 3.0
    y = np.sign(random.normal(size=4000)) if loss.task == "binary" else random.normal(size=4000)
    rise = np.abs(loss.slope(f, y) - loss.slope(g, y))
    assert np.all(rise <= loss.hessian_bound * np.abs(f - g) * (1.0 + 1e-12) + 1e-15)
    assert np.max(rise / np.abs(f - g)) >= 0.9 * loss.hessian_bound


def test_who_has_it():
    assert {"logistic", "least_squares", "squared_hinge", "huber", "huber_hinge", "expectile"} <= set(BOUNDED)
    assert not {"poisson", "exponential", "gamma", "tweedie"} & set(BOUNDED)
    assert ability(risk_of("least_squares", 0, free=True), Scored).of_rows.hessian_most() is not None
    positive = Dataset.from_arrays(np.eye(5), np.arange(5.0))
    assert LinearRisk(positive, LOSSES.make("poisson")).phi.hessian_most() is None
    two = Dataset.from_arrays(np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]))
    assert LinearRisk(two, LOSSES.make("hinge")).phi.hessian_most() is None
    solution = SOLVERS.make("proximal_newton", {}).minimize(LinearRisk(positive, LOSSES.make("poisson")), L1(0.01))
    assert solution.details["screened"] == 0
