"""Envelopes where z - f is rounding, for a large penalty or little weight: slopes are those of the loss."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.losses.expectile import Expectile
from bmrm.losses.least_squares import LeastSquares
from bmrm.losses.squared_hinge import SquaredHinge
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


PARABOLAS = {
    "expectile": (Expectile(0.75), (1.5, 0.5), (1.5, 0.5)),
    "least_squares": (LeastSquares(), (1.0, 1.0), (1.0, 1.0)),
    "squared_hinge": (SquaredHinge(), (0.0, 1.0), (1.0, 0.0)),
}
"""Losses that are parabolas on both sides of a target of -1 or 1, their curvatures below and above it, for either."""
WEIGHTS = np.geomspace(1e-40, 1e3, 44)


def conjugate(slope, weight, y, bend):
    """Of weight * bend / 2 * (f - y)^2, in exact numbers."""
    slope, weight = Fraction(float(slope)), Fraction(float(weight))
    return Fraction(0) if slope == 0 else slope * Fraction(y) + slope * slope / (2 * weight * Fraction(bend))


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "arrays"])
@pytest.mark.parametrize("sigma", [0.05, 9.6, 1e6])
@pytest.mark.parametrize("name", PARABOLAS)
def test_rows_of_next_to_no_weight(name, sigma, compiled):
    """They prove no more than the conjugate at their slope, which is that of the loss, as its derivative is."""
    loss, *curvatures = PARABOLAS[name]
    if not compiled:
        alone = type("Alone", (type(loss),), {"prox_row": None})
        loss = alone(*dataclasses.astuple(loss))
    for y, bends in zip((-1.0, 1.0), curvatures, strict=True):
        targets, weights = np.array([*[y] * WEIGHTS.size, -y]), np.append(WEIGHTS, 1.0)
        data = Dataset.from_arrays(np.ones((targets.size, 1)), targets, weights=weights)
        rows = ability(LinearRisk(data, loss), Scored).phi.bound.whole
        for z in (-560.9, -3.0, 0.9999, 2.5, 1e5):
            bend = bends[0] if z < y else bends[1]
            for row, weight in enumerate(rows.weights[:-1]):
                (value, product, _), (slope,), (bent,) = rows.part(row, row + 1).moreau(np.array([z]), sigma)
                least, rounding = conjugate(slope, weight, y, bend), 1e-15 * (abs(value) + abs(product))
                assert product - value >= float(least) - rounding - 1e-15 * abs(float(least))
                expected = sigma * weight * bend / (sigma + weight * bend)
                assert bent == pytest.approx(expected, rel=1e-9, abs=0.0)
                assert slope == pytest.approx(expected * (z - y), rel=1e-9, abs=0.0)
