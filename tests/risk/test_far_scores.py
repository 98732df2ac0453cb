"""Scores so far apart that their differences, or squares, are beyond float64."""

import math

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.risk.linear import LinearRisk
from bmrm.risk.score_function import BoundLoss, LossPhi
from tests.conformance.loss_cases import case_of
from tests.targets import losses


@pytest.mark.parametrize("loss", list(losses()), ids=str)
def test_values_are_infinite_or_right_but_never_nan(loss):
    targets = case_of(loss).targets
    phi = LossPhi(BoundLoss(loss, targets, loss.summarise(targets)))
    rng = np.random.default_rng(0)
    here = phi.constant(np.zeros(phi.facts.scores_per_row))
    for size in (1e100, 1e154, 1e200, 1e300, 1.5e308):
        for _ in range(5):
            f = size * rng.uniform(-1.0, 1.0, here.shape)
            value, slope = phi.value_and_slope(f)
            assert not math.isnan(value)
            assert value >= phi.facts.infimum
            assert np.isfinite(slope).all() or value == math.inf
            values, _ = phi.along(0.5 * f, f)(np.array([-0.1, 0.0, 0.1]))
            assert not np.isnan(values).any()


@pytest.mark.parametrize("name", ["least_squares", "squared_hinge", "expectile", "squared_epsilon_insensitive"])
def test_a_row_of_weight_zero_hides_a_square_that_overflows(name):
    X, y = np.array([[1.0], [-2.0], [1e200]]), np.array([1.0, -1.0, -1.0])
    risk = LinearRisk(Dataset.from_arrays(X, y, np.array([1.0, 2.0, 0.0])), LOSSES.make(name))
    without = LinearRisk(Dataset.from_arrays(X[:2], y[:2], np.array([1.0, 2.0])), LOSSES.make(name))
    w = np.array([0.7])
    assert risk.value_and_subgradient(w)[0] == pytest.approx(without.value_and_subgradient(w)[0])
    curve = risk.phi.along(risk.map.matvec(w), risk.map.matvec(w))
    other = without.phi.along(without.map.matvec(w), without.map.matvec(w))
    for found, expected in zip(curve(np.array([0.0, 0.5])), other(np.array([0.0, 0.5])), strict=True):
        np.testing.assert_allclose(found, expected)
