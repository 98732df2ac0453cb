"""The bundle method with a line search through the scores.

Best point so far, and search along the line to the minimiser of the model: "F-measure bundle line search" (BM-ls-CS),
section 3.3; Franc & Sonnenburg, "Optimized cutting plane algorithm for large-scale risk minimization", JMLR 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from bmrm.numerics.bracket import Trial
from bmrm.numerics.line_search import NEAR_ZERO, Along, minimize_along, minimum_of_pieces, total
from bmrm.problem import (
    Elastic,
    IncompatibleError,
    Regularizer,
    SavedPlanes,
    Scored,
    Scores,
    Vector,
    ability,
    provides,
)
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.cuts import Cuts, FreeCuts, Joint
from bmrm.solvers._core.instead import instead
from bmrm.solvers._core.monitor import Monitor, Step, Steps
from bmrm.solvers._core.plane_model import KeptModel, PlaneModel, PlaneSolver, master_accuracy
from bmrm.solvers._core.rowwise import OF_SCORES

NEAREST = 1e-9
"""The smallest fraction of the line to the model's minimiser at which a plane is taken."""

HALVINGS = 8
"""Trials of a point of a plane after which it moves nearer in ever longer strides: a model may lead 1e100 away."""

CUT_ACCURACY = 0.15
"""Largest distance, as a share of the gap, of a mixed plane of a free intercept below the risk."""

STILL = 0.999
"""An iteration that leaves more than this share of the gap counts as no progress."""

SEARCH_ACCURACY = 0.01
"""The line search stops this share of the gap above the minimum along the line."""


@dataclass
class _Best:
    """The best point so far, with its scores, so that trial steps need no product with the data."""

    w: Vector
    f: Scores
    objective: float
    b: Vector
    """The free constants as part of the scores, if there are several; otherwise none are free, or phi is minimised over
    them."""


@register(
    "line_search_bundle",
    problem="any convex risk with scores; a regularizer with a master",
    needs="Scored; a master",
    certificate="the master's bound",
    cost="1 pass, a line search over scores and a small quadratic or linear program",
    source="BM-ls-CS; Franc & Sonnenburg 2009",
    abilities=("Scored",),
    vectors=38,
)
@dataclass(frozen=True)
class LineSearchBundle(PlaneSolver):
    """Cutting planes with a best point so far, whose objective never rises.

    Each iteration: `w_m` minimises the model; `w_b <- w_b + t (w_m - w_b)` with `t` from a line search over
    `Omega + phi` along the scores (no product with the data per trial step); the next plane is taken at
    `w_b + mu (w_m - w_b)`. One pass an iteration: one product for the scores of `w_m`, one for the plane.

    With several free constants, points and lines include these; planes are combined so that the constants cancel
    (docs/decisions/free-intercept.md).

    Memory: 8 (planes + 6) dim + 40 planes^2 + 56 scores bytes, scores being rows times the scores of each. With K free
    constants, K > 1, another 8 dim for each of up to 100 + 2 K planes of weights and constants.

    Parameters
    ----------
    mu : where between the best point and the model's minimiser the plane is taken; null adapts it to the step,
        mu = clip(t / 2, 0.05, 0.9), and takes less where the risk is much above the best objective; the paper's fixed
        value is 0.1. A fixed one is halved only where the risk is not finite, so that there is no plane.
    search : of the line. `bracket` for any loss, to a hundredth of the gap, by a few evaluations of all scores; `exact`
        goes through the sorted breakpoints of a piecewise linear loss, the paper's Algorithm 2, in O(rows log rows);
        over ranks these are gathered, 16 bytes a row and search. It needs one score per row and no free intercept.
    """

    mu: float | None = parameter(None, above=0.0, most=1.0, doc="place of the cut; null adapts", example=0.1)
    search: str = parameter("bracket", doc="of the line", choices=("bracket", "exact"), example="exact")

    def steps(self, run: Monitor, planes: SavedPlanes | None = None, kept: KeptModel | None = None) -> Steps:
        """As of `Bundle`.

        Raises IncompatibleError where the risk has no scores, or the exact search does not fit.
        """
        scored = ability(run.risk, Scored)
        if scored is None:
            raise IncompatibleError(f"line_search_bundle needs {OF_SCORES}; use {instead(run)}")
        if self.search == "exact":
            self._check_exact(scored, run.regularizer)
        model = self.model(run, (run.risk.infimum,), planes, kept)
        free = scored.intercept if scored.phi.facts.scores_per_row > 1 else None
        space = model.planes.space
        return self._loop(run, Cuts(scored, space) if free is None else FreeCuts(scored, space, free), model)

    def _check_exact(self, scored: Scored, regularizer: Regularizer) -> None:
        if not (scored.phi.facts.piecewise_linear and provides(regularizer, Elastic)):
            raise IncompatibleError(
                "line_search_bundle: search: exact needs a loss that is piecewise linear in one score per row, no free"
                " intercept, and l1, l2 or elastic_net; use search: bracket, or bias: regularized or none"
            )

    def _loop(self, run: Monitor, cuts: Cuts, model: PlaneModel) -> Steps:
        here = cuts.start(run.start)
        best = _Best(here.w, here.f, here.value + run.regularizer.value(here.w), here.b)
        self._improved(run, cuts, best, fresh=True)
        yield Step.ITERATION
        first, stuck, share = 1.0, False, CUT_ACCURACY
        while True:
            gap = max(run.objective - run.lower_bound, 0.0)
            plane, lower = cuts.plane(here, share * gap)
            if lower is not None:
                best = self._better(run, cuts, best, lower)
            run.fits(here.w, here.value, plane.a, plane.height - plane.rounding)
            with run.master():
                model.add(plane.a, plane.height, here.w, offset=plane.offset)
                proposal = model.solve(master_accuracy(run.relative_gap))
            run.raise_bound(model.proof(proposal))
            there_f, there_b = cuts.scores(proposal.w, best.b)
            step_f, step_b = there_f - best.f, there_b - best.b
            t = self._search(run, cuts, best, proposal.w - best.w, step_f, step_b, first)
            afresh = yield Step.ITERATION
            left_f, left_b = (1.0 - t) * step_f, (1.0 - t) * step_b
            if afresh or (run.careful and t > 0.0):
                best = self._anew(run, cuts, best)
                left_f, left_b = there_f - best.f, there_b - best.b
            first = min(max(t, 1e-4), 1.0) if t > 0.0 else first
            mu = self.mu if self.mu is not None else float(np.clip(0.5 * t, 0.05, 0.9))
            # Where planes bring nothing any more they were not exact enough.
            share = 0.1 * share if run.objective - run.lower_bound > STILL * gap else CUT_ACCURACY
            stuck = t <= NEAR_ZERO and cuts.free and not stuck
            if stuck:  # the constants may be to blame
                here = cuts.again(best.w, best.f, best.b)
            else:
                here = self._cut(run, cuts, best, mu, proposal.w, left_f, left_b)

    def _cut(
        self, run: Monitor, cuts: Cuts, best: _Best, mu: float, w_model: Vector, step_f: Scores, step_b: Vector
    ) -> Joint:
        """The point of the next plane with its scores, value and slope.

        It moves nearer to the best point if the risk overflows or, unless `mu` is fixed, exceeds the best objective by
        more than the gap: for steep losses, planes at such points carry no information about the minimum.
        """
        highest = best.objective + max(run.objective - run.lower_bound, 0.0) if self.mu is None else math.inf
        stride = 1.0 - HALVINGS
        while True:
            here = cuts.at(best.w + mu * (w_model - best.w), best.b + mu * step_b, best.f + mu * step_f)
            if math.isfinite(here.value) and (here.value <= highest or mu < NEAREST):
                return here
            mu *= 0.5 ** max(1.0, stride)
            stride += 1.0

    def _search(
        self,
        run: Monitor,
        cuts: Cuts,
        best: _Best,
        step_w: Vector,
        step_f: Scores,
        step_b: Vector,
        first: float,
    ) -> float:
        """Move `best` to the minimum along the step; returns the step length, 0 where nothing is gained."""
        function = total(run.regularizer.along(best.w, step_w), cuts.phi.along(best.f, step_f))
        if self.search == "exact":
            found = self._at_breakpoint(run, cuts, best, step_w, step_f, function)
        else:
            accuracy = SEARCH_ACCURACY * max(run.objective - run.lower_bound, 0.0)
            found = minimize_along(function, accuracy, first=first)
        if found.value >= best.objective:
            return 0.0
        best.w, best.b = best.w + found.t * step_w, best.b + found.t * step_b
        best.f = best.f + found.t * step_f
        best.objective = found.value
        self._improved(run, cuts, best)
        return found.t

    def _at_breakpoint(
        self, run: Monitor, cuts: Cuts, best: _Best, step_w: Vector, step_f: Scores, function: Along
    ) -> Trial:
        """The minimum along the step, by the breakpoints of the loss and of l1."""
        slope, jumps = cuts.phi.breakpoints(best.f, step_f)
        omega = cast("Elastic", run.regularizer)
        l1, l2, w = omega.l1, omega.l2, best.w
        if l1 > 0.0:
            slope += l1 * float(np.where(w != 0.0, np.sign(w) * step_w, np.abs(step_w)).sum())
            crossing = w * step_w < 0.0
            more = np.column_stack((-w[crossing] / step_w[crossing], 2.0 * l1 * np.abs(step_w[crossing])))
            jumps = np.concatenate((jumps, more))
        dot = cuts.space.dot
        t = minimum_of_pieces(slope + l2 * dot(w, step_w), l2 * dot(step_w, step_w), jumps)
        t = t if math.isfinite(t) else 0.0  # slopes that rounding keeps from 0 for ever
        values, derivatives = function(np.array([t]))
        return Trial(t, float(values[0]), float(derivatives[0]))

    def _improved(self, run: Monitor, cuts: Cuts, best: _Best, fresh: bool = False) -> None:
        if run.improve(best.w, best.objective, fresh=fresh):
            cuts.settle(best.w, best.b, best.objective)

    def _better(self, run: Monitor, cuts: Cuts, best: _Best, lower: Joint) -> _Best:
        """The best point, or a new one if that is lower."""
        objective = lower.value + run.regularizer.value(lower.w)
        if not objective < best.objective:
            return best
        best = _Best(lower.w, lower.f, objective, lower.b)
        self._improved(run, cuts, best)
        return best

    def _anew(self, run: Monitor, cuts: Cuts, best: _Best) -> _Best:
        """The best point of the run, evaluated from its weights, not from accumulated scores."""
        b = best.b if run.w is best.w else cuts.constants_of(run.w, best.b)
        f = cuts.scores_with(run.w, b)
        return _Best(run.w, f, cuts.phi.value_and_slope(f)[0] + run.regularizer.value(run.w), b)
