"""The same objective as statsmodels' penalised likelihoods: equal differences, no slope left at our optimum."""

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.datasets import load_diabetes

import bmrm
from bmrm.losses import LOSSES

LAM = 0.05


@pytest.mark.parametrize("family", ["Poisson", "Gamma"])
def test_generalised_linear_models(family):
    X, y = load_diabetes(return_X_y=True)
    X = np.column_stack((X / X.std(axis=0), np.ones(len(y))))
    y = np.rint(y / 25.0)
    peer = sm.GLM(y, X, family=getattr(sm.families, family)(link=sm.families.links.Log()))
    solution = bmrm.fit(X, y, loss=family.lower(), regularizer=bmrm.L2(LAM), bias="none", tolerance=1e-9).solution
    assert solution.converged

    def theirs(w):
        return -peer.loglike(w, scale=1.0) / len(y) + 0.5 * LAM * w @ w

    slope = -peer.score(solution.w, scale=1.0) / len(y) + LAM * solution.w
    # J is strongly convex: it cannot be lower than this below its value here
    assert slope @ slope / (2.0 * LAM) <= 1e-6 * abs(solution.objective)
    start = np.zeros(X.shape[1])
    risk = bmrm.LinearRisk(bmrm.Dataset.from_arrays(X, y), LOSSES.make(family.lower()))
    fall = risk.value_and_subgradient(start)[0] - solution.objective
    assert fall == pytest.approx(theirs(start) - theirs(solution.w), rel=1e-6)
