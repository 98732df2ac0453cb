"""The cone program against our own masters, where Omega is theirs, on planes that leave much or little to choose."""

import numpy as np
import pytest

from bmrm.masters._core.planes import PlaneStore
from bmrm.problem import Space
from bmrm.regularizers._core.blocks import Partition, blocks
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2

DIM = 5
SPACE = Space(DIM)


def partition_of_ones(strength):
    found = Partition(SPACE)
    found.add_each(np.arange(DIM), strength)
    return found.arrays()


PAIRS = {
    "l2": (L2(0.3), blocks(SPACE, "l2", l2=0.3)),
    "l1": (L1(0.4), blocks(SPACE, "l1", l1=0.4)),
    "elastic_net": (ElasticNet(0.5, 0.4), blocks(SPACE, "elastic_net", l1=0.2, l2=0.3)),
    "norms of one weight": (L1(0.4), blocks(SPACE, "groups", partition=partition_of_ones(0.4))),
    "wide bounds": (L2(0.3), blocks(SPACE, "box", l2=0.3, lower=-1e3, upper=1e3)),
}
PLANES = ("random", "twice", "parallel", "flat", "steep", "one", "through 0")


def planes_of(kind):
    random = np.random.default_rng(4)
    A, b = random.normal(size=(14, DIM)), random.normal(size=14)
    if kind == "twice":
        A, b = np.concatenate([A, A]), np.concatenate([b, b])
    if kind == "parallel":
        A[7:], b[7:] = A[:7], b[:7] - 0.5
    if kind == "flat":
        A[::2] = 0.0
    if kind == "steep":
        A[::3] *= 1e6
    if kind == "one":
        A, b = A[:1], np.ones(1)
    if kind == "through 0":
        b[:] = 0.25
    return A, b


def solved(regularizer, A, b, infima):
    master = regularizer.master(PlaneStore(SPACE, infima))
    for k, (row, offset) in enumerate(zip(A, b)):
        master.add(row, float(offset), k % len(infima))
    return master.solve(1e-9)


def model(A, b, infima, w):
    block = np.arange(len(b)) % len(infima)
    return sum(max([low, *(A @ w + b)[block == k]]) for k, low in enumerate(infima))


@pytest.mark.parametrize("infima", [(0.0,), (-1.0, 0.0)], ids=str)
@pytest.mark.parametrize("kind", PLANES)
@pytest.mark.parametrize("pair", PAIRS)
def test_it_finds_the_minimum_of_our_own_master(pair, kind, infima):
    (ours, record), (A, b) = PAIRS[pair], planes_of(kind)
    first, other = solved(ours, A, b, infima), solved(record, A, b, infima)
    size = max(abs(first.lower_bound), 1e-2)
    assert other.lower_bound == pytest.approx(first.lower_bound, abs=2e-7 * size)
    value = record.value(other.w) + model(A, b, infima, other.w)
    assert value == pytest.approx(other.lower_bound, abs=2e-6 * size)
    assert other.lower_bound <= value + 1e-9 * size


@pytest.mark.parametrize("tilt", [0.0, 1e-3])
def test_free_weights_have_a_bound_once_planes_balance(tilt):
    """|w_0 - 1| + |w_1| + tilt w_1: the two slopes of each term can be mixed to 0."""
    free, infima = blocks(Space(2), "none"), (0.0, -1.0)
    master = free.master(PlaneStore(Space(2), infima))
    for a, b, block in (([1.0, 0.0], -1.0, 0), ([-1.0, 0.0], 1.0, 0)):
        master.add(np.array(a), b, block)
    for a in ([0.0, 1.0 + tilt], [0.0, tilt - 1.0]):
        master.add(np.array(a), 0.0, 1)
    bounds = [master.solve(1e-10) for _ in range(12)]
    assert bounds[-1].w == pytest.approx([1.0, 0.0], abs=1e-5)
    assert max(found.lower_bound for found in bounds) == pytest.approx(0.0, abs=1e-12)
    one = free.master(PlaneStore(Space(2), (0.0,)))
    one.add(np.array([1.0, 0.0]), 5.0)
    found = one.solve(1e-9)
    assert found.lower_bound == 0.0  # the infimum alone
    assert np.all(np.isfinite(found.w))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_bounds_far_beyond_what_planes_can_gain(norm):
    """Planes gain 1e-9 at most, so each weight is where its bounds let it be nearest to 0: once "primal infeasible"."""
    lower, upper = [25.8, -np.inf, 0.0, -3e9, 0.5], [np.inf, -0.98, 0.0, 2e7, 0.5]
    record = blocks(SPACE, "box", lower=np.array(lower), upper=np.array(upper), **{norm: 0.4})
    master = record.master(PlaneStore(SPACE, (0.0,)))
    slopes = np.array([[1.0, -2.0, 0.5, 0.3, 1.0], [0.0, 1.0, 1.0, -1.0, 0.0]]) * 1e-11
    for a in slopes:
        master.add(a, 1e-11)
    found, nearest = master.solve(1e-9), np.array([25.8, -0.98, 0.0, 0.0, 0.5])
    omega = 0.4 * np.abs(nearest).sum() if norm == "l1" else 0.2 * np.square(nearest).sum()
    assert found.w == pytest.approx(nearest, abs=1e-9)
    assert found.lower_bound == pytest.approx(omega + max(slopes @ nearest) + 1e-11, rel=1e-12)


def test_a_zero_that_raises_the_model_is_none():
    """Asked for one digit, multipliers say that all weights may be 0, where nothing of the plane's height is lost."""
    partition = Partition(SPACE)
    partition.add(np.arange(DIM), 2e-3)
    record, a = blocks(SPACE, "groups", partition=partition.arrays()), np.array([3e4, 1.0, 0.0, 4e4, 2.0])
    master = record.master(PlaneStore(SPACE, (0.0,)))
    master.add(a, 0.07)
    found = master.solve(0.1)
    value = record.value(found.w) + max(0.0, float(a @ found.w) + 0.07)
    assert found.lower_bound <= value <= 0.01 * 0.07


def test_planes_that_differ_by_rounding_count_once():
    record, (A, b) = PAIRS["l2"][1], planes_of("random")
    master = record.master(PlaneStore(SPACE, (0.0,)))
    for row, offset in zip(A, b):
        master.add(row, float(offset))
    first = master.solve(1e-6)
    twins = [master.add(row * (1.0 + 1e-15), float(offset) - 1e-12) for row, offset in zip(A, b)]
    again = master.solve(1e-6)
    assert not set(twins) & set(again.multipliers)
    assert again.lower_bound == pytest.approx(first.lower_bound, rel=1e-6)
    higher = master.add(A[0], float(b[0]) + 1.0)
    assert 0 not in master.solve(1e-6).multipliers
    master.remove([higher])
    assert master.solve(1e-6).lower_bound <= first.lower_bound
