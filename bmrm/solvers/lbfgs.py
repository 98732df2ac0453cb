"""Limited-memory BFGS (Nocedal 1980; Liu & Nocedal 1989), certified by eq. 15 of the KDD 2007 paper."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.quasi_newton import combined, pair_products, store_pair, two_loops
from bmrm.kernels.products.vectors import dot
from bmrm.numerics.bracket import Trial
from bmrm.numerics.line_search import enough, total, wolfe_search
from bmrm.problem import Scored, Space, Vector, ability
from bmrm.problem.abilities import ProblemSize
from bmrm.problem.regularizer import space_of
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.certificate import ANYWHERE, Certificate, SinglePlane
from bmrm.solvers._core.instead import refuse_bounds
from bmrm.solvers._core.monitor import Monitor, SlicedSolver, Step, Steps
from bmrm.solvers._core.points import FusedIterate, Iterate, Point, ScoredIterate, noted

LEFT, LESS = 0.9, 0.5
"""Curvature condition: share of the slope that may remain after a step, in general and if further trial steps cost no
pass."""
MANY = 16.0
"""Entries per weight from which combined bounds are cheap compared with a pass."""
DENSE = 0.5
"""Density from which scores are not stored, since a pass for value and gradient reads the data only once. Scores are
also not stored when rows exceed features: such a pass has the weights in the cache."""


@register(
    "lbfgs",
    problem="smooth risks and regularizers",
    needs="value and subgradient; Scored makes further trial steps free of passes",
    certificate="the conjugate of the regularizer (eq. 15), as a rule of mixed planes",
    cost="1 pass an iteration, as a rule",
    refuses=("bounds",),
    source="Nocedal 1980; Liu & Nocedal 1989",
    stalls=("kinked loss", "kinked regularizer"),
    vectors=25,
)
@dataclass(frozen=True)
class LBFGS(SlicedSolver):
    """Quasi-Newton on J with a short memory; for smooth risks and regularizers.

    `d = -H J'(w)`, with H from the last steps and the changes of the gradient; w moves by a step along d that satisfies
    the strong Wolfe conditions, first trying length 1, along scores if there are any; where J has kinks, the weak ones
    (Lewis & Overton 2013).

    Every iterate gives a plane `(a, b)` of the risk and with it the bound `b - Omega*(-a)`, which for
    `L2(lam)` is `J(w) - ||a + lam w||^2 / (2 lam)` (eq. 15). Where Omega* is infinite at `-a` (`L1`) the plane is
    mixed with the lower-bound plane until it is finite. For kinked losses, and where a pass costs far more, each is
    mixed with those before it. At a kink all steps may be too short: where there is none along the negative gradient
    either, the run ends as STALLED.

    Memory: 8 (memory + 15) dim + 48 scores bytes, scores being rows times the scores of each.

    Parameters
    ----------
    memory : pairs of steps and gradient differences kept.
    """

    memory: int = parameter(10, least=1, doc="pairs of steps kept", example=1)

    def steps(self, run: Monitor) -> Steps:
        """As of `IterativeSolver`."""
        refuse_bounds(run, self.name)
        return (yield from _Run(self.memory, run).go())


class _Run:
    """A point, the gradient of J there, and the approximation of the Hessian."""

    def __init__(self, memory: int, run: Monitor) -> None:
        self.run, self.regularizer = run, run.regularizer
        self.iterate, self.left = _start(run)
        self.inverse = InverseHessian(len(run.start), memory, space_of(run.risk))
        self.certificate = _certificate(run)
        self.objective, self.gradient = self._joined(self.iterate.point)
        self.first = self._norm(self.gradient)
        scored = ability(run.risk, Scored)
        self.kinked = not self.regularizer.smooth or (scored is not None and not scored.phi.facts.smooth)

    def go(self) -> Steps:
        """Iterate as long as there is a step."""
        while True:
            if (yield Step.ITERATION):
                self._renew()
            here = self._norm(self.gradient), self._norm(self.iterate.point.a)
            if self.regularizer.smooth and self.run.flat(*here, self.first):
                return ""
            if self._search():
                continue
            self.inverse.forget()
            if not self._search():
                yield Step.STALLED
                self._renew()

    def _norm(self, a: Vector) -> float:
        return math.sqrt(self.iterate.dot(a, a))

    def _renew(self) -> None:
        """Continue from the best point, with everything recomputed."""
        self.objective, self.gradient = self._joined(self.iterate.renew(self.run.w))

    def _joined(self, point: Point) -> tuple[float, Vector]:
        """J and its gradient; their bound is recorded."""
        return noted(self.run, self.certificate, point), point.a + self.regularizer.subgradient(point.w)

    def _search(self) -> bool:
        """Move to a better point; False where there is none along the direction."""
        here = self.objective
        d, slope = self.inverse.times_minus(self.gradient)
        if not (slope < 0.0 and math.isfinite(slope)):
            return False
        risk = self.iterate.along(d)
        t = 1.0 if len(self.inverse) else min(1.0, 1.0 / math.sqrt(-slope))
        point = self.iterate.look(t, d)
        objective, gradient = self._joined(point)
        trial = Trial(t, objective, self.iterate.dot(gradient, d))
        if not enough(trial, here, slope, self.left, self.kinked):
            function = total(self.regularizer.along(self.iterate.point.w, d), risk)
            found = wolfe_search(function, here, slope, trial, self.left, self.kinked)
            if found is None:
                return False
            t, point = found.t, self.iterate.look(found.t, d)
            objective, gradient = self._joined(point)
        self.inverse.learn(d, t, gradient, self.gradient)
        self.iterate.move_to(point)
        self.objective, self.gradient = objective, gradient
        return True


def _certificate(run: Monitor) -> Certificate:
    """The bound of the planes, combined where that is cheap and at kinks, where single planes give weak bounds."""
    regularizer, infimum = run.regularizer, run.risk.infimum
    scored, size, space = ability(run.risk, Scored), ability(run.risk, ProblemSize), space_of(run.risk)
    kinked = scored is not None and not scored.phi.facts.smooth
    if kinked or (size is not None and size.entries >= MANY * space.total(space.dim)):
        return Certificate(regularizer, infimum, space)
    return SinglePlane(regularizer, infimum, space)


def _start(run: Monitor) -> tuple[Iterate, float]:
    """The start, and the share of the slope that may remain after a step, smaller where trials are cheap."""
    scored, size = ability(run.risk, Scored), ability(run.risk, ProblemSize)
    if scored is None:
        return Iterate(run, run.start), LEFT
    features = space_of(run.risk).total(run.risk.dim) / scored.phi.facts.scores_per_row
    if size is not None and (features < size.rows or size.entries >= DENSE * size.rows * features):
        return FusedIterate(run, run.start, scored), LEFT
    return ScoredIterate(run, run.start, scored), LESS


FLAT = 1e-10
"""A pair (s, y) is dropped if s'y is less than this share of ||s|| ||y||."""


class InverseHessian:
    """H of Nocedal 1980 (the loops of Liu & Nocedal 1989, p. 507), from at most `memory` pairs.

    The loops need only inner products, so every pair is read twice per iteration: for its products with the gradient
    and with the newest difference, and for the direction. H does not change if both vectors of a pair are divided by
    the same number, so pairs are normalised to steps of length 1 and stored in single precision.

    Memory: 8 memory dim bytes.

    Parameters
    ----------
    dim : entries of a vector.
    memory : pairs kept.
    space : of the vectors, where they may be slices.
    """

    def __init__(self, dim: int, memory: int, space: Space = ANYWHERE) -> None:
        self._total = space.total
        self._S: NDArray[np.float32] = np.empty((memory, dim), np.float32)
        self._Y: NDArray[np.float32] = np.empty((memory, dim), np.float32)
        self._sy, self._yy = np.zeros((memory, memory)), np.zeros((memory, memory))
        self._products = np.zeros((memory, 4))
        self._order: list[int] = []
        """Rows in use, the oldest pair first."""
        self._rows = 0
        """Number of rows that have been in use."""

    def __len__(self) -> int:
        return len(self._order)

    def forget(self) -> None:
        """Restart: H is a multiple of the identity."""
        self._order = []

    def learn(self, step: Vector, t: float, after: Vector, before: Vector) -> None:
        """The gradient has moved from `before` to `after` with w by `t step`."""
        length = math.sqrt(self._total(dot(step, step)))
        if not t * length > 0.0:
            return
        slot = self._free()
        store_pair(self._S[slot], self._Y[slot], step, after, before, length, t)
        self._order.append(slot)
        pair_products(self._S, self._Y, self._rows, slot, after, self._products)
        self._products[: self._rows] = self._total(self._products[: self._rows])
        self._sy[:, slot] = self._products[:, 2]
        self._yy[:, slot] = self._yy[slot] = self._products[:, 3]
        curvature, square = self._sy[slot, slot], self._yy[slot, slot]
        if not (curvature > FLAT * math.sqrt(square) and math.isfinite(square)):
            self._order.pop()

    def _free(self) -> int:
        """A row to overwrite."""
        if len(self._order) == len(self._S):
            return self._order.pop(0)
        slot = min(set(range(len(self._S))) - set(self._order))
        self._rows = max(self._rows, slot + 1)
        return slot

    def times_minus(self, g: Vector) -> tuple[Vector, float]:
        """d = -H g and <d, g>, for the last gradient given to `learn`; -g where there is none."""
        d = np.empty_like(g)
        if not self._order:
            np.negative(g, out=d)
            return d, -float(self._total(dot(g, g)))
        along_s, along_y = np.empty(self._rows), np.empty(self._rows)
        share = two_loops(np.array(self._order), self._products, self._sy, self._yy, along_s, along_y)
        return d, float(self._total(combined(self._S, self._Y, along_s, along_y, -share, g, d)))
