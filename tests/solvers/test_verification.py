"""What a run ends with was evaluated at the point that it returns, whatever its solver carried along."""

from dataclasses import dataclass

import numpy as np
import pytest

from bmrm import extend
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import InputError, Status
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.certificate import SinglePlane
from bmrm.solvers._core.monitor import UNDONE, IterativeSolver
from tests import problems

LAM = 0.1


@pytest.fixture
def risk():
    X, y = problems.data("least_squares")
    return problems.ScoredRisk(X, y, "least_squares")


def J(risk, w):
    return risk.value_and_subgradient(w)[0] + L2(LAM).value(w)


def monitor(risk, **options):
    return IterativeSolver(**options).monitor(risk, L2(LAM), None, None)


def test_an_objective_that_was_carried_along_does_not_end_a_run(risk):
    with monitor(risk) as run:
        run.improve(run.start, J(risk, run.start), fresh=True)
        assert not run.record()
        run.raise_bound(0.5 * J(risk, run.start))
        w = 0.01 * np.ones(risk.dim)
        run.improve(w, run.lower_bound)  # as if it were the minimum
        assert not run.record()
        assert run.refreshed
        assert run.objective == pytest.approx(min(J(risk, w), J(risk, run.start)), rel=1e-15)
        assert not run.record()
        assert not run.refreshed


def test_a_run_that_is_undone_again_and_again_has_stalled(risk):
    with monitor(risk) as run:
        run.improve(run.start, J(risk, run.start), fresh=True)
        run.raise_bound(0.5 * J(risk, run.start))
        count = 0
        while not run.record():
            run.improve(1e-3 * np.ones(risk.dim) * count, run.lower_bound)
            count += 1
        solution = run.solution()
    assert count == UNDONE + 1
    assert solution.status is Status.STALLED
    assert solution.objective == pytest.approx(J(risk, solution.w), rel=1e-15)
    objectives = [line.objective for line in solution.history]
    assert all(np.diff(objectives) <= 0.0)
    assert min(objectives) == solution.objective


@pytest.mark.parametrize(("options", "status"), [({"max_iterations": 1}, Status.ITERATION_LIMIT), ({}, Status.STALLED)])
def test_other_ends_have_the_objective_of_their_point_too(risk, options, status):
    with monitor(risk, **options) as run:
        w = 0.01 * np.ones(risk.dim)
        run.improve(w, 1e-3)
        while not (run.record() or run.stall()):
            pass
        solution = run.solution()
    assert solution.status is status
    assert solution.objective == pytest.approx(J(risk, solution.w), rel=1e-15)


def test_the_best_point_that_is_sure_is_kept(risk):
    with monitor(risk, max_iterations=1) as run:
        run.improve(run.start, J(risk, run.start), fresh=True)
        run.improve(1e3 * np.ones(risk.dim), 1e-9)
        assert not run.record()
        assert run.record()
        solution = run.solution()
    assert not solution.w.any()
    assert solution.objective == J(risk, np.zeros(risk.dim))


def test_a_bound_that_was_carried_along_is_formed_anew(risk):
    """The claimed bound is too high; what the state proves is found before the run ends, and counts."""
    with monitor(risk) as run:
        here = J(risk, run.start)
        run.confirm = lambda: run.raise_bound(0.25 * here)
        run.improve(run.start, here, fresh=True)
        run.raise_bound(0.99999 * here, fresh=False)
        assert not run.record()
        assert run.lower_bound == 0.25 * here
        run.stall()
        solution = run.solution()
    assert solution.status is Status.STALLED
    assert solution.lower_bound == 0.25 * here


def test_what_was_just_evaluated_is_not_evaluated_twice(risk):
    with monitor(risk) as run:
        run.improve(run.start, J(risk, run.start), fresh=True)
        run.raise_bound(J(risk, run.start))
        assert run.record()
        assert run.solution().passes == 0.0


def test_what_the_rounding_of_far_planes_may_be_is_taken_off_the_bound():
    """All rows are alike, so that slopes cancel: what rounding leaves of them, times the way to the start, is no bound.

    J(0) is the minimum: no weight changes what a ranking of such rows costs.
    """
    rng = np.random.default_rng(0)
    X = np.full((18, 1), 1.7e7 + 0.123)
    data = Dataset.from_arrays(X, rng.integers(0, 3, 18).astype(float), groups=np.repeat([0, 1, 2], 6))
    risk = LinearRisk(data, LOSSES.make("winner_takes_all", {"joint": "ranks"}))
    start = np.array([142.0])
    solution = SOLVERS.make("probe", {"max_iterations": 60}).minimize(risk, L1(lam=0.005), start=start)
    least = risk.value_and_subgradient(np.zeros(1))[0]
    assert solution.lower_bound <= least * (1.0 + 1e-13)


@dataclass(frozen=True)
class Descent(extend.IterativeSolver):
    """Gradient steps, which tell of an objective that is too low for the first ones, as if it had drifted."""

    name = "descent"
    steps_off: int = 2
    small: float = 0.0

    def steps(self, run):
        run.finish = lambda: {"renewed": renewed, "closed": True}
        w, renewed, count = run.start, 0, 0
        while True:
            value, a = run.risk.value_and_subgradient(w)
            run.take_plane(SinglePlane(run.regularizer, run.risk.infimum), w, value, a)
            objective = value + run.regularizer.value(w)
            drifted = count < self.steps_off
            run.improve(w, run.lower_bound if drifted else objective, fresh=not drifted)
            count += 1
            if (yield extend.Step.ITERATION):
                renewed += 1
                w = run.w
                continue
            if np.linalg.norm(a + LAM * w) <= self.small:
                return "the gradient is small"
            w = w - 0.1 * (a + LAM * w)


def test_a_solver_without_a_name_is_called_by_its_class(risk):
    class Unnamed(Descent):
        pass

    assert Unnamed(max_iterations=1).minimize(risk, L2(LAM)).solver == "Unnamed"
    assert SOLVERS.make("newton", {}).name == "newton"


def test_steps_of_ones_own_are_driven_to_the_gap_and_told_to_begin_afresh(risk):
    found = Descent(tolerance=1e-6).minimize(risk, L2(LAM))
    assert found.status is Status.CONVERGED
    assert found.solver == "descent"
    assert found.details == {"renewed": 2, "closed": True}
    assert found.objective == pytest.approx(J(risk, found.w), rel=1e-15)
    exact = SOLVERS.make("newton", {"tolerance": 1e-12}).minimize(risk, L2(LAM))
    assert found.lower_bound <= exact.objective <= found.objective * (1.0 + 1e-12)


def test_a_rule_of_ones_own_and_limits_end_the_steps(risk):
    found = Descent(tolerance=0.0, steps_off=0, small=1e-3).minimize(risk, L2(LAM))
    assert found.status is Status.OWN_RULE
    assert found.solver == "descent: the gradient is small"
    few = Descent(tolerance=0.0, steps_off=0, max_iterations=3).minimize(risk, L2(LAM))
    assert few.status is Status.ITERATION_LIMIT
    assert (few.iterations, few.solver) == (3, "descent")


def test_a_solver_without_steps_is_refused_by_name(risk):
    @dataclass(frozen=True)
    class Idle(IterativeSolver):
        """It does nothing."""

    with pytest.raises(InputError, match="solver Idle has neither `steps` nor `minimize`"):
        Idle().minimize(risk, L2(LAM))


@dataclass(frozen=True)
class Creeping(extend.IterativeSolver):
    """Moves towards w = 0, where J is less, by the same share of w in each iteration."""

    name = "creeping"
    share: float = 0.0

    def steps(self, run):
        w = 1e3 * np.ones(run.risk.dim)
        while True:
            run.improve(w, run.risk.value_and_subgradient(w)[0] + run.regularizer.value(w), fresh=True)
            yield extend.Step.ITERATION
            w = (1.0 - self.share) * w


@pytest.mark.parametrize(("share", "status"), [(1e-13, Status.STALLED), (1e-7, Status.ITERATION_LIMIT)])
def test_a_run_that_closes_next_to_nothing_of_its_gap_has_stalled(risk, share, status):
    found = Creeping(tolerance=1e-6, max_iterations=150, share=share).minimize(risk, L2(LAM))
    assert found.status is status
    first, *_, last = found.history
    assert last.objective < first.objective * (1.0 - 1e-13)  # each step counts beyond rounding


def test_a_guess_of_rounding_is_taken_off_a_bound_with_which_the_gap_stays_met():
    X, y = problems.data("logistic")
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("logistic", {}))
    exact = SOLVERS.make("newton", {"tolerance": 1e-13}).minimize(risk, L2(LAM))
    found = SOLVERS.make("newton", {"tolerance": 1e-3}).minimize(risk, L2(LAM), start=exact.w)
    assert found.objective == pytest.approx(exact.objective, rel=1e-14)
    assert 2.0**-41 * found.objective < found.objective - found.lower_bound < 1e-9 * found.objective
