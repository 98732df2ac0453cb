"""A space sliced in two: each rank holds half of w, of the subgradients and of every plane, nobody all of it.

`Sliced` adds numbers up over the slices, and is all that a solver needs: the same bundle method and master run on each
rank. In one process two threads stand for the ranks; this file is also what `mpirun` starts.
"""

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any, ClassVar

import numpy as np
import pytest

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.launch import open_group
from bmrm.problem import IncompatibleError, Scored, Space, Status, ability
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS as REGISTRY
from bmrm.solvers._core.monitor import SLICED
from bmrm.solvers.bundle import Bundle
from bmrm.solvers.lbfgs import LBFGS
from bmrm.solvers.line_search_bundle import LineSearchBundle
from bmrm.solvers.newton import Newton
from tests.mpi.launch import printed

ROWS, FEATURES, LAM, TOLERANCE = 300, 31, 1e-3, 1e-11
SOLVERS = {
    "bundle": Bundle(TOLERANCE, keep_planes=True),
    "bundle, few planes": Bundle(1e-6, max_planes=40, idle_limit=10, keep_planes=True),
    "bundle, begun": Bundle(TOLERANCE, max_iterations=25),
    "line_search_bundle": LineSearchBundle(TOLERANCE, keep_planes=True),
    "lbfgs": LBFGS(TOLERANCE),
    "line_search_bundle, exact": LineSearchBundle(TOLERANCE, search="exact", keep_planes=True),
}
ENGINES = "active_set", "cvxopt", "line_search"


@dataclass(frozen=True)
class Sliced(Space):
    """Some of the features; `add` sums arrays over all slices, to the same result everywhere."""

    add: Callable[[Any], Any] = np.asarray
    whole: ClassVar[bool] = False

    def total(self, parts):
        return self.add(np.asarray(parts, np.float64))


class SlicedMap:
    """A for the columns of one slice: each rank has all rows, and the scores."""

    def __init__(self, X, space):
        self.X, self.space = X, space

    def matvec(self, w):
        return self.space.total(self.X @ w)

    def rmatvec(self, slope):
        return self.X.T @ slope


class SlicedRisk:
    """R(w) = phi(A w), as a risk of a user's; with scores for `line_search_bundle`."""

    infimum = 0.0

    def __init__(self, X, phi, space):
        self.map, self.phi, self.space, self.dim = SlicedMap(X, space), phi, space, X.shape[1]

    def value_and_subgradient(self, w):
        value, slope = self.phi.value_and_slope(self.map.matvec(w))
        return value, self.map.rmatvec(slope)

    def ability(self, kind):
        return self.space if kind is Space else Scored(self.map, self.phi) if kind is Scored else None


class Two:
    """Two threads of one process in the place of ranks."""

    def __init__(self):
        self.barrier, self.parts = Barrier(2, timeout=60.0), [None, None]

    def adder(self, rank):
        def add(parts):
            self.parts[rank] = parts
            self.barrier.wait()
            total = self.parts[0] + self.parts[1]
            self.barrier.wait()
            return total

        return add

    def run(self, work):
        """Both results of work(rank, add)."""

        def guarded(rank):
            try:
                return work(rank, self.adder(rank))
            except BaseException:
                self.barrier.abort()
                raise

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(guarded, range(2)))


def whole_risk(loss="hinge"):
    random = np.random.default_rng(3)
    X = random.normal(size=(ROWS, FEATURES))
    y = np.where(X @ random.normal(size=FEATURES) + 4.0 * random.normal(size=ROWS) > 0.0, 1, -1)
    return X, LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(loss))


def slice_of(rank, add, loss="hinge"):
    """The first 16 features, or the 15 after them."""
    X, risk = whole_risk(loss)
    columns = slice(0, 16) if rank == 0 else slice(16, FEATURES)
    return SlicedRisk(X[:, columns], ability(risk, Scored).phi, Sliced(X[:, columns].shape[1], add=add))


def solved(name, loss, engine="active_set"):
    def work(rank, add):
        return bmrm.minimize(slice_of(rank, add, loss), L2(LAM, engine), solver=SOLVERS[name])

    return work


def agree(one, halves):
    """What two ranks have found is what one process finds: certified, and each plane in two parts."""
    assert one.status is Status.CONVERGED
    w = np.concatenate([half.w for half in halves])
    for half, features in zip(halves, (16, 15), strict=True):
        assert half.status is Status.CONVERGED
        assert half.objective == pytest.approx(one.objective, rel=1e-9)
        assert half.lower_bound == pytest.approx(one.lower_bound, rel=1e-9)
        assert half.lower_bound <= one.objective
        assert (half.planes is None) == (one.planes is None)
        assert half.planes is None or half.planes.slopes.shape[1] == features
    assert (halves[0].objective, halves[0].lower_bound) == (halves[1].objective, halves[1].lower_bound)
    np.testing.assert_allclose(w, one.w, atol=1e-4 * np.abs(one.w).max())


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("bundle", "hinge"),
        ("bundle", "logistic"),
        ("line_search_bundle", "hinge"),
        ("line_search_bundle, exact", "hinge"),
        ("line_search_bundle", "logistic"),
        ("lbfgs", "logistic"),
    ],
)
def test_two_halves_of_w_find_the_minimum_of_the_whole(name, loss):
    agree(bmrm.minimize(whole_risk(loss)[1], L2(LAM), solver=SOLVERS[name]), Two().run(solved(name, loss)))


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_every_engine_of_the_master_works_on_slices(engine):
    one = bmrm.minimize(whole_risk()[1], L2(LAM, engine), solver=SOLVERS["bundle, begun"])
    for half in Two().run(solved("bundle, begun", "hinge", engine)):
        assert half.objective == pytest.approx(one.objective, rel=1e-5)
        assert half.lower_bound == pytest.approx(one.lower_bound, rel=1e-5)


def test_planes_leave_and_are_folded_in_slices():
    one = bmrm.minimize(whole_risk()[1], L2(LAM), solver=SOLVERS["bundle"])
    halves = Two().run(solved("bundle, few planes", "hinge"))
    for half in halves:
        assert half.status is Status.CONVERGED
        assert half.lower_bound <= one.objective * (1.0 + 1e-12)
        assert len(half.planes.offsets) <= 41
    np.testing.assert_array_equal(halves[0].planes.offsets, halves[1].planes.offsets)


def test_time_is_up_for_both_when_it_is_for_one():
    def work(rank, add):
        solver = Bundle(TOLERANCE, time_limit=1e-9 if rank else None)
        return bmrm.minimize(slice_of(rank, add), L2(LAM), solver=solver)

    for half in Two().run(work):
        assert half.status is Status.TIME_LIMIT
        assert half.iterations == 0


def test_weights_of_one_slice_may_be_equal_where_those_of_another_are_not():
    """A start of zeros in one half alone is no start at 0."""

    def work(rank, add):
        space = Sliced(4, add=add)
        here = np.full(4, float(rank))
        return space.same(here, np.zeros(4)), space.same(here, here.copy()), space.everywhere(rank == 0)

    assert Two().run(work) == [(False, True, False)] * 2


@pytest.mark.mpi
def test_two_ranks_find_it():
    w, found = printed(2, "tests.solvers.test_sliced_space")
    one = bmrm.minimize(whole_risk()[1], L2(LAM), solver=SOLVERS["bundle"])
    assert [half["status"] for half in found] == ["CONVERGED", "CONVERGED"]
    assert [half["plane"] for half in found] == [16, 15]
    for half in found:
        assert half["objective"] == pytest.approx(one.objective, rel=1e-9)
        assert half["lower_bound"] == pytest.approx(one.lower_bound, rel=1e-9)
    np.testing.assert_allclose(w, one.w, atol=1e-4 * np.abs(one.w).max())


def test_what_needs_all_weights_in_one_place_says_so():
    risk = slice_of(0, lambda parts: parts)
    for regularizer, solver, message in [
        (L2(LAM), Newton(), "solver newton.*sliced"),
        (L1(LAM), Bundle(), "regularizer L1.*sliced"),
    ]:
        with pytest.raises(IncompatibleError, match=message):
            bmrm.minimize(risk, regularizer, solver=solver)


def test_the_solvers_that_take_slices_are_those_that_messages_name():
    *names, last = sorted(entry.name for entry in REGISTRY.all() if entry.cls.sliced)
    assert f"{', '.join(names)} and {last}" == SLICED


def main(_):
    """On each rank: its half of the problem; rank 0 prints w and what each has found."""
    group = open_group()
    half = solved("bundle", "hinge")(group.rank, lambda parts: group.sum(parts.ravel()).reshape(parts.shape))
    told = {"status": half.status.name, "objective": half.objective, "lower_bound": half.lower_bound}
    found = group.gather((half.w.tolist(), told | {"plane": half.planes.slopes.shape[1]}))
    if found is not None:
        print(json.dumps([found[0][0] + found[1][0], [one for _, one in found]]))


if __name__ == "__main__":
    main(sys.argv[1:])
