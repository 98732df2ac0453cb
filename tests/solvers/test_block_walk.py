"""Least squares with groups along lambdas, block by block: what it claims is so from the rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from cvxopt import matrix, solvers

import bmrm
from bmrm.kernels.blocks import exact

RNG = np.random.default_rng(0)
GROUPS = [[0, 1, 2], [3, 4], [5], [6, 7]]
FAMILIES = {
    "group_l2": {"name": "group_l2", "groups": GROUPS},
    "sparse_group": {"name": "sparse_group", "groups": GROUPS, "l1_ratio": 0.3},
    "l1": {"name": "l1", "feature_weights": [1.0, 2.0, 0.5, 1.0, 1.0, 3.0, 1.0, 1.0]},
}
KEPT = "blocks kept"


def designs():
    X = RNG.normal(size=(200, 8))
    y = X @ np.array([3.0, -2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.1]) + RNG.normal(size=200)
    yield "plain", X, y
    yield "more features", np.hstack((X, RNG.normal(size=(200, 5)))), y
    yield "duplicates", X[:, [0, 0, 1, 3, 3, 5, 0, 1]], y
    yield "far from 0", X + 100.0, y + 1000.0
    yield "uneven", X * 10.0 ** np.arange(-3.0, 5.0), y
    yield "empty group", X * np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0]), y
    yield "exact", X, X @ np.arange(8.0)
    yield "one row", X[:1], y[:1]


DESIGNS = {name: (X, y) for name, X, y in designs()}


def penalty_of(section, w):
    """As it is said in the docs, without lambda."""
    if section["name"] == "l1":
        return np.asarray(section["feature_weights"]) @ np.abs(w)
    groups = [*section["groups"], *([j] for j in range(8, len(w)))]
    norms = sum(np.sqrt(len(group)) * np.sqrt(np.sum(w[group] ** 2)) for group in groups)
    share = section.get("l1_ratio", 0.0)
    return share * np.abs(w).sum() + (1.0 - share) * norms


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", DESIGNS)
def test_objectives_and_bounds_are_those_of_the_rows(name, family, bias):
    X, y = DESIGNS[name]
    if (family == "l1" and X.shape[1] != 8) or (name == "one row" and bias == "free"):
        return
    weights, section = RNG.uniform(0.5, 2.0, len(y)), FAMILIES[family]
    given = {"loss": "least_squares", "bias": bias, "sample_weight": weights}
    found = bmrm.path(X, y, regularizer=section, n_lambdas=10, tolerance=1e-5, **given)
    for k, (lam, model) in enumerate(zip(found.lambdas, found.models)):
        assert found.gaps[k] <= 1e-5 * (1.0 + 1e-9)
        w = model.weights.astype(np.longdouble)
        left = X.astype(np.longdouble) @ w + model.intercept[0] - y
        J = 0.5 * np.average(left**2, weights=weights) + lam * penalty_of(section, w)
        assert found.objectives[k] == pytest.approx(float(J), rel=1e-9)
        best = bmrm.fit(X, y, regularizer={**section, "lambda": lam}, tolerance=1e-9, **given).solution
        assert found.lower_bounds[k] <= best.objective * (1.0 + 1e-12)
        assert best.lower_bound <= found.objectives[k] * (1.0 + 1e-12)


def cone_program(X, y, groups, lam):
    """The least J of the group lasso, by second-order cones."""
    m, d = X.shape
    P, q = np.zeros((d + len(groups),) * 2), np.zeros(d + len(groups))
    P[:d, :d], q[:d] = X.T @ X / m, -X.T @ y / m
    q[d:] = [lam * np.sqrt(len(group)) for group in groups]
    lines = []
    for k, group in enumerate(groups):
        for place in (d + k, *group):
            lines.append(np.zeros(d + len(groups)))
            lines[-1][place] = -1.0
    dims = {"l": 0, "q": [len(group) + 1 for group in groups], "s": []}
    options = {"show_progress": False, "abstol": 1e-10, "reltol": 1e-10, "feastol": 1e-10}
    G, h = matrix(np.array(lines)), matrix(np.zeros(len(lines)))
    return solvers.coneqp(matrix(P), matrix(q), G, h, dims, options=options)["primal objective"] + 0.5 * y @ y / m


@pytest.mark.parametrize(("rows", "features"), [(100, 12), (25, 60)])
def test_it_is_the_minimum_of_a_cone_program(rows, features):
    X = RNG.normal(size=(rows, features)) + RNG.normal(size=(rows, 1))
    y = X[:, 0] - X[:, 4] + RNG.normal(size=rows)
    groups = [[*range(k, k + 3)] for k in range(0, features, 3)]
    family = {"name": "group_l2", "groups": groups}
    found = bmrm.path(X, y, loss="least_squares", regularizer=family, bias="none", n_lambdas=8, tolerance=1e-7)
    assert all(KEPT in model.solution.solver for model in found.models)
    for lam, objective, bound in zip(found.lambdas, found.objectives, found.lower_bounds):
        best = cone_program(X, y, groups, lam)
        assert objective == pytest.approx(best, rel=3e-7)
        assert bound <= best * (1.0 + 1e-8)


@pytest.mark.parametrize("family", ["group_l2", "sparse_group"])
def test_orthogonal_columns_have_a_closed_form(family):
    X = np.linalg.qr(RNG.normal(size=(50, 8)))[0] * np.sqrt(50.0)
    y = X @ RNG.normal(size=8) + RNG.normal(size=50)
    section, z = FAMILIES[family], X.T @ y / 50.0
    found = bmrm.path(X, y, loss="least_squares", regularizer=section, bias="none", n_lambdas=9, tolerance=1e-9)
    share = section.get("l1_ratio", 0.0)
    for lam, w in zip(found.lambdas, found.weights):
        truth = np.sign(z) * np.maximum(np.abs(z) - lam * share, 0.0)
        for group in GROUPS:
            norm = np.linalg.norm(truth[group])
            threshold = lam * (1.0 - share) * np.sqrt(len(group))
            truth[group] *= 1.0 - threshold / norm if norm > threshold else 0.0
        assert w == pytest.approx(truth, abs=3e-4)


@pytest.mark.parametrize("scale", ["none", "standardize"])
def test_sparse_rows_give_what_full_ones_do(scale):
    X = RNG.normal(size=(30, 90)) * (RNG.uniform(size=(30, 90)) < 0.3)
    y = X[:, :3].sum(axis=1) + 0.1 * RNG.normal(size=30)
    family = {"name": "group_l2", "groups": [[*range(k, k + 5)] for k in range(0, 90, 5)]}
    given = {"loss": "least_squares", "regularizer": family, "scale": scale, "n_lambdas": 12, "tolerance": 1e-6}
    full, thin = (bmrm.path(rows, y, **given) for rows in (X, sp.csr_matrix(X)))
    assert full.lambdas == pytest.approx(thin.lambdas)
    assert full.objectives == pytest.approx(thin.objectives, rel=2e-6)
    for found in (full, thin):
        assert all(KEPT in model.solution.solver for model in found.models)
        assert found.passes.sum() < 40.0


def test_weights_of_groups_may_be_0_beside_absolute_values():
    X, y = DESIGNS["plain"]
    family = {"name": "sparse_group", "groups": GROUPS, "weights": [0.0, 1.0, 2.0, 0.0]}
    found = bmrm.path(X, y, loss="least_squares", regularizer=family, n_lambdas=8)
    assert all(KEPT in model.solution.solver for model in found.models)
    assert found.gaps.max() <= 1e-4


def test_free_groups_and_bounds_are_left_to_the_solvers():
    X, y = DESIGNS["plain"]
    for family in (
        {"name": "group_l2", "groups": GROUPS, "weights": [0.0, 1.0, 2.0, 1.0]},
        lambda lam: bmrm.Box(lam, lower=0.0),
    ):
        found = bmrm.path(X, y, loss="least_squares", regularizer=family, lambdas=[1.0, 0.5])
        assert not any(KEPT in model.solution.solver for model in found.models)


def test_targets_that_are_constant_have_no_path():
    X, _ = DESIGNS["plain"]
    with pytest.raises(bmrm.InputError, match="lambda_max is 0"):
        bmrm.path(X, np.full(200, 3.0), loss="least_squares", regularizer=FAMILIES["group_l2"])


def test_options_of_a_family_are_checked_once_and_hold_for_all():
    X, y = DESIGNS["plain"]
    named = bmrm.Dataset.from_arrays(X, y)
    first = bmrm.GroupL2(1.0, GROUPS)
    other = first.with_lambda(0.25)
    assert other == bmrm.GroupL2(0.25, GROUPS)
    with pytest.raises(bmrm.InputError, match="lam"):
        first.with_lambda(-1.0)
    found = bmrm.path(named, loss="least_squares", regularizer={"name": "group_l2", "groups": GROUPS}, n_lambdas=3)
    assert [model.header["regularizer"]["lambda"] for model in found.models] == pytest.approx(found.lambdas)


@pytest.mark.parametrize("start", [0.0, 1e-3, 5.0, 1e6])
def test_the_length_of_a_block_is_found_from_everywhere(start):
    values, beta = np.array([0.0, 0.3, 2.0, 50.0]), np.array([1e-9, 2.0, -1.0, 30.0])
    h = exact.length_of(beta, values, 0, 4, 1.5, 0.1, start)
    assert np.linalg.norm(beta / (values + 0.1 + 1.5 / h)) == pytest.approx(h, rel=1e-12)
