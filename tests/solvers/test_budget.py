"""Time limits and Ctrl-C within iterations."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.kernels import compiling
from bmrm.kernels.compiling import COMPILING
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, Status, ability
from bmrm.problem.abilities import RowSample
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
from bmrm.solvers._core import budget

EVERY = {
    "bundle": ("hinge", "l2"),
    "line_search_bundle": ("hinge", "l1"),
    "lbfgs": ("logistic", "l2"),
    "newton": ("logistic", "l2"),
    "semismooth_newton": ("hinge", "l2"),
    "dual_coordinate": ("hinge", "l2"),
    "proximal_newton": ("logistic", "l1"),
    "coordinate_descent": ("logistic", "l1"),
    "proximal_gradient": ("logistic", "l1"),
    "probe": ("hinge", "l2"),
    "pegasos": ("hinge", "l2"),
    "irls": ("logistic", "l2"),
    "nonlinear_cg": ("logistic", "l2"),
    "auto": ("hinge", "l2"),
}


class Clock:
    """A second for every time that it is looked at; at `press`, Ctrl-C."""

    def __init__(self, press=None):
        self.now, self.press = 0.0, press

    def __call__(self):
        self.now += 1.0
        if self.now == self.press:
            os.kill(os.getpid(), signal.SIGINT)
        return self.now


def problem(loss, rows=400, features=12):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((rows, features)) * np.logspace(0, 2, features)
    y = np.where(X @ rng.standard_normal(features) + 20.0 * rng.standard_normal(rows) > 0.0, 1.0, -1.0)
    return LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(loss))


def objective(risk, regularizer, w):
    return risk.value_and_subgradient(w)[0] + regularizer.value(w)


def test_every_solver_is_here():
    assert set(EVERY) == {entry.name for entry in SOLVERS.all()}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("how", ["limit", "ctrl-c"])
def test_every_solver_ends_soon_after_it_is_told(name, how, monkeypatch):
    """The clock moves on whenever it is looked at: what is counted are looks, not seconds."""
    loss, regularizer = EVERY[name]
    risk, regularizer = problem(loss), REGULARIZERS.make(regularizer, {"lambda": 1e-4})
    best = SOLVERS.make("auto", {"tolerance": 1e-6}).minimize(risk, regularizer)
    for told in (3, 10, 40, 80):
        clock = Clock(told if how == "ctrl-c" else None)
        monkeypatch.setattr(budget, "working_clock", clock)
        limit = {"time_limit": float(told)} if how == "limit" else {}
        seen = {"callback": lambda line: False} if how == "ctrl-c" else {}  # each iteration looks at the clock
        solution = SOLVERS.make(name, {"tolerance": 1e-12, **limit}).minimize(risk, regularizer, **seen)
        assert clock.now <= told + 12
        if clock.now > told:
            assert solution.status is (Status.TIME_LIMIT if how == "limit" else Status.INTERRUPTED)
        monkeypatch.undo()
        assert solution.objective == pytest.approx(objective(risk, regularizer, solution.w), rel=1e-12)
        assert solution.lower_bound <= best.objective * (1.0 + 1e-9)
        assert solution.objective >= best.lower_bound * (1.0 - 1e-9)
        assert solution.history[-1].objective == solution.objective


@pytest.mark.parametrize("name", ["newton", "semismooth_newton", "proximal_newton"])
def test_a_sample_is_left_in_time_and_what_it_found_is_not_lost(name, monkeypatch):
    loss, regularizer = EVERY[name]
    risk, regularizer = problem(loss), REGULARIZERS.make(regularizer, {"lambda": 1e-4})
    assert ability(risk, RowSample) is not None
    told = 60
    monkeypatch.setattr(budget, "working_clock", clock := Clock())
    solver = SOLVERS.make(name, {"tolerance": 1e-12, "sample": 0.5, "time_limit": float(told)})
    solution = solver.minimize(risk, regularizer)
    assert solution.status is Status.TIME_LIMIT
    assert clock.now <= told + 30  # two runs come to their ends
    assert solution.objective < objective(risk, regularizer, np.zeros(risk.dim))


def test_a_chain_of_solvers_shares_one_limit(monkeypatch):
    """Nor does Ctrl-C between two of them end the run with nothing."""
    risk, regularizer = FreeIntercept(problem("hinge")), REGULARIZERS.make("l2", {"lambda": 1e-6})
    monkeypatch.setattr(budget, "working_clock", clock := Clock(press=200))
    solution = SOLVERS.make("auto", {"tolerance": 1e-13}).minimize(risk, regularizer)
    assert solution.status in {Status.INTERRUPTED, Status.CONVERGED, Status.STALLED}
    if solution.status is Status.INTERRUPTED:
        assert clock.now <= 212


@pytest.mark.parametrize("name", EVERY)
def test_compiling_is_not_charged(name, monkeypatch):
    """Each solver compiles for long while it runs: kernels that call others."""
    loss, regularizer = EVERY[name]
    risk, regularizer = problem(loss), REGULARIZERS.make(regularizer, {"lambda": 1e-2})
    monkeypatch.setattr(compiling.time, "perf_counter", clock := Clock())
    before, told = COMPILING.seconds, []

    def compiles(line):
        if not told:
            COMPILING.enter()
            COMPILING.enter()
            clock.now += 1e7
            COMPILING.leave()
            COMPILING.leave()
        told.append(line)

    options = {"tolerance": 1e-2, "time_limit": 1e6, "max_iterations": 50}
    solution = SOLVERS.make(name, options).minimize(risk, regularizer, callback=compiles)
    assert solution.status is not Status.TIME_LIMIT
    assert COMPILING.seconds - before >= 1e7
    assert solution.seconds_compiling >= 1e7
    assert solution.seconds < 1e6
    assert all(0.0 <= line.seconds < 1e6 for line in (*told, *solution.history))


def test_time_stands_while_a_kernel_is_compiled(monkeypatch):
    """In other threads, too, which look at the limit meanwhile."""
    monkeypatch.setattr(compiling.time, "perf_counter", clock := Clock())
    with budget.Budget(100.0) as spent:
        COMPILING.enter()
        clock.now += 1000.0
        assert spent.spent is None
        COMPILING.leave()
        assert spent.spent is None
        assert spent.seconds < 50.0
        COMPILING.wait(500.0)  # for another rank that compiled
        clock.now += 550.0
        assert spent.spent is None
        clock.now += 100.0
        assert spent.spent is Status.TIME_LIMIT


OWN = """
from dataclasses import dataclass
import math, sys
import numpy as np
import bmrm
from bmrm.losses import register
from bmrm.losses.base import MarginLoss, row
from bmrm.kernels import compiling
from bmrm.kernels.compiling import COMPILING

@register("mine", task="binary")
@dataclass(frozen=True)
class Mine(MarginLoss):
    formula, source, smooth, hessian_bound = "log_2(1 + exp(-y f))", "", True, 0.4

    @row
    def value_slope(f, y):
        e = math.exp(-y * f)
        return math.log1p(e) / math.log(2.0), -y * e / (1.0 + e) / math.log(2.0)

COMPILING.speaks = False
random = np.random.default_rng(0)
X = random.normal(size=(300, 5))
y = np.where(X @ random.normal(size=5) + random.normal(size=300) > 0.0, 1, -1)
limit = float(sys.argv[1]) if len(sys.argv) > 1 else None
found = bmrm.fit(X, y, loss=Mine(), solver="lbfgs", tolerance=1e-6, time_limit=limit).solution
print(found.status.name, found.seconds, found.seconds_compiling, COMPILING.kernels)
"""


def fit_with_an_empty_cache(tmp_path, *limit):
    cache = tempfile.mkdtemp(dir=tmp_path)
    command = [sys.executable, str(tmp_path / "own.py"), *map(str, limit)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    status, *numbers = subprocess.check_output(command, text=True, env=environment).split()
    return status, *map(float, numbers)


@pytest.mark.slow
def test_nor_is_that_of_a_loss_of_ones_own(tmp_path):
    """In a cache that is empty; without compiling, the fit takes some hundredths of a second.

    Half of what compiling takes on this machine is a limit that the fit keeps, wherever it runs.
    """
    (tmp_path / "own.py").write_text(OWN)
    *_, takes, kernels = fit_with_an_empty_cache(tmp_path)
    limit = 0.5 * takes
    status, seconds, compiling, _ = fit_with_an_empty_cache(tmp_path, limit)
    assert status == "CONVERGED"
    assert kernels > 0
    assert seconds <= limit < compiling


CASES = [
    ("hinge", "l2"),
    ("squared_hinge", "elastic_net"),
    ("logistic", "l1"),
    ("logistic", "l2"),
    ("softmax", "l2"),
    ("least_absolute_deviation", "elastic_net"),
]


@pytest.fixture(scope="module")
def large():
    """20,000 x 2,000 numbers of different sizes, and for each kind of loss what is to be told."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20000, 2000))
    z = X @ rng.standard_normal(2000) / 45.0 + 0.5 * rng.standard_normal(20000)
    X *= np.logspace(0.0, 1.0, 2000)  # ill-conditioned: no solver is ready in half a second
    return X, {"binary": np.sign(z), "multiclass": np.digitize(z, [-1.0, 0.0, 1.0]), "regression": z}


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "regularizer"), CASES)
def test_overshoot_is_a_second_and_a_pass_at_most(large, loss, regularizer, monkeypatch):
    """By the processor's clock, so that what else the machine does counts for neither side."""
    X, told = large
    made = LOSSES.make(loss)
    risk = LinearRisk(Dataset.from_arrays(X, told[made.task]), made, threads=1)
    regularizer = REGULARIZERS.make(regularizer, {"lambda": 1e-5})
    risk.value_and_subgradient(np.full(risk.dim, 1e-3))
    begin = time.process_time()
    risk.value_and_subgradient(np.full(risk.dim, 1e-3))
    a_pass = time.process_time() - begin
    monkeypatch.setattr(budget, "working_clock", time.process_time)
    for name in EVERY:
        solver = SOLVERS.make(name, {"tolerance": 1e-10, "time_limit": 0.5})
        try:
            compiling = None
            while compiling != COMPILING.seconds:  # or loading kernels, which no clock can stop: it is run again
                compiling, begin = COMPILING.seconds, time.process_time()
                solution = solver.minimize(risk, regularizer)
                spent = time.process_time() - begin
        except IncompatibleError:
            continue
        assert solution.status is Status.TIME_LIMIT, name
        assert spent <= 1.5 + a_pass, name
        assert solution.objective == pytest.approx(objective(risk, regularizer, solution.w), rel=1e-9), name
        assert solution.lower_bound <= solution.objective, name
