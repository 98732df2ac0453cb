import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bmrm.masters.elastic_newton import ElasticQP
from bmrm.masters.l1_simplex import SimplexLP
from bmrm.masters.l2_active_set import SimplexQP
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from tests.masters.epigraph import Model, Player, store

INFIMA = (0.0, -1.0, -np.inf)
RATIOS = (1e-6, 0.1, 0.5, 0.9, 0.999)


def exact_bound(solution, model, known, regularizer):
    """The dual value of the multipliers in long double, infima with the rest."""
    place = {id: j for j, id in enumerate(known)}
    ids = np.array([place[id] for id in solution.multipliers], dtype=int)
    alpha = np.array(list(solution.multipliers.values()), dtype=np.longdouble)
    assert np.all(alpha > 0.0)
    A = model.A[ids].astype(np.longdouble)
    total = alpha @ model.b[ids]
    for k, infimum in enumerate(model.infima):
        rest = 1 - alpha[model.block[ids] == k].sum()
        assert rest >= -1e-12
        if np.isfinite(infimum):
            total += rest * infimum
        else:
            assert abs(rest) < 1e-12
    excess = np.maximum(np.abs(A.T @ alpha) - regularizer.l1, 0)
    return float(total - excess @ excess / (2 * regularizer.l2))


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.lists(st.sampled_from(INFIMA), min_size=1, max_size=3),
    st.integers(-3, 2),
    st.sampled_from([1e-8, 1.0, 1e8]),
    st.sampled_from(RATIOS),
)
@example(0, 5, [-1.0, 0.0], -3, 1.0, 0.999)  # w is 1e-6 of what its multipliers are sums of
def test_any_sequence_of_planes_is_solved(seed, dim, infima, exponent, scale, ratio):
    rng = np.random.default_rng(seed)
    # lambda grows with the scale of the planes, so that both terms matter
    regularizer = ElasticNet(scale * 10.0**exponent, ratio)
    player = Player(rng, regularizer, dim, tuple(scale * f for f in infima), scale)
    for _ in range(20):
        if player.known and rng.random() < 0.2:
            player.remove(int(rng.integers(1, 6)))
        for _ in range(rng.integers(0, 4)):
            player.add()
        accuracy = float(rng.choice([0.0, 1e-9, 1e-3, 0.1]))
        solution = player.master.solve(accuracy)
        model = player.model
        assert set(solution.multipliers) <= set(player.known)
        assert np.isfinite(solution.w).all()
        if not player.covered:
            assert solution.lower_bound == -np.inf
            continue
        value = regularizer.value(solution.w) + model.risk(solution.w)
        size = max(abs(value), abs(solution.lower_bound), 0.1 * scale, regularizer.value(solution.w))
        proved = exact_bound(solution, model, player.known, regularizer)
        assert abs(proved - solution.lower_bound) <= 1e-12 * size
        assert -1e-13 * size <= value - solution.lower_bound <= max(1e-9, 1.01 * accuracy) * size


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from(INFIMA), min_size=1, max_size=3), st.sampled_from(RATIOS))
@example(1048576, [-1.0, -np.inf], 1e-6)  # units of an l1 of 1e-7 left cvxopt 1e-5 away
@example(1067765, [0.0, 0.0, 0.0], 1e-6)
@example(2496563, [-1.0], 1e-6)  # planes that are low at 0 had units of 1e-7
def test_engines_agree_with_the_constrained_program(seed, infima, ratio):
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 8))
    for engine in ("active_set", "cvxopt"):
        regularizer = ElasticNet(0.1, ratio, engine)
        player = Player(np.random.default_rng(seed), regularizer, dim, infima)
        for k in range(len(infima)):
            player.add(k)
        for _ in range(int(rng.integers(0, 12))):
            player.add()
        player.remove(2)
        for k in range(len(infima)):
            player.add(k)
        solution = player.master.solve(1e-9)
        model = player.model
        w = model.minimise_elastic(regularizer.l1, regularizer.l2)
        best = regularizer.value(w) + model.risk(w)
        size = max(abs(best), 1e-2)
        assert solution.lower_bound <= best + 1e-10 * size
        assert abs(regularizer.value(solution.w) + model.risk(solution.w) - best) <= 1e-7 * size
        assert best - solution.lower_bound <= 1e-7 * size


def random_planes(rng, master, count, size=1.0):
    for _ in range(count):
        master.add(size * rng.normal(size=master.planes.dim), rng.normal())


def test_hundreds_of_planes_of_thousands_of_features():
    rng = np.random.default_rng(1)
    for ratio in (0.1, 0.9):
        regularizer = ElasticNet(0.02, ratio)
        master = regularizer.master(store(3000))
        A = 0.3 * rng.normal(size=(300, 3000))
        b = 1.0 + rng.normal(size=300)
        for row, offset in zip(A, b):
            master.add(row, offset)
        solution = master.solve(1e-10)
        model = Model(A, b, np.zeros(300, dtype=int), (0.0,), 0.0)
        value = regularizer.value(solution.w) + model.risk(solution.w)
        assert 0.0 <= value - solution.lower_bound <= 1e-10 * value
        assert 100 < (solution.w == 0.0).sum() < 3000


def test_hot_and_cold_agree_and_hot_is_hot(monkeypatch):
    steps = []
    newton = ElasticQP._newton
    monkeypatch.setattr(ElasticQP, "_newton", lambda self, *rest: (steps.append(self), newton(self, *rest))[1])
    rng = np.random.default_rng(5)
    for ratio in (0.2, 0.9, 0.99):
        hot = ElasticQP(store(30, (0.0,)), 1e-2 * ratio, 1e-2 * (1.0 - ratio))
        for _ in range(80):
            random_planes(rng, hot, 1)
            steps.clear()
            warm = hot.solve(1e-12)
            assert len(steps) <= 60
        before = len(steps)
        cold = ElasticQP(store(30, (0.0,)), 1e-2 * ratio, 1e-2 * (1.0 - ratio))
        for id in hot.planes.ids:
            cold.add(*hot.planes.plane(id))
        fresh = cold.solve(1e-12)
        assert before < len(steps) - before
        assert warm.lower_bound == pytest.approx(fresh.lower_bound, rel=1e-10)
        np.testing.assert_allclose(warm.w, fresh.w, rtol=1e-5, atol=1e-5 * np.abs(fresh.w).max())


def test_between_the_masters_of_l1_and_l2():
    """With nearly all of one term the solution is that of its own master."""
    rng = np.random.default_rng(6)
    masters = [
        ElasticQP(store(20, (0.0,)), 1e-12, 0.3),
        SimplexQP(store(20, (0.0,)), 0.3),
        ElasticQP(store(20, (0.0,)), 0.3, 1e-6),
        SimplexLP(store(20, (0.0,)), 0.3),
    ]
    for _ in range(60):
        plane = rng.normal(size=20), rng.normal()
        for master in masters:
            master.add(*plane)
    one, two, three, four = (master.solve(1e-9) for master in masters)
    np.testing.assert_allclose(one.w, two.w, rtol=1e-6, atol=1e-9)
    assert one.lower_bound == pytest.approx(two.lower_bound, rel=1e-9)
    np.testing.assert_allclose(three.w, four.w, rtol=1e-7, atol=1e-8)
    assert three.lower_bound == pytest.approx(four.lower_bound, rel=1e-5)
    np.testing.assert_array_equal(three.w == 0.0, four.w == 0.0)


def test_coarse_accuracy_stops_early_and_stays_valid():
    """Tangent planes of 1/2 ||w - 1||^2."""
    rng = np.random.default_rng(7)
    points = rng.normal(size=(300, 5))
    A, b = points - 1.0, 0.5 * (5.0 - (points**2).sum(axis=1)) + 5.0
    regularizer = ElasticNet(1e-3, 0.5)
    coarse, fine = regularizer.master(store(5)), regularizer.master(store(5))
    for row, offset in zip(A, b):
        coarse.add(row, offset)
        fine.add(row, offset)
    rough, exact = coarse.solve(0.1), fine.solve(1e-12)
    value = Model(A, b, np.zeros(300, dtype=int), (0.0,), 0.0).risk(rough.w) + regularizer.value(rough.w)
    assert rough.lower_bound < exact.lower_bound < value
    assert value - rough.lower_bound <= 0.1 * rough.lower_bound


def test_flat_features_have_no_columns():
    """A feature in which no plane is steeper than l1 has weight 0 and costs nothing, until one is."""
    rng = np.random.default_rng(4)
    dim = 5000
    master = ElasticQP(store(dim, (0.0,)), 1.0, 0.1)
    A = np.zeros((40, dim))
    for j in range(40):
        A[j] = rng.uniform(-1, 1, size=dim)
        A[j, rng.integers(0, 50, size=3)] = rng.normal(scale=5, size=3)
        master.add(A[j], 1.0 + j)
        solution = master.solve(1e-12)
        assert master._rows.matrix.shape[1] <= 2 * 50
        assert set(np.flatnonzero(solution.w)) <= set(range(50))
        model = Model(A[: j + 1], 1.0 + np.arange(j + 1.0), np.zeros(j + 1, dtype=int), (0.0,), 1.0)
        value = np.abs(solution.w).sum() + 0.05 * solution.w @ solution.w + model.risk(solution.w)
        assert 0.0 <= value - solution.lower_bound + 1e-14 * value <= 1e-11 * value


def test_without_planes_the_infimum_rules():
    for engine in ("active_set", "cvxopt"):
        regularizer = ElasticNet(1.0, engine=engine)
        solution = regularizer.master(store(3, (0.25, 0.5))).solve(0.0)
        np.testing.assert_array_equal(solution.w, np.zeros(3))
        assert solution.lower_bound == pytest.approx(0.75, rel=1e-15)
        assert solution.multipliers == {}
        nothing = regularizer.master(store(3, (-np.inf,))).solve(0.0)
        assert nothing.lower_bound == -np.inf
        np.testing.assert_array_equal(nothing.w, np.zeros(3))


def test_extreme_numbers_end_and_bound():
    """Scales at which the Gram matrix is all rounding: the bound stays true, and nothing loops."""
    rng = np.random.default_rng(13)
    for lam in (1e-300, 1e-12, 1e12):
        for scale in (1e-100, 1e-8, 1e8, 1e100):
            master = ElasticNet(lam).master(store(5))
            for _ in range(20):
                random_planes(rng, master, 1, scale)
                solution = master.solve(0.0)
                assert not np.isnan(solution.lower_bound)
                # w = 0 is a point of the model
                assert solution.lower_bound <= max(0.0, master.planes.offsets.max()) * (1 + 1e-12)


@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_cvxopt_solves_with_planes_taken_where_the_loss_is_nearly_infinite(ratio):
    """These lie far below the others where those have their minimum, at w = 1, with R = 0 there."""
    lam = 0.1
    regularizer = ElasticNet(lam, ratio, "cvxopt") if ratio < 1.0 else L1(lam, "cvxopt")
    master = regularizer.master(store(1, (0.0,)))
    for a, b in ((-1.0, 1.0), (1e3, -1e3), (1e80, -1e83), (1e262, -1e265)):
        master.add(np.array([a]), b)
    solution = master.solve(1e-9)
    assert solution.lower_bound == pytest.approx(regularizer.value(np.ones(1)), rel=1e-8)
    assert solution.w == pytest.approx([1.0], rel=1e-7)
