"""Outer iterations on models of the loss: gradient, bound, a step that minimises a model, a line search."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import dot
from bmrm.numerics.line_search import Along, minimize_along, total
from bmrm.problem import Scores, Vector
from bmrm.solvers._core.best import ROUNDING
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.gap_safe import SafeZeros
from bmrm.solvers._core.monitor import Monitor, Step, Steps
from bmrm.solvers._core.points import Point, noted
from bmrm.solvers._core.rowwise import ProfiledLoss, RowwiseRisk

Places = NDArray[np.int64]

SUFFICIENT = 0.1
"""Share of the predicted decrease that a full step must bring to be taken without a line search."""
SHORT = 0.2
"""Step length below which damping is added to the Hessian of the next model, and increased each time."""
LEAST_DAMPING, CALMER = 1e-2, 5.0
"""First value of the damping, and the factor by which it changes."""
MOST_DAMPING = 1e3
"""Damping at which a step without progress ends the run."""
EXACT = 1e-4
"""Least value of `Run.share`."""
LOOSER, TIGHTER = 2.0, 0.2
"""Factors by which `Run.share` changes."""
UNTRUE = 2.0
"""Largest ratio of the actual to the predicted distance from optimality at which the next model is solved more
accurately; above it, less."""


class Penalty(Protocol):
    """What a step is judged by beside the loss."""

    def value(self, w: Vector) -> float:
        """Omega(w)."""
        ...

    def along(self, w: Vector, step: Vector) -> Along:
        """The function t -> (value at w + t step, its derivative in t)."""
        ...


class Outer(ABC):
    """Outer iterations: gradient, bound, a step that minimises a model, a line search where it promised too much.

    Parameters
    ----------
    name : of the solver.
    run : the bookkeeping.
    """

    rough: ClassVar[float]
    """The largest `share`: the cheaper it is to solve a model and the dearer to make one, the smaller."""
    zeros: SafeZeros

    def __init__(self, name: str, run: Monitor) -> None:
        self.name, self.run = name, run
        self.rows = RowwiseRisk.of(name, run.risk)
        self.certificate = Certificate(run.regularizer, run.risk.infimum)
        self.damping = 0.0
        self.share = self.rough
        """Of the largest violation, or of a decrease, that a model may be left with."""
        self.left = math.inf
        """The distance from optimality, for its model, of the last point."""

    @abstractmethod
    def step_from(self, at: Point, profiled: ProfiledLoss) -> tuple[Vector, ProfiledLoss] | None:
        """The next point; None where a model leads nowhere."""

    @abstractmethod
    def rejected(self) -> None:
        """The model promised too much."""

    def _prove(self, at: Point) -> None:  # noqa: B027
        """Raise the bound at a point further, where that is worth it."""

    def _flat(self, at: Point) -> bool:
        """Whether a run without bounds is to end at a point by its own rule (`Monitor.flat`)."""
        return False

    def details(self) -> dict[str, Any]:
        """What the solution shall tell: how many weights are proved to be 0 at the minimum."""
        return {"screened": self.zeros.count}

    def go(self) -> Steps:
        """Iterate as long as a model leads on."""
        run = self.run
        run.finish = self.details
        w, at = run.start, self.rows.profiled(self.rows.map.matvec(run.start))
        fresh = not self.rows.free
        while True:
            point = Point(w, at.value, self.rows.map.rmatvec(at.slope), at.offset, at.f, fresh=fresh)
            noted(run, self.certificate, point)
            self._prove(point)
            afresh = yield Step.ITERATION
            if not afresh and self._flat(point):
                return ""
            moved = None if afresh else self.step_from(point, at)
            if moved is not None:
                (w, at), fresh = moved, run.careful and not self.rows.free
                continue
            if not afresh:
                yield Step.STALLED
            w, at = run.w, self.rows.profiled(self.rows.map.matvec(run.w))
            fresh = not self.rows.free

    def judged(self, away: Vector, inside: Places) -> float:
        """`share`, lower where the last model (of the parts `inside`) was true, and higher where it was not."""
        if math.isfinite(self.left):
            true = float(away[inside].max(initial=0.0)) <= UNTRUE * self.left
            self.share = min(max(self.share * (TIGHTER if true else LOOSER), EXACT), self.rough)
        return self.share

    def _overflows(self, d: Vector, step: Scores) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            return not math.isfinite(dot(d, d) + self.rows.phi.product(step, step))

    def moved(
        self, at: Point, profiled: ProfiledLoss, omega: Penalty, after: Vector, step: Scores
    ) -> tuple[Vector, ProfiledLoss] | None:
        """The whole step, or the best part of it; None where none is left."""
        w, d = at.w, after - at.w
        here, there = omega.value(w), omega.value(after)
        promise = dot(at.a, d) + there - here
        here += at.value
        slack = 16.0 * ROUNDING * abs(here)  # within it values tell nothing, but the gradient, and the bound, still do
        if not d.any():
            return None
        tried = self._profiled(after, at.f + step)
        if tried.finite and tried.value + there <= here + SUFFICIENT * min(promise, 0.0) + slack:
            self.damping = self.damping / CALMER if self.damping > LEAST_DAMPING else 0.0
            return after, tried
        self.rejected()
        if not math.isfinite(tried.value + there) and self._overflows(d, step):  # rows have all but no curvature
            self.damping = max(CALMER * self.damping, LEAST_DAMPING)
            return (w, profiled) if self.damping < MOST_DAMPING else None
        line = total(self.rows.along(at.f, step), omega.along(w, d))
        found = minimize_along(line, max(-0.01 * promise, slack), first=0.5)
        if found.t < SHORT:
            self.damping = max(CALMER * self.damping, LEAST_DAMPING)
        if not (found.value < here and math.isfinite(found.value)):
            # Along a direction without curvature a model promises more than there is, too far away to find anything.
            return (w, profiled) if -promise > abs(here) and self.damping < MOST_DAMPING else None
        w = w + found.t * d
        return w, self._profiled(w, at.f + step * found.t)

    def _profiled(self, w: Vector, f: Scores) -> ProfiledLoss:
        return self.rows.profiled(self.rows.map.matvec(w) if self.run.careful else f)
