"""Which columns a working set has."""

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import Status
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS, proximal_newton
from bmrm.solvers._core import augmented_lagrangian
from bmrm.solvers._core.working_set import chosen

AWAY = np.array([0.0, 5.0, 1.0, 0.0, 4.0, 3.0, 2.0])
W = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0])


def test_columns_in_use_and_the_largest_violations():
    assert chosen(AWAY, W, 5).tolist() == [0, 1, 2, 3, 4]
    assert chosen(AWAY, W, 2).tolist() == [0, 2, 3]
    assert chosen(AWAY, W, 9).tolist() == list(range(7))


def test_no_more_than_a_matrix_may_have():
    """Then those in use are no more than others: what violates most."""
    assert chosen(AWAY, W, 5, most=2).tolist() == [1, 4]
    assert chosen(AWAY, W, 9, most=3).tolist() == [1, 4, 5]
    assert chosen(AWAY, W, 5, most=6).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("solver", "loss", "penalty"),
    [
        ("proximal_newton", "logistic", "l1"),
        ("proximal_newton", "logistic", "elastic_net"),
        ("semismooth_newton", "logistic", "l1"),
        ("semismooth_newton", "logistic", "elastic_net"),
        ("semismooth_newton", "hinge", "elastic_net"),  # with l1 alone it stalls, and says so
    ],
)
def test_more_weights_in_use_than_a_matrix_may_have(monkeypatch, solver, loss, penalty):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 20))
    risk = LinearRisk(
        Dataset.from_arrays(X, np.where(X.sum(axis=1) + rng.normal(size=300) > 0.0, 1, -1)), LOSSES.make(loss)
    )
    omega = REGULARIZERS.make(penalty, {"lambda": 1e-3})
    free = SOLVERS.make(solver, {"tolerance": 1e-6}).minimize(risk, omega)
    assert np.count_nonzero(free.w) > 12
    for module in (proximal_newton, augmented_lagrangian):
        monkeypatch.setattr(module, "WIDEST", 12)
    few = SOLVERS.make(solver, {"tolerance": 1e-6}).minimize(risk, omega)
    assert few.passes != free.passes
    assert few.status is Status.CONVERGED
    assert few.objective == pytest.approx(free.objective, rel=2e-6)


def test_no_more_columns_are_taken_beside_those_in_use_than_there_are_rows(monkeypatch):
    """20 rows, which any 20 of 2,000 columns fit: early models leave all their columns in use."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 20)) @ rng.normal(size=(20, 2000)) + 0.1 * rng.normal(size=(20, 2000))
    risk = LinearRisk(Dataset.from_arrays(X, np.where(rng.random(20) < 0.5, 1, -1)), LOSSES.make("logistic"))
    beside: list[int] = []

    def noting(away, w, *given, **options):
        columns = chosen(away, w, *given, **options)
        beside.append(np.count_nonzero(w[columns] == 0.0))
        return columns

    monkeypatch.setattr(proximal_newton, "chosen", noting)
    omega = REGULARIZERS.make("l1", {"lambda": 1e-5})
    found = SOLVERS.make("proximal_newton", {"tolerance": 1e-6}).minimize(risk, omega)
    other = SOLVERS.make("coordinate_descent", {"tolerance": 1e-6}).minimize(risk, omega)
    assert found.status is Status.CONVERGED
    assert beside[0] == max(beside) == 64
    assert found.objective == pytest.approx(other.objective, rel=3e-6)


def test_an_elastic_net_may_use_more_columns_than_there_are_rows():
    """Then so many are tried as are in use: with the rows' number a run would be longer by many models."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(8, 3000))
    risk = LinearRisk(Dataset.from_arrays(X, np.where(X[:, :9].sum(axis=1) > 0.0, 1, -1)), LOSSES.make("logistic"))
    omega = REGULARIZERS.make("elastic_net", {"lambda": 1e-3, "l1_ratio": 0.1})
    found = SOLVERS.make("proximal_newton", {"tolerance": 1e-6}).minimize(risk, omega)
    assert found.status is Status.CONVERGED
    assert np.count_nonzero(found.w) > 300
    assert found.iterations < 30
