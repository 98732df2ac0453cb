"""Nonlinear conjugate gradients: CG-MLE, Algorithm 8 of Komarek's thesis (2004), with sections 2.2, 5.3 and B.4.4."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.kernels.products.vectors import norm
from bmrm.numerics.bracket import Trial
from bmrm.numerics.line_search import LARGEST_STEP, Along, total
from bmrm.problem import (
    IncompatibleError,
    Scored,
    Vector,
    ability,
)
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.best import ROUNDING
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.instead import instead, name_of, refuse_bounds
from bmrm.solvers._core.modified_loss import changes_of, check_limits, modified_loss, start_at_mean
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Step, Steps
from bmrm.solvers._core.newton.truncated_cg import Watched, relative_change
from bmrm.solvers._core.points import Iterate, ScoredIterate, noted, placed
from bmrm.solvers._core.presets import chosen, resolved

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "certified": {
        "update": "hestenes_stiefel_dai_yuan",
        "slope_relative": None,
        "initalpha": None,
        "cgeps": 0.0,
        "cgwindow": None,
        "cgdecay": None,
        "cgmax": None,
        "returns": "objective",
        "binitmean": False,
        "margin": 0.0,
        "modelmin": 0.0,
        "modelmax": 1.0,
    },
    "thesis": {
        "update": "modified_polak_ribiere",
        "slope_relative": 0.1,
        "initalpha": 1e-8,
        "cgeps": 5e-4,
        "cgwindow": 1,
        "cgdecay": 1000.0,
        "cgmax": 100,
        "returns": "deviance",
        "binitmean": True,
        "margin": 0.0,
        "modelmin": 0.0,
        "modelmax": 1.0,
    },
}
"""Values of options that are null."""

SLOPE_WITH_SCORES, SLOPE_BY_PASSES = 0.01, 0.1
"""Share of the slope that remains after a line search, if trial steps cost no pass, and if each costs one."""


def _share(above: float, below: float) -> float:
    """above / below; 0, which is a restart, if the ratio is not finite."""
    share = above / below if below else 0.0
    return share if math.isfinite(share) else 0.0


def _polak_ribiere(r: Vector, before: Vector, d: Vector) -> float:
    return _share(float(r @ (r - before)), float(before @ before))


def _modified_polak_ribiere(r: Vector, before: Vector, d: Vector) -> float:
    return max(0.0, _polak_ribiere(r, before, d))


def _hestenes_stiefel(r: Vector, before: Vector, d: Vector) -> float:
    # the thesis' eq. 2.19 with the sign that makes it agree with the others on quadratics: r is minus the gradient
    return _share(float(r @ (r - before)), -float(d @ (r - before)))


def _fletcher_reeves(r: Vector, before: Vector, d: Vector) -> float:
    return _share(float(r @ r), float(before @ before))


def _hestenes_stiefel_dai_yuan(r: Vector, before: Vector, d: Vector) -> float:
    return max(0.0, min(_hestenes_stiefel(r, before, d), _share(float(r @ r), -float(d @ (r - before)))))


UPDATES: Mapping[str, Callable[[Vector, Vector, Vector], float]] = {
    "hestenes_stiefel_dai_yuan": _hestenes_stiefel_dai_yuan,
    "modified_polak_ribiere": _modified_polak_ribiere,
    "polak_ribiere": _polak_ribiere,
    "hestenes_stiefel": _hestenes_stiefel,
    "fletcher_reeves": _fletcher_reeves,
}
"""Formulas for beta, by name, from r = -J'(w), the r before and the last direction."""


LOOSE = {"update": "polak_ribiere", "slope_relative": 0.9}
"""Settings under which the deviance sometimes rises, so that its rules have an effect, for tests."""
NO_OFFSET = {"binitmean": False}
"""Settings that the preset of the thesis needs where there is no constant feature."""


@register(
    "nonlinear_cg",
    problem="smooth risks and regularizers",
    needs="value and gradient; Scored makes line searches free of passes",
    certificate="the conjugate of the regularizer (eq. 15), mixed over iterations",
    cost="1 pass with scores, else 1 for each trial step",
    source="Komarek 2004, Algorithm 8",
    refuses=("kinked loss", "kinked regularizer"),
    vectors=12,
)
@dataclass(frozen=True)
class NonlinearCG(IterativeSolver):
    """Conjugate gradients on J itself, with a secant line search: CG-MLE.

    `d = r + beta d` with `r = -J'(w)`; `w` moves along d to a point where the slope is small. The thesis' penalty is
    `rrlambda beta'beta` on the log likelihood; J is minus the likelihood divided by the number of rows m, so it is our
    `L2(lam=2 rrlambda / m)`. The deviance of the stopping rules is `2 m R(w)`, without the penalty; the rules use only
    its relative change, so m does not matter.

    An option left at null takes the value of the preset: `certified` (ours) runs until the gap is reached; `thesis` is
    Algorithm 8 with the values of section 5.3 and appendix B.4.4, from the start of its line 8.2 (`binitmean`, so that
    it needs `data.bias: regularized`; without a constant feature, `binitmean: false`). It stops with OWN_RULE by the
    thesis' rules, unless the gap is reached before (with `tolerance: 0` only the rules end the run).

    With `margin`, `modelmin` or `modelmax` directions, line searches and the deviance are those of the modified loss;
    J, the gap and the returned `objective` stay those of the loss. Where `modelmin` or `modelmax` is met the deviance
    is flat and no longer convex (section 5.3.1.2): the line search there follows the slope, X'(o - mu) of the targets
    o and the limited means mu, and no step needs to make the deviance smaller.

    Memory: 80 dim + 40 scores bytes, scores being rows times the scores of each; 24 dim + 49 scores more with a
    modified loss.

    Parameters
    ----------
    update : beta: `hestenes_stiefel_dai_yuan` (max(0, min of both), of Dai and Yuan, "An efficient hybrid
        conjugate gradient method for unconstrained optimization", 2001; of `certified`), `modified_polak_ribiere`
        (max(0, .), which restarts as Powell does; of `thesis`), `polak_ribiere`, `hestenes_stiefel`,
        `fletcher_reeves`. All agree on quadratics.
    restart_every : iterations between restarts with d = r; null for dim.
    powell : restart where r'r_before / r_before'r_before exceeds this (eq. 2.20); null for never. For
        `modified_polak_ribiere` a restart where it exceeds ||r||^2 / ||r_before||^2 is built in.
    slope_relative, slope_absolute : the line search ends where the slope along d is at most this share of the first
        one, or at most this. Null is 0.1 for `thesis` and where a trial step costs a pass, 0.01 where scores make it
        free.
    initalpha : first step of every line search; `certified` takes the last step times the ratio of the slopes (with a
        tiny step such as the thesis' 1e-8, the next point has a relative rounding error of 1e-8).
    preset : `certified` or `thesis`.
    cgeps : stop with OWN_RULE when the relative change of the deviance is below this.
    cgwindow : stop with OWN_RULE after this many consecutive iterations without a smaller deviance.
    cgdecay : stop with OWN_RULE when the deviance exceeds the best by this factor.
    cgmax : iterations at most, as `max_iterations`.
    returns : `objective` for the iterate of least J, `deviance` for that of least deviance (line 8.3).
    binitmean : start with the mean target as the weight of the constant feature (`data.bias: regularized`; line 8.2).
    margin : targets 0 and 1 become margin and 1 - margin.
    modelmin, modelmax : limits of the predicted mean mu.

    Raises
    ------
    InputError
        An option out of its range; `modelmin` not below `modelmax`.
    IncompatibleError
        A loss or a regularizer with kinks, or an option that the risk cannot serve (`margin`, `modelmin`, `modelmax`:
        logistic loss; `binitmean`: a constant feature).
    """

    update: str | None = parameter(None, doc="beta", choices=tuple(UPDATES), example="fletcher_reeves")
    restart_every: int | None = parameter(None, least=1, doc="iterations between restarts; null for dim", example=1)
    powell: float | None = parameter(None, above=0.0, doc="lost orthogonality that restarts", example=1e-3)
    slope_relative: float | None = parameter(None, above=0.0, below=1.0, doc="share of the slope left", example=1e-6)
    slope_absolute: float = parameter(0.0, least=0.0, doc="slope that is small enough", example=0.1)
    initalpha: float | None = parameter(None, above=0.0, doc="first step of a line search", example=1.0)
    preset: str = parameter(
        "certified", doc="defaults of what is null", choices=tuple(PRESETS), example="thesis", beside=NO_OFFSET
    )
    cgeps: float | None = parameter(None, least=0.0, doc="change of the deviance that ends the run", example=0.1)
    cgwindow: int | None = parameter(
        None, least=0, doc="iterations without a smaller deviance", example=1, beside=LOOSE
    )
    cgdecay: float | None = parameter(
        None, least=1.0, doc="growth of the deviance that ends the run", example=1.0, beside=LOOSE
    )
    cgmax: int | None = parameter(None, least=1, doc="iterations at most", example=2)
    returns: str | None = parameter(
        None,
        doc="which iterate to return",
        choices=("objective", "deviance"),
        example="deviance",
        beside={"tolerance": 1e-12},
    )
    binitmean: bool | None = parameter(None, doc="start with the mean target as offset", example=True)
    margin: float | None = parameter(None, least=0.0, below=0.5, doc="shrinkage of the targets", example=0.1)
    modelmin: float | None = parameter(None, least=0.0, below=1.0, doc="least predicted mean", example=0.3)
    modelmax: float | None = parameter(None, above=0.0, most=1.0, doc="largest predicted mean", example=0.7)

    def __post_init__(self) -> None:
        super().__post_init__()
        values = chosen(self, PRESETS[self.preset])
        check_limits("NonlinearCG", values["modelmin"], values["modelmax"])

    def steps(self, run: Monitor) -> Steps:
        """As of `IterativeSolver`."""
        return (yield from _Run(self, run).go())

    def resolved(self) -> NonlinearCG:
        """The same with every option of the preset filled in, and `cgmax` among the limits."""
        return resolved(self, chosen(self, PRESETS[self.preset]), "cgmax")


class _Run:
    """The state of nonlinear CG.

    Parameters
    ----------
    options : with every value of the preset filled in.
    run : what it drives.
    """

    def __init__(self, options: NonlinearCG, run: Monitor) -> None:
        refuse_bounds(run, options.name)
        scored = ability(run.risk, Scored)
        kinked = "loss" if scored is not None and not scored.phi.facts.smooth else ""
        kinked = kinked or ("" if run.regularizer.smooth else f"regularizer {name_of(run.regularizer)}")
        if kinked:
            raise IncompatibleError(f"nonlinear_cg needs a smooth {kinked}; use {instead(run)}")
        self.options, self.run = options, run
        if options.binitmean and run.chooses_start:
            start_at_mean(run)
        changes = changes_of(margin=options.margin, modelmin=options.modelmin, modelmax=options.modelmax)
        self.judge = scored if changes else None
        """The scores and phi of J, where another loss is fitted."""
        if changes:
            modified = modified_loss(run, "margin, modelmin and modelmax")
            scored = None if scored is None else Scored(scored.map, modified.variant(None, changes))
        self.flat = (options.modelmin, options.modelmax) != (0.0, 1.0)
        """Whether the deviance may be flat where its slope is not 0."""
        self.iterate = Iterate(run, run.start) if scored is None else ScoredIterate(run, run.start, scored)
        self.update = UPDATES[options.update or ""]
        self.small = options.slope_relative or (SLOPE_BY_PASSES if scored is None else SLOPE_WITH_SCORES)
        self.certificate = Certificate(run.regularizer, run.risk.infimum)
        self.risks: list[float] = []
        self.trials = self.restarts = 0
        self.last: tuple[float, float] | None = None
        self.best = (math.inf, run.start)
        self.watched = Watched(math.inf if options.cgwindow is None else options.cgwindow)

    def go(self) -> Steps:
        """Algorithm 8."""
        run = self.run
        run.finish = self._finish
        r, d = self._note(), np.zeros_like(run.start)
        before, since, steepest = r, 0, norm(r)
        while True:
            if (yield Step.ITERATION):
                r, since = self._renewed(), 0
            if run.flat(norm(r), norm(self.iterate.point.a), steepest):
                return "the gradient is small"
            rule = self._own_rule()
            if rule:
                return rule
            fresh = self._restarts(r, before, since)
            beta = 0.0 if fresh else self.update(r, before, d)
            d = r + beta * d if math.isfinite(beta) else r
            if not self._search(d, r):
                d, fresh = r, True
                if not self._search(r, r):
                    yield Step.STALLED
                    r, since = self._renewed(), 0
                    continue
            self.restarts += fresh
            since = 1 if fresh else since + 1
            before, r = r, self._note()
            self.watched.take(self.risks[-1])

    def _finish(self) -> dict[str, Any]:
        if self.options.returns == "deviance":
            self.run.settle(self.best[1])
        return {"risk": np.array(self.risks), "restarts": self.restarts, "trials": self.trials}

    def _note(self) -> Vector:
        """Record the point; returns minus the gradient of J."""
        run, point, judge = self.run, self.iterate.point, self.judge
        judged = point if judge is None else placed(judge.map, judge.phi, point.w, point.f, fresh=point.fresh)
        noted(run, self.certificate, judged)
        self.risks.append(point.value)
        if point.value <= self.best[0]:
            self.best = (point.value, point.w)
        return -(point.a + run.regularizer.subgradient(point.w))

    def _renewed(self) -> Vector:
        """The same for the best point, with everything recomputed."""
        point = self.iterate.renew(self.run.w)
        return -(point.a + self.run.regularizer.subgradient(point.w))

    def _own_rule(self) -> str:
        """Which of the thesis' stopping rules is met, or the empty string."""
        options, risks = self.options, self.risks
        if options.cgeps and len(risks) > 1 and relative_change(risks[-2], risks[-1]) < options.cgeps:
            return "the relative change of the deviance is below cgeps"
        if self.watched.left <= 0:
            return "cgwindow iterations without a smaller deviance"
        if options.cgdecay is not None and len(risks) > 1 and risks[-1] > options.cgdecay * min(risks[:-1]):
            return "the deviance has grown by cgdecay"
        return ""

    def _restarts(self, r: Vector, before: Vector, since: int) -> bool:
        """Whether the next direction is r: at the start, after so many iterations, or by Powell's rule."""
        every = self.options.restart_every or len(r)
        if since in (0, every):
            return True
        if self.options.powell is None:
            return False
        with np.errstate(over="ignore", invalid="ignore"):  # gradients far from the minimum: then it is no restart
            return float(r @ before) > self.options.powell * float(before @ before)

    def _search(self, d: Vector, r: Vector) -> bool:
        """Move along d; False where J cannot be made smaller there."""
        options, point, regularizer = self.options, self.iterate.point, self.run.regularizer
        with np.errstate(over="ignore", invalid="ignore"):
            slope = -float(r @ d)
        if not (slope < 0.0 and math.isfinite(slope)):  # a direction too steep for any step
            return False
        function = total(regularizer.along(point.w, d), self.iterate.along(d))
        found, trials = secant_search(
            function,
            slope,
            first=options.initalpha or self._guess(slope, d),
            relative=self.small,
            absolute=options.slope_absolute,
        )
        self.trials += trials
        if found is None or not self._better(found, slope, point.value + regularizer.value(point.w)):
            return False
        self.last = found.t, slope
        self.iterate.move(found.t, d)
        return True

    def _better(self, found: Trial, slope: float, here: float) -> bool:
        """Whether a step leads on from a point with this slope along it and this value."""
        if self.flat:
            return math.isfinite(found.value) and abs(found.derivative) < abs(slope)
        return found.value <= here + ROUNDING * abs(here)

    def _guess(self, slope: float, d: Vector) -> float:
        """A first step: as much decrease as last time, but one that changes w."""
        as_before = 0.0 if self.last is None else _share(self.last[0] * self.last[1], slope)
        length = norm(d)
        return max(as_before, ROUNDING * norm(self.iterate.point.w) / length) if as_before > 0.0 else 1e-2 / length


ROUNDS = 100
"""Most trial steps; a bracket is halved at least every second one."""


def secant_search(
    function: Along, slope: float, *, first: float, relative: float, absolute: float
) -> tuple[Trial | None, int]:
    """A step where the slope has become small, and the number of trial steps.

    First a bracket from a negative to a positive slope is found, by extrapolating the secant and at least doubling.
    Inside the bracket the secant is used, or bisection if the secant does not shrink the bracket.

    Parameters
    ----------
    function : values and derivatives at a vector of t, convex.
    slope : the derivative at 0, negative.
    first : the first trial step.
    relative, absolute : a slope of at most `relative |slope|` or `absolute` is small enough.

    Returns
    -------
    The best trial if rounding or infinite values end the search early; None if no trial had a finite value.
    """
    small = max(relative * abs(slope), absolute)
    low, high, best = (0.0, slope), (math.inf, math.inf), None
    t, width = first, math.inf
    for k in range(1, ROUNDS + 1):
        trial = Trial(t, *(float(part[0]) for part in function(np.array([t]))))
        finite = math.isfinite(trial.value) and math.isfinite(trial.derivative)
        if finite and (best is None or abs(trial.derivative) <= abs(best.derivative)):
            best = trial
        if finite and abs(trial.derivative) <= small:
            return trial, k
        here = (t, trial.derivative if finite else math.inf)
        if here[1] < 0.0:
            before, low = low, here
            if math.isinf(high[0]):
                t = _beyond(before, low)
        else:
            high = here
        if math.isfinite(high[0]):
            halved = high[0] - low[0] <= 0.5 * width
            width = min(width, high[0] - low[0]) if halved or math.isinf(width) else width
            t = _inside(low, high, halved)
            if not low[0] < t < high[0]:  # the secant of slopes one of which is many times the other's size
                t = 0.5 * (low[0] + high[0])
            if not low[0] < t < high[0]:
                return best, k
        elif t > LARGEST_STEP:
            return best, k
    return best, ROUNDS


def _beyond(before: tuple[float, float], low: tuple[float, float]) -> float:
    """Where the secant of two negative slopes reaches 0, at least twice as far as the last."""
    rise = low[1] - before[1]
    secant = low[0] - low[1] * (low[0] - before[0]) / rise if rise > 0.0 else math.inf
    return max(2.0 * low[0], secant) if math.isfinite(secant) else 10.0 * low[0]


def _inside(low: tuple[float, float], high: tuple[float, float], halved: bool) -> float:
    """Where the secant across the bracket reaches 0, or the middle of the bracket if that is not inside."""
    if math.isinf(high[1]):
        return math.sqrt(low[0] * high[0]) if low[0] > 0.0 else 1e-3 * high[0]
    if not halved:
        return 0.5 * (low[0] + high[0])
    return low[0] - low[1] * (high[0] - low[0]) / (high[1] - low[1])
