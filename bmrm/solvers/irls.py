"""Truncated-CG IRLS: Komarek, "Logistic regression for data mining and high-dimensional classification" (2004).

Algorithms 5 (outer iteration), 6 and 7 (the inner one, in _core/newton/truncated_cg.py); options of sections 5.2 and
B.4.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.kernels.products.vectors import dot, norm
from bmrm.numerics.line_search import total
from bmrm.problem import (
    IncompatibleError,
    InputError,
    LinearMap,
    Regularizer,
    Scored,
    ScoreFunction,
    Scores,
    Vector,
    ability,
    provides,
)
from bmrm.problem.loss import HasCurvature
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.instead import instead, name_of
from bmrm.solvers._core.modified_loss import changes_of, check_limits, modified_loss, start_at_mean
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Step, Steps
from bmrm.solvers._core.newton.truncated_cg import Stops, TruncatedCG, length_of, relative_change
from bmrm.solvers._core.points import Point, noted, placed
from bmrm.solvers._core.presets import chosen, resolved
from bmrm.solvers._core.rowwise import OF_SCORES

THESIS = {
    "cgwindow": 3,
    "cgdecay": 1000.0,
    "cgmax": 200,
    "lreps": 0.05,
    "lrmax": 30,
    "halving": False,
    "returns": "deviance",
}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "certified": {
        "cgeps": 0.1,
        "cgscale": "residual",
        "cgdeveps": 0.0,
        "cgbinit": True,
        "cgwindow": None,
        "cgdecay": None,
        "cgmax": 1000,
        "lreps": 0.0,
        "lrmax": None,
        "halving": True,
        "returns": "objective",
    },
    "first_residual": THESIS | {"cgeps": 1e-3, "cgscale": "first_residual", "cgdeveps": 0.0, "cgbinit": False},
    "afc": THESIS | {"cgeps": 1e-3, "cgscale": "attributes", "cgdeveps": 0.0, "cgbinit": False},
    "cgdeveps": THESIS | {"cgeps": 0.0, "cgscale": "first_residual", "cgdeveps": 5e-3, "cgbinit": True},
}
"""Values of options that are null: `certified` for the gap, the others for the thesis' classifiers."""
RENAMED = {
    "cgeps": "afc, and first_residual is the one of the thesis' chapter 6 (cgeps times the first residual, not times"
    " the number of attributes)"
}
"""Presets of earlier versions, and what replaces them."""


LONG_CG = {"preset": "afc", "cgeps": 1e-300, "lreps": 0.0}
ROUGH = {"cgmax": 1, "holdout_size": 0.3}
"""Settings under which some options have an effect, for tests."""


@register(
    "irls",
    problem="smooth losses with curvature; l2 and other regularizers with a second derivative",
    needs="Scored with curvature; a regularizer with curvature",
    certificate="the conjugate of the regularizer (eq. 15), mixed over iterations",
    cost="1 pass and 1 more for each CG iteration",
    source="Komarek 2004, Algorithms 5-7",
    abilities=("Scored",),
    refuses=("kinked loss", "kinked regularizer"),
    vectors=12,
)
@dataclass(frozen=True)
class IRLS(IterativeSolver):
    """Newton's method as iteratively reweighted least squares, each system solved approximately by conjugate gradients.

    With mean loss `R`, curvature `W = phi''` and slope `s = phi'` at the scores `f = X w`, the next `w` solves
    `(X'WX + Omega'') w = X'(W f - s)`, the thesis' weighted least squares with `z = f - W^-1 s`, divided by the number
    of rows m. Its ridge penalty `rrlambda` there is our `L2(lam=rrlambda / m)`. The deviance is `2 m R(w)`, without
    the penalty; `details` has it for every iterate, and the CG iterations of each.

    An option left at null takes the value of the preset. `certified` (ours): systems are solved to a tenth of the
    gradient, steps are halved until J falls enough, and the gap ends the run. The others are the thesis' classifiers,
    Algorithm 5 with another end of CG each: `first_residual` is its LR-CGEPS, Algorithm 6 with `cgeps` 0.001 times the
    first residual, chosen in section 5.2.2 "for later experiments" and used in chapter 6; `afc` is learner `lr` of its
    software (appendix B.4.3), where 0.001 is multiplied by the number of attributes, as in the experiments before
    section 5.2.2; `cgdeveps` is LR-CGDEVEPS, Algorithm 7. When their rule `lreps` is met the status is OWN_RULE, unless
    the gap is reached before (with `tolerance: 0` only the rule ends the run).

    Memory: 96 dim + 48 scores bytes, scores being rows times the scores of each; 16 scores more with a free intercept.

    Parameters
    ----------
    preset : `certified`, `first_residual`, `afc` or `cgdeveps`.
    cgeps : CG stops when the norm of the residual is below this times its scale (Algorithm 6); 0 for Algorithm 7.
    cgscale : that scale, for residuals multiplied by m, as the thesis has sums over rows. `attributes`: dim (its
        experiments before section 5.2.2, and appendix B); `root_attributes`: the square root of dim, and
        `first_residual`: the norm of the residual that the first CG run begins with, X'(y - mu) at w = 0 (both section
        5.2.2); `residual` (ours): the norm of the gradient of J at each start, and less as it falls.
    cgdeveps : CG stops when the relative change of the deviance is below this (Algorithm 7); 0 for Algorithm 6.
        One of `cgeps` and `cgdeveps` must be positive; giving one sets the other to 0.
    cgbinit : CG starts from the last w, not from zero.
    cgwindow : CG stops after this many consecutive iterations without a smaller residual (Algorithm 6) or deviance
        (Algorithm 7).
    cgdecay : CG stops when the deviance exceeds the best of this CG run by this factor, and returns that best point.
    cgmax : CG iterations at most.
    lreps : stop with OWN_RULE when the relative change of the deviance is below this.
    lrmax : iterations at most, as `max_iterations`.
    lrdevdone : stop with OWN_RULE when the deviance is below this; 0 for never, as deviances may be below 0.
    holdout_size : share of the rows that are held out; their deviance is used in `lreps` and `returns`.
    binitmean : start with the mean target as the weight of the constant feature (`data.bias: regularized`).
    wmargin : W is kept within [wmargin, 1 - wmargin].
    margin : targets 0 and 1 become margin and 1 - margin.
    modelmin, modelmax : limits of the predicted mean mu.
    halving : halve the step until J falls (the thesis' "fractional increments").
    returns : `objective` for the iterate of least J, `deviance` for that of least deviance (line 5.2).
    jacobi : precondition CG with the diagonal of the system.
    seed : of the choice of held-out rows; null = that of the config, 0 from Python.

    Raises
    ------
    InputError
        An option out of its range; the preset `cgeps` of earlier versions, with the names that it has now.
    IncompatibleError
        Risk without scores or curvature, regularizer without curvature, or an option that the risk cannot serve
        (`wmargin`, `margin`, `modelmin`, `modelmax`: logistic loss; `binitmean`: a constant feature).
    """

    preset: str = parameter(
        "certified", doc="defaults of what is null", choices=tuple(PRESETS), renamed=RENAMED, example="afc"
    )
    cgeps: float | None = parameter(None, doc="relative residual that ends CG", least=0.0, example=1e-6)
    cgscale: str | None = parameter(
        None,
        doc="what cgeps multiplies",
        choices=("attributes", "root_attributes", "first_residual", "residual"),
        example="attributes",
    )
    cgdeveps: float | None = parameter(None, doc="change of the deviance that ends CG", least=0.0, example=0.01)
    cgbinit: bool | None = parameter(None, doc="start CG from the last w", example=False)
    cgwindow: int | None = parameter(None, doc="CG iterations without progress", least=0, example=1, beside=LONG_CG)
    cgdecay: float | None = parameter(None, doc="growth of the deviance that ends CG", least=1.0, example=1.0)
    cgmax: int | None = parameter(None, doc="CG iterations at most", least=1, example=2)
    lreps: float | None = parameter(None, doc="change of the deviance that ends the run", least=0.0, example=0.5)
    lrmax: int | None = parameter(None, doc="iterations at most", least=1, example=2)
    lrdevdone: float = parameter(0.0, doc="deviance that ends the run; 0 = none", least=0.0, example=1e9)
    holdout_size: float = parameter(0.0, doc="share of rows held out", least=0.0, below=1.0, example=0.25)
    binitmean: bool = parameter(False, doc="start with the mean target as offset", example=True)
    wmargin: float = parameter(0.0, doc="least weight", least=0.0, below=0.5, example=0.2)
    margin: float = parameter(0.0, doc="shrinkage of the targets", least=0.0, below=0.5, example=0.1)
    modelmin: float = parameter(0.0, doc="least predicted mean", least=0.0, below=1.0, example=0.3)
    modelmax: float = parameter(1.0, doc="largest predicted mean", above=0.0, most=1.0, example=0.7)
    halving: bool | None = parameter(None, doc="halve steps until J falls", example=False)
    returns: str | None = parameter(
        None, doc="which iterate to return", choices=("objective", "deviance"), example="deviance", beside=ROUGH
    )
    jacobi: bool = parameter(False, doc="diagonal preconditioning", example=True)
    seed: int | None = parameter(
        None, doc="of the rows held out; null = the config's", least=0, example=1, beside=ROUGH
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_limits("IRLS", self.modelmin, self.modelmax)
        if self.cgeps and self.cgdeveps:
            raise InputError("IRLS: cgeps and cgdeveps are both positive, expected one of them")
        values = self._values()
        if not (values["cgeps"] or values["cgdeveps"]):
            raise InputError("IRLS: cgeps and cgdeveps are both 0, expected one of them to be positive")

    def resolved(self) -> IRLS:
        """The same with every option of the preset filled in, and `lrmax` among the limits."""
        return resolved(self, self._values(), "lrmax")

    def _values(self) -> dict[str, Any]:
        """The user's value, else that of the preset."""
        values = dict(PRESETS[self.preset])
        if self.cgeps:
            values["cgdeveps"] = 0.0
        if self.cgdeveps:
            values["cgeps"] = 0.0
        return chosen(self, values)

    def steps(self, run: Monitor) -> Steps:
        """As of `IterativeSolver`."""
        return Reweighting(self, run).go()


HALVINGS = 40
ARMIJO = 1e-4
"""Share of the predicted decrease that a step must bring where steps are halved (Armijo condition)."""


class Reweighting:
    """The state of IRLS: Algorithm 5.

    Parameters
    ----------
    options : with every value of the preset filled in.
    run : what it drives.
    """

    def __init__(self, options: IRLS, run: Monitor) -> None:
        scored = ability(run.risk, Scored)
        if scored is None or not scored.phi.facts.smooth:
            needed = OF_SCORES if scored is None else "a smooth loss"
            raise IncompatibleError(f"irls needs {needed}; use {instead(run)}")
        if not provides(run.regularizer, HasCurvature):
            raise IncompatibleError(
                f"irls needs a regularizer with a second derivative, which {name_of(run.regularizer)} has not;"
                f" use l2, or solver {instead(run)}"
            )
        self.options, self.run = options, run
        self.map, self.phi = scored.map, scored.phi
        self.fit, self.judge = self._models()
        self.rows = float(self.phi.total(self.phi.constant(np.ones(self.phi.facts.scores_per_row)))[0])
        self.certificate = Certificate(run.regularizer, run.risk.infimum)
        if options.binitmean and run.chooses_start:
            start_at_mean(run)
        self.first_norm = math.nan
        self.deviances: list[float] = []
        self.cg_iterations: list[int] = []
        self.best = (math.inf, run.start, math.inf)

    def go(self) -> Steps:
        """Iterate until a rule is met."""
        run = self.run
        run.finish = self._finish
        w = run.start
        f, fresh, steepest = self.map.matvec(w), True, 0.0
        while True:
            point = placed(self.map, self.phi, w, f, fresh=fresh)
            objective = noted(run, self.certificate, point)
            self._note(w, f, point.value, objective)
            afresh = yield Step.ITERATION
            rule = "" if afresh else self._own_rule()
            gradient = norm(point.a + run.regularizer.subgradient(w))
            steepest = max(steepest, gradient)
            if not (afresh or rule) and run.flat(gradient, norm(point.a), steepest):
                return "the gradient is small"
            if rule:
                return rule
            if not afresh:
                system = self._system(point)
                if not (math.isfinite(objective) and system.finite):
                    w = 0.5 * (run.w + w)
                    f, fresh = self.map.matvec(w), True
                    continue
                moved = self._step(system)
                if moved is not None:
                    (w, f), fresh = moved, run.careful
                    f = self.map.matvec(w) if run.careful else f
                    continue
                yield Step.STALLED
            w = run.w
            f, fresh = self.map.matvec(w), True

    def _finish(self) -> dict[str, Any]:
        if self.options.returns == "deviance" and math.isfinite(self.best[2]):
            self.run.settle(self.best[1])
        return {"deviance": np.array(self.deviances), "cg_iterations": np.array(self.cg_iterations)}

    def _system(self, point: Point) -> WeightedSystem:
        if self.fit is not self.phi:
            point = placed(self.map, self.fit, point.w, point.f)
        return WeightedSystem(self.map, self.fit, self.run.regularizer, point)

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
        fx = self.map.matvec(x) if followed is None else followed
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
            "root_attributes": math.sqrt(len(system.w)) / self.rows,
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
        """The first of x, half way to x, ... where J has fallen enough; not tried where a tangent is too high."""
        w, step, step_f = system.w, x - system.w, fx - system.f
        regularizer = self.run.regularizer
        function = total(regularizer.along(w, step), self.fit.along(system.f, step_f))
        before = system.value + regularizer.value(w)
        slope = dot(system.gradient, step)
        slack = 4.0 * float(np.finfo(np.float64).eps) * abs(before)
        tried, value, rise = 1.0, -math.inf, 0.0
        for k in range(HALVINGS if slope < 0.0 else 0):
            t = 0.5**k
            most = before + ARMIJO * t * slope + slack
            if value + rise * (t - tried) > most + slack:  # J is convex
                continue
            tried = t
            value, rise = (float(each[0]) for each in function(np.array([t])))
            if value <= most:
                return w + t * step, system.f + t * step_f
            if not math.isfinite(value + rise):
                value = -math.inf
        return None

    def _models(self) -> tuple[ScoreFunction, ScoreFunction]:
        """What is fitted, and what the deviance is computed from."""
        options = self.options
        changes = changes_of(
            margin=options.margin, modelmin=options.modelmin, modelmax=options.modelmax, wmargin=options.wmargin
        )
        if not (changes or options.holdout_size):
            return self.phi, self.phi
        modified = modified_loss(self.run, "margin, modelmin, modelmax, wmargin and holdout_size")
        if not options.holdout_size:
            phi = modified.variant(None, changes)
            return phi, phi
        rows = np.random.default_rng(options.seed or 0).permutation(modified.rows)
        held = round(options.holdout_size * modified.rows)
        if not 0 < held < modified.rows:
            raise InputError(
                f"irls: holdout_size {options.holdout_size:g} of {modified.rows} rows leaves one part empty"
            )
        parts = np.sort(rows[held:]), np.sort(rows[:held])
        return modified.variant(parts[0], changes), modified.variant(parts[1], changes)


class WeightedSystem:
    """(A' W A + Omega'') x = A'(W f - s) + Omega'' w - Omega'(w), with s = phi'(f) and W = phi''(f) at f = A w.

    For quadratic Omega the last two terms cancel, and this is `X'WX + lambda` times `x` equals `X'Wz`.

    Parameters
    ----------
    map, phi : R(w) = phi(A w).
    regularizer : with a second derivative (`HasCurvature`).
    point : with its scores.
    """

    def __init__(self, map: LinearMap, phi: ScoreFunction, regularizer: Regularizer, point: Point) -> None:
        assert isinstance(regularizer, HasCurvature)
        self.map, self.phi, self.w, self.f, self.value = map, phi, point.w, point.f, point.value
        self._curved: HasCurvature = regularizer
        self.gradient: Vector = point.a + regularizer.subgradient(point.w)
        """Of phi(A w) + Omega(w)."""

    def product(self, v: Vector, fv: Scores) -> Vector:
        """The matrix times `v`, whose scores are `fv`; half a pass."""
        ridge: Vector = self._curved.hessian_product(self.w, v)
        return self.map.rmatvec(self.phi.hessian_product(self.f, fv)) + ridge

    def right_side(self) -> Vector:
        """What remains at x = 0; half a pass."""
        return self.product(self.w, self.f) - self.gradient

    def inverse_diagonal(self) -> Vector:
        """One over the diagonal of the matrix, 1 where that is not positive; IncompatibleError for several scores."""
        if self.phi.facts.scores_per_row != 1:
            raise IncompatibleError("jacobi preconditioning needs one score per row; leave it off")
        weights = self.phi.hessian_product(self.f, self.phi.constant(np.ones(1)))
        ridge = self._curved.hessian_product(self.w, np.ones_like(self.w))
        diagonal = self.map.diagonal(weights) + ridge
        return 1.0 / np.where(np.isfinite(diagonal) & (diagonal > 0.0), diagonal, 1.0)

    @property
    def finite(self) -> bool:
        """Whether the model exists here."""
        return math.isfinite(self.value) and bool(np.all(np.isfinite(self.gradient)))
