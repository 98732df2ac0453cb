"""Magnitudes against dense formulas, and the rounding that they promise against exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr, csr, dense
from bmrm.losses import LOSSES
from bmrm.losses.multivariate_least_squares import MultivariateLeastSquares
from bmrm.problem import ability
from bmrm.problem.abilities import Rounding
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns
from bmrm.risk.rounding import AbsoluteMap
from bmrm.solvers._core.rounding import RoundingError


def data(rows=40, features=5, seed=0, offset=0.0):
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, features)) + offset, random.normal(size=rows)


@pytest.mark.parametrize("held", [None, 7])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scores", [1, 3])
def test_absolute_maps_are_those_of_the_scaled_matrix_without_signs(sparse, scores, held, monkeypatch):
    if held is not None:  # rows at once, the last part being shorter
        monkeypatch.setattr(csr, "ROWS", held)
        monkeypatch.setattr(dense, "BYTES", held * 5 * 8)
    X, _ = data()
    X[np.abs(X) < 0.5] = 0.0
    columns = Columns(scale=np.array([1.0, -2.0, 0.5, 3.0, 1.0]), shift=np.array([0.3, 0.0, -1.0, 2.0, 0.0]))
    import scipy.sparse

    features = Csr.from_scipy(scipy.sparse.csr_array(X)) if sparse else X
    loss = LOSSES.make("least_squares", {}) if scores == 1 else LOSSES.make("softmax", {})
    y = np.arange(40) % 3 if scores == 3 else np.ones(40)
    risk = LinearRisk(Dataset.from_arrays(features, y), loss, bias=True, columns=columns)
    without, random = AbsoluteMap(risk.map), np.random.default_rng(1)
    A = np.column_stack([(np.abs(X) + np.abs(columns.shift)) * np.abs(columns.scale), np.ones(40)])
    v, s = random.uniform(size=(6, scores)), random.uniform(size=(40, scores))
    np.testing.assert_allclose(without.matvec(v.ravel()).reshape(40, -1), A @ v, rtol=1e-13)
    np.testing.assert_allclose(without.rmatvec(np.squeeze(s)).reshape(6, -1), A.T @ s, rtol=1e-13)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
def test_the_budget_covers_the_true_error_of_values_and_planes_that_cancel(offset):
    X, y = data(offset=offset)
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("least_squares", {}))
    random = np.random.default_rng(2)
    v, w = random.normal(size=(2, 5))
    v, w = v - v.mean(), w - w.mean()  # the offset cancels
    (value, a), (there, _) = risk.value_and_subgradient(v), risk.value_and_subgradient(w)
    plane = value + float(a @ (w - v))
    exact = [exact_value(X, y, v), exact_value(X, y, w)]
    slope = exact_slope(X, y, v)
    exact_plane = exact[0] + sum(g * (Fraction(x) - Fraction(z)) for g, x, z in zip(slope, w, v, strict=True))
    error = float(abs(Fraction(plane) - exact_plane)) + float(abs(Fraction(there) - exact[1]))
    size = abs(value) + abs(there) + float(np.abs(a) @ (np.abs(v) + np.abs(w)))
    rounding = RoundingError(risk)
    allowed = rounding.at(w, size, float(np.linalg.norm(v))) + rounding.at(v, 0.0, float(np.linalg.norm(w)))
    assert error <= allowed <= 1e-9 * max(1.0, offset**2)


def exact_value(X, y, w):
    rest = [sum(Fraction(x) * Fraction(v) for x, v in zip(row, w, strict=True)) - Fraction(t) for row, t in zip(X, y)]
    return sum(r * r for r in rest) / (2 * len(rest))


def exact_slope(X, y, w):
    rest = [sum(Fraction(x) * Fraction(v) for x, v in zip(row, w, strict=True)) - Fraction(t) for row, t in zip(X, y)]
    return [sum(r * Fraction(x) for r, x in zip(rest, column, strict=True)) / len(rest) for column in X.T]


def test_a_free_intercept_is_among_what_is_added():
    X, y = data()
    risk = FreeIntercept(LinearRisk(Dataset.from_arrays(X, y + 1e6), LOSSES.make("least_squares", {})))
    found = ability(risk, Rounding).at(np.zeros(5))
    assert found.terms > 1e5 * risk.value_and_subgradient(np.zeros(5))[0]
    assert ability(risk, Rounding).subject == "loss least_squares"


def softmax_slope(X, y, v):
    """From scores that are exact but for the differences of them, which are small."""
    table = [[Fraction(float(entry)) for entry in row] for row in v.reshape(2, 3)]
    slope = np.zeros((2, 3))
    for row, label in zip(X, y, strict=True):
        f = [sum(Fraction(float(x)) * line[k] for x, line in zip(row, table, strict=True)) for k in range(3)]
        p = np.exp([float(each - max(f)) for each in f])
        slope += np.multiply.outer(row, p / p.sum() - np.eye(3)[label])
    return slope.ravel() / len(y)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e5, 1e7])
def test_slopes_made_of_exponents_are_as_wrong_as_scores_far_away(scale):
    """Softmax where scores are `scale`: a plane taken there is off by the rounding of its exponents, times scores."""
    rng, y = np.random.default_rng(1), np.arange(12) % 3
    X = scale * rng.normal(size=(12, 2))
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("softmax"))
    rounding, w = RoundingError(risk), np.zeros(6)
    for _ in range(20):
        v = np.repeat(rng.normal(size=2), 3) + 0.1 / scale * rng.normal(size=6)  # differences of scores are small
        value, a = risk.value_and_subgradient(v)
        allowed = rounding.at(w, abs(value) + float(np.abs(a) @ np.abs(v)), float(np.linalg.norm(v)))
        assert np.abs(a - softmax_slope(X, y, v)) @ np.abs(v) <= allowed


def test_slopes_count_on_both_sides_of_a_kink():
    X, _ = data()
    risk = LinearRisk(Dataset.from_arrays(X, np.ones(40), None), LOSSES.make("least_absolute_deviation", {}))
    w = np.zeros(5)
    risk_at_kink = LinearRisk(Dataset.from_arrays(X, np.zeros(40)), LOSSES.make("least_absolute_deviation", {}))
    np.testing.assert_allclose(ability(risk, Rounding).at(w).sizes, np.abs(X).mean(axis=0))
    np.testing.assert_allclose(ability(risk_at_kink, Rounding).at(w).sizes, np.abs(X).mean(axis=0))


def test_what_cancels_inside_a_row_counts():
    """r'Mr with a nearly singular M: large errors r whose products cancel, so that value and slope are small."""
    M = ((1.0, -1.0), (-1.0, 1.0 + 1e-9))
    y = np.array([[1e3, 1e3], [-2e3, -2e3], [5e2, 5e2]])
    for weights in (None, np.array([1.0, 0.0, 3.0])):
        data = Dataset.from_arrays(np.ones((3, 1)), y, weights)
        risk = LinearRisk(data, MultivariateLeastSquares(M))
        counted = np.ones(3) if weights is None else weights
        size = counted @ (2.0 * y[:, 0] ** 2) / counted.sum()
        assert ability(risk, Rounding).at(np.zeros(2)).terms >= size
