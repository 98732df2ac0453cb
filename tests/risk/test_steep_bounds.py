"""Bounds where |A|'|s| is far larger than the objective: features of 1e6, a start far off."""

import numpy as np
import pytest

import bmrm
from bmrm.problem import Status

LAST_DIGITS = 4.0 * 2.0**-52
"""Rounding of the bound's own sum; what was wrong here was 5.8e-14."""


def exact_objective(X, y, W, regularizer):
    """Mean multiclass hinge and the elastic net in long double."""
    X, W = X.astype(np.longdouble), W.astype(np.longdouble)
    scores = X @ W
    margins = scores + (np.arange(W.shape[1]) != y[:, None]) - np.take_along_axis(scores, y[:, None], axis=1)
    penalty = np.abs(W).sum() * regularizer.l1 + np.square(W).sum() * regularizer.l2 / 2
    return margins.max(axis=1).mean() + penalty


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_where_slopes_times_weights_round_more_than_the_objective(seed):
    random = np.random.default_rng(seed)
    X, y = 1e6 * random.normal(size=(25, 4)), np.arange(25) % 3
    regularizer = bmrm.ElasticNet(1e3)
    found = []
    for solver in ("bundle", "proximal_gradient", "dual_coordinate", "auto"):
        for start in (None, 1e3 * random.normal(size=12)):
            try:
                model = bmrm.fit(
                    X, y, loss="multiclass_hinge", regularizer=regularizer, solver=solver, bias="none", start=start,
                    tolerance=1e-12, max_iterations=200,
                )  # fmt: skip
            except bmrm.IncompatibleError:
                continue
            W = np.asarray(model.weights, dtype=float)
            found.append((model.solution, exact_objective(X, y, W if W.shape[0] == 4 else W.T, regularizer)))
    truth = min(objective for _, objective in found)
    assert len(found) >= 4
    for solution, objective in found:
        assert solution.status not in (Status.NOT_CONVEX, Status.NON_FINITE)
        assert solution.lower_bound <= truth * (1.0 + LAST_DIGITS)
        assert solution.objective == pytest.approx(float(objective), rel=1e-12)
