"""Planes come, leave, fold, and serve a second run; whatever happens the bound stays true."""

import dataclasses

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.masters._core.planes import PlaneStore
from bmrm.problem import IncompatibleError, InputError, Space, Status
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers.bundle import Bundle
from bmrm.solvers.line_search_bundle import LineSearchBundle
from tests import problems

SOLVERS = [Bundle, LineSearchBundle]


def linear(loss="hinge", seed=0, weights=None):
    X, y = problems.data("hinge", rows=80, features=9, seed=seed)
    return LinearRisk(Dataset.from_arrays(X, y, weights), LOSSES.make(loss))


def optimum(lam, seed=0):
    return problems.hinge_l2_optimum(*problems.data("hinge", rows=80, features=9, seed=seed), lam)


@pytest.mark.parametrize("idle_limit", [1, 7, None])
@pytest.mark.parametrize("max_planes", [4, 12, None])
@pytest.mark.parametrize("cls", SOLVERS)
def test_bounded_memory_keeps_the_bound_true(cls, max_planes, idle_limit, monkeypatch):
    most = [0]
    add = PlaneStore.add

    def counted(self, *arguments):
        plane = add(self, *arguments)
        most[0] = max(most[0], len(self))
        return plane

    monkeypatch.setattr(PlaneStore, "add", counted)
    lam, best = 1e-3, optimum(1e-3)
    bounds = []
    solver = cls(tolerance=1e-4, max_planes=max_planes, idle_limit=idle_limit, max_iterations=3000)
    solution = solver.minimize(linear(), L2(lam), callback=lambda line: bounds.append(line.lower_bound))
    assert max(bounds) <= best * (1.0 + 1e-10)
    assert solution.objective >= best * (1.0 - 1e-10)
    if max_planes is not None:
        # a fold holds its average beside the planes that it replaces for a moment
        assert most[0] <= max_planes + 1
    if max_planes == 4:
        # two planes and an average: the rate of a subgradient method
        assert solution.relative_gap < 0.02
    elif idle_limit != 1:
        assert solution.status is Status.CONVERGED


def test_a_fold_is_a_lower_bound_that_the_minimiser_does_not_notice():
    random = np.random.default_rng(0)
    planes = PlaneStore(Space(3), (0.0,))
    slopes, offsets = random.normal(size=(5, 3)), random.normal(size=5)
    ids = [planes.add(a, b) for a, b in zip(slopes, offsets, strict=True)]
    alpha = np.array([0.2, 0.5, 0.3])
    a, b, block = planes.average(ids[:3], alpha)
    np.testing.assert_allclose(a, alpha @ slopes[:3])
    assert b == pytest.approx(alpha @ offsets[:3])
    assert block == 0
    w = random.normal(size=(100, 3))
    assert np.all(w @ a + b <= (w @ slopes[:3].T + offsets[:3]).max(axis=1) + 1e-12)


@pytest.mark.parametrize("cuts", [2, 5])
@pytest.mark.parametrize("regularizer", [L2(1e-3), L1(1e-3)])
def test_several_cuts_a_pass_reach_the_same_optimum_in_fewer_passes(cuts, regularizer):
    one = Bundle(tolerance=1e-6).minimize(linear(), regularizer)
    several = Bundle(tolerance=1e-6, cuts_per_pass=cuts).minimize(linear(), regularizer)
    assert several.converged
    assert several.objective == pytest.approx(one.objective, rel=2e-6)
    assert several.lower_bound <= one.objective
    assert several.passes < one.passes


def test_several_cuts_need_blocks():
    with pytest.raises(IncompatibleError, match="rows can be parted"):
        Bundle(cuts_per_pass=2).minimize(problems.PlainRisk(*problems.data("hinge"), "hinge"), L2(1.0))
    with pytest.raises(InputError, match="max_planes"):
        Bundle(cuts_per_pass=2, max_planes=5).minimize(linear(), L2(1.0))


@pytest.mark.parametrize("cls", SOLVERS)
def test_planes_of_one_lambda_serve_the_next(cls):
    first = cls(tolerance=1e-5, keep_planes=True).minimize(linear(), L2(1e-2))
    solver = cls(tolerance=1e-5)
    cold = solver.minimize(linear(), L2(5e-3))
    warm = solver.minimize(linear(), L2(5e-3), planes=first.planes)
    assert warm.converged
    assert warm.iterations < cold.iterations
    assert warm.lower_bound <= optimum(5e-3) * (1.0 + 1e-10)
    again = cls(tolerance=1e-4).minimize(linear(), L2(1e-2), planes=first.planes)
    assert again.iterations <= 1


@pytest.mark.parametrize("cls", SOLVERS)
def test_planes_of_another_risk_are_refused(cls):
    planes = cls(keep_planes=True).minimize(linear(), L2(1e-2)).planes
    solver = cls()
    weights = np.ones(80)
    weights[3] = 2.0
    others = [linear(seed=1), linear("squared_hinge"), linear(weights=weights), FreeIntercept(linear())]
    for other in others:
        with pytest.raises(InputError, match="another risk"):
            solver.minimize(other, L2(1e-2), planes=planes)
    with pytest.raises(InputError, match="dimension"):
        solver.minimize(linear(), L2(1e-2), planes=dataclasses.replace(planes, slopes=np.zeros((0, 4))))


def test_planes_are_kept_only_when_asked_for():
    assert Bundle().minimize(linear(), L2(1e-2)).planes is None
