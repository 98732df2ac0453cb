"""The map from weights to scores: where the weights of all features are 0, only the constant is left."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.risk.linear import LinearRisk
from bmrm.risk.linear_map import DataMap


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_at_weights_of_zero_scores_are_the_constant(sparse, loss):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 4)), rng.integers(0, 2 if loss == "logistic" else 3, 30)
    rows = scipy.sparse.csr_matrix(X) if sparse else X
    risk = LinearRisk(Dataset.from_arrays(rows, y), LOSSES.make(loss), bias=True)
    K = risk.scores_per_row
    w = np.zeros(risk.dim)
    w[-K:] = rng.normal(size=K)
    np.testing.assert_array_equal(np.atleast_2d(risk.map.matvec(w).T), np.repeat(w[-K:, None], 30, axis=1))
    nearly = w + 1e-300  # takes the way of any other weights
    value, a = risk.value_and_subgradient(w)
    other, b = risk.value_and_subgradient(nearly)
    assert value == pytest.approx(other, rel=1e-14)
    np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


def test_weights_that_are_not_numbers_are_no_weights_of_zero():
    with np.errstate(invalid="ignore"):
        assert np.all(np.isnan(DataMap(np.ones((3, 2))).matvec(np.array([0.0, np.nan]))))
