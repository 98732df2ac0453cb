"""A common factor of all sample weights changes nothing: weights of populations, of exposures, of probabilities."""

import numpy as np
import pytest

import bmrm
from bmrm.losses import LOSSES
from bmrm.metrics.core import ScoredRows, evaluate
from bmrm.problem import Status
from bmrm.risk.scaling import SCALINGS
from tests.certificates.problems import REPEATED

ROWS = 30
UNITS = [2.0**-1030, 1e-300, 1e-160, 1e-40, 1e-18, 1e5, 1e8, 1e160, 1e307 / 3]
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(ROWS, 3))
SCORE = X @ [1.0, -1.0, 0.5] + RANDOM.normal(size=ROWS)
WEIGHTS = RANDOM.exponential(size=ROWS) + 0.1
TARGETS = {
    "binary": np.where(SCORE > 0.0, 1, -1),
    "regression": np.abs(SCORE) + 0.1,
    "multiclass": np.arange(ROWS) % 3,
    "ordinal": np.arange(ROWS) % 3,
    "ranking": np.arange(ROWS) % 4,
    "sequence": np.arange(ROWS) % 2,
    "multilabel": [{0, 1}, {1}, {0}] * 10,
    "multivariate": np.column_stack((SCORE, -SCORE)),
    "novelty": None,
}
GROUPS = np.arange(ROWS) // 5


def fitted(loss, solver, weights, **options):
    options = {"tolerance": 1e-6, "regularizer": bmrm.L2(1e-2), "bias": "none"} | options
    return bmrm.fit(X, TARGETS[LOSSES.get(loss).cls.task], loss=loss, solver=solver, sample_weight=weights, **options)


@pytest.mark.parametrize(
    ("loss", "solver"),
    [
        ("hinge", "auto"),
        ("hinge", "semismooth_newton"),
        ("hinge", "dual_coordinate"),
        ("logistic", "semismooth_newton"),
        ("poisson", "dual_coordinate"),
        ("softmax", "dual_coordinate"),
        ("multiclass_hinge", "semismooth_newton"),
        ("roc_area", "bundle"),
        ("logistic", "coordinate_descent"),
        ("logistic", "pegasos"),
    ],
)
def test_a_common_factor_of_weights_changes_no_run(loss, solver):
    options = {"regularizer": bmrm.ElasticNet(1e-2)} if solver == "coordinate_descent" else {}
    plain = fitted(loss, solver, WEIGHTS, **options).solution
    for exponent in (-1000, -60, 27, 900):
        found = fitted(loss, solver, np.ldexp(WEIGHTS, exponent), **options).solution
        assert (found.objective, found.lower_bound) == (plain.objective, plain.lower_bound)
        np.testing.assert_array_equal(found.w, plain.w)
    if solver == "pegasos":
        return
    for unit in UNITS:
        found = fitted(loss, solver, unit * WEIGHTS, **options).solution
        assert found.status is Status.CONVERGED
        assert found.iterations <= 3 * plain.iterations + 3
        assert found.objective == pytest.approx(plain.objective, rel=2e-6)
        assert found.lower_bound <= plain.objective


def test_the_objective_is_that_of_the_mean():
    for unit in UNITS:
        model = fitted("hinge", "auto", unit * WEIGHTS)
        w = model.weights
        mean = np.average(np.maximum(0.0, 1.0 - TARGETS["binary"] * (X @ w)), weights=WEIGHTS)
        assert model.solution.objective == pytest.approx(mean + 0.5e-2 * w @ w, rel=1e-12)


@pytest.mark.parametrize(
    "name", [entry.name for entry in LOSSES.all() if entry.cls.weighted and "ontology" not in entry.name]
)
def test_no_loss_depends_on_the_unit_of_weights(name):
    loss, y = LOSSES.make(name), TARGETS[LOSSES.get(name).cls.task]
    groups = GROUPS if loss.decomposes == "groups" else None
    weights = np.round(WEIGHTS) + 1.0 if name in REPEATED else WEIGHTS
    weights = weights[GROUPS * 5] if loss.task == "sequence" else weights
    values = []
    for unit in (1.0, *UNITS):
        risk = bmrm.LinearRisk(bmrm.Dataset.from_arrays(X, y, unit * weights, groups), loss)
        value, slope = risk.value_and_subgradient(np.linspace(-0.5, 0.5, risk.dim))
        values.append(np.append(slope, value))
    np.testing.assert_allclose(values[1:], [values[0]] * len(UNITS), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("solver", ["auto", "dual_coordinate", "semismooth_newton", "line_search_bundle"])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax", "least_squares"])
def test_bounds_hold_where_weights_are_of_all_sizes(loss, solver):
    weights = 10.0 ** np.random.default_rng(4).uniform(-300, 300, size=ROWS)
    try:
        found = fitted(loss, solver, weights, max_iterations=200).solution
    except bmrm.IncompatibleError:
        return  # softmax has no envelope for semismooth_newton
    best = fitted(loss, "bundle", weights, tolerance=1e-9, max_iterations=500).solution
    assert found.status not in (Status.NOT_CONVEX, Status.NON_FINITE)
    assert found.lower_bound <= best.objective * (1.0 + 1e-12)
    assert best.lower_bound <= found.objective * (1.0 + 1e-12)


def test_a_structured_risk_does_not_depend_on_the_unit_of_weights():
    def risk(unit):
        examples = list(zip(X, TARGETS["binary"], strict=True))
        return bmrm.StructuredRisk(
            examples,
            lambda x, y: 0.5 * y * x,
            argmax=lambda w, x, y: (-y, 1.0) if y * (x @ w) < 1.0 else (y, 0.0),
            weights=unit * WEIGHTS,
        )

    w = np.array([0.3, -0.2, 0.1])
    value, slope = risk(1.0).value_and_subgradient(w)
    for unit in UNITS:
        found = risk(unit).value_and_subgradient(w)
        assert found[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(found[1], slope, rtol=1e-12)


@pytest.mark.parametrize("unit", UNITS)
def test_measures_and_scales_do_not_depend_on_the_unit_of_weights(unit):
    names = ("accuracy", "auc", "average_precision", "balanced_accuracy", "brier")
    y = (TARGETS["binary"] > 0).astype(int)
    found = [
        evaluate(names, ScoredRows(y, X[:, 0], (X[:, 0] > 0) * 1, weights, 2, {}))
        for weights in (WEIGHTS, unit * WEIGHTS)
    ]
    for name in names:
        assert found[1][name] == pytest.approx(found[0][name], rel=1e-12)
    plain, other = (
        SCALINGS["standardize"].columns(bmrm.Dataset.from_arrays(X, y, weights), bmrm.mpi.group.Alone())
        for weights in (WEIGHTS, unit * WEIGHTS)
    )
    np.testing.assert_allclose(other.scale, plain.scale, rtol=1e-12)
    np.testing.assert_allclose(other.shift, plain.shift, rtol=1e-9)
