import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmrm.masters.highs_lp import HighsLP
from bmrm.masters.planes import MemoryPlanes
from bmrm.regularizers.l1 import L1
from tests.masters.epigraph import Model, Player

FLOORS = (0.0, -1.0, -np.inf)
TOLERANCE = {"highs": 1e-8, "cvxopt": 1e-6}


def proved_bound(solution, model, known):
    """The dual value of the multipliers after the shrinking that the definition asks for, or -inf."""
    place = {id: j for j, id in enumerate(known)}
    ids = np.array([place[id] for id in solution.multipliers], dtype=int)
    alpha = np.array(list(solution.multipliers.values()))
    slope = float(np.abs(model.A[ids].T @ alpha).max(initial=0.0)) if len(ids) else 0.0
    scale = min(1.0, model.lam / slope) if slope else 1.0
    if any(np.isinf(model.floors)):
        return None
    share = np.bincount(model.block[ids], weights=scale * alpha, minlength=len(model.floors))
    return scale * float(alpha @ model.b[ids]) + float((1.0 - share) @ np.array(model.floors))


@settings(deadline=None, max_examples=150)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["highs", "highs", "cvxopt"]),
    st.lists(st.sampled_from(FLOORS), min_size=1, max_size=3),
    st.integers(-2, 1),
    st.sampled_from([1e-8, 1.0, 1e8]),
)
def test_any_sequence_of_planes_is_solved(seed, engine, floors, exponent, scale):
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 10))
    regularizer = L1(scale * 10.0**exponent, engine)
    player = Player(rng, regularizer, MemoryPlanes(dim, tuple(scale * f for f in floors)), dim, scale)
    for _ in range(8):
        if player.known and rng.random() < 0.3:
            player.remove(int(rng.integers(1, 6)))
        for _ in range(rng.integers(0, 6)):
            player.add()
        solution = player.master.solve(float(rng.choice([0.0, 1e-9, 1e-6])))
        model = player.model
        assert set(solution.multipliers) <= set(player.known)
        assert np.isfinite(solution.w).all()
        value = model.l1(solution.w)
        size = max(abs(value) if np.isfinite(value) else 0.0, 0.1 * scale, regularizer.value(solution.w))
        if solution.lower_bound == -np.inf:
            # only where the floors leave the model unbounded, as the reference must find too
            assert not np.isfinite(floors).all()
            continue
        assert -1e-12 * size <= value - solution.lower_bound <= 10 * TOLERANCE[engine] * size
        proved = proved_bound(solution, model, player.known)
        if proved is not None:
            assert abs(proved - solution.lower_bound) <= 1e-12 * size


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from(FLOORS), min_size=1, max_size=3))
def test_engines_agree_with_the_constrained_program(seed, floors):
    for engine in ("highs", "cvxopt"):
        rng = np.random.default_rng(seed)
        dim, count, gone = (int(x) for x in rng.integers(1, [7, 20, 5]))
        player = Player(rng, L1(0.3, engine), MemoryPlanes(dim, tuple(floors)), dim)
        for k in range(len(floors)):
            player.add(k)
        for _ in range(count):
            player.add()
        player.master.solve(0.1)
        player.remove(gone)
        for k in range(len(floors)):
            player.add(k)
        solution = player.master.solve(1e-9)
        model = player.model
        w = model.minimise_l1()
        if w is None:
            assert solution.lower_bound == -np.inf
            continue
        best = model.l1(w)
        size = max(abs(best), 1e-2, 0.3 * np.abs(w).sum())
        assert solution.lower_bound <= best + 1e-9 * size
        # a makeshift floor may still hide the minimum; there is no bound then
        if np.isfinite(solution.lower_bound):
            assert abs(model.l1(solution.w) - best) <= 10 * TOLERANCE[engine] * size
            assert best - solution.lower_bound <= 10 * TOLERANCE[engine] * size
        else:
            assert not np.isfinite(floors).all()


@pytest.mark.parametrize("engine", ["highs", "cvxopt"])
def test_cutting_planes_without_a_floor_find_the_minimum(engine):
    """R(w) = max_i |w_i - p_i| - 5 has no known floor; lam ||w||_1 + R is bounded, its first models are not."""
    p = np.array([3.0, -2.0, 0.5])
    lam = 0.1
    planes = MemoryPlanes(3, (-np.inf,))
    master = L1(lam, engine).master(planes)
    w, best, bound = np.zeros(3), np.inf, -np.inf
    for _ in range(60):
        i = int(np.argmax(np.abs(w - p)))
        value = abs(w[i] - p[i]) - 5.0
        best = min(best, lam * np.abs(w).sum() + value)
        a = np.zeros(3)
        a[i] = np.sign(w[i] - p[i])
        master.add(planes.add(a, value - a @ w))
        solution = master.solve(1e-9)
        w, bound = solution.w, max(bound, solution.lower_bound)
        assert bound <= best + 1e-12
    # every coordinate goes to p_i cut at distance r: lam (1.5 r saved) against r lost
    grid = np.linspace(0, 5, 5001)
    truth = min(lam * np.maximum(np.abs(p) - r, 0).sum() + r - 5.0 for r in grid)
    assert best == pytest.approx(truth, abs=2e-3)
    assert best - bound <= 1e-6


@pytest.mark.parametrize("engine", ["highs", "cvxopt"])
def test_deep_minima_are_reached_through_makeshift_floors(engine):
    """R(w) = max(-1000, -w_0 + 1 ...) falls far below its value at 0."""
    planes = MemoryPlanes(1, (-np.inf,))
    master = L1(0.5, engine).master(planes)
    w, best, bound = np.zeros(1), np.inf, -np.inf
    for _ in range(60):
        value, a = max((-w[0], np.array([-1.0])), (w[0] - 2000.0, np.array([1.0])), key=lambda pair: pair[0])
        best = min(best, 0.5 * abs(w[0]) + value)
        master.add(planes.add(a, value - a @ w))
        solution = master.solve(1e-9)
        w, bound = solution.w, max(bound, solution.lower_bound)
        if best - bound <= 1e-6 * abs(best):
            break
    assert best == pytest.approx(-500.0, rel=1e-6)
    assert bound == pytest.approx(-500.0, rel=1e-6)


def test_hot_and_cold_agree_and_hot_is_hot():
    rng = np.random.default_rng(2)
    planes = MemoryPlanes(40)
    hot = HighsLP(planes, 0.05)
    counts = []
    for _ in range(60):
        hot.add(planes.add(0.3 * rng.normal(size=40), rng.normal()))
        warm = hot.solve(0.0)
        counts.append(hot._program.getInfo().simplex_iteration_count)
    cold = HighsLP(planes, 0.05)
    for id in planes.ids:
        cold.add(id)
    fresh = cold.solve(0.0)
    assert warm.lower_bound == pytest.approx(fresh.lower_bound, rel=1e-9)
    assert counts[-1] < cold._program.getInfo().simplex_iteration_count


def test_flat_features_have_no_columns():
    """A feature in which no plane is steeper than lambda has weight 0 and costs nothing, until one is."""
    rng = np.random.default_rng(4)
    dim = 5000
    planes = MemoryPlanes(dim)
    master = HighsLP(planes, 1.0)
    A = np.zeros((12, dim))
    for j in range(12):
        A[j] = rng.uniform(-1, 1, size=dim)
        steep = rng.integers(0, 50, size=3)
        A[j, steep] = rng.normal(scale=5, size=3)
        master.add(planes.add(A[j], 1.0 + j))
        solution = master.solve(0.0)
        assert master._program.getNumCol() <= 1 + 2 * 3 * (j + 1)
        used = np.flatnonzero(solution.w)
        assert set(used) <= set(range(50))
        model = Model(A[: j + 1], 1.0 + np.arange(j + 1.0), np.zeros(j + 1, dtype=int), (0.0,), 1.0)
        assert model.l1(solution.w) - solution.lower_bound <= 1e-9 * solution.lower_bound


def test_without_planes_the_floor_rules():
    for engine in ("highs", "cvxopt"):
        solution = L1(1.0, engine).master(MemoryPlanes(3, (0.25, 0.5)), 2).solve(0.0)
        np.testing.assert_allclose(solution.w, np.zeros(3), atol=1e-9)
        assert solution.lower_bound == pytest.approx(0.75, rel=1e-12)
        assert L1(1.0, engine).master(MemoryPlanes(3, (-np.inf,))).solve(0.0).lower_bound == -np.inf


def test_highs_is_silent(capfd):
    planes = MemoryPlanes(2)
    master = HighsLP(planes, 0.1)
    master.add(planes.add(np.ones(2), 1.0))
    master.solve(0.0)
    assert capfd.readouterr() == ("", "")


def test_blocks_must_match_floors():
    for engine in ("highs", "cvxopt"):
        with pytest.raises(ValueError, match="2 blocks but 1 floors"):
            L1(1.0, engine).master(MemoryPlanes(1), 2)
