"""Coordinate descent by blocks against cone programs, peers and proximal gradient."""

import cvxopt
import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.sparse import csr_array
from sklearn.linear_model import ElasticNet as PeerElasticNet

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, Space, Status, ability, bound
from bmrm.problem.abilities import QuadraticModel
from bmrm.regularizers import REGULARIZERS
from bmrm.regularizers._core.blocks import Partition, blocks
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns
from bmrm.solvers import SOLVERS
from bmrm.solvers._core import covariance, gap_safe
from bmrm.solvers._core.block_sets import chosen_blocks, part_of

SIZE = 5
SHAPES = [(40, 60), (150, 20)]


def groups(features):
    return tuple(tuple(range(first, min(first + SIZE, features))) for first in range(0, features, SIZE))


def table(rows, features, seed=0, dense=0.7):
    random = np.random.default_rng(seed)
    return random.normal(1.0, 1.0, size=(rows, features)) * (random.random((rows, features)) < dense)


def numbers(X, seed=1):
    random = np.random.default_rng(seed)
    weights = random.normal(size=X.shape[1]) * np.repeat(random.random(X.shape[1] // SIZE) < 0.3, SIZE)
    return (X - X.mean(axis=0)) @ weights + 1.0 + 0.3 * random.normal(size=len(X))


def risk_of(X, y, loss="least_squares", **options):
    return LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(loss), **options)


def solve(risk, regularizer, name="coordinate_descent", **options):
    options = {"tolerance": 1e-9, **options}
    return SOLVERS.make(name, options).minimize(risk, bound(regularizer, risk))


def regularizer(name, features, **options):
    grouped = {} if name == "box" else {"groups": groups(features)}
    return REGULARIZERS.make(name, {"lambda": 0.05, **grouped, **options})


def by_cones(X, y, lam, l1, parts):
    """Minimise 1/(2 m) ||X w - y||^2 + l1 ||w||_1 + lam sum sqrt(size) ||w_g||, as a program over cones."""
    (rows, features), count = X.shape, len(parts)
    width = 2 * features + count  # w, bounds of |w_j|, bounds of the norms
    P = np.zeros((width, width))
    P[:features, :features] = X.T @ X / rows
    q = np.concatenate([-X.T @ y / rows, np.full(features, l1), [lam * np.sqrt(len(part)) for part in parts]])
    unit = np.eye(width)
    linear = [sign * unit[j] - unit[features + j] for j in range(features) for sign in (1.0, -1.0)]
    cones = [row for k, part in enumerate(parts) for row in (-unit[2 * features + k], *(-unit[j] for j in part))]
    G = np.array(linear + cones)
    dims = {"l": len(linear), "q": [len(part) + 1 for part in parts], "s": []}
    accuracy = {"show_progress": False, "abstol": 1e-12, "reltol": 1e-12, "feastol": 1e-12}
    matrices = (cvxopt.matrix(one) for one in (P, q, G, np.zeros(len(G))))
    found = cvxopt.solvers.coneqp(*matrices, dims=dims, options=accuracy)
    return np.array(found["x"]).ravel()[:features], found["primal objective"] + float(y @ y) / (2.0 * rows)


@pytest.mark.parametrize(("rows", "features"), SHAPES)
@pytest.mark.parametrize("ratio", [0.0, 0.4])
def test_groups_agree_with_a_program_over_cones(rows, features, ratio):
    X = table(rows, features)
    y = numbers(X)
    lam = 0.1
    w, least = by_cones(X, y, (1.0 - ratio) * lam, ratio * lam, groups(features))
    name, options = ("sparse_group", {"l1_ratio": ratio}) if ratio else ("group_l2", {})
    found = solve(risk_of(X, y), regularizer(name, features, **{"lambda": lam}, **options))
    assert found.relative_gap <= 1e-9
    assert found.objective == pytest.approx(least, rel=1e-8)
    assert found.lower_bound <= least * (1.0 + 1e-10)
    assert np.abs(found.w - w).max() <= 1e-4
    assert np.array_equal(found.w != 0.0, np.abs(w) > 1e-4)
    assert 0 < np.count_nonzero(found.w) < features


def test_a_box_agrees_with_nonnegative_least_squares():
    for rows, features in SHAPES:
        X, lam = table(rows, features), 1e-3
        y = numbers(X)
        w, _ = nnls(np.vstack([X, np.sqrt(rows * lam) * np.eye(features)]), np.concatenate([y, np.zeros(features)]))
        found = solve(risk_of(X, y), regularizer("box", features, **{"lambda": lam}))
        assert found.relative_gap <= 1e-9
        assert np.abs(found.w - w).max() <= 1e-6
        assert np.array_equal(found.w > 0.0, w > 1e-9)
        assert found.w.min() == 0.0


@pytest.mark.parametrize(("rows", "features"), SHAPES)
def test_an_elastic_net_with_a_weight_for_each_feature_agrees_with_the_peer_on_scaled_features(rows, features):
    X = table(rows, features)
    y = numbers(X)
    weights = np.random.default_rng(3).uniform(0.02, 0.3, features)
    omega = blocks(Space(features), "weighted", l1=weights, l2=0.5 * weights**2)
    found = SOLVERS.make("coordinate_descent", {"tolerance": 1e-10}).minimize(risk_of(X, y), omega)
    peer = PeerElasticNet(alpha=1.5, l1_ratio=1.0 / 1.5, fit_intercept=False, tol=1e-13, max_iter=100_000)
    w = peer.fit(X / weights, y).coef_ / weights
    assert found.relative_gap <= 1e-10
    assert np.abs(found.w - w).max() <= 1e-5
    assert np.array_equal(found.w != 0.0, w != 0.0)


CASES = [
    (name, options, loss, free)
    for name, options in (
        ("group_l2", {}),
        ("sparse_group", {}),
        ("box", {"norm": "l1", "lower": -0.2, "upper": 0.1}),
    )
    for loss in ("least_squares", "logistic", "huber", "squared_hinge", "poisson")
    for free in (False, True)
]


@pytest.mark.parametrize(("name", "options", "loss", "free"), CASES, ids=str)
def test_it_agrees_with_proximal_gradient(name, options, loss, free):
    for rows, features in SHAPES:
        X = table(rows, features) / 3.0
        y = numbers(X)
        if loss in ("logistic", "squared_hinge"):
            y = np.where(y > np.median(y), 1.0, -1.0)
        elif loss == "poisson":
            y = np.round(np.exp(0.5 * y))
        risk = risk_of(X if rows < features else csr_array(X), y, loss)
        risk = FreeIntercept(risk) if free else risk
        omega = regularizer(name, features, **{"lambda": 0.02}, **options)
        found = solve(risk, omega, tolerance=1e-8)
        other = solve(risk, omega, "proximal_gradient", tolerance=1e-6, max_iterations=20_000)
        assert found.relative_gap <= 1e-8
        assert other.relative_gap <= 1e-6
        assert found.objective == pytest.approx(other.objective, rel=1e-6)
        assert max(found.lower_bound, other.lower_bound) <= min(found.objective, other.objective) * (1.0 + 1e-12)
        assert np.array_equal(found.w, bound(omega, risk).prox(found.w, 1e-300))  # within the bounds


def test_gram_matrices_and_residuals_lead_to_the_same_point(monkeypatch):
    X = table(150, 20)
    y = numbers(X)
    by_gram = solve(risk_of(X, y), regularizer("group_l2", 20))
    monkeypatch.setattr(covariance, "PRODUCTS", 1e-6)  # so dear that none is formed
    by_residual = solve(risk_of(X, y), regularizer("group_l2", 20))
    assert (by_gram.details["grams"], by_residual.details["grams"]) == (1, 0)
    assert by_gram.objective == pytest.approx(by_residual.objective, rel=1e-8)
    assert np.array_equal(by_gram.w == 0.0, by_residual.w == 0.0)


def test_working_sets_grow_and_leave_out_what_is_proved_to_be_0(monkeypatch):
    monkeypatch.setattr(gap_safe, "PATIENCE", 0.0)
    seen = []
    begin = gap_safe.SafeBlocks.__init__
    monkeypatch.setattr(gap_safe.SafeBlocks, "__init__", lambda self, *rest: seen.append(self) or begin(self, *rest))
    X = table(50, 300)
    risk, omega = risk_of(X, numbers(X)), regularizer("group_l2", 300, **{"lambda": 0.2})
    found = solve(risk, omega, first_columns=7)
    whole = solve(risk, omega, first_columns=300)
    assert found.objective == pytest.approx(whole.objective, rel=1e-8)
    used = np.add.reduceat(np.abs(whole.w), np.arange(0, 300, SIZE)) > 0.0
    assert 0 < used.sum() < 60
    assert not np.any(seen[0].found & used)
    assert found.details["screened"] == SIZE * seen[0].found.sum() > 0


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_gram_matrices_of_blocks_are_those_of_the_features(sparse, free):
    X = table(30, 12)
    scaled = Columns(scale=np.linspace(0.5, 2.0, 12), shift=np.linspace(-1.0, 1.0, 12))
    risk = risk_of(csr_array(X) if sparse else X, numbers(table(30, 10)), columns=scaled)
    partition = Partition(Space(12))
    partition.add(np.array([7, 2, 4]), 1.0)
    partition.add(np.array([0, 11]), 1.0)
    omega = blocks(Space(12), "two", partition=partition.arrays())
    chosen = np.array([0, 1, 3, 5])
    W, part = part_of(omega.penalty, chosen)
    curvature = np.linspace(0.1, 1.0, 30)
    model = ability(risk, QuadraticModel).model(W, curvature, free).by_blocks(part)
    A = ((X - scaled.shift) * scaled.scale)[:, W]
    A = A - curvature @ A / curvature.sum() if free else A
    H = A.T @ (curvature[:, None] * A)
    grams = model._grams
    for b in range(part.blocks):
        k = part.block(b)
        G = H[np.ix_(k, k)]
        values = grams.values[grams.starts[b] : grams.starts[b + 1]].reshape(G.shape)
        assert np.allclose(values, G, rtol=1e-5, atol=1e-5 * H.max())
        assert np.linalg.eigvalsh(G)[-1] * (1.0 - 1e-5) <= grams.largest[b] <= np.trace(G) * (1.0 + 1e-5)


def test_the_worst_blocks_are_chosen_and_all_that_are_in_use():
    away, used = np.array([0.0, 3.0, 1.0, 2.0, 0.0]), np.array([True, False, False, False, False])
    sizes = np.array([2, 2, 2, 3, 1])
    assert chosen_blocks(away, used, sizes, 10).tolist() == [0, 1, 2, 3, 4]
    assert chosen_blocks(away, used, sizes, 4).tolist() == [0, 1]
    assert chosen_blocks(away, used, sizes, 1).tolist() == [0, 1]
    assert chosen_blocks(away, used, sizes, 7).tolist() == [0, 1, 3]
    zeros = np.array([True, True, False, False, True])
    assert chosen_blocks(away, used, sizes, 10, zeros).tolist() == [0, 2, 3]
    assert chosen_blocks(away, used, sizes, 5, zeros).tolist() == [0, 3]


@pytest.mark.parametrize("loss", ["least_squares", "logistic", "poisson"])
@pytest.mark.parametrize("free", [False, True])
def test_groups_without_a_penalty_have_a_bound_too(loss, free):
    X = table(150, 20) / 3.0
    y = numbers(X)
    y = {"least_squares": y, "logistic": np.where(y > 1.0, 1.0, -1.0), "poisson": np.round(np.exp(0.3 * y))}[loss]
    risk = FreeIntercept(risk_of(X, y, loss)) if free else risk_of(X, y, loss)
    omega = regularizer("group_l2", 20, weights=(0.0, 1.0, 1.0, 1.0))
    found, other = solve(risk, omega, tolerance=1e-7), solve(risk, omega, "proximal_gradient", tolerance=1e-6)
    assert found.status is Status.CONVERGED
    assert found.lower_bound <= other.objective * (1.0 + 1e-12)
    assert found.objective == pytest.approx(other.objective, rel=1e-6)
    assert np.all(found.w[:5] != 0.0)


@pytest.mark.parametrize("name", ["group_l2", "sparse_group", "box"])
def test_auto_takes_it_for_smooth_losses_of_one_score(name):
    X = table(60, 10)
    found = solve(risk_of(X, numbers(X)), regularizer(name, 10), "auto", tolerance=1e-6)
    assert found.solver == "coordinate_descent (smooth, one score, rows, blocks)"
    softmax = solve(risk_of(X, np.arange(60) % 3, "softmax"), regularizer(name, 10), "auto", tolerance=1e-3)
    assert softmax.solver.startswith("proximal_gradient")


def test_what_it_cannot_do_is_refused():
    X = table(30, 10)
    y = np.arange(30) % 3
    softmax = risk_of(X, y, "softmax")
    with pytest.raises(IncompatibleError, match="coordinate_descent needs a loss with second derivatives row by row"):
        solve(softmax, REGULARIZERS.make("row_group_l2", {"lambda": 0.1}))
    with pytest.raises(IncompatibleError, match="coordinate_descent needs a smooth loss"):
        solve(risk_of(X, np.where(y > 0, 1.0, -1.0), "hinge"), regularizer("group_l2", 10))
    with pytest.raises(IncompatibleError, match="coordinate_descent needs regularizer l1 or elastic_net"):
        SOLVERS.make("coordinate_descent").minimize(risk_of(X, numbers(X)), blocks(Space(10), "Ridge", l2=1.0))


def test_from_a_call_with_a_free_intercept():
    X = table(60, 10)
    groups_of = {"name": "group_l2", "lambda": 0.1, "groups": groups(10)}
    model = bmrm.fit(X, numbers(X), loss="least_squares", regularizer=groups_of, solver="coordinate_descent")
    assert model.solution.relative_gap <= 1e-3
