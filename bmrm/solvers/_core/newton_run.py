"""The iteration of newton; see newton.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bmrm.problem import Extent, HasCurvature, IncompatibleError, Profiled, Scored, Solution, provides
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.curved_search import step_length
from bmrm.solvers._core.line_search import total
from bmrm.solvers._core.monitor import Monitor
from bmrm.solvers._core.newton_models import CgModel, Step, model_for
from bmrm.solvers._core.newton_preconditioners import Costs, rows_for_blocks
from bmrm.solvers._core.row_start import start_from_sample
from bmrm.solvers._core.smooth_point import Objective, SmoothPoint

if TYPE_CHECKING:
    from bmrm.solvers.newton import Newton

WIDEST = 8192
"""Features beyond which a dense Hessian takes more than half a gigabyte."""
CG_ITERATIONS = 40.0
"""What a step by cg is taken to need."""
FACTOR_SPEED = 20.0
"""Operations of a Cholesky factor in the time of one product of two entries of a sparse row."""
HALF = 0.5
"""Share of the derivative of J that may be left at the step 1."""
SKEWED = 1e-12
"""A sum of slopes beyond which their plane proves nothing of a problem with a free intercept."""


class Run:
    """What changes during a run."""

    def __init__(self, options: Newton, monitor: Monitor) -> None:
        self.options, self.monitor = options, monitor
        risk, regularizer = monitor.risk, monitor.regularizer
        scored, profiled = risk.ability(Scored), risk.ability(Profiled)
        if scored is None or not (scored.phi.smooth and scored.phi.curved):
            missing = "the ability Scored" if scored is None else "a smooth loss that has a second derivative"
            raise IncompatibleError(
                f"newton needs a risk with {missing}; use semismooth_newton, line_search_bundle or lbfgs"
            )
        if not (regularizer.smooth and provides(regularizer, HasCurvature)):
            raise IncompatibleError(
                f"newton needs a regularizer with a second derivative, which {type(regularizer).__name__} has not; use"
                " l2, or solver proximal_newton or bundle"
            )
        free = profiled is not None and profiled.phi.separable
        part = profiled if free and profiled is not None else scored
        self.objective = Objective(part.map, part.phi, regularizer, free)
        seed, check = options.seed or 0, monitor.budget.check
        rows = rows_for_blocks(risk, self.objective, seed, check) if options.hessian != "dense" else None
        self.model = model_for(self.objective, self._hessian(rows), options.forcing, rows)
        self.certificate = Certificate(regularizer, risk.infimum)

    def _hessian(self, rows: Scored | None) -> str:
        """`dense` or `cg`; `rows` are those of blocks for `cg`."""
        options, phi, risk = self.options, self.objective.phi, self.monitor.risk
        wanted = options.hessian
        if wanted == "dense" and not (phi.separable and risk.dim <= WIDEST):
            raise IncompatibleError(
                f"newton: hessian dense needs one score per row and at most {WIDEST} features; use cg or auto"
            )
        if wanted != "auto":
            return wanted
        extent, costs = risk.ability(Extent), Costs.of(risk, 1)
        if not phi.separable or risk.dim > WIDEST or rows is not None:
            return "cg"
        if extent is None or costs is None:
            return "dense"
        a_pass = 2.0 * extent.entries / extent.ranks
        dense = costs.passes * a_pass + risk.dim**3 / 3.0 / FACTOR_SPEED
        return "dense" if dense <= CG_ITERATIONS * a_pass else "cg"

    def go(self, fresh: bool) -> Solution:
        """The whole run."""
        monitor, goal = self.monitor, self.objective
        with monitor.iterating():
            point = goal.at(monitor.start, goal.map.scores(monitor.start))
            done = self._note(point, fresh=not goal.free)
            if not done and fresh:
                found = start_from_sample(self.options, monitor, steady=True, exact=True)
                if found is not None:
                    sampled = goal.at(found.w, goal.map.scores(found.w), point.b)
                    point = sampled if sampled.objective < point.objective else point
                    done = self._note(point)
            while not done:
                if monitor.refreshed:
                    point = goal.at(monitor.w, goal.map.scores(monitor.w), point.b)
                moved = self._moved(point)
                if moved is not None:
                    point = moved
                    done = self._note(point, fresh=monitor.careful and not goal.free)
                else:
                    done = monitor.stall()
        name, details = self.options.name, {}  # type: ignore[attr-defined]
        if isinstance(self.model, CgModel):
            details["cg_iterations"] = np.array(self.model.iterations)
        return monitor.solution(name, details=details)

    def _note(self, point: SmoothPoint, fresh: bool = False) -> bool:
        """Bound and objective of a point, which may be J at its weights; whether to stop."""
        self.monitor.improve(point.w, point.objective, fresh=fresh)
        if abs(point.rest) <= SKEWED:
            self.monitor.take_plane(self.certificate, point.w, point.value, point.pulled, point.offset)
        return self.monitor.record()

    def _moved(self, point: SmoothPoint) -> SmoothPoint | None:
        """The next point; None where no step makes J smaller."""
        step = self.model.step(point) if point.finite else None
        if step is None:
            return None
        slope = float(point.gradient @ step.w) + point.rest * step.b
        if not slope < 0.0:
            return None
        there = self._at(point, step, 1.0)
        if there.finite:
            left = float(there.gradient @ step.w) + there.rest * step.b
            if abs(left) <= HALF * -slope:
                return there
        goal = self.objective
        function = total(goal.regularizer.along(point.w, step.w), goal.phi.along(point.full, step.full))
        t = step_length(function, slope)
        return self._at(point, step, t) if t > 0.0 else None

    def _at(self, point: SmoothPoint, step: Step, t: float) -> SmoothPoint:
        w = point.w + t * step.w
        f = self.objective.map.scores(w) if self.monitor.careful else point.f + t * step.f
        return self.objective.at(w, f, point.b + t * step.b)
