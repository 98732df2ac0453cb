"""The minimum over several constants added to the scores of all rows: Newton, or cutting planes by a small simplex.

docs/decisions/free-intercept.md says why.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bmrm.masters.mixing import Mixing
from bmrm.problem import IncompatibleError, ScoreFunction, Scores, Vector, magnitude_of
from bmrm.risk.mixture import EPS, UNBOUNDED, Mixture, mixture_of, overflow
from bmrm.risk.mixture_newton import Array, Memory, Point, newton, point_at, step_to_zero

ACCURACY = 1e-12
"""Relative distance of the mixture to the minimum at which cutting planes stop."""
WALLS = (1e1, 1e3, 1e6, 1e9, 1e12)
"""How low the artificial planes start, relative to the value; raised while they matter."""
STEPS = 500
OPPOSITE = 1e4
"""How many Newton steps away the point is with which sums that are nearly 0 are corrected."""


class Cut(NamedTuple):
    """phi at `b`, and the sums over rows of its slope there."""

    b: Vector
    value: float
    sums: Vector


def minimum_over_constants(phi: ScoreFunction, f: Scores, start: Vector, memory: Memory, rounding: float) -> Mixture:
    """The mixture for K scores per row, searched from `start`, (K,); `rounding` is that of `vanishes`."""
    here = point_at(phi, f, start)
    if not here.finite:
        here = point_at(phi, f, np.zeros(len(start)))
    if not here.finite:
        return overflow(start)
    if phi.smooth and phi.curved:
        here, settled = newton(phi, f, here, memory, rounding)
        if settled:
            alone = mixture_of([here.b], np.array([here.value]), here.sums[None, :], np.ones(1), here.b, here.value)
            return replace(alone, slopes=(here.slope,))
        if memory.curvature is not None:
            corrected = _corrected(phi, f, here, memory.curvature, rounding)
            if corrected is not None:
                return corrected
    return _cutting_planes(phi, f, here, rounding)


def _corrected(phi: ScoreFunction, f: Scores, here: Point, curvature: Array, rounding: float) -> Mixture | None:
    """`here`, whose sums are small, mixed with a little of a point where they are opposite and large; None if in vain.

    Scores are rounded when a constant is added to them, so that no constant makes the sums smaller than the second
    derivative times this rounding; the slopes are right, for the rounded scores.
    """
    step = step_to_zero(curvature, here)
    if step is None:
        return None
    other = point_at(phi, f, here.b + OPPOSITE * step)
    rise = other.sums - here.sums
    if not other.finite or not rise.any():
        return None
    share = float(-(here.sums @ rise) / (rise @ rise))
    if not 0.0 < share < 1.0:
        return None
    shares = np.array([1.0 - share, share])
    left = np.abs(shares @ np.array([here.sums, other.sums]))
    values = np.array([here.value, other.value])
    best = here if here.value <= other.value else other
    found = mixture_of([here.b, other.b], values, np.array([here.sums, other.sums]), shares, best.b, best.value)
    if np.any(left > rounding * magnitude_of(phi, here.slope)) or best.value - found.value > ACCURACY * abs(best.value):
        return None
    return replace(found, slopes=(here.slope, other.slope))


def _at(phi: ScoreFunction, f: Scores, b: Vector) -> Cut:
    here = point_at(phi, f, b)
    return Cut(b, here.value, here.sums)


def _cutting_planes(phi: ScoreFunction, f: Scores, here: Point, rounding: float) -> Mixture:
    """The best mixture of tangents, planes being added where the model and the best point lead."""
    first, start = Cut(here.b, here.value, here.sums), here.b
    terms = float(magnitude_of(phi, here.slope).sum())
    noise = rounding * terms
    # Classes that only compare scores ignore a common shift: then the last constant stays where it is.
    size = len(start) - int(_shift_free(first, terms))
    for wall in WALLS:
        cuts, model = [first], Mixing(size, first.value - wall * (1.0 + abs(first.value)), noise)
        model.add(first.sums[:size], first.value)
        best, inward = first, 0.5
        for _ in range(STEPS):
            x, bound = model.solve()
            b = start.copy()
            b[:size] += x
            accuracy = max(ACCURACY * abs(best.value), 16.0 * EPS * model.scale)
            if best.value - bound <= accuracy:
                if model.feasible:
                    break
                model.part_no_ties()
            trial = _at(phi, f, inward * best.b + (1.0 - inward) * b)
            if size < len(start) and not _shift_free(trial, terms):
                size = len(start)
                break
            cuts_off = trial.value + trial.sums @ (b - trial.b) > bound + 0.1 * accuracy
            if not cuts_off and inward == 0.0 and trial.value >= best.value:
                break
            inward = 0.5 if cuts_off else 0.0
            model.add(trial.sums[:size], trial.value - float(trial.sums[:size] @ (trial.b - start)[:size]))
            cuts.append(trial)
            best = trial if trial.value < best.value else best
        if model.size == size and model.feasible:
            used, shares = zip(*((cuts[k], share) for k, share in model.mixture()), strict=True)
            return mixture_of(
                [cut.b for cut in used],
                np.array([cut.value for cut in used]),
                np.array([cut.sums for cut in used]),
                np.array(shares),
                best.b,
                best.value,
            )
    raise IncompatibleError(UNBOUNDED)


def _shift_free(cut: Cut, terms: float) -> bool:
    return abs(float(cut.sums.sum())) <= 1e-12 * max(terms, float(np.abs(cut.sums).sum()))
