"""Evaluations of listed rows, read where they lie, against NumPy on copies of the rows."""

from dataclasses import dataclass

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.losses import LOSSES
from bmrm.losses.least_squares import LeastSquares
from bmrm.problem import PreparedLoss
from bmrm.problem.abilities import RowSubsets
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns

ROWS, FEATURES = 40, 7


def table():
    random = np.random.default_rng(2)
    return np.round(random.normal(size=(ROWS, FEATURES)), 3) * (random.random((ROWS, FEATURES)) < 0.5)


def csr(X, values=True):
    row, column = np.nonzero(X)
    indptr = np.searchsorted(row, np.arange(ROWS + 1)).astype(np.int64)
    return Csr(indptr, column.astype(np.int32), X[row, column] if values is True else values, FEATURES)


STORES = {
    "sparse": (csr, lambda X: X),
    "sparse float32": (lambda X: csr(X, X[X != 0.0].astype(np.float32)), lambda X: X.astype(np.float32)),
    "sparse without values": (lambda X: csr(X, None), lambda X: (X != 0.0).astype(float)),
    "dense": (np.ascontiguousarray, lambda X: X),
    "dense float32": (lambda X: X.astype(np.float32), lambda X: X.astype(np.float32)),
}
LISTED = {
    "few": [3, 17, 18, 39],
    "falling, some twice": [30, 30, 21, 4, 4, 4, 0],
    "one": [11],
    "all": range(ROWS),
}


@pytest.mark.parametrize("rows", LISTED.values(), ids=LISTED)
@pytest.mark.parametrize("classes", [2, 3, 13])
@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_value_and_subgradient_of_listed_rows(store, classes, rows):
    rows, random = np.array(rows), np.random.default_rng(classes)
    y, weights = np.arange(ROWS) % classes, random.uniform(0.0, 2.0, ROWS)
    stored, meant = store
    columns = Columns(scale=np.linspace(0.5, 2.0, FEATURES), shift=np.linspace(-1.0, 1.0, FEATURES))
    data = Dataset.from_arrays(stored(table()), y, weights)
    loss = LOSSES.make("hinge" if classes == 2 else "multiclass_hinge")
    risk = LinearRisk(data, loss, bias=True, columns=columns)
    w = random.normal(size=risk.dim)
    X = np.column_stack([(meant(table()) - columns.shift) * columns.scale, np.ones(ROWS)])
    value, gradient = (hinge if classes == 2 else crammer_singer)(X, y, weights, w, rows, classes)
    factor = ROWS / (rows.size * weights.sum())
    found = risk.ability(RowSubsets).value_and_subgradient_of(rows, w)
    assert found[0] == pytest.approx(factor * value, rel=1e-12)
    np.testing.assert_allclose(found[1], factor * gradient, rtol=1e-11, atol=1e-12)


def hinge(X, y, weights, w, rows, classes):
    value, gradient = 0.0, np.zeros(w.size)
    for i in rows:
        sign = 1.0 if y[i] == 1 else -1.0
        short = 1.0 - sign * (X[i] @ w)
        value += weights[i] * max(0.0, short)
        gradient -= weights[i] * sign * (short > 0.0) * X[i]
    return value, gradient


def crammer_singer(X, y, weights, w, rows, classes):
    W = w.reshape(FEATURES + 1, classes)
    value, gradient = 0.0, np.zeros_like(W)
    for i in rows:
        margins = X[i] @ W + (np.arange(classes) != y[i])
        worst = int(np.argmax(margins))
        value += weights[i] * (margins[worst] - X[i] @ W[:, y[i]])
        gradient[:, worst] += weights[i] * X[i]
        gradient[:, y[i]] -= weights[i] * X[i]
    return value, gradient.ravel()


@dataclass(frozen=True)
class Shifted(LeastSquares):
    """1/2 (f - y - b)^2, b learned with w and not minimised out."""

    def prepare(self, targets, summary):
        return PreparedShifted(targets.y)


class PreparedShifted(PreparedLoss):
    scores_per_row = extra_dim = 1
    infimum, smooth = 0.0, True

    def __init__(self, y):
        self.y, self.mass = y, float(y.size)

    def value_and_slope(self, f):
        away = f[:-1] - self.y - f[-1]
        return 0.5 * float(away @ away), np.append(away, -away.sum())

    def take(self, rows):
        return PreparedShifted(self.y[rows])


def test_parameters_of_the_loss_go_along():
    """They are the last numbers of w."""
    X, random = table(), np.random.default_rng(0)
    y, rows = random.normal(size=ROWS), np.array([4, 4, 9, 31])
    risk = LinearRisk(Dataset.from_arrays(csr(X), y), Shifted())
    w = random.normal(size=FEATURES + 1)
    away = X[rows] @ w[:-1] - y[rows] - w[-1]
    value, gradient = risk.ability(RowSubsets).value_and_subgradient_of(rows, w)
    assert value == pytest.approx(0.5 * np.mean(away**2), rel=1e-12)
    np.testing.assert_allclose(gradient, np.append(away @ X[rows], -away.sum()) / rows.size, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_chunks_change_nothing_beyond_rounding(threads, monkeypatch):
    monkeypatch.setattr("bmrm.risk.linear_map.WORK_PER_THREAD", 20)
    monkeypatch.setattr("bmrm.risk.linear_map.CHUNK_ROWS", 3)
    monkeypatch.setattr("bmrm.risk.linear_map.CHUNK_BYTES", 1)
    y = np.where(np.arange(ROWS) % 3 == 0, 1.0, -1.0)
    risk = LinearRisk(Dataset.from_arrays(csr(table()), y), LOSSES.make("hinge"), threads=threads)
    w, rows = np.random.default_rng(0).normal(size=FEATURES), np.arange(1, ROWS, 3)
    value, gradient = hinge(table(), (y + 1) // 2, np.ones(ROWS), w, rows, 2)
    found = risk.ability(RowSubsets).value_and_subgradient_of(rows, w)
    assert found[0] == pytest.approx(value / rows.size, rel=1e-12)
    np.testing.assert_allclose(found[1], gradient / rows.size, rtol=1e-12, atol=1e-14)
