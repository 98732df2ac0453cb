"""Dual coordinate ascent: one row's dual variable at a time, the weights updated with it.

Hsieh, Chang, Lin, Keerthi & Sundararajan, "A dual coordinate descent method for large-scale linear SVM", ICML 2008;
Yu, Huang & Lin, "Dual coordinate descent methods for logistic regression and maximum entropy models", Machine Learning
85, 2011; Shalev-Shwartz & Zhang, "Stochastic dual coordinate ascent methods for regularized loss minimization", JMLR
14, 2013, and with proximal terms, ICML 2014; over several ranks or threads Ma et al., "Adding vs. averaging in
distributed primal-dual optimization", ICML 2015 (CoCoA+), with the factor of Dunner et al., "A distributed second-order
algorithm you can trust", ICML 2018; for sentences Lacoste-Julien, Jaggi, Schmidt & Pletscher,
"Block-coordinate Frank-Wolfe optimization for structural SVMs", ICML 2013, and Collins, Globerson, Koo, Carreras &
Bartlett, "Exponentiated gradient algorithms for conditional random fields and max-margin Markov networks", JMLR 9,
2008.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.kernels.products.vectors import norm
from bmrm.problem import (
    Elastic,
    IncompatibleError,
    Scored,
    Scores,
    State,
    Vector,
    ability,
    provides,
)
from bmrm.problem.abilities import DualAscent, DualBlocks, DualSweep
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.best import ROUNDING
from bmrm.solvers._core.budget import Stop
from bmrm.solvers._core.certificate import plane_bound
from bmrm.solvers._core.instead import instead, name_of
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Step, Steps
from bmrm.solvers._core.rounding import Proof

TRIES = 16
"""Most sweeps in which the slopes of a start must give a bound."""
FIRST_LOOK, SPACING = 5, 2
"""First sweep after which the gap is evaluated even if its estimate is too large, and the ratio of the sweeps of two
such evaluations."""
NOTHING_GAINED = 8
"""Consecutive evaluations without progress after which a run counts as stalled."""
SURPRISE, LEAST_CAUTION, MOST_CAUTION = 1.6, 0.5, 4.0
"""Ratio of gap to estimate above which the shrunk rows must be the reason; below it the ratio corrects the estimate,
between the two limits."""
ALL, ONCE = 0.9, 1.5
"""Share of active rows from which an estimate covers all rows; visits over active rows below which none was visited
twice."""
LAG = 0.75
"""Lag of the gap estimate, in sweeps; measured on problems where the gap falls by 1.2 to 12 in a sweep."""
HASTE = 1.2
"""The last evaluation before a time limit is made when less than this multiple of the time of a sweep and an evaluation
is left."""
SLOPES = "rows_slopes"
"""Key of the slopes in the saved state."""
SCORES, BALANCE = "rows_scores", "balance"
"""Keys of scores and balance with a free intercept."""
FINEST = 1e-15
"""An estimated gap below this share of the objective is rounding."""


@register(
    "dual_coordinate",
    problem="losses of rows with a proximal map (hinges, logistic, softmax, regression), chain_crf, chain_margin, other"
    " structures by margin or log; l2,"
    " elastic_net",
    needs="DualBlocks; a regularizer with l2 > 0 and l1",
    certificate="the slopes of the rows, a feasible dual point",
    cost="1 pass over the rows that still move; an evaluation, 1 pass, once the gap seen in a sweep is small",
    source="Hsieh et al. 2008; Yu, Huang & Lin 2011; Shalev-Shwartz & Zhang 2013, 2014; Ma et al. 2015;"
    " for chains Lacoste-Julien et al. 2013, Collins et al. 2008",
    abilities=("DualBlocks",),
    refuses=("not strongly convex",),
    vectors=5,
)
@dataclass(frozen=True)
class DualCoordinate(IterativeSolver):
    """Dual ascent: the dual is maximised over the slope of one row after another, the others being fixed.

    For Omega(w) = l1 ||w||_1 + l2/2 ||w||^2 and slopes u_i of s_i loss_i the dual value is that of the plane
    a = (1/S) sum u_i x_i, and w = -soft(a, l1) / l2 its minimiser. With z the score of a row without the contribution
    of its own slope, and q = ||x_i||^2 s_i / (S l2), the new score is f = prox(z, q) and u_i = s_i (z - f) / q: the
    exact maximum for l1 = 0, the maximum of a lower bound for l1 > 0. The proximal map is all that is needed of a loss.

    An iteration is a sweep over the active rows, or several sweeps if they are few. Rows are shrunk if their slope
    would not change even if the score moved by several times the change of scores in a sweep. The gap is estimated
    during the sweep. Objective and bound (J at w and the plane) are evaluated only when the estimate is within the
    tolerance, and at iterations 5, 10, 20, ...; in between the history repeats the last values. Shrunk rows become
    active again when the gap is larger than estimated.

    Several ranks, and several threads where a sweep takes longer than some 60 ms (losses of rows, not of sentences),
    share a sweep in up to 32 rounds, ranks with a core each in up to 1,024: each block of rows moves a copy of the
    weights, with curvatures times sigma', and the moves d add up; sigma' = ||sum d||^2 / sum ||d||^2 of the last round,
    at most the number of blocks. The answer depends on the number of blocks within the tolerance, and on nothing else.
    It takes more sweeps: two threads 1 to 1.8 times as many, eight 2 to 4; over ranks whose rows differ, and at small
    lambda in few features, many more.

    Max-margin chains, and other structures by margin, are updated sentence by sentence (group by group): u_i = s_i
    (sum over labelings c of alpha_c psi_c - psi_y), with convex weights alpha of a working set of labelings, psi
    their features, and s_i sum alpha_c errors_c the sentence's part of S b. The labeling that violates its margin
    most is added to the working set, and weight moves from the worst labeling to the best: min(alpha_worst, S l2
    (violation_best - violation_worst) / (s_i ||psi_best - psi_worst||^2)), exact for l1 = 0.

    In a conditional random field (structures by log) u_i is s_i (marginals of labels and transitions under the
    sentence's own potentials, minus the true labeling), and s_i times the entropy of those marginals is the
    sentence's part of S b. Potentials move towards scores - (s_i / (S l2)) X_i X_i' (change of marginals), by steps
    that increase the dual.

    A free intercept b is an equality in the dual, sum u_i = 0 (for each score of a row): an augmented Lagrangian
    updates b after every sweep, and the certificate uses slopes that were moved along their proximal maps until they
    sum to 0. With several scores the objective during the run is that at the current b, at the end that at the best b.

    `details` has `slope`, the final slopes of phi (Scores: only for a solver on the same risk), and `sweeps`, the
    visits in units of all rows.

    Memory: 32 dim + 112 rows + 12 nnz bytes, a copy of the data among them, and 8 dim for each thread that shares, or
    up to 48 dim on each of several ranks;
    with K scores per row 40 dim + (80 + 32 K) rows + 12 nnz, (112 + 64 K) rows where K intercepts are free; for
    chains, T being the tokens of a sentence, 8 T^2 and up to (8 T + 64) (T + 8) more for each by margin; by
    likelihood 40 dim + (80 + 32 K) rows + 12 nnz + (8 T + 16 K + 16 K^2 / T) rows bytes.

    Parameters
    ----------
    seed : of the order of the rows; null = that of the config, 0 from Python.

    Raises
    ------
    IncompatibleError
        A risk without dual steps, or a regularizer other than l1 ||w||_1 + l2/2 ||w||^2 with l2 > 0.
    """

    seed: int | None = parameter(None, doc="of the order of the rows; null = the config's", least=0, example=1)

    def steps(self, run: Monitor, slope: Scores | None = None) -> Steps:
        """As of `IterativeSolver`, with initial slopes of phi; by default those at the scores of `start`.

        `start` and `slope` are ignored if in 16 sweeps they prove no more than what the risk is never below.
        """
        regularizer = run.regularizer
        if not (provides(regularizer, Elastic) and regularizer.l2 > 0.0):
            raise IncompatibleError(
                f"dual_coordinate needs a regularizer with l2 > 0, which {name_of(regularizer)} has not; use l2"
                f" or elastic_net, or solver {instead(run)}"
            )
        steps, scored = ability(run.risk, DualBlocks), ability(run.risk, Scored)
        if steps is None or scored is None:
            raise IncompatibleError(
                "dual_coordinate needs a mean over rows in memory of a loss whose proximal map is compiled;"
                f" use {instead(run)}"
            )
        return _Run(self, run, steps, scored, regularizer).go(not run.chooses_start, slope)


class _Run:
    """The state of a run."""

    def __init__(
        self,
        options: DualCoordinate,
        run: Monitor,
        steps: DualBlocks,
        scored: Scored,
        regularizer: Elastic,
    ) -> None:
        self.options, self.run, self.steps, self.scored = options, run, steps, scored
        self.intercept = scored.intercept
        """With a free constant planes are always computed anew."""
        several = scored.intercept is not None and scored.phi.facts.scores_per_row > 1
        self.free = scored.of_rows if several else None
        """phi before the minimisation over several free constants, which takes longer than a sweep."""
        self.l1, self.l2 = regularizer.l1, regularizer.l2
        self.guess, self.caution = math.inf, 1.0
        """The estimated gap, and the last true gap over its estimate."""
        self.seen = math.inf
        """The sum of the rows' contributions in the last sweep."""
        self.next_look = FIRST_LOOK
        """In iterations of this run."""
        self.idle = 0
        self.visits = 0.0
        self.look_took = 0.0
        """Seconds of the last evaluation."""
        self.looked_last = False
        self.ascent: DualAscent | None = None
        self.unseen: DualSweep | None = None
        """The last sweep, where its end was not evaluated."""

    def go(self, warm: bool, slope: Scores | None) -> Steps:
        """The whole run."""
        run = self.run
        run.patience = self.options.max_iterations + 1  # evaluations are rare: `_evaluate` counts those in vain
        run.finish = self._finish
        with self._leaving_well():
            yield from self._sweeps(warm, slope)
        return None

    def _finish(self) -> dict[str, Any]:
        if self.ascent is None:
            return {"sweeps": self.visits}
        if self.unseen is not None:
            self._evaluate(self.ascent, self.unseen)
        return {"sweeps": self.visits, "slope": self.ascent.slope()}

    @contextmanager
    def _leaving_well(self) -> Iterator[None]:
        """When a run is cut short, its current point and the bound of its slopes are evaluated once more."""
        try:
            yield
        except Stop as stop:
            if self.ascent is not None and self.visits > 0.0:
                stop.budget.rest()
                self.run.untried = self.ascent.weights
                self._prove(self.ascent, anew=True)
            raise

    def _sweeps(self, warm: bool, slope: Scores | None) -> Steps:
        run = self.run
        f = self.scored.map.matvec(run.start) if warm else self.scored.phi.constant(self._zeros)
        objective = self._objective(run.start, f, None if warm else self._zeros)
        if self.intercept is not None and self.free is not None and not warm:
            self.intercept.settled.note(run.start, self._zeros, objective)
        run.improve(run.start, objective, fresh=warm or self.free is None)
        yield Step.ITERATION
        begun = len(run.history) - 1
        ascent = self.ascent = self._begin(f if warm else None, slope)
        run.confirm = self._confirm
        run.state = self._state
        while True:
            before, self.unseen = run.budget.seconds, None
            found = ascent.sweep()
            self.visits += found.visits
            self._guess(found)
            if self._worth_a_look(ascent, len(run.history) - begun) or self._last_look(before):
                self._evaluate(ascent, found)
            else:
                self.unseen = found
            yield Step.ITERATION
            if self.idle >= NOTHING_GAINED:
                self.idle = 0
                yield Step.STALLED

    @property
    def _zeros(self) -> Vector:
        return np.zeros(self.scored.phi.facts.scores_per_row)

    def _begin(self, near: Scores | None, slope: Scores | None) -> DualAscent:
        seed, earlier = self.options.seed or 0, self.run.earlier
        state = None if earlier is None else earlier.state_of(self.options.name, SLOPES)
        if state is not None and slope is None:
            seed += len(self.run.history)  # another order
            hand_out = self.scored.of_rows.hand_out
            scores = hand_out(state[SCORES]) if SCORES in state else None
            slopes = hand_out(state[SLOPES])
            ascent = self.steps.ascent(self.l1, self.l2, seed=seed, start=slopes, near=scores)
            if BALANCE in state:
                ascent.resume(np.asarray(state[BALANCE], np.float64))
            if self._bound(*ascent.plane()) > self.run.risk.infimum:
                return ascent
        if near is not None and slope is None and self.scored.phi.facts.smooth and not self.steps.grouped:
            slope = self.scored.phi.value_and_slope(near)[1]
        if near is not None or slope is not None:
            ascent = self.steps.ascent(self.l1, self.l2, seed=seed, start=slope, near=near)
            if self._proves(ascent):
                return ascent
        return self.steps.ascent(self.l1, self.l2, seed=seed)

    def _proves(self, ascent: DualAscent) -> bool:
        """Whether its slopes prove something, at once or after a few sweeps.

        At small l2 the slopes at a good w are far from w's own dual point, and their bound far below 0, in what
        features that many rows share have of them; that goes in the first sweeps, and the rest is as good as w is.
        """
        least = self.run.risk.infimum
        least = least if math.isfinite(least) else self.run.lower_bound
        for _ in range(TRIES):
            if self._bound(*ascent.plane()) > least:
                return True
            self.visits += ascent.sweep().visits
        return self._bound(*ascent.plane()) > least

    def _state(self) -> State:
        """The slopes of all rows and, with a free intercept, their scores and the intercept."""
        assert self.ascent is not None
        collect = self.scored.of_rows.collect
        found = {SLOPES: collect(self.ascent.slope())}
        scores = self.ascent.scores()
        if scores is None:
            return found
        return {**found, SCORES: collect(scores), BALANCE: self.ascent.balance}

    def _bound(self, a: Vector, b: float) -> float:
        return plane_bound(self.run.regularizer, a, b, self.run.risk.infimum)

    def _guess(self, found: DualSweep) -> None:
        """Contributions seen during a sweep exceed the gap at its end, the more so the faster it falls."""
        gap = math.inf if math.isnan(found.gap) else max(found.gap, 0.0)
        once = found.visits < ONCE * found.open
        falls = gap / self.seen if once and gap < self.seen < math.inf else 1.0
        self.seen, self.guess = gap, gap * falls**LAG

    def _worth_a_look(self, ascent: DualAscent, sweeps: int) -> bool:
        """Whether the tolerance may be met.

        The best objective may still be that of the start, much above the current one, which the dual value bounds.
        """
        if sweeps == self.next_look:
            self.next_look *= SPACING
            return True
        gap, share = self.caution * self.guess, max(self.run.goal, FINEST)
        return gap <= share * abs(self.run.objective) and gap <= share * abs(ascent.value() + gap)

    def _last_look(self, before: float) -> bool:
        """Whether there is just time to balance many constants, which is broken off at the end; once.

        `before` is when the last sweep began.
        """
        budget = self.run.budget
        look = self.free is not None and budget.left < HASTE * (budget.seconds - before + self.look_took)
        if self.looked_last or not look or self.look_took == 0.0:
            return False
        self.looked_last = True
        return True

    def _evaluate(self, ascent: DualAscent, found: DualSweep) -> None:
        """Objective and bound of the current state; shrunk rows become active again if they explain a large gap."""
        run = self.run
        begin = run.budget.seconds
        w = ascent.weights
        f = self.scored.map.matvec(w)
        objective = self._objective(w, f, ascent.constant)
        before, rounding = (run.objective, run.lower_bound), ROUNDING * abs(run.objective)
        if self.intercept is not None and self.free is not None:
            self.intercept.settled.note(w, ascent.constant, objective)
        run.improve(w, objective, fresh=self.free is None)
        bound = self._prove(ascent)
        self.look_took = run.budget.seconds - begin
        gained = before[0] - run.objective > rounding or run.lower_bound - before[1] > rounding
        self.idle = 0 if gained else self.idle + 1
        ratio = (objective - bound) / self.guess if self.guess > 0.0 else math.inf
        if ratio > SURPRISE and found.open < ALL:
            self.caution = 1.0
            ascent.unshrink()
        else:
            self.caution = min(max(ratio, LEAST_CAUTION), MOST_CAUTION)

    def _confirm(self) -> None:
        """The bound of the current slopes, with recomputed sums."""
        assert self.ascent is not None
        self._prove(self.ascent, anew=True)

    def _prove(self, ascent: DualAscent, anew: bool = False) -> float:
        """The bound of the current slopes, with sums that are recomputed or as updated by sweeps."""
        a, b = ascent.plane(anew)
        bound, fresh = self._bound(a, b) - self._unbalanced(ascent), anew or self.intercept is not None
        self.run.raise_bound(Proof(bound, 2.0 * abs(b) + abs(bound), norm(ascent.weights)), fresh=fresh)
        return bound

    def _unbalanced(self, ascent: DualAscent) -> float:
        """How much the bound may gain from slopes that sum to 0 only up to rounding, at up to twice the current b."""
        if self.intercept is None:
            return 0.0
        sums = self.intercept.phi.total(ascent.slope())
        return 2.0 * float(np.abs(sums) @ np.abs(ascent.constant))

    def _objective(self, w: Vector, f: Scores, constant: Vector | None = None) -> float:
        """J(w), or J(w, b) for a free intercept b that need not be the best."""
        if self.free is None or constant is None:
            value = self.scored.phi.value_and_slope(f)[0]
        else:
            value = self.free.value_and_slope(f + self.free.constant(constant))[0]
        return value + self.run.regularizer.value(w)
