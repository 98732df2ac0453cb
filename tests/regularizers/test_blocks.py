"""The record of a sum over blocks: its proximal map, conjugate, scale and distances, against its value alone."""

import math

import numpy as np
import pytest

from bmrm.kernels.blocks import separable
from bmrm.problem import IncompatibleError, Space, provides
from bmrm.problem.regularizer import BlockSeparable, HasBounds, HasConjugate
from bmrm.regularizers._core.blocks import Partition, blocks

DIM = 9


def penalty_value(penalty, w):
    """Omega, written out as its definition."""
    if np.any(w < penalty.lower) or np.any(w > penalty.upper):
        return math.inf
    total = float(penalty.l1 @ np.abs(w) + 0.5 * penalty.l2 @ (w - penalty.center) ** 2)
    return total + sum(penalty.strengths[b] * np.linalg.norm(w[penalty.block(b)]) for b in range(penalty.blocks))


def some(seed, kind):
    """A record with everything in it, or the parts that `kind` says; coordinates 7 and 8 are free but for `full`."""
    rng = np.random.default_rng(seed)
    space = Space(DIM)
    partition = Partition(space)
    l1, l2 = rng.exponential(size=DIM) * (rng.random(DIM) < 0.6), rng.exponential(size=DIM) * (rng.random(DIM) < 0.5)
    lower, upper = np.full(DIM, -math.inf), np.full(DIM, math.inf)
    if kind != "box":
        partition.add(np.array([4, 0, 2]), 0.7)
        l2[[4, 0, 2]] = 0.0 if seed % 2 else 0.4
        partition.add(np.array([1, 5]), 1.3)
        l2[[1, 5]] = 0.0
    if kind != "groups":
        lower[3], upper[3], upper[6], lower[7] = -0.5, 0.25, 0.0, 0.3
    if kind == "full":
        l2[7:] += 0.1
    return blocks(
        space, "some", partition=partition.arrays(), l1=l1, l2=l2, center=rng.normal(size=DIM), lower=lower, upper=upper
    )


CASES = [(seed, kind) for kind in ("groups", "box", "full") for seed in range(6)]


@pytest.fixture(params=CASES, ids=str)
def omega(request):
    return some(*request.param)


def points(count, seed=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, DIM)) * rng.choice([1e-3, 1.0, 30.0], size=(count, 1))


def inside(omega, w):
    return np.clip(w, omega.penalty.lower, omega.penalty.upper)


def feasible(omega, v):
    """Where Omega has no conjugate to offer, its weights being free, masters ask the kernels."""
    scale = separable.feasible(v, tuple(omega.penalty))
    if provides(omega, HasConjugate):
        assert omega.feasible(v) == scale
    return scale


def conjugate_of(omega, v):
    conjugate = separable.conjugate(v, tuple(omega.penalty))
    if provides(omega, HasConjugate):
        assert omega.conjugate(v) == conjugate
    return conjugate


def test_the_value_is_that_of_the_definition(omega):
    for w in points(20):
        for one in (w, inside(omega, w)):
            assert omega.value(one) == pytest.approx(penalty_value(omega.penalty, one), rel=1e-13)


def test_values_on_a_line(omega):
    t = np.array([0.0, 0.3, -2.0])
    for w, step in zip(points(5), points(5, 4)):
        values, slopes = omega.along(inside(omega, w), step)(t)
        for k in range(3):
            at = inside(omega, w) + t[k] * step
            assert values[k] == pytest.approx(omega.value(at), rel=1e-12)
            if values[k] < math.inf:
                assert slopes[k] == pytest.approx(omega.subgradient(at) @ step, rel=1e-9)


def test_what_the_proximal_map_leaves_is_a_subgradient(omega):
    """Omega(y) >= Omega(p) + <u, y - p> for u = (v - p) / step and every y: p is the minimiser."""
    others = np.array([inside(omega, y) for y in points(40, 5)])
    for v in points(12):
        for step in (1e-3, 1.0, 50.0):
            p = omega.prox(v, step)
            u, value = (v - p) / step, penalty_value(omega.penalty, p)
            near = inside(omega, p + 1e-4 * (others - p))
            for y in (*others, *near, *(inside(omega, x * p) for x in (0.0, 0.99, 1.01))):
                plane = value + u @ (y - p)
                assert penalty_value(omega.penalty, y) >= plane - 1e-11 * (abs(value) + np.abs(u) @ np.abs(y - p))
            u[omega.penalty.free] = 0.0
            scale = feasible(omega, u)  # 1 but for the rounding of the difference
            assert scale >= 1.0 - 1e-10
            conjugate = conjugate_of(omega, scale * u)
            size = 1.0 + np.abs(u) @ np.abs(p) + value
            assert conjugate == pytest.approx(float(u @ p) - value, abs=1e-9 * size)
            for block in range(omega.penalty.blocks):
                assert separable.distance_block(block, p, u, tuple(omega.penalty)) <= 1e-10 * (1 + np.abs(u).max())


def test_the_conjugate_is_above_every_plane(omega):
    for v in points(20):
        v = feasible(omega, v) * v
        conjugate = conjugate_of(omega, v)
        assert conjugate < math.inf
        for w in points(20, 6):
            w = inside(omega, w)
            size = np.abs(v) @ np.abs(w) + abs(penalty_value(omega.penalty, w))
            assert v @ w - penalty_value(omega.penalty, w) <= conjugate + 1e-12 * size


def test_no_larger_scale_is_feasible(omega):
    for v in points(20):
        scale = feasible(omega, v)
        assert 0.0 <= scale <= 1.0
        if scale < 1.0:
            assert conjugate_of(omega, min(1.0, scale * (1.0 + 1e-9) + 1e-300) * v) == math.inf


def test_slack_says_when_a_block_stays_0(omega):
    arrays = tuple(omega.penalty)
    rng = np.random.default_rng(8)
    for v in points(20):
        for block in range(omega.penalty.blocks):
            members, slack = omega.penalty.block(block), separable.slack_at_0(block, v, arrays)
            out = np.ones(DIM)
            separable.prox_block(block, v, 1.0, arrays, out)
            assert (slack >= 0.0) == (not out[members].any()) or abs(slack) < 1e-12
            if 0.0 < slack < math.inf:
                away = rng.normal(size=members.size)
                moved = v.copy()
                moved[members] += 0.999 * slack * away / np.linalg.norm(away)
                separable.prox_block(block, moved, 1.0, arrays, out)
                assert not out[members].any()


def test_members_are_those_that_are_true():
    space = Space(3)
    smooth = blocks(space, "none")
    assert smooth.smooth
    assert not smooth.hessian_product(np.ones(3), np.ones(3)).any()
    assert smooth.penalty.free.tolist() == [0, 1, 2]
    ridge = blocks(space, "ridge", l2=[1.0, 2.0, 3.0])
    assert ridge.modulus == 1.0
    assert ridge.hessian_product(np.ones(3), np.ones(3)).tolist() == [1.0, 2.0, 3.0]
    box = blocks(space, "box", l2=1.0, lower=0.5)
    assert provides(box, HasBounds)
    assert box.project(np.array([0.0, 1.0, 0.5])).tolist() == [0.5, 1.0, 0.5]
    assert provides(box, BlockSeparable)
    assert not provides(ridge, HasBounds)
    with pytest.raises(ValueError, match="for 3 weights"):
        box.value(np.zeros(4))


def test_slices_of_weights_are_refused():
    class Sliced(Space):
        whole = False

    with pytest.raises(IncompatibleError, match="GroupL2 needs all weights in one place"):
        blocks(Sliced(3), "GroupL2")
