"""Runs that are broken off and gone on from: the point, the bound, the counts and the state of the solver."""

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.losses.hinge import Hinge
from bmrm.losses.logistic import Logistic
from bmrm.problem import Start, Status
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

random = np.random.default_rng(4)
X = random.normal(size=(300, 12))
Y = np.where(X @ random.normal(size=12) + random.normal(size=300) > 0, 1.0, -1.0)
SMOOTH = ("newton", "lbfgs", "irls", "nonlinear_cg", "proximal_gradient")
SPARSE = ("proximal_newton", "coordinate_descent")
ROUGH = {"pegasos": 0.05, "probe": 0.02}
STRONG = {"pegasos": 0.1, "dual_coordinate": 0.1}


def risk(name):
    return LinearRisk(Dataset.from_arrays(X, Y), Logistic() if name in SMOOTH + SPARSE else Hinge())


def regularizer(name):
    return ElasticNet(1e-3, 0.5) if name in SPARSE else L2(STRONG.get(name, 1e-3))


def broken_off(solver, of, omega, after, start=None):
    """The start for another run, from the iteration `after` of this one; the solution, too."""
    lines, kept = [], []
    first = len(start.history) if start is not None else 0

    def callback(line):
        lines.append(line)
        if line.iteration - first == after:
            state = {} if line.state is None else {k: np.array(v) for k, v in line.state().items()}
            history = (start.history if start is not None else ()) + tuple(lines)
            kept.append(Start(line.w.copy(), line.lower_bound, history, state))
            return True
        return False

    solution = solver.minimize(of, omega, start=start, callback=callback)
    return (kept[0] if kept else None), solution


@pytest.mark.parametrize("name", [entry.name for entry in SOLVERS.all()])
def test_broken_off_again_and_again_it_is_certified_all_the_same(name):
    of, omega = risk(name), regularizer(name)
    solver = SOLVERS.make(name, {"tolerance": ROUGH.get(name, 1e-6)})
    whole = solver.minimize(of, omega)
    start, stages, solution = None, 0, None
    while solution is None or solution.status is Status.INTERRUPTED:
        before = start
        start, solution = broken_off(solver, of, omega, 3, before)
        stages += 1
        assert stages < 400
        if before is not None:
            assert solution.lower_bound >= before.lower_bound * (1 - 1e-12)
            assert solution.passes >= before.history[-1].passes
            assert solution.seconds >= before.history[-1].seconds
            assert [line.iteration for line in solution.history] == list(range(len(solution.history)))
    assert solution.status is whole.status
    if whole.converged:
        assert solution.relative_gap <= solver.tolerance
    assert solution.objective == pytest.approx(whole.objective, rel=2 * max(solver.tolerance, 1e-6))
    value = of.value_and_subgradient(solution.w)[0] + omega.value(solution.w)
    assert value == pytest.approx(solution.objective, rel=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "multiclass_hinge", "logistic", "softmax"])
def test_a_free_intercept_is_not_looked_for_anew_at_every_start(loss):
    y = Y if loss in {"hinge", "logistic"} else np.digitize(X @ np.ones(12) + random.normal(size=300), [-4.0, 0.0, 5.0])
    of = FreeIntercept(LinearRisk(Dataset.from_arrays(X + 0.5, y), LOSSES.make(loss)))
    solver, omega = SOLVERS.make("dual_coordinate", {"tolerance": 1e-4}), L2(1e-2)
    whole = solver.minimize(of, omega)
    start, solution = broken_off(solver, of, omega, 15)
    while solution.status is Status.INTERRUPTED and solution.iterations < 3 * whole.iterations + 60:
        start, solution = broken_off(solver, of, omega, 15, start)
    assert solution.converged
    assert solution.iterations <= 1.3 * whole.iterations + 30
    assert solution.objective == pytest.approx(whole.objective, rel=2e-4)
    assert solution.lower_bound <= whole.objective


@pytest.mark.parametrize("name", ["bundle", "line_search_bundle", "dual_coordinate", "pegasos", "auto"])
def test_the_state_saves_work(name):
    """What is left to do after half of the iterations is less than to do it all again from the same w."""
    of, omega = risk(name), regularizer(name)
    solver = SOLVERS.make(name, {"tolerance": ROUGH.get(name, 1e-6)})
    whole = solver.minimize(of, omega)
    start, _ = broken_off(solver, of, omega, max(1, (3 * whole.iterations) // 4))
    resumed = solver.minimize(of, omega, start=start)
    assert resumed.converged
    assert resumed.iterations <= 1.5 * whole.iterations + 3


def test_a_state_that_does_not_fit_is_left_or_refused():
    of, omega = risk("bundle"), L2(1e-3)
    bundle, dual = (SOLVERS.make(name, {"tolerance": 1e-4}) for name in ("bundle", "dual_coordinate"))
    start, _ = broken_off(bundle, of, omega, 10)
    assert dual.minimize(of, omega, start=start).converged
    start.state["slopes"] = start.state["slopes"][:, :-1]
    with pytest.raises(ValueError, match="planes to go on from"):
        bundle.minimize(of, omega, start=start)


def test_limits_of_iterations_are_of_all_runs_and_of_time_of_each():
    of, omega = risk("bundle"), L2(1e-3)
    solver = SOLVERS.make("bundle", {"tolerance": 0.0, "max_iterations": 8})
    start, _ = broken_off(solver, of, omega, 5)
    assert solver.minimize(of, omega, start=start).iterations == 8
    late = Start(start.w, start.lower_bound, (*start.history[:-1], start.history[-1]), start.state)
    solver = SOLVERS.make("bundle", {"tolerance": 1e-3, "time_limit": 60.0})
    assert solver.minimize(of, omega, start=late).converged
