"""Semismooth Newton on augmented Lagrangians, after SSNAL: Li, Sun & Toh, SIAM J. Optim. 28 (2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bmrm.kernels.products.vectors import norm
from bmrm.problem import (
    Elastic,
    IncompatibleError,
    InputError,
    Scored,
    Scores,
    State,
    Vector,
    ability,
    provides,
)
from bmrm.problem.abilities import ProblemSize, RowParts
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.augmented_lagrangian import FEW, AugmentedLagrangian, Subproblem, is_solved, unit_of
from bmrm.solvers._core.best import ROUNDING
from bmrm.solvers._core.certificate import plane_bound
from bmrm.solvers._core.dense_matrix import WIDEST, refused
from bmrm.solvers._core.instead import instead, name_of
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Step, Steps
from bmrm.solvers._core.newton.preconditioners import Costs
from bmrm.solvers._core.newton.row_space import RowGram
from bmrm.solvers._core.newton.system import factoring
from bmrm.solvers._core.rounding import Proof
from bmrm.solvers._core.row_start import SampleMinimum, start_from_sample
from bmrm.solvers._core.rowwise import OF_SCORES
from bmrm.solvers._core.working_set_newton import aimed


@register(
    "semismooth_newton",
    problem="losses of one score with a proximal map, kinks or none, with l2, l1 and elastic_net; with l2 also"
    " multiclass_hinge",
    needs="Scored with a proximal map; with l1 a dense Hessian of a working set of columns",
    certificate="the multipliers, which are slopes of the loss: a plane, by eq. 15 of the KDD paper; with l1 alone"
    " scaled to be feasible",
    cost="1 pass and Newton steps: the Gram matrix of the rows at a kink, or their inner products, a Cholesky factor,"
    " 1 pass over rows near one; or conjugate gradients, a pass over the rows at a kink each",
    source="Li, Sun & Toh 2018",
    abilities=("Scored",),
    refuses=("kinked regularizer with several scores", "free intercept with several scores"),
    vectors=13,
)
@dataclass(frozen=True)
class SemismoothNewton(IterativeSolver):
    """The method of multipliers on f = A w, its smooth subproblems solved by Newton's method.

    With multipliers s (a slope for each row) and z(w) = A w + (mass/sigma) s, each subproblem is

        minimise over w:   Omega(w) + env(z(w)),   env(z) = min over f of phi(f) + sigma/(2 mass) ||f - z||^2

    whose gradient, where Omega is lambda/2 ||w||^2, is lambda w + A'u with u = env'(z), a subgradient of phi at the
    minimising f. Newton's matrix lambda + A' env''(z) A depends only on the rows at a kink of a piecewise linear loss,
    which become few; if they are fewer than dimensions, the system is solved in their inner products (Woodbury), in
    those of all rows, formed once, if all are fewer. With several scores per row env'' is a matrix for each row,
    diag(c) - c c' / sum(c) over the classes at the kink. Where a matrix would be too large, or take longer for sparse
    rows, the system is solved by conjugate gradients with its diagonal as preconditioner, until .3 of the gradient
    remain. Then s is set to u, and sigma is increased (and made smaller
    again where 16 rounds have not solved a subproblem, whose envelope is too sharp then). At every step u proves the
    bound -phi*(u) - ||A'u||^2 / (2 lambda); the gap is the sum of the subproblem's error, ||gradient||^2 / (2 lambda),
    and that of the multipliers, and a subproblem ends as soon as the first is the smaller.

    With l1, a step goes to the minimum of the second-order model of env with Omega, on a working set of columns: those
    in use, and those that violate optimality most (`proximal_newton`, with env for the loss). The error of a subproblem
    is then Omega(w) + Omega*(-A'u) + <w, A'u>; without an l2, u is made smaller until max |A'u| <= l1, and the error
    counts what the bound loses by that. There subproblems have an l1 that is smaller by a share of the tolerance.

    After the first subproblem, where there is an l2 and a matrix, slopes change mainly in rows near a kink: Newton's
    method continues on a copy of these rows alone, the slopes of the others being a linear term, until this smaller
    problem is solved; then all rows are evaluated again. An iteration is such an evaluation. `details` has `slope`, the
    multipliers at the end (Scores: only for a solver on the same risk), `penalties`, the number of their updates, and
    the Newton `steps`.

    With `sample`, the start is the solution on a sample of the rows. A free intercept is a variable of the subproblems
    that the regularizer does not touch (one score per row).

    With l2 and little data (at most 150,000 entries, on one rank), and where nobody asks for each iteration
    (`callback`), none is recorded but the first, and those from where the multipliers prove the tolerance.

    Memory: 18 dim^2 + 96 scores + 0.3 data bytes, scores being rows times the scores of each, data the size of the
    rows, some of which are copied; 24 scores^2 instead of the first where rows are fewer than 0.7 dim; 104 dim with
    conjugate gradients; with l1 32 W^2, W being twice the number of weights in use, 64 at least, 8,192 at most: where
    more are in use, a step is one of those that violate optimality the most.

    Parameters
    ----------
    sigma : the first penalty, in units of a row's curvature.
    growth : its factor when the multipliers are updated. Null: 2, and 1.5 for conjugate gradients, which take the
        longer the larger the penalty is.
    sample : share of the rows in a subproblem that provides the start, 0 for none; not used with a `start`. Null: 0.05,
        but none for up to 150,000 entries.
    seed : of the sample.

    Raises
    ------
    IncompatibleError
        The risk has no proximal map (use `line_search_bundle` or `lbfgs`), several scores per row with a free intercept
        (use `dual_coordinate`) or with l1 (use `line_search_bundle`), rows are larger than memory and features more
        than a dense matrix can hold (use `line_search_bundle`), or the regularizer is none of `l2`, `l1` and
        `elastic_net` (use `bundle`).
    """

    superlinear: ClassVar[bool] = True
    sigma: float = parameter(0.3, above=0.0, doc="first penalty, per row", example=3.0)
    growth: float | None = parameter(
        None, above=1.0, doc="factor of the penalty when multipliers change; null chooses", example=4.0
    )
    sample: float | None = parameter(
        None, least=0.0, below=1.0, doc="share of rows for the start; null chooses", example=0.3
    )
    seed: int | None = parameter(
        None, doc="of the sample; null = the config's", least=0, example=1, beside={"sample": 0.3}
    )

    def steps(self, run: Monitor, slope: Scores | None = None) -> Steps:
        """As of `IterativeSolver`; `slope` of phi, for example from a dual solver, gives the first multipliers."""
        return Run(self, run, slope).go(fresh=run.chooses_start and slope is None)


ITERATIONS, AT_KINK = 100.0, 0.2
"""Assumed iterations of conjugate gradients in a Newton step, and share of the rows at a kink, where the cost is
compared with that of a matrix and its factor."""
USUAL, CALM = 2.0, 1.5
"""What a `growth` of null stands for: with a matrix, and with conjugate gradients."""
STATE = ("point", "sigma", "rows_slopes")
"""Keys of the saved state."""
SHARP = 2.0
"""First penalty after a start from a sample of n rows, times sqrt(dim / n), about the error of their scores; reduced if
the sample was overfitted, that is, if its minimum is below J there."""
SKEWED = 1e-12
"""Largest sum of slopes for which they give a bound in a problem with a free intercept."""
EASY = 3
"""Number of Newton steps up to which a subproblem counts as easy, so that the penalty grows faster."""
HARD, BACK = 16, 4.0
"""Rounds over all rows after which an unsolved subproblem shows that sigma is too large, and the factor by which it is
reduced: then Newton's method cycles between linear pieces of the gradient."""
STEEPEST = 1e14
"""A penalty above which its products are dominated by rounding."""
VAIN = 0.9
"""Share of the subproblem's error up to which a step counts as progress although its decrease is below rounding."""
WIDTHS = 1.0, 16.0
"""Distance from a kink, in units of 1/sigma, of the rows in the smaller problem: at first and at most."""
WORTH_IT = 0.3
"""Largest share of the rows for which the smaller problem is used."""
UNRECORDED = 60
"""Most iterations on little data of which nothing is recorded."""
BETWEEN = 30
"""Most Newton steps between evaluations of all rows."""


class Run:
    """The state of a run.

    Parameters
    ----------
    options : of the solver.
    monitor : the bookkeeping.
    slope : the first multipliers; None for none.
    """

    def __init__(self, options: SemismoothNewton, monitor: Monitor, slope: Scores | None) -> None:
        regularizer, risk = monitor.regularizer, monitor.risk
        if not (provides(regularizer, Elastic) and regularizer.l1 + regularizer.l2 > 0.0):
            raise IncompatibleError(
                f"semismooth_newton needs the regularizer l2, l1 or elastic_net, not {name_of(regularizer)}; use"
                f" solver {instead(monitor)}"
            )
        scored = ability(risk, Scored)
        if scored is None:
            raise IncompatibleError(f"semismooth_newton needs {OF_SCORES}; use {instead(monitor)}")
        phi, free = scored.of_rows, scored.intercept is not None
        if not phi.facts.prox:
            raise IncompatibleError(
                "semismooth_newton needs a loss with a proximal map and its derivative; use line_search_bundle or lbfgs"
            )
        if free and phi.facts.scores_per_row > 1:
            raise IncompatibleError(
                "semismooth_newton has a free intercept with one score per row only; use bias: regularized or none, or"
                " solver dual_coordinate or lbfgs"
            )
        if regularizer.l1 > 0.0 and phi.facts.scores_per_row > 1:
            raise IncompatibleError(
                "semismooth_newton has l1 with one score per row only; use l2, or solver line_search_bundle"
            )
        self.options, self.monitor, self.slope, self.scored = options, monitor, slope, scored
        self.parts = ability(risk, RowParts)
        inexact = not regularizer.l1 and not self._few_rows() and self._inexact(phi.facts.scores_per_row)
        monitor.state = self._saved
        rows = None if self.parts is None else RowGram(self.parts)
        self.model = Subproblem(
            scored.map,
            phi,
            regularizer.l1,
            regularizer.l2,
            free,
            rows=rows,
            inexact=inexact,
            check=monitor.budget.check,
        )
        self.growth = options.growth or (CALM if inexact else USUAL)
        self.width, self.trusted = WIDTHS[0], False
        self.penalties = self.steps = 0
        self.state: AugmentedLagrangian | None = None
        """The current state."""

    def _few_rows(self) -> bool:
        """Whether every system can be solved in inner products of the rows."""
        if self.parts is None:
            return False
        rank = self.parts.rows * max(1, self.scored.of_rows.facts.scores_per_row - 1)
        return rank <= min(WIDEST, FEW * self.monitor.risk.dim)

    def _inexact(self, K: int) -> bool:
        """Whether systems are solved without a matrix: it would be too large, or take longer for sparse rows."""
        risk = self.monitor.risk
        why, size, costs = refused(risk.dim), ability(risk, ProblemSize), Costs.of(risk, K)
        if why and size is not None and not size.resident:
            raise IncompatibleError(
                f"semismooth_newton needs a dense matrix of {risk.dim} x {risk.dim} numbers for rows larger than"
                f" memory, {why}; use line_search_bundle"
            )
        if why or size is None or costs is None or costs.full or not size.resident:
            return bool(why)
        of_active = 2.0 * AT_KINK * K * size.entries / size.ranks
        return ITERATIONS * of_active < max(1.0, 0.5 * (K - 1)) * costs.passes * of_active + factoring(risk.dim)

    def _details(self) -> dict[str, Any]:
        details: dict[str, Any] = {"penalties": self.penalties, "steps": self.steps}
        return details if self.state is None else {**details, "slope": self.state.envelope.slope}

    def go(self, fresh: bool) -> Steps:
        """The whole run, from a sample of the rows if `fresh`."""
        monitor, options = self.monitor, self.options
        monitor.finish = self._details
        state = self._resumed() or self._first(monitor.start)
        monitor.confirm = self._confirm
        self._note(state, fresh=not self.model.free)
        afresh = yield Step.ITERATION
        found = start_from_sample(options, monitor, steady=False) if fresh else None
        if found is not None:
            state = self._sampled(found)
            self._note(state, fresh=not self.model.free)
            afresh = yield Step.ITERATION
        lost, missing, before, rounds, most = False, math.inf, 0, 0, math.inf
        unrecorded = min(UNRECORDED, options.max_iterations) if fresh and monitor.unwatched and not self.model.l1 else 0
        while True:
            if afresh:
                state, lost, missing = self._anew(state), False, math.inf
            solved, missing = is_solved(state, missing)
            if solved or lost:
                if state.sigma > STEEPEST:
                    afresh = yield Step.STALLED
                    continue
                easy = self.steps - before <= EASY
                before = self.steps
                most *= self.growth if easy else 1.0
                growth = self.growth**2 if easy else self.growth
                state = state.multiplied(max(1.0, min(growth, most / state.sigma)))
                state = state.aimed_at(aimed(monitor, state.w, self.model.l1, self.model.l2))
                self.trusted, rounds = True, 0
                self.penalties += 1
            elif self.trusted and rounds >= HARD:
                most = state.sigma / BACK
                state, missing, rounds = state.weakened(most), math.inf, 0
            rounds += 1
            lacked = state.lacks()
            moved, state = self._improved(state)
            objective = min(monitor.objective, state.objective())
            in_vain = state.gain <= ROUNDING * abs(objective) and state.lacks() > VAIN * lacked
            if lost and (in_vain or (not moved and lacked > 0.0)):
                afresh = yield Step.STALLED
                continue
            lost = in_vain or (not moved and lacked > 0.0)
            unrecorded -= 1
            if unrecorded > 0 and not lost and self._far(state):
                monitor.untried, monitor.ahead, afresh = state.w, monitor.ahead + 1, False
                continue
            self._note(state)
            afresh, unrecorded = (yield Step.ITERATION), 0

    def _far(self, state: AugmentedLagrangian) -> bool:
        """Whether the multipliers prove less than is wanted."""
        objective = state.objective()
        return objective - state.bound > self.options.goal(objective) * abs(objective)

    def _resumed(self) -> AugmentedLagrangian | None:
        """The final state of an earlier run, in its own units."""
        monitor, earlier = self.monitor, self.monitor.earlier
        saved = None if earlier is None else earlier.state_of("semismooth_newton", *STATE)
        if saved is None or self.slope is not None:
            return None
        w = np.array(saved["point"], np.float64)
        if w.shape != monitor.start.shape or not float(saved["sigma"]) > 0.0:
            raise InputError("the state of semismooth_newton to go on from has another shape")
        best = self._objective(monitor.start, self.model.map.matvec(monitor.start))
        monitor.improve(monitor.start, best, fresh=True)
        slope = self.model.phi.hand_out(saved[STATE[-1]])
        return AugmentedLagrangian.at(self.model, w, float(saved["sigma"]), slope)

    def _saved(self) -> State:
        assert self.state is not None
        slope = self.model.constant(0.0) if self.state.slope is None else self.state.slope
        point, sigma = self.state.w, np.array(self.state.sigma)
        return dict(zip(STATE, (point, sigma, self.model.phi.collect(slope)), strict=True))

    def _objective(self, w: Vector, f: Scores) -> float:
        return self.scored.phi.value_and_slope(f)[0] + self.monitor.regularizer.value(w)

    def _first(self, w: Vector) -> AugmentedLagrangian:
        """The point w with the first penalty."""
        f = self.model.map.matvec(w)
        return AugmentedLagrangian.at(self.model, w, self.options.sigma * unit_of(self.model.phi, f), self.slope, f=f)

    def _sampled(self, found: SampleMinimum) -> AugmentedLagrangian:
        """The minimum on a sample, with a penalty adapted to all rows."""
        f = self.model.map.matvec(found.w)
        sigma, unit = self.options.sigma, unit_of(self.model.phi, f)
        state = AugmentedLagrangian.at(self.model, found.w, sigma * unit, f=f)
        sharp = SHARP * math.sqrt(found.rows / self.monitor.risk.dim) * found.objective / state.objective()
        return AugmentedLagrangian.at(self.model, found.w, sharp * unit, f=f) if sharp > sigma else state

    def _improved(self, state: AugmentedLagrangian) -> tuple[bool, AugmentedLagrangian]:
        """A Newton step, or several that solve the subproblem for the rows near a kink; returns whether it moved."""
        # without an l2, slopes that stay where they are may leave the smaller problem without a minimum
        able = self.parts is not None and self.trusted and self.model.l2 > 0.0 and not self.model.inexact
        near = state.near(self.width, WORTH_IT) if able else None
        if near is None:
            self.steps += 1
            return state.step() > 0.0, state
        missing, before = math.inf, self.steps
        while self.steps - before < BETWEEN:
            solved, missing = is_solved(near, missing)
            if solved or not near.step() > 0.0:
                break
            self.steps += 1
            self.monitor.untried = near.w
        if self.steps == before:
            self.steps += 1
            return state.step() > 0.0, state
        t = state.go(near.w - state.w, near.b - state.b)
        self.trusted = t > 0.5
        self.width = max(0.5 * self.width, WIDTHS[0]) if self.trusted else min(2.0 * self.width, WIDTHS[1])
        return t > 0.0, state

    def _anew(self, state: AugmentedLagrangian) -> AugmentedLagrangian:
        """The best point with the same penalty, all recomputed from its weights."""
        w = self.monitor.w
        found = AugmentedLagrangian.at(self.model, w, state.sigma, state.slope, f=self.model.map.matvec(w))
        found.careful = True
        return found

    def _confirm(self) -> None:
        """The bound of the current slopes, with recomputed sums."""
        if self.state is not None:
            self.state.sum()
            self._prove(self.state)

    def _prove(self, state: AugmentedLagrangian) -> None:
        # what is left of the sum of the slopes, times the constant at the minimum, which is near this one
        skew = state.rest * state.b - abs(state.rest) * (1.0 + abs(state.b))
        regularizer, a = self.monitor.regularizer, state.risk_gradient
        conjugate, objective = state.envelope.conjugate, state.objective()
        bound = plane_bound(regularizer, a, skew - conjugate, self.monitor.risk.infimum)
        if math.isfinite(bound) and math.isfinite(objective) and abs(state.rest) <= SKEWED:
            size = 2.0 * abs(conjugate) + abs(bound) + abs(objective)
            slack = ROUNDING * abs(objective)
            self.monitor.raise_bound(Proof(bound - slack, size, norm(state.w)), fresh=state.summed)

    def _note(self, state: AugmentedLagrangian, fresh: bool = False) -> None:
        """Bound and objective of the current point, the latter possibly evaluated from its weights."""
        monitor, self.state = self.monitor, state
        self._prove(state)
        objective = state.objective()
        if (self.model.free or self.model.l1) and (objective < monitor.objective or math.isinf(objective)):
            objective = self.scored.phi.value_and_slope(state.f)[0] + monitor.regularizer.value(state.w)
        monitor.improve(state.w, objective, fresh=fresh)
