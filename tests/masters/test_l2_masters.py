import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bmrm.data.dataset import Dataset
from bmrm.losses.least_squares import LeastSquares
from bmrm.masters.l2_active_set import SimplexQP
from bmrm.masters.l2_line_search import LineSearchQP
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers.bundle import Bundle
from tests import problems
from tests.masters.epigraph import Model, Player, store

INFIMA = (0.0, -1.0, -np.inf)


def exact_bound(solution, model):
    """The dual value of the multipliers in long double, infima with the rest."""
    ids = np.array(list(solution), dtype=int)
    alpha = np.array(list(solution.values()), dtype=np.longdouble)
    A = model.A[ids].astype(np.longdouble)
    total = alpha @ model.b[ids]
    for k, infimum in enumerate(model.infima):
        rest = 1 - alpha[model.block[ids] == k].sum()
        assert rest >= -1e-12
        if np.isfinite(infimum):
            total += rest * infimum
        else:
            assert abs(rest) < 1e-12
    v = A.T @ alpha
    return float(total - v @ v / (2 * model.lam))


def check(player, solution, tolerance):
    """Feasible multipliers, a bound that they prove, and a point as good as the tolerance says."""
    model = player.model
    place = {id: j for j, id in enumerate(player.known)}
    assert set(solution.multipliers) <= set(place)
    assert all(value > 0.0 for value in solution.multipliers.values())
    if not player.covered:
        assert solution.lower_bound == -np.inf
        return
    value = model.l2(solution.w)
    size = max(abs(value), abs(solution.lower_bound), 0.1 * player.scale)
    proved = exact_bound({place[id]: a for id, a in solution.multipliers.items()}, model)
    assert abs(proved - solution.lower_bound) <= 1e-12 * size
    assert -1e-13 * size <= value - solution.lower_bound <= tolerance * size


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.lists(st.sampled_from(INFIMA), min_size=1, max_size=3),
    st.integers(-3, 2),
    st.sampled_from([1e-8, 1.0, 1e8]),
)
@example(seed=2382, dim=1, infima=[-np.inf, -np.inf, 0.0], exponent=-3, scale=1.0)
def test_any_sequence_of_planes_is_solved_to_the_last_digits(seed, dim, infima, exponent, scale):
    rng = np.random.default_rng(seed)
    # lambda grows with the scale of the planes, so that both terms matter
    player = Player(rng, L2(scale * 10.0**exponent), dim, tuple(scale * f for f in infima), scale)
    for _ in range(25):
        if player.known and rng.random() < 0.2:
            player.remove(int(rng.integers(1, 6)))
        for _ in range(rng.integers(0, 4)):
            player.add()
        accuracy = float(rng.choice([0.0, 1e-9, 1e-3, 0.1]))
        check(player, player.master.solve(accuracy), max(1e-11, 1.01 * accuracy))


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from(INFIMA), min_size=1, max_size=3))
@example(9820494, [-1.0, 0.0])  # cvxopt goes round in circles from its first start
@example(1800896, [-np.inf, -np.inf, -np.inf])  # and here from its first three
def test_engines_agree_with_the_constrained_program(seed, infima):
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 8))
    for engine in ("active_set", "cvxopt"):
        player = Player(np.random.default_rng(seed), L2(0.1, engine), dim, infima)
        for k in range(len(infima)):
            player.add(k)
        for _ in range(int(rng.integers(0, 12))):
            player.add()
        player.remove(2)
        for k in range(len(infima)):
            player.add(k)
        solution = player.master.solve(1e-9)
        model = player.model
        best = model.l2(model.minimise_l2())
        size = max(abs(best), 1e-2)
        assert solution.lower_bound <= best + 1e-10 * size
        assert abs(model.l2(solution.w) - best) <= 1e-7 * size
        assert best - solution.lower_bound <= 1e-7 * size


def dual_value(model, alpha, rest):
    known = np.isfinite(model.infima)
    v = model.A.T @ alpha
    return alpha @ model.b + rest[known] @ np.array(model.infima)[known] - v @ v / (2 * model.lam)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.lists(st.sampled_from(INFIMA), min_size=1, max_size=3))
def test_the_line_search_takes_the_best_step_towards_the_newest_plane(seed, dim, infima):
    player = Player(np.random.default_rng(seed), L2(0.3, "line_search"), dim, infima)
    for block in range(len(infima)):
        player.add(block)
    before = player.master.solve(0.0)
    for k in range(25):
        if k % 10 == 9:
            player.remove(2)
            before = player.master.solve(0.0)
            continue
        player.add()
        solution, model = player.master.solve(0.0), player.model
        if not player.covered:
            assert solution.lower_bound == -np.inf
            continue
        if before.lower_bound == -np.inf:
            before = solution
            continue
        alphas = [np.array([one.multipliers.get(id, 0.0) for id in player.known]) for one in (before, solution)]
        assert solution.lower_bound >= before.lower_bound - 1e-12
        assert solution.lower_bound == pytest.approx(exact_bound({j: a for j, a in enumerate(alphas[1])}, model))
        vertex = np.zeros(len(player.known))
        vertex[-1] = 1.0
        mine = model.block == model.block[-1]
        rest = [1.0 - np.bincount(model.block, weights=alpha, minlength=len(infima)) for alpha in alphas]
        for eta in np.linspace(0.0, 1.0, 41):
            tried = np.where(mine, (1.0 - eta) * alphas[0] + eta * vertex, alphas[0])
            left = np.where(np.arange(len(infima)) == model.block[-1], (1.0 - eta) * rest[0], rest[0])
            assert dual_value(model, tried, left) <= solution.lower_bound + 1e-9
        np.testing.assert_allclose(solution.w, -model.A.T @ alphas[1] / model.lam, atol=1e-12)
        before = solution


def test_without_a_new_plane_the_line_search_goes_to_the_minimum_of_the_model():
    player = Player(np.random.default_rng(4), L2(0.2, "line_search"), 4, (0.0, -np.inf))
    for _ in range(12):
        player.add()
    model, bounds = player.model, []
    for _ in range(3000):
        bounds.append(player.master.solve(0.0).lower_bound)
    best = model.l2(model.minimise_l2())
    assert np.all(np.diff(bounds) >= -1e-12)
    assert best - 1e-3 <= bounds[-1] <= best + 1e-9


def test_the_line_search_goes_on_beside_a_plane_whose_products_overflow():
    master = LineSearchQP(store(2), 1.0)
    for a, b in (([1.0, 0.0], 1.0), ([1e200, 0.0], -1.0), ([0.0, 1.0], 1.0)):
        master.add(np.array(a), b)
        solution = master.solve(0.0)
    np.testing.assert_allclose(solution.w, [-0.5, -0.5])
    assert solution.lower_bound == pytest.approx(0.75)


@pytest.mark.parametrize("cuts", [1, 3])
def test_a_bundle_without_a_quadratic_program(cuts):
    """Theorem 2: its steps alone bring the gap down; the bound is one of the minimum that the other engine finds."""
    X, y = problems.data("hinge")
    risk = problems.real_risk(X, y, "hinge")
    exact = Bundle(tolerance=1e-8).minimize(risk, L2(0.05))
    solution = Bundle(tolerance=0.02, cuts_per_pass=cuts).minimize(risk, L2(0.05, "line_search"))
    assert solution.converged
    assert solution.lower_bound <= exact.objective <= solution.objective <= 1.02 * exact.objective
    assert solution.iterations > Bundle(tolerance=0.02, cuts_per_pass=cuts).minimize(risk, L2(0.05)).iterations


def test_gap_of_1e12_on_ill_conditioned_planes():
    """Near-duplicates, as bundle methods make them: the Hessian's condition is beyond 1e16."""
    rng = np.random.default_rng(3)
    centre = rng.normal(size=20)
    for lam in (1.0, 1e-2, 1e-4, 1e-6):
        master = SimplexQP(store(20, (0.0,)), lam)
        A = np.sqrt(lam) * (centre + np.logspace(0, -8, 80)[:, None] * rng.normal(size=(80, 20)))
        b = 1.0 + np.logspace(0, -8, 80) * rng.normal(size=80)
        for row, offset in zip(A, b):
            master.add(row, offset)
        solution = master.solve(0.0)
        value = Model(A, b, np.zeros(80, dtype=int), (0.0,), lam).l2(solution.w)
        assert -1e-14 * value <= value - solution.lower_bound <= 1e-12 * value


def test_hot_and_cold_agree():
    rng = np.random.default_rng(5)
    hot = SimplexQP(store(30, (0.0,)), 1e-3)
    for _ in range(80):
        hot.add(rng.normal(size=30), rng.normal())
        warm = hot.solve(0.0)
    cold = SimplexQP(store(30, (0.0,)), 1e-3)
    for id in hot.planes.ids:
        cold.add(*hot.planes.plane(id))
    fresh = cold.solve(0.0)
    np.testing.assert_allclose(warm.w, fresh.w, rtol=1e-9, atol=1e-9)
    assert warm.lower_bound == pytest.approx(fresh.lower_bound, rel=1e-12)


def test_coarse_accuracy_stops_early_and_stays_valid():
    """Tangent planes of 1/2 ||w - 1||^2."""
    rng = np.random.default_rng(7)
    points = rng.normal(size=(300, 5))
    A, b = points - 1.0, 0.5 * (5.0 - (points**2).sum(axis=1)) + 5.0
    coarse, fine = SimplexQP(store(5, (0.0,)), 1e-3), SimplexQP(store(5, (0.0,)), 1e-3)
    for row, offset in zip(A, b):
        coarse.add(row, offset)
        fine.add(row, offset)
    rough, exact = coarse.solve(0.1), fine.solve(0.0)
    value = Model(A, b, np.zeros(300, dtype=int), (0.0,), 1e-3).l2(rough.w)
    assert rough.lower_bound < exact.lower_bound < value
    assert value - rough.lower_bound <= 0.1 * rough.lower_bound


def test_without_planes_the_infimum_rules():
    for engine in ("active_set", "cvxopt"):
        solution = L2(1.0, engine).master(store(3, (0.25, 0.5))).solve(0.0)
        np.testing.assert_array_equal(solution.w, np.zeros(3))
        assert solution.lower_bound == pytest.approx(0.75, rel=1e-15)
        assert solution.multipliers == {}
        nothing = L2(1.0, engine).master(store(3, (-np.inf,))).solve(0.0)
        assert nothing.lower_bound == -np.inf
        np.testing.assert_array_equal(nothing.w, np.zeros(3))


def test_extreme_numbers_end_and_bound():
    """Scales at which the Gram matrix is all rounding: the bound stays true, and nothing loops."""
    rng = np.random.default_rng(13)
    for lam in (1e-300, 1e-12, 1e12):
        for scale in (1e-100, 1e-8, 1e8, 1e100):
            master = SimplexQP(store(5, (0.0,)), lam)
            for _ in range(20):
                master.add(scale * rng.normal(size=5), rng.normal())
                solution = master.solve(0.0)
                assert not np.isnan(solution.lower_bound)
                # w = 0 is a point of the model
                assert solution.lower_bound <= max(0.0, master.planes.offsets.max()) * (1 + 1e-12)


def test_cvxopt_tells_planes_apart_that_differ_in_size():
    """A bundle whose planes differ in size by more than the accuracy: it used to run away until float64 was full."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(15, 4)) * [1.0, 10.0, 1e2, 1e3], random.normal(size=15)
    minima = {}
    for engine in ("active_set", "cvxopt"):
        regularizer = L2(4e-9, engine=engine)
        solver = Bundle(tolerance=1e-6, max_iterations=40)
        solution = solver.minimize(LinearRisk(Dataset.from_arrays(X, y), LeastSquares()), regularizer)
        minima[engine] = solution.objective
        assert np.linalg.norm(solution.w) < 1e3
    assert minima["cvxopt"] < 3.0 * minima["active_set"]
