"""Envelopes with so large a penalty that z - f is rounding: slopes are those of the loss, and rise with z."""

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import Scored, ability
from bmrm.risk.linear import LinearRisk

SIGMA = 1.372e5
KINKS = {
    "hinge": (1.0, 1.0, -1.0, 0.0),
    "least_absolute_deviation": (0.25, 0.25, -1.0, 1.0),
    "quantile": (0.25, 0.25, -0.5, 0.5),
}
"""The target of a row, its kink, and the slopes on both sides of it."""


@pytest.mark.parametrize("loss", KINKS)
def test_slopes_rise_from_one_side_of_a_kink_to_the_other(loss):
    """Where the proximal point leaves the kink, too: rounding decides there on which side of it that is."""
    target, kink, least, most = KINKS[loss]
    around = np.concatenate(
        [edge + np.arange(-40, 41) * 2e-17 * np.geomspace(1.0, 1e6, 9)[:, None] for edge in (least, most)]
    )
    moves = np.unique(np.concatenate((around.ravel() / SIGMA, np.linspace(1.5 * least, 1.5 * most, 101) / SIGMA)))
    z = np.append(kink + moves, 50.0)  # the last is so large that the digits of the others count
    y = np.full(z.size, target)
    y[-1] = -1.0 if loss == "hinge" else 0.0
    phi = ability(LinearRisk(Dataset.from_arrays(np.ones((z.size, 1)), y), LOSSES.make(loss)), Scored).phi
    slopes = phi.moreau(z, SIGMA).slope[:-1] * z.size
    assert np.all(np.diff(slopes) >= -1e-9)
    assert slopes[0] == pytest.approx(least, abs=1e-9)
    assert slopes[-1] == pytest.approx(most, abs=1e-9)
    assert slopes == pytest.approx(np.clip(SIGMA * (z[:-1] - kink), least, most), abs=1e-7)
