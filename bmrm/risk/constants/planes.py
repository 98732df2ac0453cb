"""The minimum over several constants added to the scores of all rows, by planes: exact for losses with kinks.

docs/decisions/free-intercept.md says why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from bmrm.masters._core.mixing import AWAY, Mixing
from bmrm.problem import Check, IncompatibleError, ScoreFunction, Scores, Vector
from bmrm.problem.risk import rounding_of_slopes
from bmrm.risk.constants.mixture import EPS, UNBOUNDED, Mixture, Point, point_at

ACCURACY = 1e-12
"""Relative distance of the mixture to the minimum at which the search stops."""
REACH = 10.0
"""First depth of the artificial planes below the best value, as a multiple of it: it bounds the first steps."""
STEPS, STEPS_EACH = 40, 20
"""Most evaluations of a search, and how many more for each constant. The best mixture so far is valid wherever it
ends."""
STEEP = 4.0 * EPS
"""Rounding error of the sums, relative to the sums of absolute slopes, of which they are differences."""
STILL, NEAR, LONG = 3, 1e-7, 6
"""Stall limits. Within a relative distance NEAR of the minimum the search ends after STILL evaluations without progress
(one for each constant at least), elsewhere after LONG (K + 1)."""
FALL = 16.0 * EPS
"""Minimum relative decrease: for less, constants far away would cost digits of the scores."""
HALVINGS = 60
FEW = 1e-6
"""Weight of artificial planes above which the linear program counts as infeasible rather than degenerate."""
CLOSINGS, OPPOSED = 2, 10
"""Most searches, for each constant, for slopes that make the sums cancel, and most evaluations in one."""
BYTES = 2**29
"""Most bytes of slopes that are kept during a search, unless one plane more than the constants needs more."""
OPEN = 1e-3
"""Loss of the bound by sums that are not 0, as a share of the best value, above which a mixture is rejected."""
AGE = 20
"""Searches after which a plane is evaluated anew; until then its offset is updated by differences."""
FAR = 8.0
"""Scores larger than the present ones by this factor leave no accurate offsets of their planes."""


@dataclass(eq=False)
class Cut:
    """A plane in the constants: value + <sums, b' - b>, of which `slope` is that in all scores.

    `slope` is None where it was forgotten, and is to be found again at `b`. `age` and `size` are as of `Remembered`.
    """

    b: Vector
    value: float
    sums: Vector
    slope: Scores | None
    age: int = 0
    size: float = 0.0


@dataclass
class Remembered:
    """Planes that the last search has mixed: those of phi hold at all scores.

    Attributes
    ----------
    full : scores at which the cuts have their values; None before the first search.
    steepest : the largest sum of absolute values of a slope that was met.
    cuts : their planes. `age` counts the searches since they were evaluated, `size` is that of the scores they met.
    """

    full: Scores | None = None
    cuts: list[Cut] = field(default_factory=list)
    steepest: float = 0.0

    def at(self, phi: ScoreFunction, full: Scores, b: Vector, size: float) -> list[Cut]:
        """The cuts at other scores, which contain the constants b."""
        fit = [cut for cut in self.cuts if cut.age < AGE and cut.size <= FAR * size]
        if not fit:
            return []
        step = full - self.full
        return [
            Cut(b, cut.value + phi.product(cut.slope, step), cut.sums, cut.slope, cut.age + 1, max(cut.size, size))
            for cut in fit
        ]


def minimum_by_planes(
    phi: ScoreFunction,
    f: Scores,
    here: Point,
    remembered: Remembered,
    rounding: float,
    infimum: float,
    check: Check,
) -> Mixture:
    """The best mixture of tangents, from `here` on; `rounding` is that of `vanishes`."""
    terms = float(phi.magnitude(here.slope).sum())
    remembered.steepest = max(remembered.steepest, terms, _terms_at_zero(phi) if remembered.full is None else 0.0)
    rows = float(phi.total(phi.constant(np.ones(len(here.b))))[0])
    own = rounding_of_slopes(phi, f + phi.constant(here.b), here.slope, rows)
    noise = max(rounding * terms, STEEP * remembered.steepest, own)
    # Classes that only compare scores ignore a common shift: then the last constant stays where it is.
    size = len(here.b) - int(_shift_free(here.sums, remembered.steepest, noise))
    search = _Search(phi, f, here, remembered, noise, infimum, size)
    search.run(check)
    if search.shifted:
        search = _Search(phi, f, search.best_point, Remembered(), noise, infimum, len(here.b))
        search.run(check)
    return search.mixture(remembered)


def _terms_at_zero(phi: ScoreFunction) -> float:
    return float(phi.magnitude(phi.value_and_slope(phi.constant(np.zeros(phi.facts.scores_per_row)))[1]).sum())


def _shift_free(sums: Vector, terms: float, noise: float) -> bool:
    return abs(float(sums.sum())) <= 1e-12 * max(terms, float(np.abs(sums).sum())) + len(sums) * noise


class _Search:
    """One search.

    Attributes
    ----------
    best : the lowest point.
    shifted : whether a plane was met that a common shift changes, though the first was not of that kind.
    """

    def __init__(
        self,
        phi: ScoreFunction,
        f: Scores,
        here: Point,
        remembered: Remembered,
        noise: float,
        infimum: float,
        size: int,
    ) -> None:
        self.phi, self.f, self.size, self.infimum = phi, f, size, infimum
        self.shifted, self.steepest = False, 0.0
        self.best_point = here
        self._rows = float(phi.total(phi.constant(np.ones(len(here.b))))[0])
        full = f + phi.constant(here.b)
        self._extent = float(phi.magnitude(full).sum()) / self._rows
        self._model, self._noise = Mixing(size), noise
        self._floors = int(math.isfinite(infimum))
        if self._floors:
            self._model.add(np.zeros(size), infimum, 0.0)  # a plane, too
        self._cuts: list[Cut] = []
        self._told = np.empty((STEPS, 2 * len(here.b) + 1))
        """Sums, constants and value of each cut."""
        self._held = 0
        self._reach, self._looks = REACH, 0
        self._opposed: Vector = np.empty(0)
        self._room = max(size + 2, int(BYTES / (8.0 * self._rows * len(here.b))))
        for cut in remembered.at(phi, full, here.b, self._extent):
            self._take(cut)
        self.warm = bool(self._cuts)
        self._take(self._cut_of(here))

    @property
    def best(self) -> Point:
        """The lowest point."""
        return self.best_point

    def run(self, check: Check) -> None:
        """Until the mixture is as good as the best point, or rounding rules, or enough is enough."""
        inward, still = 0.0 if self.warm else 0.5, 0
        before = -math.inf, math.inf
        closings = 0
        while self._looks < STEPS + STEPS_EACH * self.size and not self.shifted:
            check()
            x, bound = self._solved()
            accuracy = max(ACCURACY * abs(self.best.value), 16.0 * EPS * self._model.scale)
            moved = bound > before[0] + 0.1 * accuracy or self.best.value < before[1] - 0.1 * accuracy
            still = 0 if moved else still + 1
            before = max(bound, before[0]), self.best.value
            gap = self.best.value - bound
            if gap <= accuracy or still >= (
                max(STILL, self.size) if gap <= NEAR * abs(self.best.value) else LONG * (self.size + 1)
            ):
                if self._closed() or closings > CLOSINGS * (self.size + 1):
                    break
                self._model.part_no_ties()
                closings, still = closings + 1, 0
                if not self._oppose(check):
                    break
                continue
            lowest, centre = self.best.value, self.best.b
            trial = self._look((1.0 - inward) * x)
            if trial is None:
                break
            target = centre + x
            cuts_off = trial.value + float(trial.sums @ (target - trial.b)) > bound + 0.1 * accuracy
            inward = 0.0 if not cuts_off else 0.5
            if trial.value < lowest and self._model.artificial > 0.5 * FEW:
                self._reach *= 4.0

    def _closed(self) -> bool:
        """Whether there is a mixture, whose sums are so near to 0 that they count for little at the best constants."""
        if not self._model.feasible:
            return False
        return self._lost() <= NEAR * max(abs(self.best.value), self._model.scale)

    def _lost(self) -> float:
        """What sums that are not quite 0 count at the best constants.

        Those of a constant that stays where it is, too: where scores are huge, so is the noise of the sums, and a loss
        may be taken to ignore a common shift that does not.
        """
        b, size = self.best.b, self.size
        pairs = [(k - self._floors, share) for k, share in self._model.mixture() if k >= self._floors]
        others = sum((share * self._cuts[k].sums[size:] for k, share in pairs), np.zeros(len(b) - size))
        return self._model.lost(b[:size]) + float(np.abs(others) @ np.abs(b[size:]))

    def _oppose(self, check: Check) -> bool:
        """Look where slopes are opposite to what the sums of the mixture leave: a little of them makes these cancel.

        False where that is in vain: the last look for these sums has not changed them.
        """
        self._solved()
        left = self._model.residual
        if not left.any() or np.array_equal(left, self._opposed):
            return False
        self._opposed = left
        straight = left / np.abs(left).max()  # squares of what is left may underflow
        straight /= np.linalg.norm(straight)
        way = np.concatenate((-straight, np.zeros(len(self.best.b) - self.size)))
        length = 1.0
        for _ in range(OPPOSED):
            check()
            trial = self._look(length * way)
            if trial is None or self.shifted or float(trial.sums @ way) >= float(straight @ left):
                break
            length *= 8.0
        return True

    def mixture(self, remembered: Remembered) -> Mixture:
        """The result; its planes are remembered."""
        costs = self._costs()
        best = self.best
        self._solved()
        if not self._model.feasible:
            if not self._floors:
                raise IncompatibleError(UNBOUNDED)
            return Mixture((), (), min(self.infimum, best.value), best.b, best.value)
        pairs = self._model.mixture()
        value = float(sum(share * costs[k] for k, share in pairs))
        # What the sums leave counts where the minimum is at other constants, which may be as large or larger.
        left = AWAY * self._lost()
        value -= left if left > ACCURACY * abs(value) else 0.0
        unknown = self._floors and left > OPEN * max(abs(best.value), self._model.scale)
        if unknown or value < self.infimum:  # these slopes hold so low only; at the infimum that of 0 does
            return Mixture((), (), min(self.infimum, best.value), best.b, best.value)
        used = [(self._cuts[k - self._floors], share) for k, share in pairs if k >= self._floors]
        self._remember(remembered, costs)
        return Mixture(
            tuple(cut.b for cut, _ in used),
            tuple(share for _, share in used),
            min(value, best.value),
            best.b,
            best.value,
            tuple(cut.slope for cut, _ in used),
        )

    def _remember(self, remembered: Remembered, costs: Vector) -> None:
        remembered.full = self.f + self.phi.constant(self.best.b)
        remembered.cuts, remembered.steepest = [], max(remembered.steepest, self.steepest)
        for k in self._model.used:
            if k >= self._floors and self._cuts[k - self._floors].slope is not None:
                cut = self._cuts[k - self._floors]
                remembered.cuts.append(
                    Cut(self.best.b, float(costs[k]), cut.sums, cut.slope, cut.age, max(cut.size, self._extent))
                )

    def _cut_of(self, point: Point) -> Cut:
        return Cut(point.b, point.value, point.sums, point.slope, 0, self._extent)

    def _take(self, cut: Cut) -> None:
        self._model.add(cut.sums[: self.size], 0.0, self._noise)
        if len(self._cuts) == len(self._told):
            self._told = np.vstack((self._told, np.empty_like(self._told)))
        self._told[len(self._cuts)] = np.concatenate((cut.sums, cut.b, [cut.value]))
        self._cuts.append(cut)
        self._held += cut.age == 0
        if self._held > self._room:
            held = [k for k, one in enumerate(self._cuts) if one.slope is not None and one.age == 0]
            used = set(self._model.used - self._floors)
            idle = [k for k in held[:-1] if k not in used]
            if idle:
                self._cuts[idle[0]].slope = None
                self._held -= 1

    def _rounding_at(self, trial: Point, terms: float) -> float:
        """Of its value, where scores have lost digits by constants farther off than those of the best point.

        `terms` is the size of its slopes. Those of either point show what scores count.
        """
        farther = float(np.max(np.abs(trial.b))) - float(np.max(np.abs(self.best.b)))
        if not farther > 0.0:
            return 0.0
        return EPS * farther * max(terms, float(self.phi.magnitude(self.best.slope).sum()))

    def _costs(self) -> Vector:
        """The heights of all planes at the best point."""
        K, told = len(self.best.b), self._told[: len(self._cuts)]
        heights = told[:, -1] + np.einsum("ij,ij->i", told[:, :K], self.best.b - told[:, K:-1])
        return np.append([self.infimum] * self._floors, heights)

    def _solved(self) -> tuple[Vector, float]:
        """How far from the best point the model has its minimum, and its height there."""
        value = self.best.value
        self._model.price(self._costs(), value, self._reach * (1.0 + abs(value)))
        x, height = self._model.solve()
        return np.concatenate((x, np.zeros(len(self.best.b) - self.size))), height

    def _look(self, step: Vector) -> Point | None:
        """The point so far from the best one, or nearer where phi is not finite there; its plane is taken."""
        trial = None
        for _ in range(HALVINGS):
            self._looks += 1
            trial = point_at(self.phi, self.f, self.best.b + step)
            if trial.finite:
                break
            step = 0.5 * step
        if trial is None or not trial.finite:
            return None
        terms = float(self.phi.magnitude(trial.slope).sum())
        self.steepest = max(self.steepest, terms)
        own = rounding_of_slopes(self.phi, self.f + self.phi.constant(trial.b), trial.slope, self._rows)
        self._noise = max(self._noise, STEEP * terms, own)
        if self.size < len(trial.b) and not _shift_free(trial.sums, terms, self._noise):
            self.shifted = True
        self._take(self._cut_of(trial))
        if trial.value < self.best.value - FALL * abs(self.best.value) - self._rounding_at(trial, terms):
            self.best_point = trial
        return trial
