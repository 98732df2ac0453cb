"""Solvers in turns: one history, the best point and bound, and when a stage is left."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses.hinge import Hinge
from bmrm.losses.logistic import Logistic
from bmrm.problem import IncompatibleError, InputError, Iteration, Start, Status
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers._core.auto.turn import AT_LEAST, DEAR, left_to_go
from bmrm.solvers._core.auto.turns import GROWTH, PLAN, Plan, Turns
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Step
from bmrm.solvers._core.plane_model import PlaneSolver


def risk_of(loss):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 12))
    y = np.where(X @ rng.normal(size=12) + rng.normal(size=400) > 0.0, 1, -1)
    return LinearRisk(Dataset.from_arrays(X, y), loss)


def test_a_stalled_stage_is_followed_and_the_two_are_one_run():
    # L-BFGS stalls at the kinks of the hinge
    seen: list[Iteration] = []
    both = Turns(tolerance=1e-7, names=("lbfgs", "line_search_bundle"))
    solution = both.minimize(risk_of(Hinge()), L2(1e-2), callback=seen.append)
    assert solution.status is Status.CONVERGED
    assert solution.relative_gap <= 1e-7
    assert "lbfgs (until STALLED)" in solution.solver or "lbfgs (for a turn)" in solution.solver
    assert "line_search_bundle" in solution.solver
    numbers = [line.iteration for line in solution.history]
    assert numbers == sorted(set(numbers))
    assert [line.iteration for line in seen] == numbers
    for earlier, later in zip(solution.history, solution.history[1:], strict=False):
        assert later.objective <= earlier.objective
        assert later.lower_bound >= earlier.lower_bound - 1e-15
        assert later.passes >= earlier.passes
    alone = Turns(tolerance=1e-9, names=("line_search_bundle",)).minimize(risk_of(Hinge()), L2(1e-2))
    assert solution.lower_bound <= alone.objective
    assert solution.objective == pytest.approx(alone.objective, rel=1e-6)


def slow_turns(monkeypatch):
    inside = Monitor.take_turn

    def slowly(self, solver, **options):
        time.sleep(0.05)
        return inside(self, solver, **options)

    monkeypatch.setattr(Monitor, "take_turn", slowly)


def test_the_time_between_stages_counts(monkeypatch):
    slow_turns(monkeypatch)
    solution = Turns(tolerance=1e-7, names=("lbfgs", "line_search_bundle")).minimize(risk_of(Hinge()), L2(1e-2))
    assert "line_search_bundle" in solution.solver
    assert solution.seconds >= 0.1
    assert solution.history[-1].seconds <= solution.seconds


def test_a_solver_that_does_not_fit_is_passed_over():
    solution = Turns(tolerance=1e-4, names=("irls", "line_search_bundle")).minimize(risk_of(Hinge()), L2(1e-2))
    assert solution.solver.startswith("line_search_bundle")


def test_the_last_refusal_is_heard_where_none_fits():
    with pytest.raises(IncompatibleError):
        Turns(names=("irls",)).minimize(risk_of(Logistic()), L1(1e-2))


def test_limits_are_those_of_the_whole():
    both = Turns(tolerance=1e-12, max_iterations=5, names=("lbfgs", "line_search_bundle"))
    solution = both.minimize(risk_of(Logistic()), L2(1e-3))
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.iterations <= 5


def test_a_stop_from_outside_ends_all_stages():
    both = Turns(tolerance=1e-12, names=("lbfgs", "bundle"))
    solution = both.minimize(risk_of(Logistic()), L2(1e-3), callback=lambda line: line.iteration >= 2)
    assert solution.status is Status.INTERRUPTED
    assert "bundle" not in solution.solver


def test_turns_grow_until_one_gets_there():
    both = Turns(tolerance=1e-9, names=("bundle", "line_search_bundle"), passes=4.0, reason="why")
    solution = both.minimize(risk_of(Hinge()), L2(1e-3))
    stages = solution.solver.split(", then ")
    assert stages[:3] == ["bundle (for a turn; why)", "line_search_bundle (for a turn)", "bundle (for a turn)"]
    assert solution.status is Status.CONVERGED
    assert len(stages) <= 10


@dataclass(frozen=True)
class InVain(IterativeSolver):
    """Stays where it is, and says that each iteration works on matrices for so many products."""

    superlinear = True
    products: float = 0.0

    def steps(self, run):
        while True:
            run.budget.check(self.products)
            value, _ = run.risk.value_and_subgradient(run.start)
            run.improve(run.start, value + run.regularizer.value(run.start))
            yield Step.ITERATION


@pytest.mark.parametrize(("passes_of_work", "iterations"), [(0.0, AT_LEAST + 1), (1.0, AT_LEAST + 1), (4.0 * DEAR, 1)])
def test_work_on_matrices_ends_a_turn_whatever_the_iterations(monkeypatch, passes_of_work, iterations):
    one_pass = 2.0 * 400 * 12
    usual, begun = Turns._limited, []

    def limited(self, run, name):
        begun.append(len(run.history))
        return InVain(products=passes_of_work * one_pass) if name == "newton" else usual(self, run, name)

    monkeypatch.setattr(Turns, "_limited", limited)
    both = Turns(tolerance=1e-9, names=("newton", "lbfgs"), passes=4.0)
    assert both.minimize(risk_of(Logistic()), L2(1e-3)).status is Status.CONVERGED
    assert begun[1] - begun[0] == iterations


def test_the_path_does_not_depend_on_the_clock(monkeypatch):
    both = Turns(tolerance=1e-9, names=("bundle", "line_search_bundle"), passes=4.0)
    quiet = both.minimize(risk_of(Hinge()), L2(1e-3))
    slow_turns(monkeypatch)
    busy = both.minimize(risk_of(Hinge()), L2(1e-3), callback=lambda line: time.sleep(0.002))
    assert busy.solver == quiet.solver
    assert busy.w.tolist() == quiet.w.tolist()
    assert busy.passes == quiet.passes


def test_who_has_stalled_has_no_further_turn_and_the_last_has_no_budget():
    plan = Plan(("a", "b"), (), ("c",), 8.0)
    assert plan.budget == 8.0
    second = plan.after(stays=True)
    assert second == Plan(("b",), ("a",), ("c",), 8.0)
    assert second.after(stays=True) == Plan(("a", "b"), (), ("c",), GROWTH * 8.0)
    alone = second.after(stays=False)
    assert alone == Plan(("a",), (), ("c",), GROWTH * 8.0)
    assert alone.budget == np.inf
    assert alone.after(stays=False) == Plan(("c",), (), (), GROWTH * 8.0)
    assert not alone.after(stays=False).after(stays=False).waiting


def test_planes_outlive_a_stage_that_was_left(monkeypatch):
    begun: list[int] = []
    original = PlaneSolver.model

    def model(self, run, *arguments):
        found = original(self, run, *arguments)
        begun.append(len(found.planes))
        return found

    monkeypatch.setattr(PlaneSolver, "model", model)
    solution = Turns(tolerance=1e-9, names=("bundle", "line_search_bundle"), passes=4.0).minimize(
        risk_of(Hinge()), L2(1e-3)
    )
    assert solution.status is Status.CONVERGED
    assert begun[0] == 0
    assert begun[1] >= 2
    assert begun == sorted(begun)


def test_a_reserve_comes_when_all_have_stalled():
    solution = Turns(tolerance=1e-7, names=("lbfgs",), reserve=("line_search_bundle",)).minimize(
        risk_of(Hinge()), L2(1e-2)
    )
    assert solution.status is Status.CONVERGED
    assert solution.solver == "lbfgs (until STALLED), then line_search_bundle"


@pytest.mark.parametrize("plan", ["{", "[[], []]", '[["bundle"], [], [], "long"]'])
def test_a_damaged_plan_is_refused(plan):
    start = Start(np.zeros(12), state={PLAN: np.array(plan)})
    with pytest.raises(InputError, match="the plan to go on from is damaged"):
        Turns(names=("bundle",)).minimize(risk_of(Hinge()), L2(1e-2), start=start)


@pytest.mark.parametrize(
    ("gaps", "left"),
    [
        ([1.0, 1e-1, 1e-2, 1e-3, 1e-4], 20.0),  # two digits are missing, ten passes each
        ([1.0, 1e-1, 1e-2, 1e-2, 1e-2], np.inf),
        ([np.inf, 1.0, 1e-2, 2e-2, 1e-3], 60.0),  # one digit in the last half
        ([1.0, 1e-1, 1e-2, 1e-4, 1e-7], 0.0),
        ([1.0, 1e-1, np.inf, np.inf, np.inf], np.inf),
    ],
)
def test_passes_to_the_tolerance_as_the_gap_falls(gaps, left):
    lines = [Iteration(k, 1.0, 1.0 - gap, 10.0 * k, 0.0) for k, gap in enumerate(gaps)]
    run = SimpleNamespace(history=lines, options=Turns(tolerance=1e-6))
    assert left_to_go(run, 0, 40.0) == pytest.approx(left, rel=1e-6)
    run.options = Turns(tolerance=0.0)
    assert left_to_go(run, 0, 40.0) == np.inf


def test_a_solver_that_is_nearly_there_goes_on():
    """Two digits need a turn and a half: the second solver is not asked."""
    risk, solver = risk_of(Hinge()), {"tolerance": 1e-6, "names": ("line_search_bundle", "bundle")}
    alone = Turns(**solver).minimize(risk, L2(1e-2))
    shorter = Turns(passes=0.8 * alone.passes, **solver).minimize(risk, L2(1e-2))
    assert "bundle (for" not in shorter.solver
    assert shorter.passes == alone.passes
