"""The master of a sum over blocks of coordinates, a cone program, by cvxopt: the reference for every such Omega.

    minimise  sum_j [l1_j u_j + l2_j/2 (w_j - center_j)^2] + sum_b strength_b s_b + sum_k xi_k
    with      <a_i, w> + b_i <= xi_k for the planes i of term k,  infimum_k <= xi_k,
              |w_j| <= u_j,  lower_j <= w_j <= upper_j,  ||w_b|| <= s_b.

It is solved from scratch at each call, by an interior point. What its multipliers prove does not rest on how exact
they are: they are put onto the simplices, and Omega's conjugate is taken at minus the slope that they mix, scaled until
it is finite there.

Free coordinates, which Omega does not touch, keep no model bounded while there are few planes. So they stay near the
best point that was visited, by a quadratic penalty mu/2 ||w - c||^2 (the proximal bundle method: Kiwiel 1990; Hiriart-
Urruty & Lemarechal 1993, chapter XV), with less of it once the model has nothing to gain near c. A mixed slope that is
not 0 there proves nothing; once the planes at work can be mixed so that it is, up to rounding, they are (`balanced`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blocks import separable
from bmrm.kernels.products.vectors import careful_norm
from bmrm.masters._core.cone_program import Constraints
from bmrm.masters._core.linear import Infima, onto_simplices
from bmrm.masters._core.planes import PlaneStore
from bmrm.masters.cvxopt import TURNS, Reached, cone_program
from bmrm.problem import MasterSolution, Vector
from bmrm.problem.regularizer import BlockPenalty

Array = NDArray[np.float64]

MARGIN = 1e-7
"""Relative reduction of l1 and strengths where multipliers cannot be shrunk afterwards: a term without an infimum."""
DESCENT = 0.1
"""Least share of the predicted fall of J with which the centre moves."""
SOFTER, HARDER, PATIENT = 0.3, 2.0, 8
"""Factors of mu after a step that went as predicted, and after so many others."""
WIDEST, NARROWEST = 1e-8, 1e6
"""Range of mu, in units of the first one."""
ROUNDINGS = 64.0
"""Residual of a mixed slope in a free coordinate that counts as 0, in units of roundoff of what was added."""
INSIDE = 1e-6
"""Relative distance from the boundary of the conjugate's domain at which weights are 0 for certain."""
AT_BOUND = 1e-9
"""Distance from a bound, relative where that is above 1, at which a weight is taken to be there."""
LEAST = 1e-9
"""Multiplier, of 1, above which a plane is at work."""
EPS = float(np.finfo(np.float64).eps)
ALIKE = 64.0 * EPS
"""Relative difference of two slopes that is rounding of a sum over rows."""
STIFFEST = 1e200
"""Largest first mu: its products with weights do not overflow."""
DEEPEST = 1e300
"""Largest unit of the values of terms: what is formed of it and of multipliers does not overflow."""


class ConicMaster:
    """min over w of Omega(w) + sum over terms of max_j (<a_j, w> + b_j), for Omega a `BlockPenalty`.

    Parameters
    ----------
    planes : an empty store, which this fills.
    penalty : Omega.

    Memory: 8 (planes + dim) dim bytes more than the planes, while it is solved.
    """

    def __init__(self, planes: PlaneStore, penalty: BlockPenalty) -> None:
        self.planes, self._penalty = planes, penalty
        self._arrays = tuple(penalty)
        self._free = penalty.free
        self._infima = Infima(planes.infima)
        self._known = np.isfinite(planes.infima)
        self._centre = _Centre(self._free) if self._free.size else None
        self._reached = Reached()
        self._covered: set[int] = set()
        """Planes below others of the same slopes up to rounding, which make programs singular and prove nothing."""
        self._last: tuple[float, MasterSolution] | None = None
        """The solution of the planes at hand, and the accuracy asked for, where neither centre nor infima move."""

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """As of `Master`."""
        id = self.planes.add(a, b, block)
        twins = {k: self.planes.plane(k)[1] for k in self.planes.alike(id, ALIKE) if k not in self._covered}
        highest = max(twins, key=lambda k: twins[k])
        self._covered.update(k for k in twins if k != highest)
        if not any(k != id and b - offset <= ALIKE * abs(b) for k, offset in twins.items()):
            self._last = None
        self._infima.begin(a, b, block)
        return id

    def remove(self, planes: Sequence[int]) -> None:
        """As of `Master`."""
        self.planes.drop(planes)
        if self._last is not None and not self._last[1].multipliers.keys().isdisjoint(planes):
            self._last = None
        self._covered.difference_update(planes)

    def solve(self, accuracy: float) -> MasterSolution:
        """Minimise the model to `accuracy`, relative, 1e-12 at the least; raises BmrmError when cvxopt fails."""
        planes, again = self.planes, self._last is not None and self._last[0] <= accuracy
        self._reached.turn = self._reached.turn + 1 if again else 0
        if self._last is not None and self._reached.turn >= TURNS:
            return self._last[1]
        self._infima.deepen(planes)
        if self._centre is not None and len(planes):
            self._centre.look(self._objective, planes, accuracy)
        w, alpha, rest = _Program(self).solved(accuracy if self._known.all() else min(accuracy, 1e-8))
        alpha, rest = onto_simplices(alpha, rest, planes, len(self._known))
        w = self._tidied(w, -planes.combine(alpha), self._bound(alpha, rest, self._centre), accuracy)
        exact = self._infima.remember(planes, w, rest)
        exact = exact and (self._centre is None or self._centre.near(w))
        if self._free.size:
            alpha, rest = balanced(alpha, rest, planes, self._free)
        bound = self._bound(alpha, rest)
        if self._centre is not None:
            self._centre.take(w, self._objective(w))
        solution = MasterSolution(w, planes.multipliers(alpha), bound, exact)
        self._last = (accuracy, solution) if exact and self._centre is None and self._known.all() else None
        return solution

    def _tidied(self, w: Vector, v: Vector, bound: float, accuracy: float) -> Vector:
        """The weights without what the interior point leaves of zeros: blocks stay 0 where v is well inside the domain.

        `v` is minus the mixed slope, `bound` what it proves of the model with the penalty of the centre. What is at a
        bound up to rounding is there. Zeros of inexact multipliers are none where they raise the model by more than it
        is inexact.
        """
        penalty, out = self._penalty, np.empty_like(w)
        separable.project(w, self._arrays, out)
        for limit in (penalty.lower, penalty.upper):
            at = np.isfinite(limit) & (np.abs(out - limit) <= AT_BOUND * (1.0 + np.abs(limit)))
            out[at] = limit[at]
        sparse = out.copy()
        for block in range(penalty.blocks):
            slack = separable.slack_at_0(block, v, self._arrays)
            if slack > INSIDE * (penalty.strengths[block] + penalty.l1[penalty.block(block)].max()):
                sparse[penalty.block(block)] = 0.0
        if np.any(penalty.l1 > 0.0):
            v = np.where(penalty.l2 > 0.0, v + penalty.l2 * penalty.center, v)
            zero = (np.abs(v) < (1.0 - INSIDE) * penalty.l1) & (penalty.lower <= 0.0) & (penalty.upper >= 0.0)
            sparse[zero] = 0.0
        top, emptied = self._objective(out), self._objective(sparse)
        away = 0.0 if self._centre is None else self._centre.penalty(out)
        inexact = max(top + away - bound, max(accuracy, self._reached.tolerance) * abs(top))
        return (out if emptied - top > inexact else sparse) + 0.0  # no -0

    def _objective(self, w: Vector) -> float:
        """Omega and the model at w."""
        tops = np.where(self._known, self.planes.infima, -np.inf)
        with np.errstate(over="ignore", invalid="ignore"):  # nan where products overflow
            np.maximum.at(tops, self.planes.blocks, self.planes.products(w) + self.planes.offsets)
            return float(separable.value(w, self._arrays)) + float(tops.sum())

    def _bound(self, alpha: Vector, rest: Vector, near: _Centre | None = None) -> float:
        """What multipliers on the simplices prove, of the model `near` a centre; -inf where that is nothing."""
        planes, known = self.planes, self._known
        if np.any(rest[~known] > 0.5):
            return -math.inf
        alpha = alpha * np.where(known, 1.0, 1.0 / (1.0 - np.minimum(rest, 0.5)))[planes.blocks]
        down = -planes.combine(alpha)
        pull = down[self._free]
        if near is not None:
            down[self._free] = 0.0
        elif self._free.size:
            down[self._free[settled(alpha, planes, self._free)]] = 0.0
        scale = float(separable.feasible(down, self._arrays))
        if scale < 1.0 and not known.all():
            return -math.inf
        conjugate = float(separable.conjugate(scale * down, self._arrays))
        share = scale * np.bincount(planes.blocks, weights=alpha, minlength=len(known))
        terms = [(1.0 - s) * f for s, f in zip(share.tolist(), planes.infima) if math.isfinite(f)]
        less = 0.0 if near is None else near.conjugate(scale * pull)
        bound = math.fsum([scale * float(np.dot(alpha, planes.offsets)), *terms, -conjugate, -less])
        return bound if not math.isnan(bound) else -math.inf


@dataclass
class _Centre:
    """The point near which free coordinates stay, and how near.

    Attributes
    ----------
    free : those.
    w : the centre, None before the first solution.
    mu : the factor of the quadratic penalty.
    """

    free: NDArray[np.int64]
    w: Vector | None = None
    mu: float = 0.0
    _first: float = 0.0
    _value: float = math.inf
    _seen: int = -1
    _trial: tuple[Vector, float] | None = None
    _others: int = 0

    def look(self, objective: Callable[[Vector], float], planes: PlaneStore, accuracy: float) -> None:
        """Judge the last solution by the planes that came since: those at w give J(w).

        Where it promised to fall by less than `accuracy`, the centre is at the minimum as far as planes tell, and what
        is not proved is for the slope that the penalty balances, mu (w - c): then mu is reduced.
        """
        if self.w is None:
            steepest = max(careful_norm(planes.row(k)[self.free]) for k in range(len(planes)))
            origin = np.zeros(planes.space.dim)
            top = float(np.max(planes.products(origin) + planes.offsets))
            depth = top - min(planes.infima) if math.isfinite(min(planes.infima)) else abs(top)
            self._first = self.mu = min(0.5 * steepest * (steepest / max(depth, 1e-12)), STIFFEST) or 1.0
            self.w = origin
            return
        if self._trial is None or int(planes.ids.max()) == self._seen:
            return
        self._seen = int(planes.ids.max())
        (w, predicted), value, before = self._trial, objective(self._trial[0]), objective(self.w)
        before = max(before, self._value) if math.isfinite(self._value) else math.inf
        fall, promised = before - value, before - predicted
        done = promised <= accuracy * abs(before)
        if done or fall >= DESCENT * promised or before == math.inf:
            if fall >= 0.0:
                self.w, self._value, self._others = w, value, 0
            if done or fall >= 0.5 * promised:
                self.mu *= SOFTER
        else:
            self._others += 1
            if self._others % PATIENT == 0:
                self.mu *= HARDER
        self.mu = min(max(self.mu, WIDEST * self._first), NARROWEST * self._first)

    def take(self, w: Vector, predicted: float) -> None:
        """A solution, and the model there."""
        self._trial = w, predicted

    def penalty(self, w: Vector) -> float:
        """mu/2 ||w - c||^2."""
        away = 0.0 if self.w is None else careful_norm(w[self.free] - self.w[self.free])
        return 0.5 * self.mu * away * away

    def conjugate(self, v: Vector) -> float:
        """max over free coordinates of <v, w> less the penalty."""
        if self.w is None:
            return math.inf if v.any() else 0.0
        size = careful_norm(v)
        return float(v @ self.w[self.free]) + 0.5 * size * (size / self.mu)

    def near(self, w: Vector) -> bool:
        """Whether the penalty does not count."""
        assert self.w is not None
        away = float(np.abs(w[self.free] - self.w[self.free]).max())
        return away <= 1e-9 * (1.0 + float(np.abs(w[self.free]).max()))


class _Program:
    """One cone program, in the coordinates that can differ from 0.

    Variables are the weights `used`, less `origin`, the point between the bounds that is nearest to 0; then |w| of
    those `thin` with an l1 and either sign (places `u`), the norms of the blocks `coned` (places `cones`), and the
    values of the terms (places `xi`).
    """

    def __init__(self, master: ConicMaster) -> None:
        self.master, self.penalty = master, master._penalty
        planes, penalty, known = master.planes, self.penalty, master._known
        self.at_work = np.flatnonzero([id not in master._covered for id in planes.ids.tolist()])
        self.dim, self.terms = planes.space.dim, planes.blocks[self.at_work]
        self.rows = planes.rows(self.at_work)
        self.less = 1.0 if known.all() else 1.0 - MARGIN
        self.blocks = self._may_move()
        members = [penalty.block(b) for b in self.blocks]
        used = np.sort(np.concatenate([np.empty(0, np.int64), *members]))
        self.origin = np.clip(0.0, penalty.lower, penalty.upper)
        # the norm of one weight is its size
        alone = np.diff(penalty.starts) == 1
        self.l1, strengths = penalty.l1.copy(), np.where(alone, 0.0, penalty.strengths)
        self.l1[penalty.coordinates[penalty.starts[:-1][alone]]] += penalty.strengths[alone]
        fixed = penalty.lower == penalty.upper
        for b in self.blocks:
            fixed[penalty.block(b)] &= penalty.strengths[b] == 0.0
        self.used = used[~fixed[used]]
        self.sign = (penalty.lower >= 0.0).astype(float) - (penalty.upper <= 0.0)
        # products of planes far away overflow; powers of two round nothing
        steepest = np.abs(self.rows).max(axis=1, initial=0.0)
        self.share = np.ldexp(1.0, -np.frexp(np.maximum(steepest, 1.0))[1])
        self.heights = planes.offsets[self.at_work] + self.rows @ self.origin
        self.place = np.full(self.dim, -1)
        self.place[self.used] = np.arange(len(self.used))
        self.thin = self.used[(self.l1[self.used] > 0.0) & (self.sign[self.used] == 0.0)]
        self.coned = [b for b in self.blocks if strengths[b] > 0.0]
        self.strengths = strengths[self.coned]
        ends = np.cumsum([len(self.used), len(self.thin), len(self.coned), len(known)])
        self.u, self.cones, self.xi = (np.arange(a, b) for a, b in pairwise(ends))
        self.width = int(ends[-1])

    def _may_move(self) -> list[int]:
        """The blocks that multipliers can make differ from 0."""
        blocks, arrays = range(self.penalty.blocks), self.master._arrays
        if not len(self.rows):
            return list(blocks)
        largest = np.zeros(self.dim)
        for k in range(len(self.master._known)):
            largest += np.abs(self.rows[self.terms == k]).max(axis=0, initial=0.0)
        sides = (largest, -largest)
        return [b for b in blocks if not min(separable.slack_at_0(b, v, arrays) for v in sides) > 0.0]

    def solved(self, accuracy: float) -> tuple[Vector, Vector, Vector]:
        """The weights, and multipliers of planes and of infima."""
        used = self.used
        K, n, d = len(self.master._known), len(self.rows), len(used)
        P, q, units = self._objective()
        G = self._constraints(units)
        unit = max(float(np.abs(q * units).max()), float((P * units * units).max()))
        x, z = cone_program(accuracy, P * units * units / unit, q * units / unit, G, self.master._reached)
        w = self.origin.copy()
        w[used] += (units * x)[:d]
        z = unit * (z / G.sizes)
        alpha = np.zeros(len(self.master.planes))
        alpha[self.at_work] = z[:n] * self.share
        return w, alpha, z[n : n + K]

    def _objective(self) -> tuple[Vector, Vector, Vector]:
        """The diagonal of the quadratic part, the linear part, and units of all variables.

        A weight in units of what costs as much as there is to gain, and the values of terms in units of that.
        """
        penalty, used, master = self.penalty, self.used, self.master
        P, q = np.zeros(self.width), np.zeros(self.width)
        q[self.u], q[self.cones], q[self.xi] = self.less * self.l1[self.thin], self.less * self.strengths, 1.0
        d = len(used)
        origin = self.origin[used]
        P[:d] = penalty.l2[used]
        q[:d] = penalty.l2[used] * (origin - penalty.center[used]) + self.less * self.l1[used] * self.sign[used]
        centre = master._centre
        if centre is not None and centre.w is not None:
            P[self.place[centre.free]] = centre.mu
            q[self.place[centre.free]] = -centre.mu * centre.w[centre.free]
        infima = master._infima.values
        depth = min(float(np.abs(self.heights - infima[self.terms]).max(initial=0.0)), DEEPEST) or 1.0
        cost = np.zeros(self.dim)
        cost[used] = self.l1[used] + math.sqrt(0.5 * depth) * np.sqrt(P[:d])
        for b, strength in zip(self.coned, self.strengths):
            members = penalty.block(b)
            cost[members] = strength + cost[members].max()
        units = np.full(self.width, depth)
        width = (penalty.upper - penalty.lower)[used]
        units[:d] = depth / np.where(cost[used] > 0.0, cost[used], 1.0)
        units[:d] = np.minimum(units[:d], np.where(width > 0.0, width, np.inf))
        units[self.u] = units[self.place[self.thin]]
        units[self.cones] = units[self.place[[penalty.block(b)[0] for b in self.coned]]] if self.coned else 1.0
        return P, q, units

    def _constraints(self, units: Vector) -> Constraints:
        penalty, used, place = self.penalty, self.used, self.place
        above, below = (used[np.isfinite(limit[used])] for limit in (penalty.upper, penalty.lower))
        members = [penalty.block(b) for b in self.coned]
        h = [-self.heights * self.share, -self.master._infima.values, np.zeros(2 * len(self.thin))]
        h += [(penalty.upper - self.origin)[above], (self.origin - penalty.lower)[below]]
        h += [np.concatenate([[0.0], self.origin[block]]) for block in members]
        return Constraints(
            self.rows[:, used] * self.share[:, None],
            self.terms,
            self.share,
            place[self.thin],
            place[above],
            place[below],
            [place[block] for block in members],
            units,
            np.concatenate(h),
        )


def settled(alpha: Vector, planes: PlaneStore, free: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which free coordinates of the mixed slope are 0 up to rounding."""
    total, sizes = np.zeros(len(free)), np.zeros(len(free))
    for k in np.flatnonzero(alpha).tolist():
        part = alpha[k] * planes.row(k)[free]
        total += part
        sizes += np.abs(part)
    found: NDArray[np.bool_] = np.abs(total) <= ROUNDINGS * EPS * sizes
    return found


def balanced(alpha: Vector, rest: Vector, planes: PlaneStore, free: NDArray[np.int64]) -> tuple[Vector, Vector]:
    """The multipliers nearby, on the simplices, whose mixed slope is 0 in the free coordinates; as given without any.

    The planes at work get the smallest corrections that do it; those that these would make negative leave.
    """
    blocks, K = planes.blocks, len(rest)
    rows = np.array([planes.row(k)[free] for k in range(len(planes))]).reshape(len(planes), len(free))
    known = np.isfinite(planes.infima)
    rows = np.concatenate([rows, np.zeros((K, len(free)))])
    term = np.concatenate([blocks, np.arange(K)])
    x = np.concatenate([alpha, np.where(known, rest, 0.0)])
    unit = np.maximum(np.abs(rows).max(axis=0, initial=0.0), 1e-300)
    system = np.hstack([rows / unit, np.equal.outer(term, np.arange(K)).astype(np.float64)])
    goal = np.concatenate([np.zeros(len(free)), np.ones(K)])
    at_work = x > LEAST
    y = np.where(at_work, x, 0.0)
    for _ in range(20):
        members = np.flatnonzero(at_work)
        if not members.size:
            return alpha, rest
        weights = np.sqrt(np.maximum(y[members], LEAST))  # large ones move first
        scaled = system[members] * weights[:, None]
        for _ in range(3):
            change, *_ = np.linalg.lstsq(scaled.T, goal - y[members] @ system[members], rcond=None)
            y[members] += weights * change
        negative = members[y[members] < 0.0]
        if not negative.size:
            break
        y[negative] = 0.0
        at_work[negative] = False
    if np.any(y < 0.0) or not settled(y[: len(alpha)], planes, free).all():
        return alpha, rest
    return onto_simplices(y[: len(alpha)], y[len(alpha) :], planes, K)
