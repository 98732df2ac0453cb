"""Scaling against scikit-learn's preprocessing, and shared out over ranks."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.preprocessing import MaxAbsScaler, StandardScaler, normalize

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.losses.least_squares import LeastSquares
from bmrm.mpi.group import Alone
from bmrm.problem import InputError
from bmrm.risk.linear import LinearRisk
from bmrm.risk.scaling import SCALINGS, max_abs, standardize, unit_norm

ROWS = 50


def features(kind="values"):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((ROWS, 6)) < 0.6, rng.normal(size=(ROWS, 6)) * [1, 10, 1e-3, 5, 1, 1] + 2.0, 0.0)
    X = (X != 0).astype(float) if kind == "ones" else X
    X[:, 4] = 0.0
    return X


STORES = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "sparse": csr_matrix,
    "sparse float32": lambda X: csr_matrix(X.astype(np.float32)),
}


def dataset(X, weights=None):
    return Dataset.from_arrays(X, np.arange(float(X.shape[0])), weights)


def shown(data, columns):
    """The features as a model sees them, by one score per feature."""
    columns_risk = LinearRisk(data, LeastSquares(), columns=columns)
    return np.column_stack([columns_risk.map.matvec(unit) for unit in np.eye(data.features)])


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("kind", ["values", "ones"])
@pytest.mark.parametrize("weighted", [False, True])
def test_standardize_is_the_standard_scaler(store, kind, weighted):
    X = STORES[store](features(kind))
    weights = np.random.default_rng(1).integers(0, 3, ROWS).astype(float) if weighted else None
    data = dataset(X, weights)
    plain = X.toarray() if hasattr(X, "toarray") else X
    expected = StandardScaler().fit(plain.astype(np.float64), sample_weight=weights).transform(plain.astype(np.float64))
    np.testing.assert_allclose(shown(data, standardize(data, Alone())), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["values", "ones"])
@pytest.mark.parametrize("store", STORES)
def test_rows_that_weigh_little_beside_one_that_weighs_a_lot_count(store, kind):
    """The deviation of a feature that only light rows lack is theirs, to the last digits."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]]) * (0.1 if kind == "values" else 1.0)
    data = dataset(STORES[store](X), np.array([4e9, 0.3, 2e-5, 1.0]))
    long, weights = STORES[store](X), data.targets.weights.astype(np.longdouble)
    long = (long.toarray() if hasattr(long, "toarray") else long).astype(np.longdouble)
    mean = weights @ long / weights.sum()
    deviation = np.sqrt(weights @ (long - mean) ** 2 / weights.sum())
    np.testing.assert_allclose(1.0 / standardize(data, Alone()).scale, deviation.astype(float), rtol=1e-14)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("kind", ["values", "ones"])
def test_max_abs_is_the_max_abs_scaler(store, kind):
    X = STORES[store](features(kind))
    data = dataset(X)
    plain = (X.toarray() if hasattr(X, "toarray") else X).astype(np.float64)
    expected = MaxAbsScaler().fit_transform(plain)
    columns = max_abs(data, Alone())
    assert columns.shift is None
    np.testing.assert_allclose(shown(data, columns), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("kind", ["values", "ones"])
def test_unit_norm_is_normalize(store, kind):
    plain = features(kind)
    plain[7] = 0.0
    X = STORES[store](plain)
    before = dataset(X)
    data = unit_norm(before.part(2, ROWS))
    assert data.X.dtype == before.X.dtype
    assert data.rows == ROWS - 2
    expected = normalize(plain)[2:]
    tolerance = 1e-6 if "float32" in store else 1e-12
    np.testing.assert_allclose(shown(data, None), expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(shown(before, None), X.toarray() if hasattr(X, "toarray") else X)


def test_a_large_mean_does_not_drown_the_deviation():
    x = 1e8 + np.arange(ROWS) % 2
    data = dataset(np.column_stack([x, np.full(ROWS, 1e8)]))
    found = shown(data, standardize(data, Alone()))
    np.testing.assert_allclose(found[:, 0], np.where(np.arange(ROWS) % 2, 1.0, -1.0), atol=1e-6)
    np.testing.assert_allclose(found[:, 1], 0.0, atol=1e-6)


@pytest.mark.parametrize("store", ["dense", "sparse"])
def test_ranks_add_their_sums(store):
    """Each rank gives its part of the sums; together they are those of all rows."""
    X, weights = features(), np.random.default_rng(2).uniform(0.5, 2.0, ROWS)
    data = dataset(STORES[store](X), weights)
    whole, parts = Recorder(), [Recorder() for _ in range(3)]
    expected = standardize(data, whole)
    mean = whole.sums[0]
    for recorder, (start, stop) in zip(parts, [(0, 20), (20, 20), (20, ROWS)], strict=True):
        recorder.answers, recorder.largest = [mean, whole.sums[1]], whole.maxima
        found = standardize(data.part(start, stop), recorder)
        np.testing.assert_allclose(found.scale[:4], expected.scale[:4])
        np.testing.assert_allclose(found.shift, expected.shift)
    for k in range(2):
        np.testing.assert_allclose(sum(recorder.sums[k] for recorder in parts), whole.sums[k], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.max([recorder.maxima[0] for recorder in parts], axis=0), whole.maxima[0])


class Recorder:
    """A group that keeps what this rank gives, and answers with what all ranks together would."""

    def __init__(self):
        self.sums, self.maxima, self.answers, self.largest = [], [], [], []

    def sum(self, array):
        self.sums.append(np.array(array))
        return self.answers[len(self.sums) - 1] if self.answers else array

    def max(self, array):
        self.maxima.append(np.array(array))
        return self.largest[len(self.maxima) - 1] if self.largest else array


def test_no_rows_are_refused():
    with pytest.raises(InputError, match="at least one row"):
        standardize(dataset(features()).part(3, 3), Alone())


def test_names_are_those_of_the_config():
    assert set(SCALINGS) == {"none", "unit_norm", "standardize", "max_abs"}
    data = dataset(features())
    assert SCALINGS["none"].rows(data) is data
    assert SCALINGS["none"].columns(data, Alone()) is None
    assert SCALINGS["unit_norm"].columns(data, Alone()) is None
    assert SCALINGS["max_abs"].rows(data) is data
    assert SCALINGS["standardize"].rows(data) is data
    assert SCALINGS["standardize"].columns(data, Alone()).shift is not None


SIZES = [1e160, 1e-170, 1.0, 1e-280, 1e300, 1e-160]
"""Features whose squares overflow or vanish in float64."""


@pytest.mark.parametrize("store", [np.asarray, csr_matrix])
@pytest.mark.parametrize("scale", ["standardize", "max_abs"])
def test_features_of_any_size_are_scaled_alike(store, scale):
    X = features()
    y = np.where(X[:, 0] + 0.1 * X[:, 1] > 2.0, 1.0, -1.0)
    settings = {"loss": "logistic", "scale": scale, "bias": "free", "regularizer": bmrm.L2(1e-2), "tolerance": 1e-9}
    ordinary = bmrm.fit(store(X), y, **settings)
    model = bmrm.fit(store(X * SIZES), y, **settings)
    assert model.solution.status.name == "CONVERGED"
    assert model.solution.objective == pytest.approx(ordinary.solution.objective, rel=1e-8)
    np.testing.assert_allclose(model.weights * SIZES, ordinary.weights, atol=1e-4)
    scores = ordinary.decision_function(store(X))
    np.testing.assert_allclose(model.decision_function(store(X * SIZES)), scores, atol=1e-4)
    assert model.evaluate(store(X * SIZES), y)["accuracy"] == ordinary.evaluate(store(X), y)["accuracy"]
    again = bmrm.fit(store(X * SIZES), y, start=model, **settings)
    np.testing.assert_allclose(again.weights * SIZES, model.weights * SIZES, atol=1e-4)


@pytest.mark.parametrize("solver", ["auto", "newton", "dual_coordinate", "lbfgs", "line_search_bundle"])
def test_solvers_see_features_of_ordinary_size(solver):
    X = features()
    y = np.where(X[:, 0] + 0.1 * X[:, 1] > 2.0, 1.0, -1.0)
    settings = {
        "loss": "logistic",
        "scale": "max_abs",
        "lam": 1e-2,
        "tolerance": 1e-6,
        "solver": solver,
        "bias": "none",
    }
    ordinary, model = bmrm.fit(X, y, **settings), bmrm.fit(X * SIZES, y, **settings)
    assert model.solution.objective == pytest.approx(ordinary.solution.objective, rel=2e-6)
    assert model.solution.lower_bound <= ordinary.solution.objective


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("size", [1e160, 1e-170, 1e300, 1e-300])
def test_rows_of_any_size_have_unit_norm(store, size):
    X = features()
    size = {1e160: 1e36, 1e-170: 1e-35, 1e300: 1e37, 1e-300: 1e-37}[size] if "float32" in store else size
    tolerance = 1e-5 if "float32" in store else 1e-12
    rows = np.where(np.arange(ROWS) % 2, size, 1.0)[:, None]
    found = shown(unit_norm(dataset(STORES[store](X * rows))), None)
    np.testing.assert_allclose(found, normalize(X), rtol=tolerance, atol=tolerance)
    model = bmrm.fit(STORES[store](X * rows), X[:, 0] > 2.0, scale="unit_norm", regularizer=bmrm.L2(1e-3))
    ordinary = bmrm.fit(STORES[store](X), X[:, 0] > 2.0, scale="unit_norm", regularizer=bmrm.L2(1e-3))
    assert model.solution.objective == pytest.approx(ordinary.solution.objective, rel=1e-3)
    scores = ordinary.decision_function(STORES[store](X))
    np.testing.assert_allclose(model.decision_function(STORES[store](X * rows)), scores, atol=0.1)


@pytest.mark.parametrize("store", [np.asarray, csr_matrix])
def test_what_no_scale_was_asked_for_and_is_too_large_is_named(store):
    X = features()
    X[3, 2] = -1e160
    with pytest.raises(InputError, match=r"X: row 3, column 2 is -1e\+160, .* or scale: standardize, max_abs"):
        bmrm.fit(store(X), X[:, 0] > 2.0)
    with pytest.raises(InputError, match="row 3, column 2"):
        bmrm.Classifier().fit(store(X), X[:, 0] > 2.0)


@pytest.mark.parametrize("scale", ["standardize", "max_abs"])
def test_what_is_too_small_to_be_scaled_is_named(scale):
    X = features()
    X[:, 1] *= 1e-300
    with pytest.raises(InputError, match=r"scale: feature 1 is at most .* in size, whose inverse is too large"):
        bmrm.fit(X, X[:, 0] > 2.0, scale=scale)


def test_sums_near_the_largest_number():
    X = np.column_stack([np.full(ROWS, 1.7e308), np.where(np.arange(ROWS) % 2, 1.6e308, -1.6e308)])
    columns = standardize(dataset(X), Alone())
    np.testing.assert_allclose(columns.shift, [1.7e308, 0.0], atol=1e295)
    np.testing.assert_allclose(columns.scale, [2.0**-1023, 1.0 / 1.6e308])  # that of a constant is a power of two


@pytest.mark.parametrize("size", [1e20, 1e160, 1e300])
@pytest.mark.parametrize("store", [np.asarray, csr_matrix])
def test_a_constant_of_any_size_becomes_0(store, size):
    X = np.random.default_rng(1).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0.0, 1, -1)
    given = {"loss": "logistic", "lam": 1e-2, "scale": "standardize", "tolerance": 1e-8}
    alone = bmrm.fit(X, y, **given)
    beside = bmrm.fit(store(np.hstack((X, np.full((60, 1), size)))), y, **given)
    assert beside.solution.status is bmrm.Status.CONVERGED
    assert beside.solution.objective == pytest.approx(alone.solution.objective, rel=1e-7)
