"""newton against scikit-learn, closed forms and other solvers."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from bmrm.data.dataset import Dataset
from bmrm.data.generators import SparseBinary
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, InputError, Scored, Status, ability
from bmrm.problem.abilities import ProblemSize
from bmrm.problem.meter import FULL_SPEED
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.newton import preconditioners as newton_preconditioners
from bmrm.solvers._core.newton.models import DenseModel
from bmrm.solvers._core.newton.preconditioners import BlockPreconditioner
from bmrm.solvers._core.newton.smooth_point import Objective
from bmrm.solvers._core.newton.system import FACTOR_SPEED, solve_positive
from bmrm.solvers.newton import Newton
from tests import problems

LAM = 1e-3
SMOOTH = ["logistic", "squared_hinge", "least_squares", "huber", "modified_huber", "expectile", "log_cosh"]


def made(loss, rows=400, features=9, weights=True, seed=0):
    """A risk of noisy targets on sparse rows, some of weight 0."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, features)) * (random.random((rows, features)) < 0.6)
    y = X @ random.normal(size=features) + 0.7 * random.normal(size=rows) + 0.4
    task = LOSSES.get(loss).cls.task
    y = {"binary": (y > 0.0).astype(int), "multiclass": np.digitize(y, [-1.0, 1.0])}.get(task, y)
    counts = random.integers(0, 4, rows).astype(float) if weights else None
    return LinearRisk(Dataset.from_arrays(csr_array(X), y, counts), LOSSES.make(loss))


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("hessian", ["dense", "cg"])
def test_smooth_losses_reach_the_optimum_of_lbfgs(loss, free, hessian):
    risk = FreeIntercept(made(loss)) if free else made(loss)
    solution = Newton(tolerance=1e-11, hessian=hessian).minimize(risk, L2(LAM))
    other = SOLVERS.make("lbfgs", {"tolerance": 1e-9}).minimize(risk, L2(LAM))
    assert solution.status is Status.CONVERGED
    assert solution.iterations < 30
    assert other.lower_bound * (1.0 - 1e-9) <= solution.objective <= other.objective * (1.0 + 1e-10)
    assert all(line.lower_bound <= other.objective * (1.0 + 1e-10) for line in solution.history)


@pytest.mark.parametrize("name", ["newton", "semismooth_newton"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber", "hinge"])
@pytest.mark.parametrize("free", [False, True])
def test_little_data_takes_the_same_iterations_whether_or_not_they_are_asked_for(name, loss, free, monkeypatch):
    """Unasked for, only the end is recorded: the same optimum, limits that hold, and all work charged."""
    if (name, loss) == ("newton", "hinge"):
        name = "auto"
        monkeypatch.setattr("bmrm.solvers.auto.at_once", lambda solver, *_: (None, solver))
    risk, lines = FreeIntercept(made(loss)) if free else made(loss), []
    solver = SOLVERS.make(name, {"tolerance": 1e-6})
    alone = solver.minimize(risk, L2(LAM))
    asked = solver.minimize(risk, L2(LAM), callback=lambda line: lines.append(line))
    assert len(alone.history) <= 3 < len(lines) == asked.iterations + 1
    assert alone.status is asked.status is Status.CONVERGED
    assert max(alone.lower_bound, asked.lower_bound) <= min(alone.objective, asked.objective) * (1.0 + 1e-12)
    assert 2 < alone.iterations <= asked.iterations + 3
    assert 0.5 * asked.passes < alone.passes < 2.0 * asked.passes
    least = SOLVERS.make(name, {"tolerance": 1e-12, "max_iterations": 2}).minimize(risk, L2(LAM))
    assert (least.status, least.iterations) == (Status.ITERATION_LIMIT, 2)
    assert alone.objective < least.objective < risk.value_and_subgradient(np.zeros(risk.dim))[0]


def test_logistic_regression_of_scikit_learn():
    risk = FreeIntercept(made("logistic", weights=False))
    X, y = risk.risk.data.X.to_dense(), risk.risk.data.targets.y
    solution = Newton(tolerance=1e-12).minimize(risk, L2(LAM))
    model = LogisticRegression(C=1.0 / (LAM * len(y)), tol=1e-12, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(solution.w, model.coef_[0], rtol=1e-6)
    np.testing.assert_allclose(risk.intercept(solution.w), model.intercept_, rtol=1e-6)


def test_least_squares_take_one_step():
    risk = made("least_squares", weights=False)
    X, y = risk.data.X.to_dense(), risk.data.targets.y
    solution = Newton(tolerance=1e-9, sample=0.0).minimize(risk, L2(LAM))
    assert solution.iterations == 1
    assert solution.objective == pytest.approx(problems.least_squares_l2_optimum(X, y, LAM), rel=1e-12)


@pytest.mark.parametrize("free", [False, True])
def test_ridge_is_one_linear_system(free):
    random = np.random.default_rng(0)
    X, s = random.normal(size=(9000, 20)), random.integers(0, 4, 9000).astype(float)
    y = X @ random.normal(size=20) + 3.0 + random.normal(size=9000)
    risk = LinearRisk(Dataset.from_arrays(X, y, s), LOSSES.make("least_squares"))
    solution = Newton(tolerance=1e-9).minimize(FreeIntercept(risk) if free else risk, L2(LAM))
    s /= s.sum()
    A, b = (X - s @ X, y - s @ y) if free else (X, y)  # centred by the weighted means
    w = np.linalg.solve((A.T * s) @ A + LAM * np.eye(20), A.T @ (s * b))
    np.testing.assert_allclose(solution.w, w, rtol=1e-9)
    optimum = 0.5 * s @ (A @ w - b) ** 2 + 0.5 * LAM * w @ w
    assert solution.objective == pytest.approx(optimum, rel=1e-12)
    assert solution.lower_bound <= optimum * (1.0 + 1e-12)
    assert solution.iterations == 1
    gram = solution.history[-1].passes_gram
    assert gram == pytest.approx(21.0 / 4.0 / 10.0 * np.count_nonzero(s) / 9000.0)
    assert solution.passes - gram == (3.5 if free else 2.5)  # the start, H, the step, its end; the intercept


@pytest.mark.parametrize("loss", ["softmax", "poisson", "exponential"])
def test_losses_that_have_no_diagonal_or_overflow(loss):
    risk = made(loss if loss != "poisson" else "squared_hinge")
    if loss == "poisson":
        X = risk.data.X.to_dense()
        counts = np.random.default_rng(2).poisson(np.exp(np.minimum(X @ np.ones(9), 3.0)))
        risk = LinearRisk(Dataset.from_arrays(10.0 * X, counts), LOSSES.make("poisson"))
    solution = Newton(tolerance=1e-8).minimize(risk, L2(LAM))
    other = SOLVERS.make("lbfgs", {"tolerance": 1e-7}).minimize(risk, L2(LAM))
    assert solution.status is Status.CONVERGED
    assert other.lower_bound <= solution.objective <= other.objective + 1e-9 * abs(other.objective)


def test_softmax_with_free_intercepts():
    risk = FreeIntercept(made("softmax"))
    solution = Newton(tolerance=1e-9).minimize(risk, L2(LAM))
    other = SOLVERS.make("lbfgs", {"tolerance": 1e-6}).minimize(risk, L2(LAM))
    assert solution.status is Status.CONVERGED
    assert other.lower_bound <= solution.objective <= other.objective * (1.0 + 1e-9)


def test_unscaled_features_reach_a_tight_gap():
    X, y = problems.data("hinge", rows=400)
    risk = LinearRisk(Dataset.from_arrays(X * 10.0 ** np.arange(-3, 4), y), LOSSES.make("logistic"))
    solution = Newton(tolerance=1e-8).minimize(risk, L2(1e-6))
    assert solution.status is Status.CONVERGED


def test_the_hessian_is_corrected_by_the_rows_that_changed():
    risk = made("squared_hinge", rows=3000)
    scored = ability(risk, Scored)
    goal = Objective(scored.map, scored.phi, L2(LAM), False)
    model = DenseModel(goal)
    for w in (np.full(9, 0.5), np.full(9, 0.52), np.full(9, 0.55)):
        point = goal.at(w, scored.map.matvec(w))
        model.step(point)
        expected = scored.map.gram(scored.phi.hessian_diagonal(point.full))
        np.testing.assert_allclose(model.gram, expected, atol=1e-13)
    assert model.corrections == 2


def test_auto_takes_what_is_less_work():
    """Few features: dense. As many as a dense matrix cannot hold, or a row too wide: cg."""
    few = Newton().minimize(made("logistic"), L2(LAM))
    assert "cg_iterations" not in few.details
    random = np.random.default_rng(1)
    X = csr_array((np.ones(6000), random.integers(0, 9000, 6000), np.arange(0, 6001, 20)), shape=(300, 9000))
    wide = LinearRisk(Dataset.from_arrays(X, random.integers(0, 2, 300)), LOSSES.make("logistic"))
    assert ability(wide, ProblemSize).rows == 300
    found = Newton(tolerance=1e-8).minimize(wide, L2(LAM))
    assert found.status is Status.CONVERGED
    assert len(found.details["cg_iterations"]) == found.iterations
    with pytest.raises(IncompatibleError, match="use cg or auto"):
        Newton(hessian="dense").minimize(wide, L2(LAM))
    with pytest.raises(IncompatibleError, match="one score per row"):
        Newton(hessian="dense").minimize(made("softmax"), L2(LAM))


def test_a_sample_gives_the_start():
    risk = made("logistic", rows=8000, features=20)
    with_sample, without = (Newton(tolerance=1e-9, sample=share).minimize(risk, L2(LAM)) for share in (0.05, 0.0))
    assert with_sample.objective == pytest.approx(without.objective, rel=1e-9)
    assert with_sample.iterations < without.iterations


@pytest.mark.parametrize(
    ("solver", "loss", "rows", "sampled"),
    [
        ("newton", "logistic", 40_000, True),
        ("newton", "logistic", 4_000, False),
        ("newton", "least_squares", 40_000, False),
        ("proximal_newton", "logistic", 40_000, True),
        ("proximal_newton", "least_squares", 40_000, False),
        ("semismooth_newton", "hinge", 40_000, True),
        ("semismooth_newton", "hinge", 4_000, False),
    ],
)
def test_no_sample_is_taken_of_little_data_or_where_one_step_is_enough(solver, loss, rows, sampled):
    risk = made(loss, rows=rows, weights=False)
    regularizer = L1(LAM) if solver == "proximal_newton" else L2(LAM)
    chosen, none = (
        SOLVERS.make(solver, {"tolerance": 1e-3} | options).minimize(risk, regularizer)
        for options in ({}, {"sample": 0.0})
    )
    assert np.array_equal(chosen.w, none.w) is not sampled


def test_what_is_missing_is_told():
    with pytest.raises(IncompatibleError, match="semismooth_newton"):
        Newton().minimize(made("hinge"), L2(LAM))
    for regularizer in (L1(LAM), ElasticNet(LAM, 0.5)):
        with pytest.raises(IncompatibleError, match="proximal_newton"):
            Newton().minimize(made("logistic"), regularizer)
    with pytest.raises(InputError, match="hessian"):
        Newton(hessian="sparse")


@pytest.mark.parametrize("weights", [False, True])
def test_blocks_make_conjugate_gradients_short(monkeypatch, weights):
    """Many classes on features that go together, weakly regularised."""
    random = np.random.default_rng(2)
    X = random.normal(size=(900, 20)) @ (random.normal(size=(20, 20)) * np.geomspace(1.0, 0.01, 20))
    y = np.argmax(X @ random.normal(size=(20, 5)) + 0.3 * random.gumbel(size=(900, 5)), axis=1)
    masses = random.integers(0, 4, 900).astype(float) if weights else None
    risk = LinearRisk(Dataset.from_arrays(X, y, masses), LOSSES.make("softmax"), bias=True)
    short = Newton(tolerance=1e-9).minimize(risk, L2(1e-5))
    monkeypatch.setattr(newton_preconditioners, "FEW", 0.0)
    long = Newton(tolerance=1e-9).minimize(risk, L2(1e-5))
    assert short.status is long.status is Status.CONVERGED
    assert short.objective == pytest.approx(long.objective, rel=1e-8)
    assert 3 * short.details["cg_iterations"].sum() < long.details["cg_iterations"].sum()


def test_blocks_invert_the_hessian_where_scores_do_not_touch():
    """One score: the only block is the whole Hessian, and conjugate gradients are done at once."""
    risk = made("logistic")
    scored = ability(risk, Scored)
    w, r = np.random.default_rng(1).normal(size=(2, risk.dim))
    f = scored.map.matvec(w)
    hessian = scored.map.gram(scored.phi.hessian_diagonal(f)) + LAM * np.eye(risk.dim)
    np.testing.assert_allclose(hessian @ BlockPreconditioner(scored, f, LAM)(r), r, atol=1e-10)


def test_blocks_leave_the_mean_over_scores_to_the_regularizer():
    risk = made("softmax")
    scored = ability(risk, Scored)
    inverse = BlockPreconditioner(scored, scored.map.matvec(np.zeros(risk.dim)), LAM)
    mean = np.repeat(np.arange(9.0), 3)
    np.testing.assert_allclose(inverse(mean), mean / LAM, rtol=1e-12)
    away = np.tile([1.0, -2.0, 1.0], 9)
    np.testing.assert_allclose(inverse(away).reshape(9, 3).sum(axis=1), 0.0, atol=1e-9)
    r = np.random.default_rng(1).normal(size=risk.dim)
    assert r @ inverse(r) > 0.0


def test_many_full_features_are_solved_through_a_sample(monkeypatch):
    random = np.random.default_rng(3)
    X = random.normal(size=(3000, 30)) * np.geomspace(1.0, 0.02, 30)
    y = np.where(X @ random.normal(size=30) + 0.2 * random.normal(size=3000) > 0.0, 1, -1)
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("logistic"))
    monkeypatch.setattr(newton_preconditioners, "DEAR", 0.0)
    found = Newton(tolerance=1e-9, sample=0.0).minimize(risk, L2(1e-5))
    dense = Newton(tolerance=1e-9, sample=0.0, hessian="dense").minimize(risk, L2(1e-5))
    assert found.objective == pytest.approx(dense.objective, rel=1e-8)
    assert found.details["cg_iterations"].max() < 25
    other = Newton(tolerance=1e-9, sample=0.0, seed=5).minimize(risk, L2(1e-5))
    assert other.objective == pytest.approx(dense.objective, rel=1e-8)


def test_a_free_intercept_costs_conjugate_gradients_no_more_iterations():
    """Frequent words go together with the constant: as a variable of its own it doubled the iterations."""
    words = SparseBinary(rows=3000, features=6000, words=40, noise=0.05).make()
    taken = {}
    for free in (False, True):
        risk = LinearRisk(words, LOSSES.make("squared_hinge"))
        solution = Newton(tolerance=1e-4, hessian="cg", sample=0.0).minimize(
            FreeIntercept(risk) if free else risk, L2(1e-6)
        )
        assert solution.status is Status.CONVERGED
        taken[free] = solution.passes
    assert taken[True] <= 1.2 * taken[False]


def wide(loss, rows=30, features=60, free=False, **options):
    """More features than rows, some of weight 0; columns scaled and shifted, a constant feature."""
    random = np.random.default_rng(2)
    X = random.normal(size=(rows, features)) + 1.0
    y = X @ random.normal(size=features) + random.normal(size=rows)
    task = LOSSES.get(loss).cls.task
    y = {"binary": (y > np.median(y)).astype(int), "multiclass": np.arange(rows) % 3}.get(task, y)
    columns = Columns(scale=random.random(features) + 0.5, shift=random.normal(size=features))
    data = Dataset.from_arrays(X, y, random.integers(0, 3, rows).astype(float))
    risk = LinearRisk(data, LOSSES.make(loss), bias=not free, columns=columns, **options)
    return FreeIntercept(risk) if free else risk


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "least_squares", "huber"])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("features", [30, 60])
def test_rows_take_the_steps_of_the_dense_hessian(loss, free, features):
    risk = wide(loss, features=features, free=free)
    lines = {}
    for hessian in ("dense", "rows"):
        solution = Newton(tolerance=1e-10, hessian=hessian).minimize(risk, L2(LAM))
        assert solution.status is Status.CONVERGED
        lines[hessian] = np.array([(line.objective, line.lower_bound) for line in solution.history])
    scale = lines["dense"][0, 0]
    np.testing.assert_allclose(lines["rows"], lines["dense"], rtol=1e-7, atol=1e-9 * scale)


@pytest.mark.parametrize("lam", [1e-2, 1e-8])
def test_ridge_by_rows_is_its_formula(lam):
    """At small lambda too, where slopes lose all but 1e-8 of their size in one step."""
    risk = wide("least_squares")
    solution = Newton(tolerance=1e-9).minimize(risk, L2(lam))
    A = np.column_stack([risk.map.matvec(unit) for unit in np.eye(risk.dim)])
    shares = risk.data.targets.weights / risk.data.targets.weights.sum()
    used = shares > 0.0
    kernel = A[used] @ A[used].T + lam * np.diag(1.0 / shares[used])
    expected = A[used].T @ np.linalg.solve(kernel, risk.data.targets.y[used])
    assert solution.status is Status.CONVERGED
    assert solution.iterations <= 2
    assert not solution.details  # no conjugate gradients
    np.testing.assert_allclose(solution.w, expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())


def test_few_rows_are_solved_by_their_inner_products():
    """Their one Gram matrix is charged, and a pass or one and a half to each step with one evaluation."""
    risk = wide("logistic", rows=38, features=3000, free=True)
    solution = Newton(tolerance=1e-9).minimize(risk, L2(1e-4))
    X = risk.risk.map.columns.scale * (risk.risk.data.X - risk.risk.map.columns.shift)
    weights = risk.risk.data.targets.weights
    model = LogisticRegression(C=1.0 / (1e-4 * weights.sum()), tol=1e-10, max_iter=1000)
    model.fit(X, risk.risk.data.targets.y, weights)
    np.testing.assert_allclose(solution.w, model.coef_[0], atol=1e-4 * np.abs(solution.w).max())
    assert solution.status is Status.CONVERGED
    assert not solution.details
    assert solution.history[-1].passes_gram == pytest.approx((38 + 1) / 4 / FULL_SPEED)
    assert solution.passes <= 3.0 + 2.0 * solution.iterations


def test_several_scores_by_rows():
    risk = wide("softmax")
    solution = Newton(tolerance=1e-10, hessian="rows").minimize(risk, L2(LAM))
    other = SOLVERS.make("lbfgs", {"tolerance": 1e-9}).minimize(risk, L2(LAM))
    assert solution.status is Status.CONVERGED
    assert solution.iterations < 20
    assert other.lower_bound * (1.0 - 1e-9) <= solution.objective <= other.objective * (1.0 + 1e-10)


def test_rows_need_a_sum_over_rows_and_one_constant():
    for risk in (wide("softmax", free=True), problems.ScoredRisk(*problems.data("logistic"), "logistic")):
        with pytest.raises(IncompatibleError, match="hessian rows needs"):
            Newton(hessian="rows").minimize(risk, L2(LAM))


@pytest.mark.parametrize("rank", [1100, 900])
def test_large_systems_are_solved_in_panels_between_which_the_clock_is_looked_at(rank):
    random, looks = np.random.default_rng(0), []
    A = random.normal(size=(1100, rank))
    matrix = A @ A.T
    above, right = np.triu(matrix, 1), matrix @ random.normal(size=1100)
    worked = matrix.copy()
    x = solve_positive(worked, right, lambda products=0.0: looks.append(products))
    np.testing.assert_allclose(matrix @ x, right, atol=1e-8 * np.abs(right).max())
    assert len(looks) > 3
    assert looks[0] == pytest.approx(1100**3 / 3.0 / FACTOR_SPEED)
    if rank == 1100:  # no ridge was needed
        np.testing.assert_array_equal(np.triu(worked, 1), above)
