"""dual_coordinate against software that shares nothing with it, and its refusals."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import ElasticNet as SklearnElasticNet

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.losses._core.pieces import linear_residual_prox
from bmrm.losses.hinge import Hinge
from bmrm.losses.quantile import Quantile
from bmrm.problem import IncompatibleError, Scored, Status, ability
from bmrm.problem.abilities import DualBlocks
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers.dual_coordinate import DualCoordinate
from bmrm.solvers.line_search_bundle import LineSearchBundle
from bmrm.solvers.newton import Newton
from bmrm.solvers.semismooth_newton import SemismoothNewton
from tests import problems
from tests.targets import default_instance, targets_for

TIGHT = DualCoordinate(tolerance=1e-8)


def risk_of(loss, X, y, weights=None, free=False, **options):
    risk = LinearRisk(Dataset.from_arrays(X, y, weights), LOSSES.make(loss), **options)
    return FreeIntercept(risk) if free else risk


@pytest.mark.parametrize("lam", [1e-3, 1e-2, 1.0, 100.0])
def test_support_vectors_as_by_cvxopt(lam):
    X, y = problems.data("hinge")
    solution = TIGHT.minimize(risk_of("hinge", X, y), L2(lam))
    optimum = problems.hinge_l2_optimum(X, y, lam)
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(optimum, rel=2e-8)
    assert solution.lower_bound <= optimum * (1.0 + 1e-9)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_elastic_net_as_by_scikit_learn(share, free):
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 12))
    y = X[:, :4] @ random.normal(size=4) + 2.0 + 0.2 * random.normal(size=80)
    theirs = SklearnElasticNet(alpha=0.1, l1_ratio=share, fit_intercept=free, tol=1e-12, max_iter=100000).fit(X, y)
    ours = TIGHT.minimize(risk_of("least_squares", X, y, free=free), ElasticNet(0.1, share))
    assert ours.status is Status.CONVERGED
    np.testing.assert_allclose(ours.w, theirs.coef_, atol=1e-3 * np.abs(theirs.coef_).max())
    np.testing.assert_array_equal(ours.w == 0.0, theirs.coef_ == 0.0)


def rows_of(name):
    """A loss with features that have to do with its targets."""
    loss = default_instance(LOSSES.get(name))
    targets = targets_for(loss, 70)
    random = np.random.default_rng(1)
    X = random.normal(size=(70, 4))
    if targets.dtype == float:
        X += 0.5 * (targets / (np.abs(targets).max() + 1.0))[:, None]
    return loss, Dataset.from_arrays(X, targets, random.integers(0, 3, 70))


def with_dual_steps():
    names = []
    for entry in LOSSES.all():
        if getattr(entry.cls, "prox_row", None) is not None:
            names.append(entry.name)
    return names


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("name", with_dual_steps())
def test_every_loss_with_row_functions(name, free):
    loss, rows = rows_of(name)
    risk = LinearRisk(rows, loss)
    if free:
        if loss.no_free_intercept:
            return
        risk = FreeIntercept(risk)
    assert ability(risk, DualBlocks) is not None
    solution = DualCoordinate(tolerance=1e-6).minimize(risk, L2(0.05))
    exact = LineSearchBundle(tolerance=1e-9, max_iterations=3000).minimize(risk, L2(0.05))
    assert solution.status is Status.CONVERGED
    scale = max(abs(exact.objective), 1e-6)
    assert solution.lower_bound <= exact.objective + 1e-9 * scale
    assert exact.lower_bound - 1e-9 * scale <= solution.objective <= exact.objective + 1e-5 * scale


def test_bounds_never_pass_the_optimum_on_the_way():
    X, y = problems.data("hinge")
    optimum = problems.hinge_l2_optimum(X, y, 1e-3)
    solution = DualCoordinate(tolerance=1e-9).minimize(risk_of("hinge", X, y), L2(1e-3))
    assert len(solution.history) > 3
    for line in solution.history:
        assert line.lower_bound <= optimum * (1.0 + 1e-9)
        assert line.objective >= optimum * (1.0 - 1e-9)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_long_steps_end_on_the_piece_that_moved_them(side):
    """From 2^53 + 2 beyond the target a step of 2^53 + 4 is one of 1 past the kink, but equals the rounded distance."""
    far, step = side * (2.0**53 + 2.0), 2.0**53 + 4.0
    assert Hinge.prox_row(-far, step, side)[0] == side
    assert Hinge().prox(np.array([-far]), step, np.array([side]))[0] == side
    assert linear_residual_prox(far, step, -side, 0.0, 1.0, 1.0)[0] == -side
    assert Quantile(tau=0.5).prox(np.array([far]), 2.0 * step, np.array([-side]))[0] == -side


@pytest.mark.slow
@pytest.mark.parametrize("name", with_dual_steps())
def test_steps_that_take_all_digits_from_scores_prove_no_more_than_the_slopes(name):
    """Large features and a small lambda: a row's step is 1e18 times its slope, to a score of about 1.

    What the slopes u prove of R, <u, f> + b, lies nowhere above R: not at scores alike for all rows, either.
    """
    loss, data = rows_of(name)
    targets = data.targets
    risk = LinearRisk(Dataset.from_arrays(1e9 * np.asarray(data.X), targets.y, targets.weights), loss)
    phi, random = ability(risk, Scored).phi, np.random.default_rng(0)
    shape = phi.value_and_slope(risk.map.matvec(np.zeros(risk.dim)))[1].shape
    for lam in (1e-2, 1e-1, 1.0):
        near = random.normal(size=shape) * 10.0 ** random.uniform(-2.0, 6.0, shape)
        ascent = ability(risk, DualBlocks).ascent(0.0, lam, seed=0, near=near)
        for _ in range(3):
            _, b = ascent.plane(anew=True)
            u = ascent.slope()
            for f in (
                *(np.full(shape, level) for level in np.linspace(-5.0, 8.0, 27)),
                3.0 * random.normal(size=shape),
            ):
                value = phi.value_and_slope(f)[0]
                assert np.sum(u * f) + b <= value + 1e-9 * (abs(value) + np.sum(np.abs(u * f)))
            ascent.sweep()


def test_slopes_are_handed_over():
    X, y = problems.data("hinge")
    risk = risk_of("hinge", X, y)
    solution = TIGHT.minimize(risk, L2(0.01))
    slope = solution.details["slope"]
    np.testing.assert_allclose(-X.T @ slope / 0.01, solution.w, rtol=1e-9, atol=1e-12)
    assert solution.details["sweeps"] > 1.0


def test_a_good_start_saves_sweeps():
    X, y = problems.data("logistic", rows=400, features=20)
    risk = risk_of("logistic", csr_array(X), y)
    solver = DualCoordinate(tolerance=1e-6)
    cold = solver.minimize(risk, L2(1e-3))
    warm = solver.minimize(risk, L2(1e-3), start=cold.w)
    assert warm.details["sweeps"] <= 0.5 * cold.details["sweeps"]


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_slopes_are_taken_over(loss, free):
    X, y = problems.data("hinge", rows=300, features=10)
    risk = risk_of(loss, X, y, free=free)
    first = DualCoordinate(tolerance=1e-5).minimize(risk, L2(1e-2))
    second = DualCoordinate(tolerance=1e-5).minimize(risk, L2(1e-2), start=first.w, slope=first.details["slope"])
    assert second.status is Status.CONVERGED
    assert second.details["sweeps"] <= 0.5 * first.details["sweeps"]


def test_the_seed_changes_the_path_not_the_optimum():
    X, y = problems.data("hinge")
    first, second = (DualCoordinate(tolerance=1e-7, seed=s).minimize(risk_of("hinge", X, y), L2(0.01)) for s in (0, 1))
    assert not np.array_equal(first.w, second.w)
    assert first.objective == pytest.approx(second.objective, rel=2e-7)


def test_rows_of_zeros_and_a_single_row():
    X = np.zeros((6, 3))
    X[0] = (1.0, 2.0, 3.0)
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
    for loss in ("hinge", "logistic"):
        solution = TIGHT.minimize(risk_of(loss, csr_array(X), y), L2(0.1))
        exact = LineSearchBundle(tolerance=1e-10).minimize(risk_of(loss, csr_array(X), y), L2(0.1))
        assert solution.status is Status.CONVERGED
        assert solution.objective == pytest.approx(exact.objective, rel=2e-8)


def test_what_it_cannot_do_is_refused():
    X, y = problems.data("hinge")
    with pytest.raises(IncompatibleError, match=r"l2 > 0.*line_search_bundle"):
        DualCoordinate().minimize(risk_of("hinge", X, y), L1(0.1))
    with pytest.raises(IncompatibleError, match=r"mean over rows.*line_search_bundle"):
        DualCoordinate().minimize(risk_of("roc_area", X, y), L2(0.1))
    with pytest.raises(IncompatibleError, match="mean over rows"):
        DualCoordinate().minimize(problems.PlainRisk(X, y, "hinge"), L2(0.1))


def test_a_good_start_whose_slopes_prove_nothing_yet_is_taken():
    """A column that all rows share: moving its weight a little spoils the bound, which the first sweeps mend."""
    X, y = problems.data("logistic", rows=200, features=60)
    X[:, 0] = 1.0
    risk, lam = risk_of("squared_hinge", csr_array(X), y), 1e-3
    cold = DualCoordinate(tolerance=1e-4).minimize(risk, L2(lam))
    start = cold.w.copy()
    start[0] += 1e-2
    value, slope = risk.value_and_subgradient(start)
    bound = value - float(slope @ start) - float(slope @ slope) / (2.0 * lam)
    warm = DualCoordinate(tolerance=1e-4).minimize(risk, L2(lam), start=start)
    assert cold.converged
    assert warm.converged
    assert bound < 0.0
    assert warm.details["sweeps"] <= 0.6 * cold.details["sweeps"]


def test_a_start_of_a_smooth_loss_begins_with_the_slopes_at_its_scores():
    X, y = problems.data("logistic", rows=300, features=12)
    risk = risk_of("squared_hinge", X, y)
    there = Newton(tolerance=1e-12).minimize(risk, L2(1e-5))
    warm = DualCoordinate(tolerance=1e-6).minimize(risk, L2(1e-5), start=there.w)
    assert warm.converged
    assert warm.details["sweeps"] <= 2.0


IN_UNITS = {
    "quantile": 1,
    "least_absolute_deviation": 1,
    "least_squares": 2,
    "expectile": 2,
}
"""Losses of which (targets, scores) times c is the power of c that stands here."""


@pytest.mark.parametrize("unit", [2.0**-100, 2.0**33, 2.0**66, 2.0**330])
@pytest.mark.parametrize("name", IN_UNITS)
def test_targets_of_any_unit_give_the_same_optimum(name, unit):
    """With a free intercept, at a lambda that leaves the weights their part, and at one that leaves next to nothing."""
    random, power = np.random.default_rng(0), IN_UNITS[name]
    X = random.normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0] + random.normal(size=60) + 0.5
    loss = LOSSES.make(name)
    for lam in (0.1, 1e6):
        data = [Dataset.from_arrays(X, y * c, None) for c in (1.0, unit)]
        solver = DualCoordinate(tolerance=1e-5)
        plain, ours = (
            solver.minimize(FreeIntercept(LinearRisk(each, loss)), L2(lam * c ** (power - 2)))
            for each, c in zip(data, (1.0, unit), strict=True)
        )
        assert plain.status is ours.status is Status.CONVERGED
        assert plain.objective == pytest.approx(ours.objective / unit**power, rel=2e-5)
        assert ours.lower_bound <= plain.objective * unit**power * (1.0 + 1e-12)


@pytest.mark.parametrize("solver", [DualCoordinate(), SemismoothNewton(), LineSearchBundle()])
@pytest.mark.parametrize(("name", "bounded"), [("quantile", 0.5), ("epsilon_insensitive", 1.0), ("huber", 1.0)])
def test_weights_next_to_nothing_beside_large_targets(solver, name, bounded):
    """Slopes are bounded, targets 1e20: at lambda 1 the optimum is that of the intercept, the median, alone."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0] * 1e20
    risk = FreeIntercept(LinearRisk(Dataset.from_arrays(X, y, None), LOSSES.make(name)))
    solution = solver.minimize(risk, L2(1.0))
    least = bounded * float(np.mean(np.abs(y - np.median(y))))
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(least, rel=1e-10)
    assert least * (1.0 - 1e-3) <= solution.lower_bound <= least * (1.0 + 1e-10)
