"""Every registered solver on problems whose optimum is known."""

import dataclasses

import numpy as np
import pytest

from bmrm.problem import IncompatibleError, InputError, Status
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.solvers import SOLVERS
from tests import problems

NAMES = [entry.name for entry in SOLVERS.all()]
LAM = 0.01

CASES = {
    "hinge, l2": ("hinge", L2(LAM), problems.hinge_l2_optimum),
    "hinge, l1": ("hinge", L1(LAM), problems.hinge_l1_optimum),
    "logistic, l2": ("logistic", L2(LAM), problems.logistic_l2_optimum),
    "least squares, l2": ("least_squares", L2(LAM), problems.least_squares_l2_optimum),
}


def solve(name, case, risk_class=problems.ScoredRisk, start=None, callback=None, **options):
    kind, regularizer, reference = CASES[case]
    X, y = problems.data(kind)
    solver = SOLVERS.make(name, {"tolerance": 1e-6, "max_iterations": 3000, **options})
    solution = solver.minimize(risk_class(X, y, kind), regularizer, start=start, callback=callback)
    return (
        solution,
        reference(X, y, LAM),
        lambda w: risk_class(X, y, kind).value_and_subgradient(w)[0] + regularizer.value(w),
    )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_claimed_is_true(name, case):
    solution, optimum, objective = solve(name, case)
    assert solution.objective == pytest.approx(objective(solution.w), rel=1e-12)
    assert solution.objective >= optimum * (1.0 - 1e-9)
    assert solution.lower_bound <= optimum * (1.0 + 1e-9)
    if solution.converged:
        assert solution.relative_gap <= 1e-6
    else:
        assert solution.status is Status.STALLED
        assert name == "lbfgs"
        assert "hinge" in case


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name in NAMES for case in CASES if name != "lbfgs" or "hinge" not in case]
)
def test_all_converge_where_theory_says_so(name, case):
    solution, optimum, _ = solve(name, case)
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(optimum, rel=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_history_tells_the_run(name):
    lines = []
    solution, _, _ = solve(name, "logistic, l2", callback=lines.append)
    assert len(lines) == len(solution.history)
    objectives = [line.objective for line in solution.history]
    bounds = [line.lower_bound for line in solution.history]
    assert all(np.diff(objectives) <= 0.0)
    assert all(np.diff(bounds) >= 0.0)
    assert solution.history[-1].objective == solution.objective
    assert solution.history[-1].lower_bound == solution.lower_bound
    assert solution.iterations == solution.history[-1].iteration
    assert solution.passes == solution.history[-1].passes > 0


@pytest.mark.parametrize("name", NAMES)
def test_start_is_used_and_left_alone(name):
    solution, _, _ = solve(name, "logistic, l2")
    start = solution.w.copy()
    start.flags.writeable = False
    again, _, _ = solve(name, "logistic, l2", start=start)
    assert again.history[0].objective == pytest.approx(solution.objective, rel=1e-12)
    with pytest.raises(InputError, match="shape"):
        solve(name, "logistic, l2", start=np.zeros(3))
    with pytest.raises(InputError, match="finite"):
        solve(name, "logistic, l2", start=np.full(7, np.nan))


@pytest.mark.parametrize("name", NAMES)
def test_limits_and_callbacks_stop_with_their_status(name):
    assert solve(name, "logistic, l2", max_iterations=2)[0].status is Status.ITERATION_LIMIT
    assert solve(name, "logistic, l2", time_limit=1e-9)[0].status is Status.TIME_LIMIT
    stopped, _, _ = solve(name, "logistic, l2", callback=lambda line: line.iteration >= 1)
    assert stopped.status is Status.INTERRUPTED
    assert np.isfinite(stopped.objective)


@pytest.mark.parametrize("name", NAMES)
def test_an_impossible_tolerance_ends_as_stalled(name):
    solution, optimum, _ = solve(name, "least squares, l2", tolerance=0.0, max_iterations=100000)
    assert solution.status in (Status.STALLED, Status.CONVERGED)
    if solution.status is Status.CONVERGED:
        assert solution.gap <= 0.0
    assert solution.objective == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_infinite_values_are_retreated_from(name):
    class Wall(problems.PlainRisk):
        """Overflows away from the start."""

        def value_and_subgradient(self, w):
            value, a = super().value_and_subgradient(w)
            return (value, a) if np.abs(w).max() < 2.0 else (np.inf, np.zeros_like(w))

    X, y = problems.data("least_squares")
    solver = SOLVERS.make(name, {"tolerance": 1e-4, "max_iterations": 300})
    if SOLVERS.get(name).facts["needs"].startswith("Scored"):
        with pytest.raises(IncompatibleError, match="Scored"):
            solver.minimize(Wall(X, y, "least_squares"), L2(LAM))
        return
    solution = solver.minimize(Wall(X, y, "least_squares"), L2(LAM))
    assert np.isfinite(solution.objective)
    assert solution.lower_bound <= problems.least_squares_l2_optimum(X, y, LAM) * (1 + 1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_risk_that_is_nowhere_finite_is_non_finite(name):
    class Overflow(problems.ScoredRisk):
        def value_and_slope(self, f):
            return np.inf, np.zeros_like(f)

    X, y = problems.data("least_squares")
    solver = SOLVERS.make(name, {"max_iterations": 300})
    assert solver.minimize(Overflow(X, y, "least_squares"), L2(LAM)).status is Status.NON_FINITE


def test_solvers_are_frozen_and_check_their_options():
    for entry in SOLVERS.all():
        solver = entry.cls()
        with pytest.raises(dataclasses.FrozenInstanceError):
            solver.tolerance = 1.0
        with pytest.raises(InputError, match="tolerance"):
            entry.cls(tolerance=-1.0)
        with pytest.raises(InputError, match="max_iterations"):
            entry.cls(max_iterations=0)
