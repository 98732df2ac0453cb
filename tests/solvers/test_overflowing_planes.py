"""Planes whose entries overflow, where the loss itself is just finite, are left out; no run ends with an exception."""

import numpy as np
import pytest

import bmrm

RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(30, 3))
Y = np.where(X @ [1.0, -0.5, 0.3] + RANDOM.normal(size=30) > 0.3, 1, -1)
X[:, 1] = 1.7e18 + 1e14 * X[:, 1]


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("solver", ["auto", "bundle", "line_search_bundle"])
@pytest.mark.parametrize("regularizer", ["l1", "l2", "elastic_net"])
def test_exponentials_of_large_features(regularizer, solver):
    given = {"regularizer": regularizer, "lam": 1e-2, "bias": "none", "solver": solver, "tolerance": 1e-6}
    solution = bmrm.fit(X, Y, loss="exponential", time_limit=5.0, **given).solution
    assert solution.status.name in ("CONVERGED", "STALLED", "ITERATION_LIMIT", "TIME_LIMIT")
    assert np.isfinite(solution.objective)
    assert solution.objective <= 1.0 + 1e-9, "that of w = 0"
    assert solution.lower_bound <= 0.7591, "what auto finds with l2"
