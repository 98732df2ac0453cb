"""Dual coordinate ascent by several threads: true bounds, the same optimum, the same answer every time."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bmrm.data.dataset import Dataset
from bmrm.kernels.workers import Workers
from bmrm.losses import LOSSES
from bmrm.problem import ability
from bmrm.problem.abilities import DualBlocks
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import Meter
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l2 import L2
from bmrm.risk.dual import joint, stored
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns
from bmrm.solvers import SOLVERS

ROWS, FEATURES = 240, 9
SCALED = Columns(np.linspace(0.5, 2.0, FEATURES), np.linspace(-0.3, 0.4, FEATURES))
CASES = {
    "hinge": ("hinge", L2(0.01), {}, False),
    "squared hinge, bias, scaled": ("squared_hinge", L2(0.01), {"bias": True, "columns": SCALED}, False),
    "logistic, elastic net": ("logistic", ElasticNet(0.01, 0.1), {}, False),
    "hinge, free, scaled": ("hinge", L2(0.01), {"columns": SCALED}, True),
    "classes, bias": ("multiclass_hinge", L2(0.02), {"bias": True}, False),
    "softmax, free": ("softmax", L2(0.02), {}, True),
}


@pytest.fixture(autouse=True)
def small_sweeps_are_shared(monkeypatch):
    monkeypatch.setattr(joint, "DEAR", 100.0)
    monkeypatch.setattr(joint, "PER_WEIGHT", 1.0)
    monkeypatch.setattr(stored, "TEAM_CALL", 0.0)


def risk_of(case, threads, sparse=False):
    loss, regularizer, options, free = CASES[case]
    random = np.random.default_rng(5)
    X = random.normal(size=(ROWS, FEATURES)) * (random.random((ROWS, FEATURES)) < 0.6) + 0.2 * sparse
    y = X @ random.normal(size=(FEATURES, 3)) + 0.7 * random.normal(size=(ROWS, 3))
    y = np.argmax(y, axis=1) if loss in ("multiclass_hinge", "softmax") else np.sign(y[:, 0])
    weights = random.integers(0, 4, ROWS).astype(float)
    data = Dataset.from_arrays(csr_array(X) if sparse else X, y, weights)
    risk = LinearRisk(data, LOSSES.make(loss), threads=threads, **options)
    return FreeIntercept(risk) if free else risk, regularizer


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_the_optimum_does_not_depend_on_the_threads(case, threads, sparse):
    solver = SOLVERS.make("dual_coordinate", {"tolerance": 1e-8, "seed": 3})
    alone = solver.minimize(*risk_of(case, 1, sparse))
    found = solver.minimize(*risk_of(case, threads, sparse))
    assert alone.converged
    assert found.converged
    assert found.objective == pytest.approx(alone.objective, rel=3e-8)
    assert found.lower_bound <= alone.objective * (1.0 + 1e-12)
    assert alone.lower_bound <= found.objective * (1.0 + 1e-12)


@pytest.mark.parametrize("case", CASES)
def test_threads_move_weights_and_slopes_together_and_twice_the_same(case):
    found = []
    for _ in range(2):
        risk, regularizer = risk_of(case, 2)
        l1 = regularizer.l1
        ascent = ability(risk, DualBlocks).ascent(l1, regularizer.l2, seed=1)
        gaps = [ascent.sweep().gap for _ in range(12)]
        kept = ascent.weights
        ascent.plane(anew=True)  # sums computed from the slopes alone
        if not CASES[case][3]:  # with a free intercept the slopes are moved first
            np.testing.assert_allclose(ascent.weights, kept, atol=1e-12)
        found.append((gaps[1:], kept))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_a_long_sweep_looks_at_the_clock_between_rounds(monkeypatch):
    risk, regularizer = risk_of("hinge", 2)
    whole = ability(risk, DualBlocks).ascent(0.0, regularizer.l2, seed=1)
    for _ in range(3):
        whole.sweep()
    monkeypatch.setattr(joint, "LONGEST", 1e9)
    monkeypatch.setattr(stored, "LOOK", 1.0)
    looks = []
    steps = ability(metered_risk(risk, Meter(lambda: looks.append(1))), DualBlocks)
    parts = steps.ascent(0.0, regularizer.l2, seed=1)
    for _ in range(3):
        parts.sweep()
    assert len(looks) > 12
    np.testing.assert_array_equal(parts.weights, whole.weights)


def test_a_thread_that_fails_is_heard_of_and_stops_the_others():
    from bmrm.kernels.atomic import give_up
    from bmrm.kernels.dual.team import meet

    workers, v = Workers(2), np.zeros(4)
    found = joint.Gathering(v, 2, 1, np.zeros(1, np.uint64))

    def task(thread):
        if thread == 1:
            give_up(found.meeting.flags, 2)
            raise ValueError("of its own")
        return meet(found.meeting, thread, 1, 1.0, 0.0)

    with pytest.raises(ValueError, match="of its own"):
        workers.team(task, 2)
