"""Planes of weights and free constants: none lies above the risk, wherever it was taken."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.masters._core.mixing import Mixing
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


def mixed(*planes):
    """Of planes (sum, value, noise) in one constant."""
    mixing = Mixing(1)
    for total, _, noise in planes:
        mixing.add(np.array([total]), 0.0, noise)
    mixing.price(np.array([value for _, value, _ in planes]), 1.0, 1e3)
    mixing.solve()
    return mixing


def test_sums_that_do_not_cancel_are_no_rounding_of_a_plane_that_is_not_at_work():
    """Both planes at work rise with the constant; a far one, of much noise, has no share in the mixture."""
    near = (1e-3, 1.0, 1e-15), (2e-3, 0.9, 1e-15)
    assert not mixed(*near).feasible
    assert not mixed((0.05, -1e6, 0.1), *near).feasible
    assert mixed((-1e-3, 0.8, 1e-15), *near).feasible
    assert mixed((1e-3, 1.0, 0.1)).feasible  # within its own noise


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
