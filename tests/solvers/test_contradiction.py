"""Losses and risks that are not convex, or whose value, slope or infimum is wrong, prove nothing; honest ones do."""

import math

import numpy as np
import pytest

from bmrm import L1, L2
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, Status, ability
from bmrm.problem.abilities import Rounding
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.audit import Audit
from bmrm.solvers._core.rounding import Proof
from tests.solvers.mistakes import CORRECT, MISTAKES

SOLVED_BY = (
    "bundle",
    "line_search_bundle",
    "lbfgs",
    "newton",
    "nonlinear_cg",
    "irls",
    "proximal_gradient",
    "probe",
    "pegasos",
    "auto",
)
LAMBDAS = (1e-2, 1.0, 100.0)
"""Many iterations, some, and a start that is optimal within the tolerance if all is right."""


def solved(mistake, kind, solver, lam, **options):
    """None where the solver wants more than the risk has."""
    try:
        return SOLVERS.make(solver, {"max_iterations": 300, **options}).minimize(mistake.risk(kind), L2(lam))
    except IncompatibleError:
        return None


@pytest.mark.parametrize("kind", ["loss", "risk"])
@pytest.mark.parametrize("solver", SOLVED_BY)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_never_certified(name, solver, kind):
    mistake = MISTAKES[name]
    for lam in LAMBDAS:
        solution = solved(mistake, kind, solver, lam)
        if solution is None or (name == "infimum that is false" and lam > 0.1):  # 2 is below the minimum of R there
            continue
        assert solution.status not in (Status.CONVERGED, Status.OWN_RULE), (lam, solution)
        if solution.status is Status.NOT_CONVEX:
            told_of(solution, kind)


def told_of(solution, kind):
    """The message names the loss or risk, the points and the amount; nothing is proved."""
    assert solution.message.startswith("loss Wrong: " if kind == "loss" else "risk Custom: ")
    assert " w = (" in solution.message
    assert "by " in solution.message
    assert solution.lower_bound == -math.inf
    assert solution.relative_gap == math.inf
    assert solution.details["amount"] > solution.details["rounding"]
    assert all(point.shape == (3,) for point in solution.details["points"])


@pytest.mark.parametrize("kind", ["loss", "risk"])
@pytest.mark.parametrize("solver", SOLVED_BY)
def test_the_same_without_a_mistake_is_certified(solver, kind):
    for lam in LAMBDAS:
        solution = solved(CORRECT, kind, solver, lam, max_iterations=3000)
        assert solution is None or solution.status in (Status.CONVERGED, Status.OWN_RULE)


def test_the_message_can_be_checked_by_hand():
    mistake = MISTAKES["slope halved"]
    solution = solved(mistake, "risk", "lbfgs", 1e-2)
    where, there = solution.details["points"]
    risk = mistake.risk("risk")
    (value, a), (seen, _) = risk.value_and_subgradient(where), risk.value_and_subgradient(there)
    assert value + a @ (there - where) - seen == pytest.approx(solution.details["amount"])
    assert f"by {solution.details['amount']:.4g}" in solution.message


def test_a_false_infimum_is_named():
    for solver in ("bundle", "lbfgs", "auto"):
        solution = solved(MISTAKES["infimum that is false"], "risk", solver, 1e-2)
        assert "below its infimum, 2" in solution.message
        assert "The infimum that the risk states is wrong" in solution.message


def run_with_bound(risk, times):
    """A run whose bound is so many times its objective."""
    regularizer = L2(1.0)
    with SOLVERS.make("bundle", {}).monitor(risk, regularizer, np.array([1.0, 0.0, 0.0]), None) as run:
        objective = risk.value_and_subgradient(run.start)[0] + regularizer.value(run.start)
        run.improve(run.start, objective, fresh=True)
        run.raise_bound(Proof(times * objective, abs(objective)))
        run.record()
        return run.solution()


def test_a_bound_above_the_objective_is_a_contradiction_for_a_user_and_left_out_for_the_package():
    of_user = run_with_bound(CORRECT.risk("loss"), 1.001)
    assert of_user.status is Status.NOT_CONVEX
    assert of_user.lower_bound == -math.inf
    own = LinearRisk(Dataset.from_arrays(np.eye(3), [1.0, -1.0, 1.0]), LOSSES.make("logistic", {}))
    left_out = run_with_bound(own, 1.001)
    assert left_out.status is Status.STALLED
    assert left_out.lower_bound == own.infimum
    assert "left out" in left_out.message
    assert run_with_bound(own, 1.0 + 1e-15).status is Status.CONVERGED


def test_what_a_solver_carries_along_is_evaluated_afresh_before_it_contradicts():
    risk = CORRECT.risk("loss")
    seen, w = Audit(risk, L2(1.0)), np.array([1.0, 0.0, 0.0])
    value, a = risk.value_and_subgradient(w)
    assert seen.holds(w, value, a)
    there = np.zeros(3)
    assert not seen.holds(there, 0.1, risk.value_and_subgradient(there)[1])  # drifted: the plane at w forbids it
    assert seen.found is None
    assert seen.bound_holds(Proof(0.2, 1.0), there, 0.1) == pytest.approx(risk.value_and_subgradient(there)[0])
    assert seen.found is None


def odd_data(task, odd, scale, random):
    """Features, targets and weights: equal rows, far from 0, collinear columns, one row, weights of 0 and 1e6."""
    X = random.normal(size=(20, 4))
    odd_one = {1: np.repeat(X[:1], 20, 0), 2: X + 1e8, 3: np.column_stack([X, X[:, 0] * (1 + 1e-9)]), 4: X[:2]}
    X = odd_one.get(odd, X) * scale
    y = random.choice([-1.0, 1.0], len(X)) if task == "binary" else random.poisson(2.0, len(X)).astype(float)
    y[0], y[-1] = (1.0, -1.0) if task == "binary" else (1.0, 2.0)
    weights = random.choice([0.0, 1.0, 1e6], len(X)) if odd == 5 else np.ones(len(X))
    weights[0] = 1.0
    return Dataset.from_arrays(X, y, weights)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("name", ["hinge", "least_squares", "logistic", "squared_hinge", "huber", "poisson"])
def test_honest_problems_at_any_scale_contradict_nothing(name, scale, free):
    """As they are audited of users: with a loss of one's own that says the same."""
    random, cls = np.random.default_rng(5), LOSSES.get(name).cls
    own = type("Own", (cls,), {"__module__": __name__})()
    for odd in range(6):
        risk = LinearRisk(odd_data(cls.task, odd, scale, random), own)
        assert ability(risk, Rounding).foreign
        risk = FreeIntercept(risk) if free else risk
        for regularizer in (L2(10.0 ** random.uniform(-8, 1)), L1(10.0 ** random.uniform(-8, 1))):
            for solver in ("bundle", "line_search_bundle", "lbfgs", "newton"):
                options = {"tolerance": float(random.choice([1e-3, 1e-9, 0.0])), "max_iterations": 60}
                try:
                    solution = SOLVERS.make(solver, options).minimize(risk, regularizer)
                except IncompatibleError:
                    continue
                assert solution.status is not Status.NOT_CONVEX, (solver, regularizer, solution.message)
