"""Planes of weights and free constants: none lies above the risk, wherever it was taken."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import Scored, Space, ability
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers._core.cuts import FreeCuts, JointPlanes, joint

ROWS, CLASSES = 12, 3


@pytest.mark.parametrize("far", [0.0, 1e4, 1e8])
def test_planes_taken_at_far_constants_are_not_above_the_risk(far):
    """Near 1e8 scores are rounded to 1e-8, so are the slopes of softmax: their products with scores are off by 1."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(ROWS, 2)), np.arange(ROWS) % CLASSES
    scored = ability(FreeIntercept(LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("softmax"))), Scored)
    w = rng.normal(size=2 * CLASSES)
    f = scored.map.matvec(w)

    def risk(b):
        return np.mean(logsumexp(f + b, axis=1) - (f + b)[np.arange(ROWS), y])

    minimum = minimize(risk, np.zeros(CLASSES), method="BFGS", options={"gtol": 1e-9}).fun
    planes = JointPlanes(scored.map, scored.of_rows, Space(w.size))
    for _ in range(3):
        b = far * rng.normal() + rng.normal(size=CLASSES)
        plane, _ = planes.plane(joint(scored.of_rows, w, b, f + scored.of_rows.constant(b)), 1e-9)
        if plane is not None:
            assert plane.height <= minimum * (1.0 + 1e-12)
    assert far > 0.0 or plane.height > minimum * (1.0 - 1e-8)


def test_constants_that_an_exact_search_has_found_take_the_place_of_far_ones():
    """Where no planes are taken, for scores have lost their digits, constants were those of the point for ever."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(ROWS, 2)), np.arange(ROWS) % CLASSES
    scored = ability(FreeIntercept(LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("softmax"))), Scored)
    cuts, w, b = (
        FreeCuts(scored, Space(2 * CLASSES), scored.intercept),
        np.zeros(2 * CLASSES),
        np.array([4e9, 1e9, -2e9]),
    )
    for _ in range(3):
        here = cuts.at(w, b, cuts.scores_with(w, b))
        _, lower = cuts.plane(here, 1e-9)
        b = here.b if lower is None else lower.b
    assert cuts.at(w, b, cuts.scores_with(w, b)).value == pytest.approx(np.log(CLASSES))
