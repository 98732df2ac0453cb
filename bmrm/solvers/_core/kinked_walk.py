"""Losses with kinks and l2 along lambdas: the method of multipliers, on the rows whose slopes may change.

Between lambdas most rows stay on the same linear piece of their loss: their slopes, and what these sum up to, are kept.
Hastie, Rosset, Tibshirani & Zhu 2004: the dual variables of the hinge are linear in pieces along lambda, the weights
along 1 / lambda. Li, Sun & Toh 2018: the steps, as in ../semismooth_newton.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.kernels.products.vectors import careful_norm, dot, norm
from bmrm.numerics.line_search import Along, step_length
from bmrm.problem import Elastic, Regularizer, Risk, Scored, Vector, ability, provides
from bmrm.problem.abilities import RowParts
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import Meter
from bmrm.solvers._core.augmented_lagrangian import FLAT, AugmentedLagrangian, Subproblem, is_solved, unit_of
from bmrm.solvers._core.kept_walk import EPS, MORE, SPARE, AllColumns, Guess, KeptWalk, Proved, served
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.newton.row_space import RowGram
from bmrm.solvers._core.row_proofs import RowProofs
from bmrm.solvers._core.rowwise import ProfiledLoss, RowwiseRisk

LONGEST, DEAREST = 200.0, 100.0
"""Most entries of a row with which Gram matrices cost little beside reading the rows, and most operations of a
factorisation, in thirds, for each of all entries."""
AT_ONCE = 10
"""Points whose proofs read the rows together."""
ROUNDS, IDLE = 40, 8
"""Most times that all rows are looked at for a point, and how often in a row without half the gap."""
STEPS, HARD = 30, 12
"""Most Newton steps on a part of the rows, and for one subproblem: a penalty may be too large for it."""
EASY, GROWTH = 3, 2.5
"""Steps up to which a subproblem counts as easy, and the factor of the penalty when multipliers change; then its
square."""
BACK, OFTEN = 4.0, 2
"""By what the penalty is reduced after a step of which less than half is taken, and number of such steps from which on
multipliers of a part change only where its subproblem is solved from the beginning."""
MOST, LEAST = 0.3, 2
"""Most rows of a part at first, as a share of all, and least, in multiples of the dimension."""
FINER, FINE = 0.05, 0.2
"""The gap on the part of the rows, as a share of that of all rows; not below this share of the gap that is allowed."""
NEARER = 0.3
"""How far scores may move, as a share of the last move."""
FIRST, SHARP = 0.3, 3.0
"""The first penalty, in units of a row's curvature; later ones, in steps of a slope over the reach of scores."""
FADING = 0.1
"""The least error of a prediction that is presumed, as a share of that of the last point."""
SAME = 1e-12
"""Slopes that differ by less, relative to the steepest, are the same; proofs do not depend on that."""
WIDENINGS = 40
"""Most times that the reach is doubled or halved."""
BESIDE = 16.0
"""How far from a kink its slopes are taken, in units of roundoff."""
ORDER = 3
"""Points through which weights and multipliers are extrapolated."""


def walk_of(risk: Risk, regularizer: Regularizer, solver: IterativeSolver) -> KeptWalk | None:
    """The walk, where it is such a problem, in one process, of few weights."""
    found = served(risk, solver, pieces=True)
    if found is None or solver.name != "auto" or ability(risk, RowParts) is None:
        return None
    _, size = found
    cheap = size.entries <= LONGEST * size.rows and risk.dim**3 <= DEAREST * size.entries
    few = cheap and LEAST * risk.dim <= MOST * size.rows
    ridge = provides(regularizer, Elastic) and regularizer.l1 == 0.0 and regularizer.l2 > 0.0
    if not (few and ridge):
        return None
    return KeptWalk(solver, KinkedDescent, "multipliers kept for all lambdas", "semismooth_newton")


@dataclass(frozen=True, eq=False)
class _Place:
    """Weights, intercept and multipliers, with their products with all rows.

    Attributes
    ----------
    w, b, scores : the weights, the free intercept (0 for none), and A w.
    slopes, pull : the multipliers u, and A'u.
    """

    w: Vector
    b: float
    scores: Vector
    slopes: Vector
    pull: Vector

    @classmethod
    def mixed(cls, shares: Sequence[float], places: Sequence[_Place]) -> _Place:
        """All of it multiplied by shares and added: no products with rows."""
        names = ("w", "b", "scores", "slopes", "pull")
        return cls(*(sum(s * getattr(one, name) for s, one in zip(shares, places)) for name in names))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class _Found:
    """A place that is to be proved: the scores of which its slopes are those of the loss, and looks at all rows."""

    place: _Place
    proximal: Vector
    rounds: int


@dataclass
class _Scope:
    """Which rows a part is made of, and how sharp their envelopes are.

    Attributes
    ----------
    sigma, reach, most : the penalty, how far scores may move, and the largest share of the rows.
    short : how often a step went less than half as far as it was to go.
    """

    sigma: float
    reach: float
    most: float = MOST
    short: int = 0

    def learn(self, sigma: float, moved: float, share: float) -> None:
        """From a step: scores were to move so far, and went this share of it; `sigma` is the penalty that came of it.

        Where it was short, rows beside the part were in the way, or the penalty is too sharp.
        """
        if share > 0.5:
            self.sigma, self.reach, self.most = sigma, min(self.reach, NEARER * moved), max(0.5 * self.most, MOST)
            return
        self.sigma, self.reach, self.most = sigma / BACK, max(self.reach, moved), min(2.0 * self.most, 1.0)
        self.short += 1


class KinkedDescent(AllColumns):
    """The multipliers, and the points through which the walk goes.

    Parameters
    ----------
    risk, meter : that is minimised, and what passes are charged to.
    start : (dim,), None for 0.
    regularizer : the first.

    Attributes
    ----------
    steps : of Newton's method so far.
    at_once : points whose proofs read the rows together.
    """

    at_once = AT_ONCE

    def __init__(self, risk: Risk, meter: Meter, start: Vector | None, regularizer: Regularizer) -> None:
        risk = metered_risk(risk, meter)
        scored: Any = ability(risk, Scored)
        parts: Any = ability(risk, RowParts)
        self.phi: Any = scored.of_rows
        self.rows = RowwiseRisk(scored.map, self.phi, scored.intercept is not None, risk.dim)
        self.map: Any = scored.map
        self._profiled, self._check = scored.phi, meter.check
        self._parts, self.size, self.steps, self.mass = parts, int(parts.rows), 0, float(self.phi.facts.mass)
        self._proofs, self._gram = RowProofs(self.rows), RowGram(parts)
        self._places: list[tuple[float, _Place]] = []
        """The last ones, by lambda."""
        self._pending: list[_Found] = []
        self._error, self._most = 0.0, ROUNDS
        """Of the last prediction of scores; and most looks at all rows, fewer after points that were not reached."""
        self._start = np.zeros(risk.dim) if start is None else np.array(start, np.float64)

    @property
    def details(self) -> dict[str, Any]:
        """Of solutions."""
        return {"steps": self.steps}

    def move(self, w: Vector) -> None:
        """To a point."""
        self._start, self._places = w, []

    # -- a point ---------------------------------------------------------------------------------

    def guess(self, omega: Any, solver: IterativeSolver) -> Guess:
        """From where the last points lead to, on parts of the rows, until the gap of all rows is small enough."""
        l2 = float(omega.l2)
        first, scope = self._begun(l2) if not self._places else self._predicted(l2)
        model = Subproblem(self.map, self.phi, 0.0, l2, self.rows.free, rows=self._gram, check=self._check)
        place, best, idle, rounds = first, math.inf, 0, 0
        while True:
            state = AugmentedLagrangian.known(
                model, (place.w, place.b, place.scores), place.slopes, place.pull, scope.sigma, self._pulled
            )
            place = _Place(state.w, state.b, state.f, state.envelope.slope, state.risk_gradient)
            objective = state.objective()
            gap, allowed = objective - state.bound, SPARE * solver.goal(objective) * abs(objective)
            idle, best = (0, gap) if gap <= 0.5 * best else (idle + 1, best)
            if gap <= allowed or idle >= IDLE or rounds >= min(self._most, solver.max_iterations):
                break
            near = self._near(state, scope, max(FINE * allowed, FINER * gap))
            place, moved, share = self._moved(state, *near)
            scope.learn(near[-1], moved, share)
            rounds += 1
        self._most = min(2 * self._most, ROUNDS) if gap <= allowed else self._most // 2
        self._remember(l2, first, place)
        self._pending.append(_Found(place, state.z - (self.mass / state.sigma) * place.slopes, max(1, rounds)))
        return Guess(place.w, place.b, max(1, rounds))

    def _begun(self, l2: float) -> tuple[_Place, _Scope]:
        """The start, or the weights that slopes there stand for."""
        w = self._start
        scores = self.map.matvec(w) if w.any() else self.phi.constant(np.zeros(1))
        slopes, b = self._profiled.value_and_slope(scores)[1], self._constant(scores)
        place = _Place(w, b, scores, slopes, self.map.rmatvec(slopes))
        other = -place.pull / l2
        there = self.map.matvec(other)
        sigma = FIRST * unit_of(self.phi, scores)
        reach = self._steep(slopes) / sigma
        beside = _Place(other, self._constant(there), there, slopes, place.pull)
        if not self._objective(beside, l2) < self._objective(place, l2):
            return place, _Scope(sigma, reach)
        reach = min(reach, self._distance(there, scores))
        return beside, _Scope(SHARP * self._steep(slopes) / reach, reach)

    def _constant(self, scores: Vector) -> float:
        return float(self._profiled.attained(scores)[1][0]) if self.rows.free else 0.0

    def _predicted(self, l2: float) -> tuple[_Place, _Scope]:
        """The likeliest of some."""
        before, places = [one for one, _ in self._places], [one for _, one in self._places]
        kinds: list[tuple[int, Callable[[float], float]]] = [(1, math.log)]
        if len(places) > 1:
            kinds += [(2, math.log), (2, float), (2, lambda lam: 1.0 / lam), (len(places), math.log)]
        tried = []
        for count, of in kinds:
            shares = _shares([of(one) for one in before[-count:]], of(l2))
            tried.append(_Place.mixed(shares, places[-count:]))
        place = min(tried, key=lambda one: self._objective(one, l2))
        steep = self._steep(places[-1].slopes)
        reach = max(self._error, SAME * self._distance(place.scores, 0.0), np.finfo(np.float64).tiny)
        return place, _Scope(SHARP * steep / reach, reach)

    def _objective(self, place: _Place, l2: float) -> float:
        value = self.phi.value_and_slope(place.scores + place.b)[0] + 0.5 * l2 * dot(place.w, place.w)
        return float(value) if math.isfinite(value) else math.inf

    def _steep(self, slopes: Vector) -> float:
        """The size of a row's slope, where there is one."""
        sizes = np.abs(slopes)
        return self.mass * float(sizes.sum()) / max(1, int(np.count_nonzero(sizes))) or 1.0

    def _distance(self, one: Vector, other: Any) -> float:
        return norm(one - other) / math.sqrt(max(1, self.size))

    def _remember(self, l2: float, first: _Place, last: _Place) -> None:
        self._error = max(self._distance(last.scores + last.b, first.scores + first.b), FADING * self._error)
        self._places = [*self._places[1 - ORDER :], (l2, last)]

    def _pulled(self, change: Vector) -> Vector:
        """A' times a change of slopes, of which most are 0: only those rows are read."""
        changed = np.abs(change) > SAME / self.mass
        count = int(np.count_nonzero(changed))
        if not count:
            return np.zeros(self.rows.dim)
        change = np.where(changed, change, 0.0)
        if count > MOST * self.size:
            return self.map.rmatvec(change)  # type: ignore[no-any-return]
        part = self._parts.part(changed.astype(np.float64))
        return part.map.rmatvec(part.restrict(change))  # type: ignore[no-any-return]

    # -- a part of the rows ----------------------------------------------------------------------

    def _near(self, state: AugmentedLagrangian, scope: _Scope, goal: float) -> tuple[Vector, float, Vector, float]:
        """Weights, intercept, multipliers and penalty with which the gap of the rows in scope is so small."""
        chosen, slopes = self._chosen(state, scope), state.envelope.slope.copy()
        if not chosen.any():
            return -state.risk_gradient / state.model.l2, state.b, slopes, state.sigma
        near = state.restricted(self._parts.part(chosen))
        missing, taken, since = math.inf, 0, 0
        while taken < STEPS and near.objective() - near.bound > goal:
            solved, missing = is_solved(near, missing)
            if solved and taken and scope.short >= OFTEN:
                break
            if solved:
                near = near.multiplied(GROWTH if taken - since > EASY else GROWTH * GROWTH)
                missing, since = math.inf, taken
            if taken - since >= HARD or not near.step() > 0.0:
                break
            taken += 1
        self.steps += taken
        slopes[np.flatnonzero(chosen)] = near.envelope.slope
        return near.w, near.b, slopes, near.sigma if taken else GROWTH * near.sigma

    def _chosen(self, state: AugmentedLagrangian, scope: _Scope) -> Vector:
        """Weights other than 0 for rows whose slopes can change when scores do by the reach; not too few, or many."""
        least, most, reach = min(self.size, LEAST * self.rows.dim), scope.most * self.size, scope.reach
        found, before = self._parts.curved_rows(state.z, state.sigma, reach), 0
        for _ in range(WIDENINGS):
            count = self.map.active(found)
            wider = 1 if count < least else -1 if count > max(most, least) and reach * state.sigma > FADING else 0
            if not wider or wider == -before:
                break
            before, reach = wider, reach * 2.0**wider
            found = self._parts.curved_rows(state.z, state.sigma, reach)
        return found  # type: ignore[no-any-return]

    def _moved(
        self, state: AugmentedLagrangian, w: Vector, b: float, slopes: Vector, sigma: float
    ) -> tuple[_Place, float, float]:
        """Towards w and b as far as all rows fall, with new multipliers; how far that is for scores, and what share."""
        step, shift = w - state.w, b - state.b
        change = self.map.matvec(step)
        scores, start = change + shift, state.f + state.b + (self.mass / sigma) * slopes
        along = _along(state, step, self.phi.moreau_along(start, scores, sigma))
        ends = along(np.array([0.0, 1.0]))[1]
        t = 1.0
        if ends[0] < 0.0 and ends[1] > -FLAT * ends[0]:
            t = step_length(along, float(ends[0]), flat=FLAT) or 1.0
        pull = state.risk_gradient + self._pulled(slopes - state.envelope.slope)
        place = _Place(state.w + t * step, state.b + t * shift, state.f + t * change, slopes, pull)
        return place, self._distance(scores, 0.0), t

    # -- proofs ----------------------------------------------------------------------------------

    def proofs(self, guesses: Sequence[Guess], omegas: Sequence[Any], solver: IterativeSolver) -> list[Proved]:
        """J and a lower bound of its minimum at each, from the rows, less what rounding may have done."""
        found, self._pending, count = self._pending, [], len(guesses)
        several = self.map.several(count)
        read = several.matvec(np.stack([one.w for one in guesses], axis=1).ravel())
        scores = np.ascontiguousarray(read.reshape(-1, count).T)
        at = [self._at(*each) for each in zip(found, scores)]
        slopes = np.stack([one.slope for one, _ in at], axis=1)
        pulls = np.ascontiguousarray(several.rmatvec(slopes.reshape(read.shape)).reshape(-1, count).T)
        self._refresh(found, scores, [one.slope for one, _ in at], pulls)
        proved = zip(guesses, (one for one, _ in at), pulls, omegas, scores)
        return [self._careful(self._proofs.of(*each), slack) for each, (_, slack) in zip(proved, at)]

    def _at(self, found: _Found, scores: Vector) -> tuple[ProfiledLoss, float]:
        """The loss at scores with slopes that are its own at the proximal ones; how much less they may prove.

        At a kink rounding may take multipliers beyond its slopes, and slopes there are those of scores nearby.
        """
        p, b = found.proximal, 0.0
        if self.rows.free:
            value, constants = self._profiled.attained(scores)
            b = float(constants[0])
        else:
            value = self.phi.value_and_slope(scores)[0]
        beside = BESIDE * EPS * (np.abs(p) + np.abs(scores) + 1.0)
        low, high = self.phi.value_and_slope(p - beside)[1], self.phi.value_and_slope(p + beside)[1]
        slopes = np.minimum(np.maximum(found.place.slopes, low), high)
        offset = self.phi.value_and_slope(p)[0] - dot(slopes, p)
        reach = self._proofs.reach(found.place.w) + MORE * careful_norm(p)
        steepest = max(careful_norm(low), careful_norm(high), careful_norm(self.phi.value_and_slope(scores + b)[1]))
        slack = dot(beside, high - low) + EPS * steepest * reach
        return ProfiledLoss(scores + b, float(value), slopes, float(offset)), float(slack)

    def _careful(self, one: Proved, slack: float) -> Proved:
        return one._replace(lower=one.lower - slack)

    def _refresh(self, found: Sequence[_Found], scores: Any, slopes: Sequence[Vector], pulls: Any) -> None:
        """Take the products that were read anew in place of those that were added up."""
        fresh = {id(one.place): k for k, one in enumerate(found)}
        for j, (l2, place) in enumerate(self._places):
            k = fresh.get(id(place))
            if k is not None:
                self._places[j] = l2, _Place(place.w, place.b, scores[k], slopes[k], pulls[k])


def _along(state: AugmentedLagrangian, step: Vector, curve: Along) -> Along:
    """The envelope along a step, with the regularizer."""
    l2, square, product, length = state.model.l2, dot(state.w, state.w), dot(state.w, step), dot(step, step)

    def function(t: Vector) -> tuple[Vector, Vector]:
        value, derivative = curve(t)
        value = value + 0.5 * l2 * (square + t * (2.0 * product + t * length))
        return value, derivative + l2 * (product + t * length)

    return function


def _shares(nodes: Sequence[float], at: float) -> list[float]:
    """Of values at nodes in that of the polynomial through them at `at`."""
    return [
        math.prod((at - other) / (one - other) for j, other in enumerate(nodes) if j != k)
        for k, one in enumerate(nodes)
    ]
