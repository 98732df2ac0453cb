"""What every registered regularizer must satisfy; a new file in bmrm/regularizers/ is tested without a change here."""

import dataclasses
import math

import numpy as np
import pytest
from cvxopt import matrix, solvers

from bmrm.masters.planes import MemoryPlanes
from bmrm.problem import Elastic, HasConjugate, HasMaster, InputError, Regularizer, StronglyConvex
from bmrm.registry import option_name
from bmrm.regularizers import REGULARIZERS

DIM = 6


def instances():
    """Each regularizer with its required parameters, then with each other value that it states."""
    for entry in REGULARIZERS.all():
        missing = dataclasses.MISSING
        base = {p.name: p.metadata["example"] for p in entry.parameters if p.default is missing}
        yield entry.cls(**base)
        for p in entry.parameters:
            values = [p.metadata["example"], *(p.metadata["range"].choices or ())]
            if p.name in base and isinstance(base[p.name], float):
                values = [3.0 * base[p.name], 100.0 * base[p.name]]
            for value in values:
                if value not in (p.default, base.get(p.name)):
                    yield entry.cls(**base | {p.name: value})


ALL = list(dict.fromkeys(instances()))
CONJUGATE = [r for r in ALL if isinstance(r, HasConjugate)]
PROX = [r for r in ALL if hasattr(r, "prox")]
MASTER = [r for r in ALL if isinstance(r, HasMaster)]
ELASTIC = [r for r in ALL if isinstance(r, Elastic)]
STRONG = [r for r in ALL if isinstance(r, StronglyConvex)]


def points(seed=0):
    """Random points of several sizes, with zero entries, and zero itself."""
    rng = np.random.default_rng(seed)
    for size in (1e-6, 1.0, 1e3):
        for _ in range(10):
            yield size * rng.normal(size=DIM) * (rng.random(DIM) < 0.7)
    yield np.zeros(DIM)


def pairs():
    yield from zip(points(1), points(2))
    yield from ((x, 1e6 * y) for x, y in zip(points(3), points(4)))


def close(a, b, size=0.0):
    return abs(a - b) <= 1e-12 * max(abs(a), abs(b), size) + 1e-300


@pytest.mark.parametrize("regularizer", ALL, ids=str)
def test_is_a_regularizer(regularizer):
    assert isinstance(regularizer, Regularizer)
    assert type(regularizer.smooth) is bool
    assert REGULARIZERS.make(*name_and_options(regularizer)) == regularizer
    assert REGULARIZERS.get(regularizer.name).headline.count(":") >= 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        regularizer.lam = 2.0


def name_and_options(regularizer):
    options = REGULARIZERS.describe(regularizer)
    return options.pop("name"), options


@pytest.mark.parametrize("regularizer", ALL, ids=str)
def test_parameters_outside_their_range_are_refused(regularizer):
    name, options = name_and_options(regularizer)
    for p in REGULARIZERS.get(name).parameters:
        limits, option = p.metadata["range"], option_name(p.name)
        wrong = [x for x in (0.0, -1.0, math.inf, -math.inf, math.nan, 1e9, "no such choice") if x not in limits]
        assert p.metadata["range"].doc
        assert p.metadata["example"] in limits
        assert wrong
        for value in wrong:
            with pytest.raises(InputError, match=option):
                REGULARIZERS.make(name, options | {option: value})


@pytest.mark.parametrize("regularizer", ALL, ids=str)
def test_convex_finite_and_never_negative(regularizer):
    for x, y in pairs():
        assert 0.0 <= regularizer.value(x) < math.inf
        for t in (0.1, 0.5, 0.9):
            between = regularizer.value(t * x + (1 - t) * y)
            chord = t * regularizer.value(x) + (1 - t) * regularizer.value(y)
            assert between <= chord * (1 + 1e-12)


@pytest.mark.parametrize("regularizer", ELASTIC, ids=str)
def test_elastic_is_what_it_says(regularizer):
    l1, l2 = regularizer.l1, regularizer.l2
    assert l1 >= 0.0
    assert l2 >= 0.0
    for x in points():
        assert close(regularizer.value(x), l1 * np.abs(x).sum() + 0.5 * l2 * x @ x)
    assert regularizer.smooth == (l1 == 0.0)
    assert isinstance(regularizer, StronglyConvex) == (l2 > 0.0)


@pytest.mark.parametrize("regularizer", STRONG, ids=str)
def test_strongly_convex_by_its_modulus(regularizer):
    assert regularizer.modulus > 0.0
    for x, y in pairs():
        middle = regularizer.value(0.5 * (x + y)) + regularizer.modulus / 8.0 * (x - y) @ (x - y)
        assert middle <= 0.5 * (regularizer.value(x) + regularizer.value(y)) * (1 + 1e-12)


@pytest.mark.parametrize("regularizer", ALL, ids=str)
def test_subgradient_supports_from_below(regularizer):
    for x, y in pairs():
        before = x.copy()
        g = regularizer.subgradient(x)
        np.testing.assert_array_equal(x, before)
        assert g.shape == x.shape
        assert not np.shares_memory(g, x)
        tangent = regularizer.value(x) + g @ (y - x)
        assert tangent <= regularizer.value(y) + 1e-12 * (abs(tangent) + np.abs(g) @ np.abs(y - x))


@pytest.mark.parametrize("regularizer", [r for r in ALL if r.smooth], ids=str)
def test_smooth_means_a_gradient_everywhere(regularizer):
    rng = np.random.default_rng(5)
    for x in points():
        step = rng.normal(size=DIM)
        size = max(np.abs(x).max(), 1.0)
        slopes = [(regularizer.value(x + h * step) - regularizer.value(x)) / h for h in (1e-5 * size, -1e-5 * size)]
        slope = regularizer.subgradient(x) @ step
        tolerance = 1e-4 * (regularizer.value(step) + abs(slope)) * size
        assert abs(slopes[0] - slope) <= tolerance
        assert abs(slopes[1] - slope) <= tolerance


@pytest.mark.parametrize("regularizer", ALL, ids=str)
def test_along_is_the_value_on_a_line(regularizer):
    t = np.array([-2.0, 0.0, 1e-9, 0.5, 1.0, 7.0])
    for x, y in pairs():
        values, slopes = regularizer.along(x, y)(t)
        assert values.shape == slopes.shape == t.shape
        for k in range(len(t)):
            assert close(values[k], regularizer.value(x + t[k] * y), 1e-3 * regularizer.value(x))
            # an element of the subdifferential: the tangent lies below all other values
            tangent = values[k] + slopes[k] * (t - t[k])
            assert np.all(tangent <= values + 1e-11 * (np.abs(tangent) + np.abs(slopes[k] * (t - t[k])) + values[k]))


@pytest.mark.parametrize("regularizer", CONJUGATE, ids=str)
def test_conjugate_is_the_maximum(regularizer):
    for x, y in pairs():
        v = regularizer.subgradient(x)
        # Fenchel's equality at a subgradient, his inequality elsewhere
        assert close(regularizer.conjugate(v), v @ x - regularizer.value(x), abs(v @ x) + regularizer.value(x))
        v = regularizer.feasible(y) * y
        assert regularizer.value(x) + regularizer.conjugate(v) >= v @ x - 1e-12 * (np.abs(v) @ np.abs(x))
    # by brute force on a line
    lam = regularizer.lam
    grid = np.linspace(-40.0, 40.0, 4001)
    for v in (0.0, 0.5 * lam, -lam, 3.0 * lam):
        best = max(v * w - regularizer.value(np.array([w])) for w in grid)
        conjugate = regularizer.conjugate(np.array([v]))
        assert best <= conjugate * (1 + 1e-12)
        if conjugate < math.inf:
            assert conjugate <= best + 1e-3 * lam
        else:
            assert best >= 10.0 * lam


@pytest.mark.parametrize("regularizer", CONJUGATE, ids=str)
def test_feasible_is_the_largest_scale(regularizer):
    for v in points():
        scale = regularizer.feasible(v)
        assert 0.0 <= scale <= 1.0
        assert regularizer.conjugate(scale * v) < math.inf
        if scale < 1.0:
            assert regularizer.conjugate(min(1.0, scale * (1 + 1e-9)) * v) == math.inf


@pytest.mark.parametrize("regularizer", PROX, ids=str)
def test_prox_is_optimal(regularizer):
    for v, other in pairs():
        for step in (1e-3, 1.0, 1e3):
            p = regularizer.prox(v, step)
            # (v - p) / step is a subgradient at p
            g = (v - p) / step
            for y in (other, np.zeros(DIM), v, 1.01 * p, 0.99 * p):
                left = regularizer.value(p) + g @ (y - p)
                size = (np.abs(v) + np.abs(p)) @ np.abs(y - p) / step + regularizer.value(p)
                assert left <= regularizer.value(y) + 1e-12 * size


def reference(regularizer, A, b, block, floors):
    """The optimum of eq. 10 of Teo et al., with Omega itself replaced by its tangent planes, by cvxopt; dim is 2.

    Kelley's method needs nothing but value and subgradient, so it serves any regularizer.
    """
    (n, d), K = A.shape, len(floors)
    known = np.flatnonzero(np.isfinite(floors))
    # variables w, omega, xi; a box holds the first iterations
    rows = [np.hstack([A, np.zeros((n, 1)), -np.equal.outer(block, np.arange(K)).astype(float)])]
    rows.append(np.hstack([np.zeros((len(known), d + 1)), -np.eye(K)[known]]))
    rows.append(np.hstack([np.eye(d), np.zeros((d, 1 + K))]))
    rows.append(-rows[-1])
    right = [-b, -np.array(floors)[known], np.full(2 * d, 1e3)]
    cost = np.r_[np.zeros(d), np.ones(1 + K)]
    w, best = np.zeros(d), math.inf
    for _ in range(200):
        value, g = regularizer.value(w), regularizer.subgradient(w)
        risk = sum(max([floors[k], *(A @ w + b)[block == k]]) for k in range(K))
        best = min(best, value + risk)
        rows.append(np.r_[g, -1.0, np.zeros(K)][None])
        right.append([g @ w - value])
        options = {"show_progress": False, "abstol": 1e-9, "reltol": 1e-9, "feastol": 1e-9}
        found = solvers.lp(*map(matrix, (cost, np.vstack(rows), np.concatenate(right))), options=options)
        assert found["status"] == "optimal"
        if best - found["primal objective"] <= 1e-7:
            break
        w = np.array(found["x"]).ravel()[:d]
    assert np.abs(w).max() < 999.0
    return best


def filled(regularizer, A, b, block, floors):
    planes = MemoryPlanes(A.shape[1], floors)
    master = regularizer.master(planes, len(floors))
    for row, offset, k in zip(A, b, block):
        master.add(planes.add(row, offset, int(k)))
    return planes, master


@pytest.mark.parametrize("regularizer", MASTER, ids=str)
@pytest.mark.parametrize("floors", [(0.0,), (-1.0, 0.0), (-math.inf,)])
def test_master_finds_the_minimum_and_proves_it(regularizer, floors):
    rng = np.random.default_rng(6)
    n, K = 12, len(floors)
    # planes around the origin, so that the model is bounded without a floor
    angle = 2 * np.pi * np.arange(n) / n
    A = np.stack([np.cos(angle), np.sin(angle)], axis=1) * rng.uniform(2.0, 3.0, size=(n, 1)) * (1 + regularizer.lam)
    b, block = rng.normal(size=n), np.arange(n) % K
    best = reference(regularizer, A, b, block, floors)
    _, master = filled(regularizer, A, b, block, floors)
    for accuracy in (1e-2, 1e-9):
        solution = master.solve(accuracy)
        w = solution.w
        value = regularizer.value(w) + sum(max([floors[k], *(A @ w + b)[block == k]]) for k in range(K))
        size = max(abs(best), 0.1)
        assert solution.lower_bound <= best + 1e-7 * size
        assert value >= best - 2e-7 * size
        assert value - solution.lower_bound <= max(1.01 * accuracy, 1e-6) * size


@pytest.mark.parametrize("regularizer", MASTER, ids=str)
def test_master_hot_is_master_cold(regularizer):
    rng = np.random.default_rng(8)
    A, b, block = rng.normal(size=(30, DIM)), rng.normal(size=30), np.arange(30) % 2
    planes, hot = filled(regularizer, A[:20], b[:20], block[:20], (0.0, -2.0))
    hot.solve(1e-9)
    ids = planes.ids
    hot.remove(ids[3:9])
    planes.drop(ids[3:9])
    bounds = []
    for row, offset, k in zip(A[20:], b[20:], block[20:]):
        hot.add(planes.add(row, offset, int(k)))
        warm = hot.solve(1e-9)
        bounds.append(warm.lower_bound)
    kept = np.r_[0:3, 9:30]
    _, cold = filled(regularizer, A[kept], b[kept], block[kept], (0.0, -2.0))
    fresh = cold.solve(1e-9)
    assert warm.lower_bound == pytest.approx(fresh.lower_bound, rel=1e-7, abs=1e-9)
    assert regularizer.value(warm.w) == pytest.approx(regularizer.value(fresh.w), rel=1e-4, abs=1e-6)
    # more planes, higher model
    assert np.all(np.diff(bounds) >= -1e-6)
