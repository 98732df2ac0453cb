"""The bundle method with exact line search through the scores.

Best-so-far point and search along the way to the model's minimiser: "F-measure bundle line search" (BM-ls-CS),
section 3.3; Franc & Sonnenburg, "Optimized cutting plane algorithm for large-scale risk minimization", JMLR 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.problem import (
    Callback,
    IncompatibleError,
    Regularizer,
    Risk,
    SavedPlanes,
    Scored,
    Scores,
    Solution,
    Vector,
)
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers.line_search import minimize_along, total
from bmrm.solvers.monitor import Monitor
from bmrm.solvers.plane_model import KeptModel, PlaneModel, PlaneSolver, master_accuracy

NEAREST = 1e-9
"""The least share of the way to the model's minimiser at which a plane is looked for."""

SEARCH_ACCURACY = 0.01
"""The line search stops this share of the gap above the minimum along the line."""


@dataclass
class _Best:
    """The best point so far, with its scores, so that trial steps need no product with the data."""

    w: Vector
    f: Scores
    objective: float


@register(
    "line_search_bundle",
    problem="any convex risk with scores; a regularizer with a master",
    needs="Scored; a master",
    certificate="the master's bound",
    cost="1 pass, a line search over scores and a small quadratic or linear program",
    source="BM-ls-CS; Franc & Sonnenburg 2009",
    abilities=("Scored",),
)
@dataclass(frozen=True)
class LineSearchBundle(PlaneSolver):
    """Cutting planes with a best-so-far point whose objective never rises.

    Each iteration: `w_m` minimises the model; `w_b <- w_b + t (w_m - w_b)` with `t` from a line search over
    `Omega + phi` along the scores (no product with the data per trial step); the next plane is taken at
    `w_b + mu (w_m - w_b)`. One pass an iteration: one product for the scores of `w_m`, one for the plane.

    Memory: 8 (planes + 6) dim + 40 planes^2 + 56 scores bytes, scores being rows times the scores of each.

    Parameters
    ----------
    mu : where between the best point and the model's minimiser the plane is taken; null adapts it to the step,
        mu = clip(t / 2, 0.05, 0.9); the paper's fixed value is 0.1.
    """

    mu: float | None = parameter(None, above=0.0, most=1.0, doc="place of the cut; null adapts", example=0.1)

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | None = None,
        callback: Callback | None = None,
        planes: SavedPlanes | None = None,
        kept: KeptModel | None = None,
    ) -> Solution:
        """As of `Solver`; `planes` of an earlier run (with `keep_planes`) on the same risk make the first model.

        What is `kept` of a run that was broken off, on the same risk and regularizer, is gone on with.
        Raises IncompatibleError where the risk has no scores.
        """
        with self.monitor(risk, regularizer, start, callback) as run:
            scored = run.risk.ability(Scored)
            if scored is None:
                raise IncompatibleError(
                    "line_search_bundle needs a risk with the ability Scored; solver bundle does without"
                )
            model, proposal = self.model(run, (risk.infimum,), planes, kept)
            if proposal is not None:
                run.raise_bound(*model.proof(proposal))
                run.start = run.start if start is not None else proposal.w
            with run.iterating():
                self._loop(run, scored, model)
            return self.finished(run, model, self.name)  # type: ignore[attr-defined]

    def _loop(self, run: Monitor, scored: Scored, model: PlaneModel) -> None:
        w, f = run.start, scored.map.scores(run.start)
        value, slope = scored.phi.value_and_slope(f)
        best = _Best(w, f, value + run.regularizer.value(w))
        run.improve(w, best.objective, fresh=True)
        done, first = run.record(), 1.0
        while not done:
            a = scored.map.pull_back(slope)
            run.fits(w, value, a)
            with run.master():
                model.add(a, value, w, offset=value - scored.phi.product(slope, f))
                proposal = model.solve(master_accuracy(run.relative_gap))
            run.raise_bound(*model.proof(proposal))
            there_f = scored.map.scores(proposal.w)
            step_f = there_f - best.f
            t = self._search(run, scored, best, proposal.w - best.w, step_f, first)
            done, left_f = run.record(), (1.0 - t) * step_f
            if run.refreshed or (run.careful and t > 0.0):
                best.w, best.f = run.w, scored.map.scores(run.w)
                best.objective = scored.phi.value_and_slope(best.f)[0] + run.regularizer.value(best.w)
                left_f = there_f - best.f
            first = min(max(t, 1e-4), 1.0) if t > 0.0 else first
            mu = self.mu if self.mu is not None else float(np.clip(0.5 * t, 0.05, 0.9))
            if not done:
                w, f, value, slope = self._cut(run, scored, best, mu, proposal.w, left_f)

    def _cut(
        self, run: Monitor, scored: Scored, best: _Best, mu: float, w_model: Vector, step_f: Scores
    ) -> tuple[Vector, Scores, float, Scores]:
        """The point of the next plane with its scores, value and slope.

        It moves nearer to the best point where the risk overflows, or lies above the best objective by more than the
        gap: steep losses have planes there that say nothing about the minimum.
        """
        highest = best.objective + max(run.objective - run.lower_bound, 0.0)
        while True:
            f = best.f + mu * step_f
            value, slope = scored.phi.value_and_slope(f)
            if math.isfinite(value) and (value <= highest or mu < NEAREST):
                return best.w + mu * (w_model - best.w), f, value, slope
            mu *= 0.5

    def _search(
        self,
        run: Monitor,
        scored: Scored,
        best: _Best,
        step_w: Vector,
        step_f: Scores,
        first: float,
    ) -> float:
        """Move `best` to the minimum along the step; returns the step length, 0 where nothing is gained."""
        function = total(run.regularizer.along(best.w, step_w), scored.phi.along(best.f, step_f))
        accuracy = SEARCH_ACCURACY * max(run.objective - run.lower_bound, 0.0)
        found = minimize_along(function, accuracy, first=first)
        if found.value >= best.objective:
            return 0.0
        best.w = best.w + found.t * step_w
        best.f = best.f + found.t * step_f
        best.objective = found.value
        run.improve(best.w, found.value)
        return found.t
