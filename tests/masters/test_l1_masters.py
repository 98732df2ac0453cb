import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from bmrm.masters import l1_simplex
from bmrm.masters.l1_simplex import SimplexLP
from bmrm.regularizers.l1 import ENGINES, L1
from tests.masters.epigraph import Model, Player, store

INFIMA = (0.0, -1.0, -np.inf)
TOLERANCE = {"simplex": 1e-10, "cvxopt": 1e-6}


def proved_bound(solution, model, known):
    """The dual value of the multipliers after the shrinking that the definition asks for, or -inf."""
    place = {id: j for j, id in enumerate(known)}
    ids = np.array([place[id] for id in solution.multipliers], dtype=int)
    alpha = np.array(list(solution.multipliers.values()))
    slope = float(np.abs(model.A[ids].T @ alpha).max(initial=0.0)) if len(ids) else 0.0
    scale = min(1.0, model.lam / slope) if slope else 1.0
    if any(np.isinf(model.infima)):
        return None
    share = np.bincount(model.block[ids], weights=scale * alpha, minlength=len(model.infima))
    return scale * float(alpha @ model.b[ids]) + float((1.0 - share) @ np.array(model.infima))


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["simplex", "simplex", "cvxopt"]),
    st.lists(st.sampled_from(INFIMA), min_size=1, max_size=3),
    st.integers(-2, 1),
    st.sampled_from([1e-8, 1.0, 1e8]),
)
def test_any_sequence_of_planes_is_solved(seed, engine, infima, exponent, scale):
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 10))
    regularizer = L1(scale * 10.0**exponent, engine)
    player = Player(rng, regularizer, dim, tuple(scale * f for f in infima), scale)
    for _ in range(8):
        if player.known and rng.random() < 0.3:
            player.remove(int(rng.integers(1, 6)))
        for _ in range(rng.integers(0, 6)):
            player.add()
        accuracy = float(rng.choice([0.0, 1e-9, 1e-6]))
        # a simplex method that climbs to the bound stops as soon as it may
        allowed = max(10 * TOLERANCE[engine], 1.01 * accuracy if engine == "simplex" else 0.0)
        solution = player.master.solve(accuracy)
        model = player.model
        assert set(solution.multipliers) <= set(player.known)
        assert np.isfinite(solution.w).all()
        value = model.l1(solution.w)
        size = max(abs(value) if np.isfinite(value) else 0.0, 0.1 * scale, regularizer.value(solution.w))
        if solution.lower_bound == -np.inf:
            # only where the infima leave the model unbounded, as the reference must find too
            assert not np.isfinite(infima).all()
            continue
        assert -1e-12 * size <= value - solution.lower_bound <= allowed * size
        proved = proved_bound(solution, model, player.known)
        if proved is not None:
            assert abs(proved - solution.lower_bound) <= 1e-12 * size


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from(INFIMA), min_size=1, max_size=3))
@example(1124454, [0.0, 0.0, -np.inf])  # a bound, though the makeshift infimum has a multiplier of .02
def test_engines_agree_with_the_constrained_program(seed, infima):
    for engine in ENGINES:
        rng = np.random.default_rng(seed)
        dim, count, gone = (int(x) for x in rng.integers(1, [7, 20, 5]))
        player = Player(rng, L1(0.3, engine), dim, tuple(infima))
        for k in range(len(infima)):
            player.add(k)
        for _ in range(count):
            player.add()
        player.master.solve(0.1)
        player.remove(gone)
        for k in range(len(infima)):
            player.add(k)
        solution = player.master.solve(1e-9)
        model = player.model
        w = model.minimise_l1()
        if w is None:
            assert solution.lower_bound == -np.inf
            continue
        best = model.l1(w)  # by cvxopt, which may be the less exact of the two
        size = max(abs(best), 1e-2, 0.3 * np.abs(w).sum())
        assert solution.lower_bound <= best + 1e-9 * size
        # a makeshift infimum may still hide the minimum; there may be no bound then
        if solution.exact and np.isfinite(solution.lower_bound):
            value = model.l1(solution.w)
            assert value - best <= 10 * TOLERANCE[engine] * size
            assert min(best, value) - solution.lower_bound <= 10 * TOLERANCE[engine] * size
        else:
            assert not np.isfinite(infima).all()


@pytest.mark.parametrize("engine", list(ENGINES))
def test_cutting_planes_without_a_floor_find_the_minimum(engine):
    """R(w) = max_i |w_i - p_i| - 5 has no known infimum; lam ||w||_1 + R is bounded, its first models are not."""
    p = np.array([3.0, -2.0, 0.5])
    lam = 0.1
    master = L1(lam, engine).master(store(3, (-np.inf,)))
    w, best, bound = np.zeros(3), np.inf, -np.inf
    for _ in range(60):
        i = int(np.argmax(np.abs(w - p)))
        value = abs(w[i] - p[i]) - 5.0
        best = min(best, lam * np.abs(w).sum() + value)
        a = np.zeros(3)
        a[i] = np.sign(w[i] - p[i])
        master.add(a, value - a @ w)
        solution = master.solve(1e-9)
        w, bound = solution.w, max(bound, solution.lower_bound)
        assert bound <= best + 1e-12
    # every coordinate goes to p_i cut at distance r: lam (1.5 r saved) against r lost
    grid = np.linspace(0, 5, 5001)
    truth = min(lam * np.maximum(np.abs(p) - r, 0).sum() + r - 5.0 for r in grid)
    assert best == pytest.approx(truth, abs=2e-3)
    assert best - bound <= 1e-6


@pytest.mark.parametrize("engine", list(ENGINES))
def test_deep_minima_are_reached_through_makeshift_infima(engine):
    """R(w) = max(-1000, -w_0 + 1 ...) falls far below its value at 0."""
    master = L1(0.5, engine).master(store(1, (-np.inf,)))
    w, best, bound = np.zeros(1), np.inf, -np.inf
    for _ in range(60):
        value, a = max((-w[0], np.array([-1.0])), (w[0] - 2000.0, np.array([1.0])), key=lambda pair: pair[0])
        best = min(best, 0.5 * abs(w[0]) + value)
        master.add(a, value - a @ w)
        solution = master.solve(1e-9)
        w, bound = solution.w, max(bound, solution.lower_bound)
        if best - bound <= 1e-6 * abs(best):
            break
    assert best == pytest.approx(-500.0, rel=1e-6)
    assert bound == pytest.approx(-500.0, rel=1e-6)


def steps_of(monkeypatch):
    """Steps of our own simplex method, one entry a call."""
    steps = []
    solve = l1_simplex.solve_simplex_lp

    def counted(*arguments):
        result = solve(*arguments)
        steps.append(result[-1])
        return result

    monkeypatch.setattr(l1_simplex, "solve_simplex_lp", counted)
    return steps


def test_our_simplex_method_is_hot_and_stops_early(monkeypatch):
    steps = steps_of(monkeypatch)
    rng = np.random.default_rng(2)
    hot, coarse = SimplexLP(store(40, (0.0,)), 0.05), SimplexLP(store(40, (0.0,)), 0.05)
    early, exact = 0, 0
    for _ in range(60):
        plane = 0.3 * rng.normal(size=40), rng.normal()
        hot.add(*plane)
        coarse.add(*plane)
        steps.clear()
        warm = hot.solve(0.0)
        exact += sum(steps)
        last = sum(steps)
        steps.clear()
        rough = coarse.solve(0.1)
        early += sum(steps)
        assert rough.lower_bound <= warm.lower_bound * (1 + 1e-12)
        assert rough.lower_bound >= 0.9 * warm.lower_bound
    cold = SimplexLP(store(40, (0.0,)), 0.05)
    for id in hot.planes.ids:
        cold.add(*hot.planes.plane(id))
    steps.clear()
    fresh = cold.solve(0.0)
    assert warm.lower_bound == pytest.approx(fresh.lower_bound, rel=1e-12)
    np.testing.assert_allclose(warm.w, fresh.w, rtol=1e-9, atol=1e-12)
    assert last < sum(steps)
    assert early < exact


def test_our_simplex_method_starts_anew_when_a_basic_plane_leaves():
    rng = np.random.default_rng(3)
    master = SimplexLP(store(8, (0.0,)), 0.1)
    for _ in range(30):
        master.add(rng.normal(size=8), rng.normal())
    used = sorted(master.solve(0.0).multipliers)
    assert len(used) >= 2
    master.remove(used[:2])
    cold = SimplexLP(store(8, (0.0,)), 0.1)
    for id in master.planes.ids:
        cold.add(*master.planes.plane(id))
    assert master.solve(0.0).lower_bound == pytest.approx(cold.solve(0.0).lower_bound, rel=1e-12)


def test_hundreds_of_planes_with_a_basis_of_hundreds():
    """Many steps, the inverse made anew on the way, and still the same as the linear program by scipy."""
    rng = np.random.default_rng(7)
    ours = SimplexLP(store(150, (0.0, -1.0)), 0.05)
    for k in range(500):
        ours.add(rng.normal(size=150), 5.0 + rng.normal(), k % 2)
    found = ours.solve(0.0)
    assert (found.w != 0.0).sum() > 100
    planes = ours.planes
    A = np.array([planes.plane(id)[0] for id in planes.ids])
    model = Model(A, planes.offsets, np.arange(500) % 2, planes.infima, 0.05)
    rows, right = model._tied()
    free = [(None, None)] * rows.shape[1]
    truth = linprog(model._cost(0.05), rows, right, bounds=free, method="highs").fun
    assert found.lower_bound == pytest.approx(truth, rel=1e-8)
    assert 0.0 <= model.l1(found.w) - found.lower_bound + 1e-13 <= 1e-10 * found.lower_bound


@pytest.mark.parametrize("lam", [1e-3, 1e-5, 1e-7, 1e-9])
def test_small_lambda_costs_no_more_than_its_rounding(lam):
    """Tangent planes of a smooth function: slopes of size 1 against a lambda that is nearly nothing."""
    rng = np.random.default_rng(9)
    H = np.diag(np.logspace(0, -6, 30))
    target = 3.0 * rng.normal(size=30)
    master = SimplexLP(store(30, (0.0,)), lam)
    A, b = [], []
    for _ in range(150):
        w = target + rng.normal(size=30)
        slope = H @ (w - target)
        A.append(slope)
        b.append(0.5 * (w - target) @ slope + 1.0 - slope @ w)
        master.add(slope, b[-1])
        solution = master.solve(0.0)
    model = Model(np.array(A), np.array(b), np.zeros(150, dtype=int), (0.0,), lam)
    value = model.l1(solution.w)
    assert 0.0 <= value - solution.lower_bound + 1e-14 * value <= max(1e-11, 1e-14 / lam) * value


def test_extreme_numbers_end_and_bound():
    rng = np.random.default_rng(13)
    for lam in (1e-150, 1e-12, 1e12):
        for scale in (1e-100, 1e-8, 1e8, 1e100):
            master = SimplexLP(store(5, (0.0,)), lam)
            for _ in range(20):
                master.add(scale * rng.normal(size=5), rng.normal())
                solution = master.solve(0.0)
                assert np.isfinite(solution.w).all()
                assert not np.isnan(solution.lower_bound)
                # w = 0 is a point of the model
                assert solution.lower_bound <= max(0.0, master.planes.offsets.max()) * (1 + 1e-12)


def test_flat_features_have_no_columns():
    """A feature in which no plane is steeper than lambda has weight 0 and costs nothing, until one is."""
    rng = np.random.default_rng(4)
    dim = 5000
    master = SimplexLP(store(dim, (0.0,)), 1.0)
    A = np.zeros((12, dim))
    for j in range(12):
        A[j] = rng.uniform(-1, 1, size=dim)
        steep = rng.integers(0, 50, size=3)
        A[j, steep] = rng.normal(scale=5, size=3)
        master.add(A[j], 1.0 + j)
        solution = master.solve(0.0)
        assert len(master._rows.columns) <= 3 * (j + 1)
        used = np.flatnonzero(solution.w)
        assert set(used) <= set(range(50))
        model = Model(A[: j + 1], 1.0 + np.arange(j + 1.0), np.zeros(j + 1, dtype=int), (0.0,), 1.0)
        assert model.l1(solution.w) - solution.lower_bound <= 1e-9 * solution.lower_bound


def test_without_planes_the_infimum_rules():
    for engine in ENGINES:
        solution = L1(1.0, engine).master(store(3, (0.25, 0.5))).solve(0.0)
        np.testing.assert_allclose(solution.w, np.zeros(3), atol=1e-9)
        assert solution.lower_bound == pytest.approx(0.75, rel=1e-12)
        assert L1(1.0, engine).master(store(3, (-np.inf,))).solve(0.0).lower_bound == -np.inf
