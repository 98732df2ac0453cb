"""The outer iteration of irls (Algorithm 5 of the thesis); see irls.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from bmrm.kernels.vectors import dot
from bmrm.problem import (
    HasCurvature,
    IncompatibleError,
    InputError,
    Scored,
    ScoreFunction,
    Scores,
    Solution,
    Variants,
    Vector,
    provides,
)
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.line_search import total
from bmrm.solvers._core.monitor import Monitor
from bmrm.solvers._core.truncated_cg import Stops, TruncatedCG, length_of, relative_change
from bmrm.solvers._core.weighted_system import WeightedSystem

if TYPE_CHECKING:
    from bmrm.solvers.irls import IRLS

HALVINGS = 40
ARMIJO = 1e-4
"""Share of the predicted decrease that a step must bring, where steps are halved."""
NO_CHANGES = {"margin": 0.0, "modelmin": 0.0, "modelmax": 1.0, "wmargin": 0.0}


class Reweighting:
    """What changes while IRLS runs: Algorithm 5.

    Parameters
    ----------
    options : with every value of the preset filled in.
    run : the bookkeeping.
    fresh : whether the start is the solver's own choice.
    """

    def __init__(self, options: IRLS, run: Monitor, fresh: bool) -> None:
        scored = run.risk.ability(Scored)
        if scored is None or not scored.phi.smooth:
            missing = "the ability Scored" if scored is None else "a smooth loss"
            raise IncompatibleError(
                f"irls needs a risk with {missing}; solvers bundle and line_search_bundle do without"
            )
        if not provides(run.regularizer, HasCurvature):
            raise IncompatibleError(
                f"irls needs a regularizer with a second derivative, which {type(run.regularizer).__name__} has not;"
                " use l2, or solver proximal_gradient"
            )
        self.options, self.run = options, run
        self.map, self.phi = scored.map, scored.phi
        self.fit, self.judge = self._models()
        self.rows = float(self.phi.total(self.phi.constant(np.ones(self.phi.scores_per_row)))[0])
        self.certificate = Certificate(run.regularizer, run.risk.infimum)
        if options.binitmean and fresh:
            self._offset()
        self.first_norm = math.nan
        self.deviances: list[float] = []
        self.cg_iterations: list[int] = []
        self.best = (math.inf, run.start, math.inf)

    def go(self, name: str) -> Solution:
        """Iterate until a rule or a limit is met."""
        run, rule = self.run, ""
        with run.iterating():
            w = run.start
            f, fresh = self.map.scores(w), True
            while True:
                value, slope = self.phi.value_and_slope(f)
                a = self.map.pull_back(slope)
                objective = value + run.regularizer.value(w)
                run.improve(w, objective, fresh=fresh)
                run.take_plane(self.certificate, w, value, a, value - self.phi.product(slope, f))
                self._note(w, f, value, objective)
                if run.record():
                    break
                rule = "" if run.refreshed else self._own_rule()
                if rule:
                    run.finish_by_rule()
                    break
                if not run.refreshed:
                    system = self._system(w, f, value, a)
                    if not (math.isfinite(objective) and system.finite):
                        w = 0.5 * (run.w + w)
                        f, fresh = self.map.scores(w), True
                        continue
                    moved = self._step(system)
                    if moved is not None:
                        (w, f), fresh = moved, run.careful
                        f = self.map.scores(w) if run.careful else f
                    elif run.stall():
                        break
                if run.refreshed:
                    w = run.w
                    f, fresh = self.map.scores(w), True
        if self.options.returns == "deviance" and math.isfinite(self.best[2]):
            run.settle(self.best[1])
        details = {"deviance": np.array(self.deviances), "cg_iterations": np.array(self.cg_iterations)}
        return run.solution(f"{name}: {rule}" if rule else name, details=details)

    def _system(self, w: Vector, f: Scores, value: float, a: Vector) -> WeightedSystem:
        if self.fit is not self.phi:
            value, slope = self.fit.value_and_slope(f)
            a = self.map.pull_back(slope)
        return WeightedSystem(self.map, self.fit, self.run.regularizer, w, f, value, a)

    def _note(self, w: Vector, f: Scores, value: float, objective: float) -> None:
        deviance = 2.0 * self.rows * value if self.judge is self.phi else self._deviance(f)
        self.deviances.append(deviance)
        if deviance < self.best[0]:
            self.best = (deviance, w, objective)

    def _deviance(self, f: Scores) -> float:
        return 2.0 * self.rows * self.judge.value_and_slope(f)[0]

    def _own_rule(self) -> str:
        """Which of the thesis' stopping rules is met, or the empty string."""
        if self.options.lrdevdone and self.deviances[-1] < self.options.lrdevdone:
            return "the deviance is below lrdevdone"
        if self.options.lreps and len(self.deviances) > 1:
            change = relative_change(*self.deviances[-2:])
            if change < self.options.lreps:
                return "the relative change of the deviance is below lreps"
        return ""

    def _step(self, system: WeightedSystem) -> tuple[Vector, Scores] | None:
        """The next point with its scores; None where no step makes J smaller."""
        options, w, f = self.options, system.w, system.f
        if options.cgbinit:
            x, fx, residual = w, f, -system.gradient
        else:
            x, fx, residual = np.zeros_like(w), 0.0 * f, system.right_side()
        inverse = system.inverse_diagonal() if options.jacobi else None
        cg = TruncatedCG(self.map, system.product, self._deviance, self._stops(system, residual), inverse)
        x, followed = cg.solve(x, fx, residual)
        self.cg_iterations.append(cg.iterations)
        fx = self.map.scores(x) if followed is None else followed
        return self._halved(system, x, fx) if options.halving else (x, fx)

    def _stops(self, system: WeightedSystem, residual: Vector) -> Stops:
        options = self.options
        assert options.cgeps is not None
        assert options.cgdeveps is not None
        assert options.cgmax is not None
        if math.isnan(self.first_norm):
            self.first_norm = length_of(residual)
        norm = length_of(system.gradient)
        # the root makes Newton's steps ever more exact, so that convergence is faster than linear
        scales = {
            "attributes": len(system.w) / self.rows,
            "first_residual": self.first_norm,
            "residual": norm * min(1.0, math.sqrt(norm / self.first_norm)) if self.first_norm > 0.0 else norm,
        }
        return Stops(
            threshold=options.cgeps * scales[options.cgscale or ""],
            deviance_change=options.cgdeveps,
            window=math.inf if options.cgwindow is None else options.cgwindow,
            decay=math.inf if options.cgdecay is None else options.cgdecay,
            most=options.cgmax,
        )

    def _halved(self, system: WeightedSystem, x: Vector, fx: Scores) -> tuple[Vector, Scores] | None:
        """The first of x, half way to x, ... where J has fallen enough."""
        w, step, step_f = system.w, x - system.w, fx - system.f
        regularizer = self.run.regularizer
        function = total(regularizer.along(w, step), self.fit.along(system.f, step_f))
        before = system.value + regularizer.value(w)
        slope = dot(system.gradient, step)
        slack = 4.0 * float(np.finfo(np.float64).eps) * abs(before)
        for k in range(HALVINGS if slope < 0.0 else 0):
            t = 0.5**k
            if float(function(np.array([t]))[0][0]) <= before + ARMIJO * t * slope + slack:
                return w + t * step, system.f + t * step_f
        return None

    def _models(self) -> tuple[ScoreFunction, ScoreFunction]:
        """What is fitted, and what the deviance is taken of."""
        options = self.options
        changes = {name: float(getattr(options, name)) for name in NO_CHANGES}
        if changes == NO_CHANGES:
            changes = {}
        if not (changes or options.holdout_size):
            return self.phi, self.phi
        variants = self._variants("margin, modelmin, modelmax, wmargin and holdout_size")
        if not options.holdout_size:
            phi = variants.variant(None, changes)
            return phi, phi
        rows = np.random.default_rng(options.seed or 0).permutation(variants.rows)
        held = round(options.holdout_size * variants.rows)
        if not 0 < held < variants.rows:
            raise InputError(
                f"irls: holdout_size {options.holdout_size:g} of {variants.rows} rows leaves one part empty"
            )
        parts = np.sort(rows[held:]), np.sort(rows[:held])
        return variants.variant(parts[0], changes), variants.variant(parts[1], changes)

    def _offset(self) -> None:
        variants = self._variants("binitmean")
        if variants.offset is None:
            raise IncompatibleError("irls: binitmean needs a constant feature; set data.bias: regularized")
        outcomes, weight = variants.outcome_sums()
        self.run.start[variants.offset] = outcomes / weight

    def _variants(self, options: str) -> Variants:
        variants = self.run.risk.ability(Variants)
        if variants is None:
            raise IncompatibleError(f"irls: this risk cannot serve {options}; leave them at their defaults")
        return variants
