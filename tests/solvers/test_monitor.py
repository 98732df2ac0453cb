"""Limits, Ctrl-C and the counts of a run."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import BmrmError, Scored, Status, ability, relative_gap
from bmrm.problem.abilities import Traffic
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import Meter
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers._core.interrupt import Interrupt
from bmrm.solvers.bundle import Bundle
from bmrm.solvers.line_search_bundle import LineSearchBundle
from tests import problems


def risk(kind="logistic", cls=problems.ScoredRisk):
    return cls(*problems.data(kind), kind)


def press_ctrl_c(line):
    if line.iteration == 3:
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("solver", [Bundle(tolerance=1e-9), LineSearchBundle(tolerance=1e-9)])
def test_ctrl_c_returns_the_best_point(solver):
    before = signal.getsignal(signal.SIGINT)
    solution = solver.minimize(risk(), L2(1e-3), callback=press_ctrl_c)
    assert solution.status is Status.INTERRUPTED
    assert 3 <= solution.iterations <= 4
    assert solution.objective == pytest.approx(
        risk().value_and_subgradient(solution.w)[0] + L2(1e-3).value(solution.w), rel=1e-12
    )
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_is_a_keyboard_interrupt():
    def impatient(line):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        Bundle().minimize(risk(), L2(1e-3), callback=impatient)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_hosts_handler_is_left_alone():
    calls = []
    before = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    try:
        solution = Bundle(tolerance=1e-6).minimize(risk(), L2(1e-2), callback=press_ctrl_c)
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == [signal.SIGINT]
    assert solution.status is Status.CONVERGED


def test_works_in_a_thread():
    results = []
    thread = threading.Thread(target=lambda: results.append(Bundle().minimize(risk(), L2(1e-2))))
    thread.start()
    thread.join()
    assert results[0].converged


def test_passes_are_counted():
    meter = Meter()
    metered = metered_risk(risk(), meter)
    metered.value_and_subgradient(np.zeros(7))
    scored = ability(metered, Scored)
    f = scored.map.matvec(np.zeros(7))
    _, slope = scored.phi.value_and_slope(f)
    scored.map.rmatvec(slope)
    scored.phi.along(f, f)(np.ones(4))
    assert meter.passes == 2.0
    assert meter.seconds > 0.0
    assert ability(metered, Traffic) is None


def of_the_package(kind):
    return LinearRisk(Dataset.from_arrays(*problems.data(kind)), LOSSES.make(kind))


def test_a_line_search_costs_no_passes():
    solution = LineSearchBundle(tolerance=1e-6).minimize(of_the_package("hinge"), L2(1e-2))
    assert solution.converged
    assert solution.passes <= solution.iterations + 1.5


def test_a_risk_of_ones_own_costs_one_more_pass_before_it_is_called_converged():
    """It is tried at a point where mistakes would show that the points so far do not tell of; not where it stops."""
    for most in (10000, 5):
        solver = LineSearchBundle(tolerance=1e-6, max_iterations=most)
        ours, theirs = (solver.minimize(one, L2(1e-2)) for one in (of_the_package("hinge"), risk("hinge")))
        assert theirs.iterations == ours.iterations
        assert theirs.status is ours.status is (Status.CONVERGED if most > 5 else Status.ITERATION_LIMIT)
        assert theirs.passes == ours.passes + (1.0 if most > 5 else 0.0)


def test_nan_is_an_error():
    class Nan(problems.PlainRisk):
        def value_and_subgradient(self, w):
            return np.nan, w

    with pytest.raises(BmrmError, match="nan"):
        Bundle().minimize(Nan(*problems.data("hinge"), "hinge"), L2(1.0))


def test_relative_gap():
    assert relative_gap(2.0, 1.0) == 0.5
    assert relative_gap(-2.0, -3.0) == 0.5
    assert relative_gap(1.0, 1.0 + 1e-16) == 0.0
    assert relative_gap(1.0, -np.inf) == np.inf
    assert relative_gap(np.inf, 0.0) == np.inf
    assert relative_gap(0.0, 0.0) == 0.0


def press_again():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1e-3)  # the handler runs between two instructions


def test_what_is_around_solvers_shares_their_flag_and_never_loses_a_point():
    with Interrupt(around=True) as outer:
        solution = Bundle(tolerance=1e-9).minimize(risk(), L2(1e-3), callback=press_ctrl_c)
        assert solution.status is Status.INTERRUPTED
        press_again()
        press_again()
        assert outer.raised
        assert Bundle().minimize(risk(), L2(1e-3)).iterations == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_ends_a_solver_inside_at_once():
    def impatient(line):
        press_again()
        press_again()

    with Interrupt(around=True), pytest.raises(KeyboardInterrupt):
        Bundle().minimize(risk(), L2(1e-3), callback=impatient)


def test_a_solver_inside_another_does_not_end_the_patience_with_the_outer_one():
    def inner(line):
        Bundle().minimize(risk(), L2(1e-3))
        press_again()
        press_again()

    with Interrupt(around=True), pytest.raises(KeyboardInterrupt):
        Bundle().minimize(risk(), L2(1e-3), callback=inner)
