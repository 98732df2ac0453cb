"""Solvers that follow one another: one history, the best point and bound, and when a stage is left."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses.hinge import Hinge
from bmrm.losses.logistic import Logistic
from bmrm.problem import IncompatibleError, Iteration, Status
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers._core.auto import portfolio
from bmrm.solvers._core.auto.portfolio import Chains
from bmrm.solvers._core.auto.stage_budget import StageBudget
from bmrm.solvers._core.plane_model import PlaneSolver


def risk_of(loss):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 12))
    y = np.where(X @ rng.normal(size=12) + rng.normal(size=400) > 0.0, 1, -1)
    return LinearRisk(Dataset.from_arrays(X, y), loss)


def test_a_stalled_stage_is_followed_and_the_two_are_one_run():
    # L-BFGS stalls at the kinks of the hinge
    seen: list[Iteration] = []
    chains = Chains(tolerance=1e-7, names=("lbfgs", "line_search_bundle"))
    solution = chains.minimize(risk_of(Hinge()), L2(1e-2), callback=seen.append)
    assert solution.status is Status.CONVERGED
    assert solution.relative_gap <= 1e-7
    assert "lbfgs (until STALLED)" in solution.solver or "lbfgs (left as too slow)" in solution.solver
    assert "line_search_bundle" in solution.solver
    numbers = [line.iteration for line in solution.history]
    assert numbers == sorted(set(numbers))
    assert [line.iteration for line in seen] == numbers
    for earlier, later in zip(solution.history, solution.history[1:], strict=False):
        assert later.objective <= earlier.objective
        assert later.lower_bound >= earlier.lower_bound - 1e-15
        assert later.passes >= earlier.passes
    alone = Chains(tolerance=1e-9, names=("line_search_bundle",)).minimize(risk_of(Hinge()), L2(1e-2))
    assert solution.lower_bound <= alone.objective
    assert solution.objective == pytest.approx(alone.objective, rel=1e-6)


def test_the_time_between_stages_counts(monkeypatch):
    inside = portfolio.Portfolio._handed_over

    def slowly(self, stage):
        time.sleep(0.05)
        return inside(self, stage)

    monkeypatch.setattr(portfolio.Portfolio, "_handed_over", slowly)
    solution = Chains(tolerance=1e-7, names=("lbfgs", "line_search_bundle")).minimize(risk_of(Hinge()), L2(1e-2))
    assert "line_search_bundle" in solution.solver
    assert solution.seconds >= 0.1
    assert solution.history[-1].seconds <= solution.seconds


def test_a_solver_that_does_not_fit_is_passed_over():
    solution = Chains(tolerance=1e-4, names=("irls", "line_search_bundle")).minimize(risk_of(Hinge()), L2(1e-2))
    assert solution.solver.startswith("line_search_bundle")


def test_the_last_refusal_is_heard_where_none_fits():
    with pytest.raises(IncompatibleError):
        Chains(names=("irls",)).minimize(risk_of(Logistic()), L1(1e-2))


def test_limits_are_those_of_the_whole():
    chains = Chains(tolerance=1e-12, max_iterations=5, names=("lbfgs", "line_search_bundle"))
    solution = chains.minimize(risk_of(Logistic()), L2(1e-3))
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.iterations <= 5


def test_a_stop_from_outside_ends_all_stages():
    chains = Chains(tolerance=1e-12, names=("lbfgs > line_search_bundle", "bundle"))
    solution = chains.minimize(risk_of(Logistic()), L2(1e-3), callback=lambda line: line.iteration >= 2)
    assert solution.status is Status.INTERRUPTED
    assert "bundle" not in solution.solver


def line(passes: float, gap: float) -> Iteration:
    return Iteration(0, 1.0, 1.0 - gap, passes, 0.0)


@pytest.mark.parametrize(("rate", "slow"), [(0.1, False), (0.0002, True)])
def test_pace_extrapolates_the_fall_of_the_gap(rate, slow):
    stage_budget = StageBudget(1e-8, patience=2.0)
    judged = [stage_budget.too_slow(line(t, math.exp(-rate * t) * 0.5)) for t in np.linspace(0.0, 100.0, 50).tolist()]
    assert judged[-1] is slow
    assert stage_budget.slow is slow


def test_when_all_were_too_slow_they_have_longer_turns(monkeypatch):
    monkeypatch.setattr(portfolio, "EARLY", 2.0)
    monkeypatch.setattr(portfolio, "LAST_OF_CHAIN", 1e-3)
    chains = Chains(tolerance=1e-9, names=("bundle", "line_search_bundle"))
    solution = chains.minimize(risk_of(Hinge()), L2(1e-3))
    stages = solution.solver.split(", then ")
    assert stages[:2] == ["bundle (left as too slow)", "line_search_bundle (left as too slow)"]
    assert 2 < len(stages) <= 10
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize(("alternative", "slow"), [(0.0, True), (1e9, False), (None, False)])
def test_a_slower_alternative_helps_for_a_while(alternative, slow):
    stage_budget = StageBudget(1e-8, patience=2.0, alternative=alternative)
    judged = [stage_budget.too_slow(line(t, math.exp(-0.0002 * t) * 0.5)) for t in np.linspace(0.0, 90.0, 50).tolist()]
    assert judged[-1] is slow
    assert stage_budget.too_slow(line(100.0, math.exp(-0.0002 * 100.0) * 0.5)) is (alternative is not None)


def test_a_gap_that_is_looked_at_now_and_then_is_not_judged_between():
    stage_budget = StageBudget(1e-3, patience=10.0)
    assert not any(stage_budget.too_slow(line(float(t), 1.0)) for t in range(100))
    assert not stage_budget.too_slow(line(100.0, 0.1))


def plateau(passes: float) -> float:
    """A gap that falls fast for 100 passes and hardly after."""
    return math.exp(-0.1 * min(passes, 100.0) - 0.001 * max(passes - 100.0, 0.0)) * 0.5


def test_a_plateau_after_a_fast_fall_is_seen():
    stage_budget = StageBudget(1e-8, patience=2.0)
    judged = {t: stage_budget.too_slow(line(float(t), plateau(t))) for t in range(200)}
    assert not judged[100]
    assert judged[150]


@pytest.mark.parametrize(("rate", "left"), [(0.001, True), (0.5, False)])
def test_what_is_hopeless_is_left_before_it_is_judged(rate, left):
    stage_budget = StageBudget(1e-6, patience=0.5, early=8.0, unjudged=4.0)
    judged = [stage_budget.too_slow(line(t, math.exp(-rate * t) * 0.5)) for t in (0.0, 1.0, 2.0, 3.0, 5.0)]
    assert judged == [False, False, False, False, left]


def test_a_bound_that_comes_late_is_not_held_against_a_run():
    stage_budget = StageBudget(1e-6, patience=10.0)
    gaps = [1.0] * 11 + [0.95, 0.67, 0.3, 0.1, 0.03]
    judged = [stage_budget.too_slow(line(float(t), gap)) for t, gap in enumerate(gaps)]
    assert not any(judged)
    hopeless = StageBudget(1e-6, patience=10.0)
    assert [hopeless.too_slow(line(float(t), 1.0 - 0.001 * t)) for t in range(14)][-1]


@pytest.mark.parametrize(("moving", "left"), [(True, False), (False, True)])
def test_passes_do_not_count_while_the_objective_falls_and_nothing_is_proved(moving, left):
    stage_budget = StageBudget(1e-6, patience=3.0)
    start = [Iteration(0, 1.0 - 0.01 * t * moving, 0.0, float(t), 0.0) for t in range(11)]
    after = [Iteration(0, 0.5, 0.5 - 0.5 * 0.7**t, 10.0 + t, 0.0) for t in range(1, 14)]
    judged = [stage_budget.too_slow(line) for line in start + after]
    assert any(judged) is left


@pytest.mark.parametrize(("loose_factor", "first", "left"), [(1.0, 0.9, True), (3.0, 0.9, False), (3.0, 0.4, True)])
def test_there_is_more_patience_while_the_bound_is_far_behind(loose_factor, first, left):
    stage_budget = StageBudget(1e-3, patience=10.0, loose_factor=loose_factor)
    judged = [stage_budget.too_slow(line(float(t), first * math.exp(-0.02 * t))) for t in range(20)]
    assert any(judged) is left


def test_planes_outlive_a_stage_that_was_left(monkeypatch):
    monkeypatch.setattr(portfolio, "EARLY", 2.0)
    monkeypatch.setattr(portfolio, "LAST_OF_CHAIN", 1e-3)
    begun: list[int] = []
    original = PlaneSolver.model

    def model(self, run, *arguments):
        found = original(self, run, *arguments)
        begun.append(len(found.planes))
        return found

    monkeypatch.setattr(PlaneSolver, "model", model)
    solution = Chains(tolerance=1e-9, names=("bundle", "line_search_bundle")).minimize(risk_of(Hinge()), L2(1e-3))
    assert solution.status is Status.CONVERGED
    assert begun[0] == 0
    assert begun[1] >= 2
    assert begun == sorted(begun)


def test_a_solver_has_one_place_in_the_order():
    solution = Chains(tolerance=1e-7, names=("lbfgs", "lbfgs > line_search_bundle")).minimize(
        risk_of(Hinge()), L2(1e-2)
    )
    assert [stage.split()[0] for stage in solution.solver.split(", then ")] == ["lbfgs", "line_search_bundle"]


def test_a_stage_is_judged_by_what_it_proves_itself():
    """Another has brought the gap to 1e-2 before; this one is at 0.5, and on its way."""
    falling = [math.exp(-0.4 * t) for t in range(23)]
    for own, slow in ((falling, False), ([0.9999**t for t in range(40)], True)):
        stage_budget = StageBudget(1e-4, patience=2.0)
        judged = [
            stage_budget.too_slow(line(float(t), min(1e-2, gap)), line(float(t), gap)) for t, gap in enumerate(own)
        ]
        assert any(judged) is slow
    assert stage_budget.left == 0.0  # of so large a gap nothing follows
