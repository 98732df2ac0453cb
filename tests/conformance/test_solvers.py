"""Every registered solver on problems whose optimum is known."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, InputError, Status
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
from tests import problems

NAMES = [entry.name for entry in SOLVERS.all()]
LAM = 0.01

KINDS = {
    "hinge, l2": {"kinked loss", "smooth regularizer"},
    "hinge, l1": {"kinked loss", "kinked regularizer", "not strongly convex"},
    "least squares, l1": {"kinked regularizer", "not strongly convex"},
    "logistic, l2": {"smooth regularizer"},
    "logistic, l1": {"kinked regularizer", "not strongly convex"},
    "least squares, l2": {"smooth regularizer"},
}
"""What makes each case hard, in the words of the facts `refuses` and `stalls`."""

CASES = {
    "hinge, l2": ("hinge", L2(LAM), problems.hinge_l2_optimum),
    "hinge, l1": ("hinge", L1(LAM), problems.hinge_l1_optimum),
    "least squares, l1": ("least_squares", L1(LAM), problems.least_squares_l1_optimum),
    "logistic, l2": ("logistic", L2(LAM), problems.logistic_l2_optimum),
    "logistic, l1": ("logistic", L1(LAM), problems.logistic_l1_optimum),
    "least squares, l2": ("least_squares", L2(LAM), problems.least_squares_l2_optimum),
}


def solve(name, case, start=None, callback=None, **options):
    kind, regularizer, reference = CASES[case]
    risk_class = problems.real_risk if needs_more(name) else problems.ScoredRisk
    X, y = problems.data(kind)
    solver = SOLVERS.make(name, {"tolerance": 1e-6, "max_iterations": 3000, **options})
    solution = solver.minimize(risk_class(X, y, kind), regularizer, start=start, callback=callback)
    return (
        solution,
        reference(X, y, LAM),
        lambda w: risk_class(X, y, kind).value_and_subgradient(w)[0] + regularizer.value(w),
    )


def fact(name, key, default=()):
    return SOLVERS.get(name).facts.get(key, default)


def needs_more(name):
    """Whether scores and row subsets are not enough."""
    return bool({*fact(name, "abilities")} - {"Scored", "RowSubsets"})


def refuses(name, case):
    return bool(KINDS[case] & set(fact(name, "refuses")))


def stalls(name, case):
    return bool(KINDS[case] & set(fact(name, "stalls")))


def mild(name, loss):
    """That loss with a regularizer that the solver takes."""
    return f"{loss}, l1" if refuses(name, f"{loss}, l2") else f"{loss}, l2"


def regularizer_for(name):
    return L1(LAM) if "smooth regularizer" in fact(name, "refuses") else L2(LAM)


@pytest.mark.parametrize(("name", "case"), [(name, case) for name in NAMES for case in CASES if refuses(name, case)])
def test_what_is_refused_is_told_with_what_would_do(name, case):
    with pytest.raises(IncompatibleError, match=name) as caught:
        solve(name, case)
    assert any(other in str(caught.value) for other in [*NAMES, "l2"] if other != name)


@pytest.mark.parametrize("name", NAMES)
def test_an_absolute_tolerance_ends_a_run_as_the_gaps_of_the_papers_do(name):
    case = mild(name, "logistic")
    far, best, _ = solve(name, case, tolerance=0.1)
    wanted = 0.3 * far.gap
    solution, *_ = solve(name, case, tolerance=0.0, absolute_tolerance=wanted)
    assert solution.status is Status.CONVERGED
    assert -1e-9 * best <= solution.objective - best <= solution.gap <= wanted * (1.0 + 1e-12)
    line = next(line for line in solution.history if line.gap <= wanted)
    assert line.iteration == solution.iterations
    either, *_ = solve(name, case, tolerance=0.1, absolute_tolerance=1e-12)
    assert either.iterations == far.iterations


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name in NAMES for case in CASES if not refuses(name, case)]
)
def test_what_is_claimed_is_true(name, case):
    tolerance = fact(name, "accuracy", 1e-6)
    solution, optimum, objective = solve(name, case, tolerance=tolerance)
    assert solution.objective == pytest.approx(objective(solution.w), rel=1e-12)
    assert solution.objective >= optimum * (1.0 - 1e-9)
    for line in solution.history:
        assert line.lower_bound <= optimum * (1.0 + 1e-9)
    if stalls(name, case):
        assert solution.status in (Status.STALLED, Status.CONVERGED)
    else:
        assert solution.status is Status.CONVERGED or (fact(name, "rule") and solution.status is Status.OWN_RULE)
        assert solution.relative_gap <= tolerance or solution.status is Status.OWN_RULE
        assert solution.objective <= optimum * (1.0 + 2.0 * tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_history_tells_the_run(name):
    lines = []
    solution, _, _ = solve(name, mild(name, "logistic"), callback=lines.append)
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
    solution, _, _ = solve(name, mild(name, "logistic"))
    start = solution.w.copy()
    start.flags.writeable = False
    again, _, _ = solve(name, mild(name, "logistic"), start=start)
    assert again.history[0].objective == pytest.approx(solution.objective, rel=1e-12)
    with pytest.raises(InputError, match="shape"):
        solve(name, mild(name, "logistic"), start=np.zeros(3))
    with pytest.raises(InputError, match="finite"):
        solve(name, mild(name, "logistic"), start=np.full(7, np.nan))


@pytest.mark.parametrize("name", NAMES)
def test_limits_and_callbacks_stop_with_their_status(name):
    assert solve(name, mild(name, "logistic"), max_iterations=2)[0].status is Status.ITERATION_LIMIT
    assert solve(name, mild(name, "logistic"), time_limit=1e-9)[0].status is Status.TIME_LIMIT
    stopped, _, _ = solve(name, mild(name, "logistic"), callback=lambda line: line.iteration >= 1)
    assert stopped.status is Status.INTERRUPTED
    assert np.isfinite(stopped.objective)


@pytest.mark.parametrize("name", NAMES)
def test_an_impossible_tolerance_ends_as_stalled(name):
    rough = fact(name, "accuracy", None)
    most = 100000 if rough is None else 1000
    solution, optimum, _ = solve(name, mild(name, "least squares"), tolerance=0.0, max_iterations=most)
    allowed = (Status.STALLED, Status.CONVERGED, Status.OWN_RULE, *[Status.ITERATION_LIMIT] * (rough is not None))
    assert solution.status in allowed
    if solution.status is Status.CONVERGED:
        assert solution.gap <= 0.0
    assert solution.objective == pytest.approx(optimum, rel=2.0 * fact(name, "accuracy", 5e-7))


@pytest.mark.parametrize("name", NAMES)
def test_infinite_values_are_retreated_from(name):
    class Wall(problems.PlainRisk):
        """Overflows away from the start."""

        def value_and_subgradient(self, w):
            value, a = super().value_and_subgradient(w)
            return (value, a) if np.abs(w).max() < 2.0 else (np.inf, np.zeros_like(w))

    X, y = problems.data("least_squares")
    solver = SOLVERS.make(name, {"tolerance": 1e-4, "max_iterations": 300})
    if fact(name, "abilities"):
        with pytest.raises(IncompatibleError, match=rf"^{name} (needs|draws) .*; use "):
            solver.minimize(Wall(X, y, "least_squares"), regularizer_for(name))
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
    if needs_more(name):
        with pytest.raises(IncompatibleError, match=rf"^{name} (needs|draws) .*; use "):
            solver.minimize(Overflow(X, y, "least_squares"), regularizer_for(name))
        return
    assert solver.minimize(Overflow(X, y, "least_squares"), regularizer_for(name)).status is Status.NON_FINITE


def test_solvers_are_frozen_and_check_their_options():
    for entry in SOLVERS.all():
        solver = entry.cls()
        with pytest.raises(dataclasses.FrozenInstanceError):
            solver.tolerance = 1.0
        with pytest.raises(InputError, match="tolerance"):
            entry.cls(tolerance=-1.0)
        with pytest.raises(InputError, match="max_iterations"):
            entry.cls(max_iterations=0)


def weighted_sparse_risk(loss, weights=True):
    """A real risk: sparse rows, weights (some 0), a bias."""
    random = np.random.default_rng(11)
    X = random.normal(size=(80, 6)) * (random.random((80, 6)) < 0.5)
    y = X @ random.normal(size=6) + 0.4 * random.normal(size=80)
    counts = random.integers(0, 4, 80)
    if not weights:  # weights are repetition
        X, y, counts = np.repeat(X, counts, axis=0), np.repeat(y, counts), None
    y = y if loss == "least_squares" else (y > 0.0).astype(int)
    return LinearRisk(Dataset.from_arrays(csr_array(X), y, counts), LOSSES.make(loss), bias=True)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "least_squares", "squared_hinge"])
@pytest.mark.parametrize("name", NAMES)
def test_sparse_weighted_rows(name, loss):
    kinked = loss == "hinge"
    if kinked and "kinked loss" in {*fact(name, "refuses"), *fact(name, "stalls")}:
        return  # covered by the tests of refusals and of stalling
    tolerance = fact(name, "accuracy", 1e-7)
    exact = SOLVERS.make("line_search_bundle", {"tolerance": 1e-10})
    optimum = exact.minimize(weighted_sparse_risk(loss, weights=False), regularizer_for(name))
    solution = SOLVERS.make(name, {"tolerance": tolerance}).minimize(weighted_sparse_risk(loss), regularizer_for(name))
    assert solution.status in (Status.CONVERGED, Status.OWN_RULE)
    assert solution.status is Status.CONVERGED or fact(name, "rule")
    assert solution.lower_bound <= optimum.objective * (1.0 + 1e-9)
    assert optimum.lower_bound * (1.0 - 1e-9) <= solution.objective <= optimum.objective * (1.0 + 2.0 * tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_can_be_repeated_to_the_last_bit(name):
    options = {"tolerance": fact(name, "accuracy", 1e-6)}
    solver, regularizer = SOLVERS.make(name, options), regularizer_for(name)
    first, again = (solver.minimize(weighted_sparse_risk("logistic"), regularizer) for _ in range(2))
    np.testing.assert_array_equal(first.w, again.w)
    assert [line.objective for line in first.history] == [line.objective for line in again.history]


def test_every_solver_states_its_facts():
    for entry in SOLVERS.all():
        for key in ("problem", "needs", "certificate", "cost"):
            assert entry.facts[key], (entry.name, key)
        assert entry.facts["source"] or entry.name == "auto"
