"""The minimum over one constant added to all scores: a bracket, narrowed by batches of trial points.

Not the rule of ../../solvers/_core/rowwise.py, which tries one constant at a time: losses here sort their scores, or
are on other ranks, so that several points cost little more than one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bmrm.numerics.bracket import ROUNDING, At, Trial, TrialRule, meeting, narrowed, shares
from bmrm.numerics.line_search import Along, trials_of
from bmrm.problem import IncompatibleError, ScoreFunction, Scores
from bmrm.risk.constants.mixture import UNBOUNDED, Mixture, Point, mixture_of, overflow, point_at, vanishes

PUSHES = 300
"""Most steps towards a bracket, each 16 times longer than the one before."""
LEAST = 1e-100
"""Least first step."""
FARTHEST = 1e300
"""Largest size of a constant at which a bracket is searched."""
MEETINGS = 50
"""Most tangents that are added where those at the ends of a bracket meet below the values there."""
LOOSE = 4.0 * ROUNDING
"""How far below, relative, that is more than rounding."""
BESIDE = 0.1
"""The point where the tangent reaches the infimum is taken if it is this near to its end of the bracket, as a share of
it."""


class _Batches(TrialRule):
    """All that may be good inside the bracket, as long as that shrinks.

    Parameters
    ----------
    infimum : as of `search`.
    size : how wide the first bracket is: a point near 0 may be as far from the minimum.
    """

    def __init__(self, infimum: float, size: float) -> None:
        self._width, self._infimum, self._size = math.inf, infimum, size

    def settled(self, trial: Trial) -> bool:
        """A nan says that rows of both signs overflow: one of them does wherever b is."""
        if math.isnan(trial.derivative):
            return True
        return trial.flat and abs(trial.derivative) * self._size <= ROUNDING * abs(trial.value)

    def following(self, low: Trial | None, high: Trial | None, here: Trial) -> list[float]:
        if low is None or high is None:
            return []
        before, self._width = self._width, high.t - low.t
        return _inside(low, high, self._infimum) if self._width < before else []


def _inside(low: Trial, high: Trial, infimum: float) -> list[float]:
    """The meeting of the tangents is exact for one kink, the secant for a parabola; others shrink the bracket.

    None where the ends are as good as their mixture, up to rounding. Where an end is so near to the infimum that the
    other one rounds more than is left, those are where its tangent reaches the infimum, beyond which no minimum lies.
    """
    width = high.t - low.t
    wanted = [low.t + 0.5 * width]
    if not low.t < 0.5 * (low.t + high.t) < high.t:
        return []
    if low.finite and high.finite:
        nearer = [
            t for end in (low, high) if (t := _at_infimum(end, width, infimum)) is not None and low.t < t < high.t
        ]
        meet = low.t + min(max(meeting(low, high), 0.0), width)
        ahead, back = -low.derivative * (meet - low.t), high.derivative * (high.t - meet)
        loss = max(0.0, ahead if low.value < high.value else back)
        if loss <= ROUNDING * min(abs(low.value), abs(high.value)) and not nearer:
            return []
        secant, nearby = low.t - low.derivative * width / (high.derivative - low.derivative), 0.01 * width
        wanted += [meet, secant - nearby, secant, secant + nearby, *nearer]
    return sorted({t for t in wanted if low.t < t < high.t})


def _at_infimum(end: Trial, width: float, infimum: float) -> float | None:
    """Where the tangent reaches the infimum; None unless that is beside `end`, for a bracket so wide."""
    if not end.derivative:
        return None
    away = (end.value - infimum) / abs(end.derivative)
    return end.t - math.copysign(away, end.derivative) if away <= BESIDE * width else None


def search(curve: Along, start: float, reach: float, infimum: float = -math.inf) -> tuple[Trial, Trial] | None:
    """Around the minimum of a convex curve, tight up to rounding; None where the curve is +inf everywhere.

    Parameters
    ----------
    curve : b -> (values, derivatives), for a vector of b.
    start, reach : where the minimum is expected, and how far from there.
    infimum : the curve is never below.
    """
    at = trials_of(curve)
    with np.errstate(over="ignore", invalid="ignore"):  # rows that overflow make a sum inf or nan, and are told so
        first, *others = _around(at, start, reach)
        rule = _Batches(infimum, max([other.t - first.t for other in others], default=0.0))
        low, high = (first, first) if rule.settled(first) else narrowed(at, others, rule, first)
    return None if low is None or high is None or math.isnan(low.derivative) else (low, high)


def _around(at: At, start: float, reach: float) -> list[Trial]:
    """Trials whose ends are a bracket, four at a time and each 256 times farther; or those with a nan among them.

    Before there is a bracket a small derivative says little: values far from the minimum may be all rounding.
    """
    trials = list(at([start - reach, start, start + reach]))
    while not (trials[0].derivative <= 0.0 <= trials[-1].derivative):
        if any(math.isnan(trial.derivative) for trial in trials):
            return [trial for trial in trials if math.isnan(trial.derivative)]
        if reach > FARTHEST:
            raise IncompatibleError(UNBOUNDED)
        falling = trials[0].derivative <= 0.0
        end, side = (trials[-1], 1.0) if falling else (trials[0], -1.0)
        far = list(at(sorted(end.t + side * reach * times for times in (4.0, 16.0, 64.0, 256.0))))
        trials = [end, *far] if falling else [*far, end]
        reach *= 256.0
    return trials


def minimum_over_constant(
    phi: ScoreFunction, f: Scores, start: float, reach: float, rounding: float, infimum: float = -math.inf
) -> Mixture:
    """The mixture for one score per row; parameters are those of `search`, `rounding` as of `vanishes`."""
    bracket = search(phi.along(f, phi.constant(np.ones(1))), start, reach, infimum)
    if bracket is None:
        return overflow(np.array([start]))
    ends = [point_at(phi, f, np.array([trial.t])) for trial in dict.fromkeys(bracket)]
    alone = [end for end in ends if end.finite and vanishes(phi, end.slope, end.sums, rounding)]
    if alone:
        return mixture_of(alone[:1], np.ones(1))
    low, high = bracket
    left = [_at_infimum(trial, 1.0, infimum) for trial in bracket]  # beside it constants differ by less than 1
    unit = min((abs(at - trial.t) for at, trial in zip(left, bracket, strict=True) if at is not None), default=1.0)
    push = max(ROUNDING * max(unit, abs(low.t)), 1e-3 * (high.t - low.t), LEAST)
    ends = _apart(phi, f, ends, push)
    if not all(end.finite for end in ends):
        return overflow(np.array([start]))
    found = _tight(phi, f, ends)
    if found.value < infimum <= found.least:  # the plane of slope 0 is higher
        return replace(found, points=(), shares=(), value=infimum, slopes=())
    return found


def _tight(phi: ScoreFunction, f: Scores, ends: list[Point]) -> Mixture:
    """Of the tangents at the ends, or at points between them: at a kink slopes may take another side than the curve.

    Such tangents meet below the minimum, by the kinks between them; a tangent where they meet shows one of these.
    """
    for _ in range(MEETINGS):
        trials = [Trial(float(end.b[0]), end.value, float(end.sums[0])) for end in ends]
        low, high = trials[0], trials[-1]
        found = mixture_of(ends, np.array(shares(low, high)[: len(ends)]))
        if len(ends) < 2 or not found.least - found.value > LOOSE * abs(found.least):
            break
        t = low.t + meeting(low, high)
        here = point_at(phi, f, np.array([t])) if low.t < t < high.t else None
        if here is None or not here.finite:
            break
        ends = [here, ends[-1]] if here.sums[0] <= 0.0 else [ends[0], here]
    return found


def _apart(phi: ScoreFunction, f: Scores, ends: list[Point], push: float) -> list[Point]:
    """Ends whose sums have their signs: slopes may take another side of a kink than the curve did.

    They step outwards, `push` at first, until then, or until one is not finite.
    """
    for _ in range(PUSHES):
        low, high = ends[0], ends[-1]
        if low.sums[0] <= 0.0 <= high.sums[0] or not (low.finite and high.finite):
            return ends
        if push > FARTHEST:
            break
        ends = [point_at(phi, f, low.b - push), low] if low.sums[0] > 0.0 else [high, point_at(phi, f, high.b + push)]
        push *= 16.0
    raise IncompatibleError(UNBOUNDED)
