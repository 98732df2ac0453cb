"""Numbers whose squares do not fit their type, or beyond what a search for an intercept starts from."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import bmrm

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3))
Y = X[:, 0] > 0.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "least_squares"])
def test_single_precision_whose_squares_overflow(loss, bias, form):
    """The scores, and with a lambda times 1e38 the whole problem, are those of features of ordinary size."""
    large = form((X * 1e19).astype(np.float32))
    model = bmrm.fit(large, Y, loss=loss, bias=bias, regularizer=bmrm.L2(1e36), tolerance=1e-6)
    ordinary = bmrm.fit(X, Y, loss=loss, bias=bias, regularizer=bmrm.L2(1e-2), tolerance=1e-6)
    assert model.solution.objective == pytest.approx(ordinary.solution.objective, rel=3e-6)
    assert model.solution.lower_bound <= ordinary.solution.objective * (1.0 + 1e-6)
    assert model.solution.status.name == "CONVERGED"


@pytest.mark.parametrize("size", [1e12, 1e100, 1e150, 1e200, 1e300])
@pytest.mark.parametrize("loss", ["least_absolute_deviation", "huber", "log_cosh", "epsilon_insensitive"])
def test_targets_of_any_size_beside_a_free_intercept(loss, size):
    """Weights are as good as 0, so that the best intercept is a quantile of the targets."""
    y = (X @ [1.0, 2.0, 3.0]) * size
    model = bmrm.fit(X, y, loss=loss, regularizer=bmrm.L2(1.0), bias="free", tolerance=1e-6)
    assert model.solution.status.name == "CONVERGED"
    assert model.solution.objective == pytest.approx(np.mean(np.abs(y - np.median(y))), rel=1e-6)
    assert model.solution.lower_bound <= model.solution.objective


def test_a_constant_as_large_as_the_targets_is_no_intercept_alone():
    """As many targets above 0 as below, all about as large as what stood for a constant beyond every kink."""
    y = np.repeat([-1.0, 1.0], 30) * (1.0 + np.arange(60)) * 1e12
    model = bmrm.fit(X, y, loss="least_absolute_deviation", regularizer=bmrm.L2(1.0), bias="free")
    assert model.solution.objective == pytest.approx(np.mean(np.abs(y - np.median(y))), rel=1e-4)


def test_least_squares_of_large_targets():
    y = (X @ [1.0, 2.0, 3.0] + 4.0) * 1e150
    model = bmrm.fit(X, y, loss="least_squares", regularizer=bmrm.L2(1e-3), bias="free", tolerance=1e-8)
    ordinary = bmrm.fit(X, y / 1e150, loss="least_squares", regularizer=bmrm.L2(1e-3), bias="free", tolerance=1e-8)
    np.testing.assert_allclose(model.weights / 1e150, ordinary.weights, rtol=1e-3)
    np.testing.assert_allclose(model.intercept / 1e150, ordinary.intercept, rtol=1e-3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("size", [1e160, 1e300])
def test_targets_whose_squares_overflow_are_named(size):
    found = bmrm.fit(X, np.where(np.arange(60) == 7, size, X[:, 0]), loss="least_squares").solution
    assert found.status is bmrm.Status.NON_FINITE
    assert f"the target of row 7 is {size:.4g}, whose loss overflows" in found.message
