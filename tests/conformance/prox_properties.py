"""What proximal maps of the package must be besides the laws of `bmrm.checks`: functions that raise AssertionError.

f = prox(z) minimises step * loss(f) + 1/2 (f - z)^2, so that (z - f) / step is a subgradient at f.
"""

import dataclasses

import numpy as np

from bmrm.checks.convex import UNIT
from bmrm.losses._core.prepared import ProximalRows, envelope_kernels
from bmrm.problem import Targets
from bmrm.risk.score_function import BoundLoss, LossPhi
from tests.conformance.loss_properties import near
from tests.conformance.twins_prox import twin_points

PROPERTIES = {}
STEPS = (1e-12, 1e-3, 0.3, 1.0, 7.0, 1e3, 1e12)


def law(function):
    PROPERTIES[function.__name__] = function
    return function


def scores(case):
    """Random ones, adversarial ones, and far ones of both signs."""
    return [*case.all_scores(), *(30.0 * case.generic_scores(seed) for seed in (3, 4))]


def points(case, step, z):
    """f, its derivative, and the targets."""
    y = case.prepare().y
    return *case.loss.prox(z, step, y), y


@law
def slope_is_met(case):
    """Where the loss is smooth, f - z + step * slope(f) is 0 up to rounding, and that of f inside the slope."""
    if not case.loss.smooth:
        return
    for step in STEPS:
        for z in scores(case):
            f, _, y = points(case, step, z)
            slope, sizes = case.loss.slope(f, y), 1.0 + np.abs(f) + np.abs(y)
            ends = [case.loss.slope(f + side * 1e-8 * sizes, y) for side in (-1.0, 1.0)]
            moved = np.abs(ends[1] - ends[0]) / 1e-8
            rounding = np.abs(z) + sizes + step * (np.abs(slope) + moved)
            assert np.all(np.abs(f - z + step * slope) <= 1e-14 * rounding)


@law
def twin_is_the_same(case):
    """Formulas for arrays, or bracketing: two that are right up to rounding differ by what rounding moves."""
    for step in (0.0, *STEPS):
        for z in scores(case):
            f, at, y = points(case, step, z)
            found, change = twin_points(case.loss, z, step, y)
            slack = np.abs(z) + np.abs(f) + np.abs(y) + step * np.abs(case.loss.slope(f, y)) * at
            assert np.all(np.abs(found - f) <= 100.0 * UNIT * slack)
            assert np.all(np.abs(change - at) <= 1e-9 * np.abs(at) + 1e-12)


@law
def weights_stretch_the_step(case):
    """The envelope of weighted rows: the slope is a subgradient of weight * loss, 0 where the weight is."""
    weights = np.random.default_rng(9).choice([0.0, 0.5, 1.0, 3.0], size=case.rows)
    prepared = case.prepare(case.weighing(weights))
    for sigma in (0.01, 0.7, 50.0):
        for z in scores(case):
            sums, slope, curvature = prepared.moreau(z, sigma)
            f, at = case.loss.prox(z, weights / sigma, prepared.y)
            sizes = np.abs(z) + np.abs(f) + np.abs(prepared.y)
            assert np.all(np.abs(slope - sigma * (z - f)) <= 1e-13 * sigma * sizes)
            near(curvature, sigma * (1.0 - at), 1e-9)
            assert not slope[weights == 0.0].any()
            assert not curvature[weights == 0.0].any()
            present = weights > 0.0
            values = weights[present] * case.loss.value(f, prepared.y)[present]
            near(sums[0], np.sum(values), 1e-10)
            near(sums[1], np.sum(sigma * (z - f) * f), 1e-10)
            near(sums[2], np.sum((z - f) ** 2), 1e-10)


@law
def conjugate_bounds_the_loss(case):
    """<slope, g> - conjugate <= phi(g) for every g (Fenchel), with equality at f."""
    phi = LossPhi(BoundLoss(case.loss, case.targets, case.summary()))
    assert phi.facts.prox
    for sigma in (0.01, 0.7, 50.0):
        for z in scores(case):
            found = phi.moreau(z, sigma)
            f = z - found.slope * phi.facts.mass / sigma
            for g in (*scores(case), f):
                value = phi.value_and_slope(g)[0]
                if np.isfinite(value):
                    sizes = np.sum(np.abs(found.slope) * (np.abs(g) + np.abs(f))) + np.abs(value)
                    of_slope = sigma / phi.facts.mass * np.sum((np.abs(z) + np.abs(f)) * (np.abs(g) + np.abs(f)))
                    rounding = 1e-12 * (1.0 + sizes) + 1e-15 * of_slope
                    assert found.slope @ g - found.conjugate <= value + rounding
            distance = 0.5 * sigma / phi.facts.mass * np.sum((z - f) ** 2)
            assert found.value <= phi.value_and_slope(f)[0] + distance + 1e-11 * (1.0 + abs(found.value) + distance)
            assert found.value >= found.slope @ z - found.conjugate - distance - 1e-11 * (1.0 + abs(found.value))


@law
def envelope_without_kernels_is_the_same(case):
    """A loss that gives `prox` alone."""
    if envelope_kernels(case.loss) is None:
        return
    prepared = case.prepare(Targets(case.targets.y, np.linspace(0.0, 2.0, case.rows), case.targets.groups))
    assert isinstance(prepared, ProximalRows)
    alone = type("Alone", (type(case.loss),), {"prox_row": None, "value_row": None})
    loss = alone(**{field.name: getattr(case.loss, field.name) for field in dataclasses.fields(case.loss)})
    other = type(prepared)(loss, prepared.y, prepared.weights, 1, prepared.arguments)
    z, step, ts = case.generic_scores(2), case.generic_scores(4), np.array([0.0, 0.3, 2.0])
    for sigma in (0.05, 2.0):
        for a, b in zip(prepared.moreau(z, sigma), other.moreau(z, sigma), strict=True):
            near(a, b, 1e-9)
        for a, b in zip(prepared.moreau_along(z, step, sigma)(ts), other.moreau_along(z, step, sigma)(ts), strict=True):
            near(a, b, 1e-9)
