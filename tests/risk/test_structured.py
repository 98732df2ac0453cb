"""Structured risks against what they must be: multiclass losses, all matchings, all labelings."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, InputError, Scored, ability
from bmrm.problem.abilities import Rounding, RowSubsets
from bmrm.risk.structured import StructuredRisk
from bmrm.solvers._core.rounding import ERRORS, ROUNDOFF, RoundingError

CLASSES, FEATURES = 3, 4


def block(x, y):
    """The features of x in the columns of class y: a linear model with a weight vector for each class."""
    return np.arange(FEATURES) * CLASSES + y, x


def as_array(x, y):
    features = np.zeros(FEATURES * CLASSES)
    features[block(x, y)[0]] = x
    return features


def scores(w, x):
    return x @ w.reshape(FEATURES, CLASSES)


def worst_by_margin(w, x, y):
    cost = np.arange(CLASSES) != y
    worst = int(np.argmax(cost + scores(w, x)))
    return worst, float(cost[worst])


def worst_by_slack(w, x, y):
    f, cost = scores(w, x), np.arange(CLASSES) != y
    worst = int(np.argmax(cost * (1.0 + f - f[y])))
    return worst, float(cost[worst])


def log_partition(w, x):
    f = scores(w, x)
    p = np.exp(f - f.max())
    return float(f.max() + np.log(p.sum())), np.multiply.outer(x, p / p.sum()).ravel()


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, FEATURES))
    return X, (X @ rng.normal(size=(FEATURES, CLASSES)) + rng.normal(size=(40, CLASSES))).argmax(axis=1)


WAYS = {
    "multiclass_hinge": {"argmax": worst_by_margin},
    "scaled_multiclass_hinge": {"argmax": worst_by_slack, "rescale": "slack"},
    "softmax": {"log_partition": log_partition},
}


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("name", WAYS)
def test_multiclass_expressed_as_a_structure(rows, name, sparse):
    X, y = rows
    weights = np.random.default_rng(1).uniform(0.0, 2.0, 40)
    weights[3] = 0.0
    linear = bmrm.LinearRisk(Dataset.from_arrays(X, y, weights), LOSSES.make(name))
    ours = {"joint_feature": block, "dim": linear.dim} if sparse else {"joint_feature": as_array}
    risk = StructuredRisk(list(zip(X, y.tolist(), strict=True)), **ours, **WAYS[name], weights=weights)
    assert risk.dim == linear.dim
    for seed in range(5):
        w = np.random.default_rng(seed).normal(size=risk.dim)
        value, subgradient = risk.value_and_subgradient(w)
        expected, of_linear = linear.value_and_subgradient(w)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(subgradient, of_linear, atol=1e-12)
    found = bmrm.minimize(risk, bmrm.L2(0.01), "bundle", tolerance=1e-6)
    reference = bmrm.minimize(linear, bmrm.L2(0.01), tolerance=1e-9)
    assert found.converged
    assert found.objective == pytest.approx(reference.objective, rel=2e-6)
    assert found.lower_bound <= reference.objective


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("name", ["multiclass_hinge", "scaled_multiclass_hinge"])
def test_rounding_of_maxima_is_that_of_the_multiclass_loss_and_needs_no_values(rows, name, offset, monkeypatch):
    """No 8 evaluations next to a point to see how values scatter, and as much as the loss of rows says, about."""
    X, y = rows[0] + offset, rows[1]
    ours = {"joint_feature": as_array, **WAYS[name]}
    risk = StructuredRisk(list(zip(X, y.tolist(), strict=True)), **ours)
    linear = bmrm.LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(name))
    w = np.random.default_rng(2).normal(size=risk.dim)
    w -= np.tile(w.reshape(FEATURES, CLASSES).mean(axis=0), FEATURES)  # the offset cancels
    assert ability(risk, Rounding).foreign  # whoever finds the worst output is the user's
    of_rows, size = ability(linear, Rounding), 1.0 + abs(risk.value_and_subgradient(w)[0])
    expected = ERRORS * ROUNDOFF * 40 * (size + of_rows.at(w).terms + of_rows.at(w).sizes @ np.abs(w))
    allowed, value = RoundingError(risk), risk.value_and_subgradient(w)[0]
    monkeypatch.setattr(StructuredRisk, "value_and_subgradient", None)
    budget = allowed.at(w, size)
    monkeypatch.undo()
    assert 0.1 * expected <= budget <= 10.0 * expected
    f = X.astype(np.longdouble) @ w.reshape(FEATURES, CLASSES)
    excess, cost = f - f[np.arange(40), y][:, None], np.arange(CLASSES) != y[:, None]
    exact = np.mean((cost + excess if name == "multiclass_hinge" else cost * (1.0 + excess)).max(axis=1))
    assert abs(value - float(exact)) <= budget
    assert ability(StructuredRisk([(X[0], 0)], as_array, log_partition=log_partition), Rounding) is None


def matching_features(x, y):
    """The sum over matched pairs (i, y[i]) of their features; `x` is (points, points, features)."""
    return x[np.arange(len(y)), y].sum(axis=0)


def worst_matching(w, x, y):
    """Exact: errors and scores are sums over pairs, so the worst matching is an assignment."""
    errors = np.ones(x.shape[:2])
    errors[np.arange(len(y)), y] = 0.0
    _, worst = linear_sum_assignment(errors + x @ w, maximize=True)
    return worst, float(np.count_nonzero(worst != y))


def matchings(seed, count):
    """Point sets, the second a permuted and disturbed copy of the first; features are distances by coordinate."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        points, order = rng.normal(size=(5, 4)), rng.permutation(5)
        copy = points[order] + rng.normal(size=(5, 4)) * np.array([0.1, 0.5, 2.0, 5.0])
        y = np.empty(5, int)
        y[order] = np.arange(5)
        yield -((points[:, None] - copy[None, :]) ** 2), y


def test_matching_by_assignment_against_all_permutations():
    examples = list(matchings(0, 12))
    risk = StructuredRisk(examples, matching_features, argmax=worst_matching)
    for seed in range(4):
        w = np.random.default_rng(seed).normal(size=4)
        every = [
            max(
                np.count_nonzero(np.array(p) != y) + matching_features(x, np.array(p)) @ w - matching_features(x, y) @ w
                for p in itertools.permutations(range(5))
            )
            for x, y in examples
        ]
        value, subgradient = risk.value_and_subgradient(w)
        assert value == pytest.approx(np.mean(every), rel=1e-12)
        step = np.random.default_rng(seed + 9).normal(size=4)
        further = risk.value_and_subgradient(w + step)[0]
        assert further >= value + subgradient @ step - 1e-10


def test_learned_matching_beats_equal_weights():
    risk = StructuredRisk(list(matchings(0, 60)), matching_features, argmax=worst_matching)
    solution = bmrm.minimize(risk, bmrm.L2(1e-3), tolerance=1e-4)
    assert solution.converged

    def errors(w):
        return np.mean([(linear_sum_assignment(x @ w, maximize=True)[1] != y).mean() for x, y in matchings(1, 200)])

    assert errors(solution.w) < 0.5 * errors(np.ones(4))
    assert solution.w[0] > solution.w[1] > solution.w[2] > solution.w[3] - 0.05


def test_what_it_offers(rows):
    X, y = rows
    risk = StructuredRisk(list(zip(X, y, strict=True)), as_array, argmax=worst_by_margin)
    assert ability(risk, Scored) is None
    assert ability(risk, RowSubsets) is None
    with pytest.raises(IncompatibleError):
        bmrm.minimize(risk, bmrm.L2(0.1), "line_search_bundle")


def test_the_point_stays_as_it_is():
    def careless(w, x, y):
        w[0] = 7.0
        return y, 0.0

    risk = StructuredRisk([(1.0, 0)], lambda x, y: np.array([x, y]), argmax=careless)
    with pytest.raises(ValueError, match="read-only"):
        risk.value_and_subgradient(np.zeros(2))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "either argmax or log_partition"),
        ({"argmax": worst_by_margin, "log_partition": log_partition}, "either argmax or log_partition"),
        ({"argmax": worst_by_margin, "rescale": "both"}, "rescale is 'both'"),
        ({"argmax": worst_by_margin, "weights": [-1.0]}, "weights must be 1"),
        ({"argmax": worst_by_margin, "weights": [0.0]}, "total weight 0"),
    ],
)
def test_wrong_arguments(options, said):
    with pytest.raises(InputError, match=said):
        StructuredRisk([(np.zeros(FEATURES), 0)], as_array, **options)


@pytest.mark.parametrize(
    ("feature", "cost", "said"),
    [
        (np.array([np.nan, 0.0]), 1.0, "not finite"),
        (np.zeros(3), 1.0, r"shape \(3,\), expected \(2,\)"),
        ((np.array([2]), np.array([1.0])), 1.0, "columns outside"),
        (np.zeros(2), -1.0, "cost -1"),
        (np.zeros(2), np.nan, "cost nan"),
    ],
)
def test_wrong_answers_of_the_users_functions(feature, cost, said):
    risk = StructuredRisk([(0, 0)], lambda x, y: feature, argmax=lambda w, x, y: (y, cost), dim=2)
    with pytest.raises(InputError, match=said):
        risk.value_and_subgradient(np.zeros(2))
