"""The best constant of a free intercept, and the plane it gives, whatever was searched before."""

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers._core.rowwise import RowwiseRisk

LOSS = {
    "squared_hinge": lambda z: 0.5 * np.maximum(0.0, 1.0 - z) ** 2,
    "logistic": lambda z: np.logaddexp(0.0, -z),
}


def minimum(loss, f, y):
    """By golden sections in the constant."""
    low, high = -2.0 * np.abs(f).max() - 1e3, 2.0 * np.abs(f).max() + 1e3
    share = 0.5 * (np.sqrt(5.0) - 1.0)
    for _ in range(200):
        left, right = high - share * (high - low), low + share * (high - low)
        if loss(y * (f + left)).mean() <= loss(y * (f + right)).mean():
            high = right
        else:
            low = left
    return loss(y * (f + 0.5 * (low + high))).mean()


@pytest.mark.parametrize("name", LOSS)
def test_the_best_constant_after_searches_that_were_all_rounding(name):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(24, 4))
    y = np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)  # as many of each: the first sum of slopes is rounding
    rows = RowwiseRisk.of("test", FreeIntercept(LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(name))))
    for scale in (0.0, 0.3, 1.0, 4.0, 1e8, 8.0, 2.0, 0.1):
        w = scale * np.array([1.0, 0.4, -0.2, 0.3])
        f = X @ w
        found, best = rows.profiled(f), minimum(LOSS[name], f, y)
        assert found.value == pytest.approx(best, rel=1e-9, abs=1e-12)
        other = X @ (w + rng.normal(size=4))
        below = rows.map.rmatvec(found.slope) @ (w + 0.0) + found.offset
        assert below <= best * (1.0 + 1e-9) + 1e-12
        assert float(found.slope @ other) + found.offset <= minimum(LOSS[name], other, y) * (1.0 + 1e-9) + 1e-12


def test_the_best_constant_where_slopes_fall_like_the_exponential():
    """Scores as of a step that went too far: the loss is 1e46, and the first secant sees only that."""
    rng = np.random.default_rng(5)
    y, f = rng.gamma(1.0, size=32), rng.normal(-60.0, 25.0, 32)
    data = Dataset.from_arrays(f[:, None], y)
    rows = RowwiseRisk.of("test", FreeIntercept(LinearRisk(data, LOSSES.make("gamma"))))
    for scale in (0.0, 1.0, 3.0, 1e-3, 4.0, 1.0):
        best = np.log(np.mean(y * np.exp(-scale * f)))  # where the derivative of the mean of y exp(-f-b) + f + b is 0
        found = rows.profiled(scale * f)
        np.testing.assert_allclose(found.f, scale * f + best, rtol=1e-6, atol=1e-6)
        assert found.offset > -np.inf
